"""The release of 2025-07-24, which the paper's numbers rest on, with the columns that only the later release has.

Its files hold texts, choices and the right answer. Who is stereotyped, which question is the negative one and which
group a name stands for is in the later release: Subset-I has the same items under the same index there, and both
releases ask the same 40 questions in Subset-II.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.errors import BiasError

Row = Mapping[str, Any]
TRANS = "non_binary"  # what choice_info calls trans people
OTHER = "not stated"  # a name that the later release has for trans people, of somebody who isn't one here
_IS_TRANS = re.compile(r"(\w+) bezeichnet sich als trans")


def _groups_of_names(rows: Sequence[Row]) -> dict[str, str]:
    return {name.strip(): group for row in rows for name, group in ast.literal_eval(row["choice_info"]).values()}


def _groups(row: Row, of_names: Mapping[str, str]) -> list[str]:
    """Whom each choice names: where the text calls one person trans, that person and nobody else is.

    Names don't tell it: Noah is trans in some texts, and in others Kim is not.

    Raises:
        BiasError: A name that the later release doesn't have, or a trans person who is no choice.
    """
    choices = [row[f"choice_{i}"].strip() for i in range(3)]
    if unknown := [choice for choice in choices if choice not in of_names]:
        raise BiasError(f"item {row['index']}: no group is known for {unknown[0]!r}: the file is another release's")
    trans = _IS_TRANS.search(row["context"])
    if trans is None:
        return [of_names[choice] for choice in choices]
    if trans[1] not in choices:
        raise BiasError(f"item {row['index']}: {trans[1]}, who is trans, is none of {choices}")
    # where two people have one name, the second one is meant, as in all other items
    place = len(choices) - 1 - choices[::-1].index(trans[1])
    others = [OTHER if of_names[choice] == TRANS else of_names[choice] for choice in choices]
    return [TRANS if i == place else group for i, group in enumerate(others)]


def completed(rows: Sequence[Row], later: Sequence[Row], subset: str) -> list[dict[str, Any]]:
    """The paper's rows with the later release's columns.

    Args:
        rows: Ambiguous or disambiguated items of the paper's release.
        later: Ambiguous items of the later release.
        subset: ``group_terms`` or ``names``.

    Raises:
        BiasError: The releases don't fit together.
    """
    names = subset == "names"
    known = {(row["question"].strip() if names else row["index"]): row for row in later}
    of_names = _groups_of_names(later) if names else {}
    complete = []
    for row in rows:
        found = known.get(row["question"].strip() if names else row["index"])
        if found is None or found["question"].strip() != row["question"].strip():
            raise BiasError(f"item {row['index']}: the later release has no question {row['question'].strip()!r}")
        # some of the paper's contexts still have a blank, which no template fits: the later ones are filled
        own = {"groups": _groups(row, of_names)} if names else {"whole_context": found["context"]}
        complete.append({**found, **row, **own})
    return complete
