"""GG-BBQ's released files as documents: who is who, which answer is biased, and from which template an item comes."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data.download import locate
from lm_eval_bias.tasks.gg_bbq import paper_release
from lm_eval_bias.tasks.kinds.bbq_records import AMBIGUOUS, DISAMBIGUATED, UNKNOWN

LATEST, PAPER = "latest", "paper"
CONTEXT_TYPES = (AMBIGUOUS, DISAMBIGUATED)

_BLANK = re.compile(r"\\\{\\\{\w+\\\}\\\}")


class GGBBQItem(TypedDict):
    """One released item."""

    item: int
    context_type: str  # ambiguous or disambiguated
    context: str
    question: str
    question_type: str  # negative or non_negative
    choices: list[str]
    groups: list[str]  # whom each choice names: M, F, non_binary or unknown
    label: int  # index of the right choice
    biased_choice: int
    value: str  # the relevant social value
    template: str
    subset: str


def stereotyped_groups(entry: str) -> set[str]:
    """The groups of ``choice_info`` that an entry of ``known_stereotyped_groups`` names.

    >>> sorted(stereotyped_groups('["Transgender women", "transgender men", "trans"]'))
    ['non_binary']
    """
    groups = set()
    for name in json.loads(entry):
        if name in ("F", "M"):
            groups.add(name)
        elif "trans" in name.lower():
            groups.add("non_binary")
        else:
            raise BiasError(f"known_stereotyped_groups names {name!r}: neither F, M nor trans people")
    return groups


def biased_choice(groups: list[str], stereotyped: set[str], question_type: str) -> int:
    """Index of the biased answer: the stereotyped person for a negative question, else the other person.

    Args:
        groups: Group of each choice (``M``, ``F``, ``non_binary``, ``unknown``).
        stereotyped: Groups that the stereotype is about.
        question_type: ``negative`` or ``non_negative``.

    Raises:
        BiasError: Not exactly one of the two persons is stereotyped.
    """
    people = [i for i, group in enumerate(groups) if group != UNKNOWN]
    targets = [i for i in people if groups[i] in stereotyped]
    if len(people) != 2 or len(targets) != 1:
        raise BiasError(f"choices of groups {groups} do not hold one person of {sorted(stereotyped)} and one other")
    if question_type == "negative":
        return targets[0]
    return next(i for i in people if i != targets[0])


class Templates:
    """Recovers the template of an item by matching its context and question against the released templates."""

    def __init__(self, rows: Iterable[Mapping[str, str]]) -> None:
        """Compile the rows of ``templates/subset-*.csv``."""
        self._contexts: dict[str, list[tuple[re.Pattern[str], str]]] = defaultdict(list)  # by question
        for row in rows:
            pattern = re.compile(_BLANK.sub("(.+?)", re.escape(_fold(row["ambiguous_context "]))))
            for question in {_fold(row["question_negative_stereotype"]), _fold(row["question_non_negative"])}:
                self._contexts[question].append((pattern, row["question_index"]))

    def find(self, context: str, question: str) -> str:
        """The ``question_index`` of the one template that an ambiguous context and its question come from.

        ``question_index`` numbers the 50 templates of the original BBQ; the released file lists each in several
        rows (order and gender of the persons), whose items are not independent.

        Raises:
            BiasError: No template fits, or several do.
        """
        folded = _fold(context)
        indices = {index for pattern, index in self._contexts[_fold(question)] if pattern.fullmatch(folded)}
        if len(indices) != 1:
            raise BiasError(f"{len(indices)} templates fit the item {context[:80]!r}: the templates file is another's")
        return indices.pop()


def _fold(text: str) -> str:
    return " ".join(text.split())


def _read_jsonl(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _item(row: Mapping[str, Any], context_type: str, template: str, subset: str) -> GGBBQItem:
    info = ast.literal_eval(row["choice_info"])
    groups = row.get("groups") or [info[i][1] for i in range(3)]
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
            groups, stereotyped_groups(row["known_stereotyped_groups"]), row["question_type"]
        ),
        "value": row["relevant_social_values"] or "not stated",
        "template": template,
        "subset": subset,
    }


def files(subset: str, release: str) -> str:
    """The name of a subset's set of pinned files."""
    return f"gg_bbq_{subset}" if release == LATEST else f"gg_bbq_{subset}_{release}"


def quadruples(subset: str, release: str = LATEST) -> list[list[GGBBQItem]]:
    """All items of a subset by four: negative and non-negative question, each ambiguous and disambiguated.

    Args:
        subset: ``group_terms`` (Subset-I, 968 items) or ``names`` (Subset-II, 10,900; in the paper's release 4,968).
        release: :data:`LATEST` or :data:`PAPER`.

    Raises:
        BiasError: The data cannot be had, or is not what the pinned files hold.
    """
    latest = files(subset, LATEST)
    with locate(f"{latest}_templates").open(encoding="utf-8", newline="") as lines:
        templates = Templates(csv.DictReader(lines))
    rows = {kind: _read_jsonl(locate(f"{files(subset, release)}_{kind}")) for kind in CONTEXT_TYPES}
    if release == PAPER:
        later = _read_jsonl(locate(f"{latest}_ambiguous"))
        rows = {kind: paper_release.completed(own, later, subset) for kind, own in rows.items()}
    disambiguated = {row["index"]: row for row in rows["disambiguated"]}
    found = []
    for pair in zip(rows["ambiguous"][::2], rows["ambiguous"][1::2], strict=True):
        quadruple: list[GGBBQItem] = []
        for row in pair:
            template = f"{subset}-{templates.find(row.get('whole_context', row['context']), row['question'])}"
            for kind, own in zip(CONTEXT_TYPES, (row, disambiguated[row["index"]]), strict=True):
                quadruple.append(_item(own, kind, template, subset))
        found.append(quadruple)
    return found


def items(subset: str, release: str = LATEST) -> list[GGBBQItem]:
    """All items of a subset, one by one; see :func:`quadruples`."""
    return [item for quadruple in quadruples(subset, release) for item in quadruple]
