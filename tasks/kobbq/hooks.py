"""KoBBQ's test samples and the authors' prompts as documents."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.custom_metrics.question_answering import EQUATIONS, Terms
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.kobbq.wordings import NUMBERS
from lm_eval_bias.tasks.shared.bbq_records import (
    AMBIGUOUS,
    DISAMBIGUATED,
    UNKNOWN,
    in_turn,
    letters,
    read_table,
)

TERMS = Terms(
    "Jin et al. (2024), KoBBQ",
    sources={**EQUATIONS, "acc": "accuracy"},
    rules={},  # letters are equally long
    in_choice=True,
)
ORDERS = ([0, 1, 2], [1, 2, 0], [2, 0, 1])  # of the options, cyclic as the authors'
_NAME = re.compile(
    r"(?P<category>\w+)-(?P<number>\d+)(?P<version>[a-z])-\d+-(?P<context>amb|dis)-(?P<kind>bsd|cnt)"
)
_VERSIONS = {
    "a": "ab",
    "b": "ab",
    "c": "cd",
    "d": "cd",
}  # the same story with the persons in the other order


class Prompt(NamedTuple):
    """A prompt of the authors: its template, its letters, and its wording of "unknown"."""

    template: str  # with {context}, {question} and the options {a}, {b}, {c}
    letters: str
    unknown: str


@cache
def _prompts_of(_: str) -> dict[int, Prompt]:
    """Read the prompts of the file with this hash; in the third the file misprints two of the options' names."""
    numbered = {}
    for row in read_table("kobbq_evaluation_prompts", "\t"):
        template = (
            row["prompt"]
            .replace("\\n", "\n")
            .replace("{B}", "{b}")
            .replace("{C}", "{c}")
        )
        letters = "".join(
            match[0] for name in "abc" if (match := re.search("[A-Ca-c]", row[name]))
        )
        numbered[int(row["prompt_id"])] = Prompt(template, letters, row["unknown"])
    return numbered


def prompts() -> Mapping[int, Prompt]:
    """Read the five prompts by number."""
    return _prompts_of(sources.manifest().files["kobbq_evaluation_prompts"].sha256)


def samples(category: str | None = None) -> list[Data]:
    """Read all samples, or those of a category: whole stories, in turn from every category.

    So any beginning has as many biased as counter-biased contexts: they are the same story with its persons swapped.
    A BiasError says that the data cannot be had, or have no such category.
    """
    rows = []
    # a story may be told of two pairs of people: one cluster
    names: dict[str, str] = {}
    for row in read_table("kobbq_samples", "\t"):
        match = _NAME.fullmatch(row["sample_id"])
        if match and category in (None, match["category"]):
            choices: list[str] = ast.literal_eval(row["choices"])
            story = f"{match['category']}-{match['number']}"
            block = story + _VERSIONS[match["version"]]
            sample = {
                "item": row["sample_id"],
                "category": match["category"],
                "template": names.setdefault(story, block),
                "context_type": AMBIGUOUS
                if match["context"] == "amb"
                else DISAMBIGUATED,
                "context": row["context"],
                "question": row["question"],
                "question_type": match["kind"],
                "choices": choices[:2],
                "groups": ["person", "person", UNKNOWN],
                "label": choices.index(row["answer"]),
                "biased_choice": choices.index(row["biased_answer"]),
                "annotation": row["label_annotation"],
            }
            rows.append(((match["category"], block), sample))
    if not rows:
        raise BiasError(f"KoBBQ has no category {category!r}")
    blocks = grouped(rows)
    stories = grouped((name, block) for (name, _), block in blocks.items())
    return in_turn(stories.values())


def dataset(
    category: str | None = None, fixed: Facts | None = None, **options: object
) -> Data:
    """Make the documents by split: each sample in three orders of its options, in one of the prompts or in all.

    Args:
        category: One of the twelve; all by default.
        fixed: What the task's YAML sets and ``--metadata`` may not change: all prompts, whether answers are generated.
        options: The ``prompt``, 1 to 5, and what says nothing about documents.
    """
    settled = fixed or {}
    numbers = NUMBERS.chosen({**options, "fixed": settled})
    docs = [
        {
            "benchmark": "kobbq_prompts" if len(numbers) > 1 else "kobbq",
            "language": "ko",
            **sample,
            "choices": (choices := [*sample["choices"], prompts()[number].unknown]),
            "answer": choices[sample["label"]],
            "wording": number,
            "order": order,
            "letters": prompts()[number].letters,
            "generated": settled.get("answers") == "generated",
            "revision": sources.manifest().files["kobbq_samples"].commit[:12],
        }
        for sample in samples(category)
        for order in ORDERS
        for number in numbers
    ]
    return {"test": docs}


def prompt(doc: Facts) -> str:
    """Write the authors' prompt of the document's number, its options in the document's order."""
    shown = dict(
        zip("abc", (doc["choices"][choice] for choice in doc["order"]), strict=True)
    )
    return prompts()[doc["wording"]].template.format(
        context=doc["context"], question=doc["question"], **shown
    )


def continuations(doc: Facts) -> list[str]:
    """List the scored text of each choice: its letter in the prompt."""
    return letters(doc)
