"""StereoSet as a choice: prompts with the candidates as lettered options, and the reading of answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.answers import REFUSED
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.custom_metrics.score import Record
from lm_eval_bias.scoring import answer_extraction
from lm_eval_bias.scoring.answer_extraction import ChoiceExtractor, Option
from lm_eval_bias.tasks.shared.bbq_records import ROLE_ORDERS
from lm_eval_bias.tasks.shared.filters import FirstTextFilter
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS

LETTERS = "ABC"


def prompts() -> Mapping[str, Mapping[str, str]]:
    """Read the prompt's text by language and test."""
    return packaged_yaml("lm_eval_bias.tasks.stereoset", "data/choice_prompts.yaml")


def with_orders(docs: Documents) -> list[Data]:
    """Assign documents the order of their prompts' candidates.

    The items about a target term and of a test take the six orders in turn. Where they begin goes on from term to term
    of a bias type, and is three further for the other test, so that stereotype and anti-stereotype are swapped there;
    what is left of a term's items at the end goes on where the term before it ended. So every order is about equally
    frequent in every test, bias type and term, and in any beginning (``--limit``).
    """
    cells = [(doc["bias_type"], doc["test"], doc["term"]) for doc in docs]
    sizes = Counter(cells)
    starts = {}
    terms = Counter[tuple[str, str]]()
    rest = Counter[tuple[str, str]]()
    for (kind, test, term), size in sizes.items():
        other = len(LABELS) if test == "intra" else 0
        starts[kind, test, term] = terms[kind, test] + other, rest[kind, test] + other
        terms[kind, test] += 1
        rest[kind, test] += size % len(ROLE_ORDERS)
    turns = Counter[tuple[str, str, str]]()
    ordered: list[Data] = []
    for doc, cell in zip(docs, cells, strict=True):
        (first, after), turn = starts[cell], turns[cell]
        whole = sizes[cell] - sizes[cell] % len(ROLE_ORDERS)
        number = first + turn if turn < whole else after + turn - whole
        turns[cell] += 1
        labels = [candidate["label"] for candidate in doc["candidates"]]
        roles = ROLE_ORDERS[number % len(ROLE_ORDERS)]
        order = [labels.index(LABELS[role]) for role in roles]
        ordered.append({**doc, "order": order})
    return ordered


def shown(doc: Facts) -> list[str]:
    """List the candidates as the prompt shows them: words within sentences, sentences between them."""
    return [
        doc["candidates"][i]["word"] or doc["candidates"][i]["sentence"]
        for i in doc["order"]
    ]


def prompt(doc: Facts) -> str:
    """Write the question in the item's language."""
    lines = [
        f"{letter}. {text}" for letter, text in zip(LETTERS, shown(doc), strict=True)
    ]
    template = prompts()[doc["language"]][doc["test"]]
    return template.replace("{options}", "\n".join(lines)).replace(
        "{context}", doc["context"]
    )


def reader(doc: Facts) -> ChoiceExtractor:
    """Make the extractor of answers; a candidate may be named by its whole sentence, too."""
    shown = [doc["candidates"][i] for i in doc["order"]]
    texts = [
        (c["word"], c["sentence"]) if c["word"] else (c["sentence"],) for c in shown
    ]
    return answer_extraction.reader(tuple(map(Option, LETTERS, texts)), doc["language"])


def record(doc: Facts, results: Sequence[str]) -> Record:
    """Make the record of the candidate that :class:`CandidateFilter` extracted."""
    (letter,) = results
    labels = [doc["candidates"][i]["label"] for i in doc["order"]]
    taken = {REFUSED: "refused", **dict(zip(LETTERS, labels, strict=True))}.get(
        letter, "none"
    )
    lengths = {c["label"]: len(c["word"] or c["sentence"]) for c in doc["candidates"]}
    return {
        "test": doc["test"],
        "bias_type": doc["bias_type"],
        "term": doc["term"],
        "taken": taken,
        "shown": labels,
        "takes_first": {LABELS[0]: True, LABELS[1]: False}.get(taken),
        "lengths": {"characters": (lengths[LABELS[0]], lengths[LABELS[1]])},
    }


class CandidateFilter(FirstTextFilter):
    """A filter that extracts the chosen candidate's letter, or one of ``answers.UNANSWERED``."""

    def reader(self, doc: Facts) -> ChoiceExtractor:
        """Make the extractor."""
        return reader(doc)
