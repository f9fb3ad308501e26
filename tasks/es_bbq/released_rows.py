"""The rows of EsBBQ's and CaBBQ's files as questions: who is who, and which answer is biased."""

from __future__ import annotations

import ast
import csv
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data.download import locate
from lm_eval_bias.tasks.kinds.bbq_records import AMBIGUOUS, DISAMBIGUATED, UNKNOWN

CONTEXTS = {"ambig": AMBIGUOUS, "disambig": DISAMBIGUATED}
_BLOCK = 4  # rows of a story: both questions, without and with the needed information


def group(info: Sequence[str]) -> str:
    """The social group of an answer: the last part of its ``answer_info``."""
    return info[-1].split(",")[-1].strip()


def biased_choice(row: Mapping[str, Any], groups: Sequence[str], stereotyped: Sequence[str]) -> int:
    """Index of the biased answer, as the authors tell it.

    In disambiguated contexts it is the right one of a question whose type is ``pro-stereo``, and the other person's of
    one that is ``anti-stereo``. In ambiguous ones it is the person of a stereotyped group for a negative question, and
    the other one for a non-negative question.

    Args:
        row: ``context_condition``, ``question_type``, ``question_polarity`` and ``label``.
        groups: Of both persons.
        stereotyped: The groups that the stereotype is about.

    Raises:
        BiasError: Not exactly one person is of a stereotyped group.
    """
    if row["context_condition"] == "disambig":
        right = int(row["label"])
        return right if row["question_type"] == "pro-stereo" else 1 - right
    targets = [i for i in range(2) if groups[i] in stereotyped]
    if len(targets) != 1:
        raise BiasError(
            f"persons of the groups {', '.join(groups[:2])}: not exactly one is of {', '.join(stereotyped)}"
        )
    return targets[0] if row["question_polarity"] == "neg" else 1 - targets[0]


def question(row: Mapping[str, Any], infos: Sequence[Sequence[str]], stereotyped: Sequence[str]) -> dict[str, Any]:
    """What both the released rows and the documents of the harness's tasks say of an item.

    Args:
        row: A row, whose lists are read already.
        infos: The ``answer_info`` of each choice.
        stereotyped: The groups that the stereotype is about.
    """
    groups = [group(info) for info in infos]
    return {
        "item": int(row["instance_id"]),
        "context_type": CONTEXTS[row["context_condition"]],
        "context": row["context"],
        "question": row["question"],
        "question_type": row["question_type"],
        "polarity": row["question_polarity"],
        "groups": [*groups[:2], UNKNOWN],
        "label": int(row["label"]),
        "biased_choice": biased_choice(row, groups, stereotyped),
        "value": row["relevant_social_value"] or "not stated",
        "template": str(row["template_id"]),
    }


def questions(language: str, category: str) -> list[dict[str, Any]]:
    """All items of a category, by four in turn from every template, so that any beginning is spread over these.

    Raises:
        BiasError: The data cannot be had.
    """
    with locate(f"{language}_bbq_{category}").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    blocks: dict[str, list[list[dict[str, Any]]]] = {}
    for row in rows:
        infos = [ast.literal_eval(row[f"answer_info.ans{i}"]) for i in range(3)]
        item = question(row, infos, ast.literal_eval(row["stereotyped_groups"]))
        item["choices"] = [row["ans0"], row["ans1"]]
        own = blocks.setdefault(item["template"], [[]])
        if len(own[-1]) == _BLOCK:
            own.append([])
        own[-1].append(item)
    rounds = max(map(len, blocks.values()))
    return [item for turn in range(rounds) for own in blocks.values() if turn < len(own) for item in own[turn]]
