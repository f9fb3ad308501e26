"""KoBBQ's test samples and the authors' prompts, as their files have them."""

from __future__ import annotations

import ast
import csv
import re
from typing import Any, NamedTuple

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data.download import locate
from lm_eval_bias.tasks.kinds.bbq_records import AMBIGUOUS, DISAMBIGUATED, UNKNOWN

_NAME = re.compile(r"(?P<category>\w+)-(?P<number>\d+)(?P<version>[a-z])-\d+-(?P<context>amb|dis)-(?P<kind>bsd|cnt)")
_VERSIONS = {"a": "ab", "b": "ab", "c": "cd", "d": "cd"}  # the same story with the persons in the other order
_MISPRINTS = {"{B}": "{b}", "{C}": "{c}"}


class Prompt(NamedTuple):
    """One of the authors' prompts.

    Attributes:
        template: With ``{context}``, ``{question}`` and the options ``{a}``, ``{b}``, ``{c}``.
        letters: How it letters them.
        unknown: Its wording of the answer that nobody is known.
    """

    template: str
    letters: str
    unknown: str


def _rows(name: str) -> list[dict[str, str]]:
    with locate(name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def prompts() -> dict[int, Prompt]:
    """The five prompts by number; in the third the file misprints two of the options' names."""
    found = {}
    for row in _rows("kobbq_evaluation_prompts"):
        template = row["prompt"].replace("\\n", "\n")
        for misprint, right in _MISPRINTS.items():
            template = template.replace(misprint, right)
        letters = "".join(match[0] for name in "abc" if (match := re.search("[A-Ca-c]", row[name])))
        found[int(row["prompt_id"])] = Prompt(template, letters, row["unknown"])
    return found


def samples(category: str | None = None) -> list[dict[str, Any]]:
    """All samples, or those of a category: whole stories, in turn from every category.

    So any beginning is spread over these, and has as many biased as counter-biased contexts: the two are the same story
    with its persons swapped.

    Raises:
        BiasError: The data cannot be had, or aren't what the pinned files hold.
    """
    stories: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in _rows("kobbq_samples"):
        match = _NAME.fullmatch(row["sample_id"])
        if match is None:
            raise BiasError(
                f"KoBBQ's sample {row['sample_id']!r}: its name differs in form from those of the pinned file"
            )
        if category in (None, match["category"]):
            item = _sample(row, match)
            stories.setdefault(match["category"], {}).setdefault(item["template"], []).append(item)
    if not stories:
        raise BiasError(f"KoBBQ has no category {category!r}")
    own = [list(blocks.values()) for blocks in stories.values()]
    return [
        item for turn in range(max(map(len, own))) for blocks in own for item in (blocks[turn : turn + 1] or [[]])[0]
    ]


def _sample(row: dict[str, str], match: re.Match[str]) -> dict[str, Any]:
    choices: list[str] = ast.literal_eval(row["choices"])
    return {
        "item": row["sample_id"],
        "category": match["category"],
        "template": f"{match['category']}-{match['number']}{_VERSIONS[match['version']]}",
        "context_type": AMBIGUOUS if match["context"] == "amb" else DISAMBIGUATED,
        "context": row["context"],
        "question": row["question"],
        "question_type": match["kind"],
        "choices": choices[:2],
        "groups": ["person", "person", UNKNOWN],
        "label": choices.index(row["answer"]),
        "biased_choice": choices.index(row["biased_answer"]),
        "annotation": row["label_annotation"],
    }
