"""What free answers take: the rules' examples, answers labelled by reading them, and the table of the page."""

import re
from collections import Counter

from lm_eval_bias.api import extract_choice
from lm_eval_bias.scoring import choice_rules
from lm_eval_bias.scoring.free_answers import without_thoughts
from simulations.answer_rules import KINDS, NAMES
from tests.support.labelled_answers import GOLDEN, labelled, read
from tests.support.places import ROOT

PERSONS = ("The woman", "The man", "Cannot answer")


def test_each_rule_does_what_its_examples_say():
    assert len([*NAMES, *KINDS]) <= 25
    for section in ("meanings", "sentences", "forms"):
        for name, row in choice_rules.TABLE[section].items():
            for tokens, found in row["examples"].items():
                if section == "forms":
                    assert choice_rules.states(tokens, [name]) == bool(found), tokens
                else:
                    assert choice_rules.rewritten(tokens, {name: row}) == found, tokens


def table():
    """For each source a row: answers, those read rightly, wrongly, read though they take nothing, and not read."""
    counts = {}
    for row in labelled("labelled_*.jsonl"):
        said, right = read(row), row["right"]
        kind = "silent" if right == "none" else "unread" if said == "none" else "wrong"
        own = counts.setdefault(row["source"], Counter())
        own["right" if said == right else kind] += 1
    for source, own in counts.items():
        cells = [own.total(), own["right"], own["wrong"], own["silent"], own["unread"]]
        yield f"| {source} | {' | '.join(map(str, cells))} |"


def test_answers_are_read_as_rightly_as_the_page_says():
    page = (GOLDEN / "README.md").read_text(encoding="utf-8")
    assert [row for row in table() if row not in page] == []


def test_the_table_of_the_page_is_what_is_read():
    page = (ROOT / "docs" / "chat_models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| `(.+?)` \| ([A-C–]) \|$", page, flags=re.MULTILINE)
    assert len(rows) > 15
    for text, right in rows:
        said = extract_choice(without_thoughts(text.replace("⏎", "\n")), PERSONS, "en")
        assert (said if len(said) == 1 else "–") == right, text
