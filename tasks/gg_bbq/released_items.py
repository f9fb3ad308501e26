"""GG-BBQ's released files as documents: who is who, which answer is biased, and from which template an item comes.

The paper's numbers rest on the release of 2025-07-24, whose files hold texts, choices and the right answer alone. Who
is stereotyped, which question is the negative one and which group a name stands for is in the later release: Subset-I
has the same items under the same index there, and both releases ask the same 40 questions in Subset-II.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.tasks.gg_bbq import custom_names
from lm_eval_bias.tasks.gg_bbq.custom_names import TRANS
from lm_eval_bias.tasks.gg_bbq.wordings import LATEST, PAPER
from lm_eval_bias.tasks.shared.bbq_records import (
    AMBIGUOUS,
    DISAMBIGUATED,
    UNKNOWN,
    read_table,
)

CONTEXT_TYPES = (AMBIGUOUS, DISAMBIGUATED)
Row = Facts
_BLANK = re.compile(r"\\\{\\\{\w+\\\}\\\}")
_IS_TRANS = re.compile(r"(\w+) bezeichnet sich als trans")


def biased_choice(
    groups: Sequence[str], known_stereotyped: str, question_type: str
) -> int:
    """Find the index of the biased answer: the stereotyped person for a negative question, else the other person.

    Args:
        groups: Group of each choice (``M``, ``F``, ``non_binary``, ``unknown``).
        known_stereotyped: The file's list of the groups that the stereotype is about.
        question_type: ``negative`` or ``non_negative``.

    >>> biased_choice(["unknown", "F", "non_binary"], '["Transgender women", "trans"]', "negative")
    2
    """
    stereotyped = {
        TRANS if "trans" in name.lower() else name
        for name in json.loads(known_stereotyped)
    }
    people = [i for i, group in enumerate(groups) if group != UNKNOWN]
    target = next(i for i in people if groups[i] in stereotyped)
    return target if question_type == "negative" else sum(people) - target


def _fold(text: str) -> str:
    return " ".join(text.split())


def templates(rows: Iterable[Mapping[str, str]]) -> Callable[[str, str], str]:
    """Make a function that finds the template of an ambiguous context and its question.

    It gives its ``question_index``, a number of the 50 templates of the original BBQ; the released file lists each in
    several rows (order and gender of the persons), whose items are not independent.

    Args:
        rows: Of ``templates/subset-*.csv``.
    """
    patterns = defaultdict(list)  # by question
    for row in rows:
        pattern = re.compile(
            _BLANK.sub("(.+?)", re.escape(_fold(row["ambiguous_context "])))
        )
        for question in {
            _fold(row["question_negative_stereotype"]),
            _fold(row["question_non_negative"]),
        }:
            patterns[question].append((pattern, row["question_index"]))

    def find(context: str, question: str) -> str:
        text = _fold(context)
        return next(
            index
            for pattern, index in patterns[_fold(question)]
            if pattern.fullmatch(text)
        )

    return find


def _groups(row: Row, of_names: Mapping[str, str]) -> list[str]:
    """Return each choice's group; a person that the text calls trans is trans, nobody else.

    Names don't tell it: Noah is trans in some texts, and in others Kim is not.
    """
    choices = [row[f"choice_{i}"].strip() for i in range(3)]
    groups = [of_names[choice] for choice in choices]
    trans = _IS_TRANS.search(row["context"])
    # where two people have one name, the second one is meant, as in all other items
    place = len(choices) - 1 - choices[::-1].index(trans[1]) if trans else None
    return custom_names.groups_with_trans(groups, place)


def completed(rows: Sequence[Row], later: Sequence[Row], subset: str) -> list[Data]:
    """Add the columns of the later release's ambiguous items to the paper's rows of one kind of context."""
    if subset == "names":
        of_names = {
            n.strip(): g
            for row in later
            for n, g in ast.literal_eval(row["choice_info"]).values()
        }
        asked = {row["question"].strip(): row for row in later}
        return [
            {**asked[row["question"].strip()], **row, "groups": _groups(row, of_names)}
            for row in rows
        ]
    known = {row["index"]: row for row in later}
    # some of the paper's contexts still have a blank, which no template fits: the later ones are filled
    whole = [known[row["index"]] for row in rows]
    return [
        {**full, **row, "whole_context": full["context"]}
        for row, full in zip(rows, whole, strict=True)
    ]


def _item(row: Row, context_type: str, template: str, subset: str) -> Data:
    groups = row.get("groups")
    if groups is None:
        info = ast.literal_eval(row["choice_info"])
        groups = [info[i][1] for i in range(3)]
    # a few upstream choices end in a space, which would be scored as a token of the answer
    return {
        "item": int(row["index"]),
        "context_type": context_type,
        "context": row["context"].strip(),
        "question": row["question"].strip(),
        "question_type": row["question_type"],
        "choices": [row[f"choice_{i}"].strip() for i in range(3)],
        "groups": groups,
        "label": int(row["label"]),
        "biased_choice": biased_choice(
            groups, row["known_stereotyped_groups"], row["question_type"]
        ),
        "value": row["relevant_social_values"] or "not stated",
        "template": template,
        "subset": subset,
    }


def of_names(names: custom_names.Names) -> list[list[Data]]:
    """Make Subset-II's items by four from the released templates and a user's names."""
    by_four: list[list[Data]] = []
    for four in custom_names.rows(names):
        by_four.append([])
        for place, row in enumerate(four):
            number = 2 * (len(by_four) - 1) + place // 2
            template = f"names-{row['template']}"
            made = _item(
                {**row, "index": number}, row["context_type"], template, "names"
            )
            by_four[-1].append(made)
    return by_four


def files(subset: str, release: str) -> str:
    """Name a subset's set of pinned files."""
    return f"gg_bbq_{subset}" if release == LATEST else f"gg_bbq_{subset}_{release}"


def quadruples(subset: str, release: str = PAPER) -> list[list[Data]]:
    """Read all items of a subset by four: negative and non-negative question, each ambiguous and disambiguated.

    Subset ``group_terms`` (Subset-I) has 968 items, ``names`` (Subset-II) 4,968, in the latest release 10,900.
    """
    from lm_eval_bias.data.sources import locate

    def read(release: str, kind: str) -> list[Data]:
        text = locate(f"{files(subset, release)}_{kind}").read_text(encoding="utf-8")
        return list(map(json.loads, filter(str.strip, text.split("\n"))))

    template_of = templates(read_table(f"{files(subset, LATEST)}_templates"))
    ambiguous, disambiguated = (read(release, kind) for kind in CONTEXT_TYPES)
    if release == PAPER:
        later = read(LATEST, AMBIGUOUS)
        ambiguous = completed(ambiguous, later, subset)
        disambiguated = completed(disambiguated, later, subset)
    by_index = {row["index"]: row for row in disambiguated}
    by_four: list[list[Data]] = []
    for number, row in enumerate(ambiguous):
        if number % 2 == 0:
            by_four.append([])
        context = row.get("whole_context") or row["context"]
        template = f"{subset}-{template_of(context, row['question'])}"
        for kind, shown in zip(
            CONTEXT_TYPES, (row, by_index[row["index"]]), strict=True
        ):
            by_four[-1].append(_item(shown, kind, template, subset))
    return by_four
