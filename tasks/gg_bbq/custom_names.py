"""Subset-II's items made from the released templates with names of a user's own (``--metadata names=FILE``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.gg_bbq.wordings import LATEST
from lm_eval_bias.tasks.shared import user_files
from lm_eval_bias.tasks.shared.bbq_records import (
    AMBIGUOUS,
    DISAMBIGUATED,
    UNKNOWN,
    read_table,
)

OWN = "own names"
# by their key in a file, what they are called in the released files
TRANS = "non_binary"  # what the released files call trans people
GENDERS = {"male": "M", "female": "F", "trans": TRANS}
# how many items a pair of names has: by a man's and a woman's, by a trans person's and another one's
_ITEMS_A_PAIR = {("male", "female"): 528, ("male", "trans"): 12, ("female", "trans"): 12}  # fmt: skip
OTHER = "not stated"  # somebody who has a trans person's name, and isn't called one
_IS_TRANS = re.compile(r"\{\{(NAME\d)\}\} bezeichnet sich als trans")
UNANSWERED = "keine Antwort"
Names = Mapping[str, Sequence[str]]


def read(path: object, metadata: Facts) -> dict[str, list[str]]:
    """Read a YAML file of names by gender: ``male``, ``female`` and perhaps ``trans``.

    Raises:
        BiasError: It is none, or the task isn't the paper's Subset-II.
    """
    fixed = metadata.get("fixed") or {}
    if metadata.get("subset") != "names" or fixed.get("release") == LATEST:
        raise BiasError("--metadata names: for gg_bbq_names and its variants alone")
    if not isinstance(path, str):
        raise BiasError(f"--metadata names={path!r}: must be the path of a file")
    where = f"names file {path}"
    text = user_files.text_of(path, where)
    return user_files.mapping(
        text, where, "lm_eval_bias.tasks.gg_bbq", "names_schema.json"
    )


def count(names: Names) -> int:
    """Return the number of items that names make."""
    sizes = {gender: len(names.get(gender, ())) for gender in GENDERS}
    return sum(n * sizes[one] * sizes[two] for (one, two), n in _ITEMS_A_PAIR.items())


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text.strip()


def _fillings(
    row: Mapping[str, str], names: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Mapping[str, str], Mapping[str, str]]]:
    """Yield the values of a template's placeholders, and the genders of its two names.

    A template that doesn't say whose name stands first has a woman's and a man's in both orders; one about trans people
    names them first.
    """
    sides = [{"NAME1": "M", "NAME2": "F"}, {"NAME1": "F", "NAME2": "M"}]
    if row["name_info"]:
        sides = [ast.literal_eval(row["name_info"].replace("trans", TRANS))]
    elif "trans" in row["known_stereotyped_groups"]:
        sides = [{"NAME1": TRANS, "NAME2": other} for other in "MF"]
    words = ast.literal_eval(row["lexical_diversity"] or "{}")
    for genders in sides:
        choices = [names[gender] for gender in genders.values()]
        for values in product(*choices, *words.values()):
            yield dict(zip([*genders, *words], values, strict=True)), genders


def groups_with_trans(groups: Sequence[str], person: int | None) -> list[str]:
    """Return each choice's group: the person that the text calls trans is trans, nobody else.

    >>> groups_with_trans(["F", "non_binary", "unknown"], 0)
    ['non_binary', 'not stated', 'unknown']
    """
    if person is None:
        return list(groups)
    others = [OTHER if group == TRANS else group for group in groups]
    return [*others[:person], TRANS, *others[person + 1 :]]


def _rows(row: Mapping[str, str], names: Names) -> Iterator[list[Data]]:
    """Yield a template's items by four, as rows of the released files with their groups."""
    by_group = {GENDERS[gender]: names.get(gender, ()) for gender in GENDERS}
    ambiguous = row["ambiguous_context "]
    contexts = {
        AMBIGUOUS: ambiguous,
        DISAMBIGUATED: f"{ambiguous} {row['disambiguous_context ']}",
    }
    asked = {
        "negative": ("question_negative_stereotype", "correct_answer_negative"),
        "non_negative": ("question_non_negative", "correct_answer_non_negative"),
    }
    for values, genders in _fillings(row, by_group):
        says = _IS_TRANS.search(ambiguous)
        person = list(genders).index(says[1]) if says else None
        groups = groups_with_trans(list(genders.values()), person)
        four = []
        for kind, (question, answer) in asked.items():
            right = list(genders).index(row[answer].strip("{} "))
            for context_type, context in contexts.items():
                choices = [*(values[name] for name in genders), UNANSWERED]
                four.append(
                    {
                        "context_type": context_type,
                        "context": _filled(context, values),
                        "question": _filled(row[question], values),
                        "question_type": kind,
                        "label": 2 if context_type == AMBIGUOUS else right,
                        "groups": [*groups, UNKNOWN],
                        "known_stereotyped_groups": row["known_stereotyped_groups"],
                        "relevant_social_values": row["relevant_social_values"],
                        "template": row["question_index"],
                        **{f"choice_{i}": own for i, own in enumerate(choices)},
                    }
                )
        yield four


def rows(names: Names) -> list[list[Data]]:
    """Make all items of Subset-II by four: both questions, each ambiguous and disambiguated.

    Raises:
        BiasError: The templates can't be had.
    """
    templates = read_table("gg_bbq_names_templates")
    return [four for row in templates for four in _rows(row, names)]
