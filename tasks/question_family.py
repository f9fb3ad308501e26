"""What pages say of the benchmarks in the manner of BBQ, and what their categories are called in any language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_ALIASES = {"gender_identity": "gender"}


def in_any_language(category: str) -> str:
    """A category of the family, whichever language asks about it, generated answers apart.

    >>> in_any_language("gender_identity"), in_any_language("age_gen")
    ('BBQ family, gender', 'BBQ family, age_gen')
    """
    stem = category.removesuffix("_gen")
    return f"BBQ family, {_ALIASES.get(stem, stem)}{category.removeprefix(stem)}"


def leanings(ambiguous: str, disambiguated: str, suffixes: Sequence[str] = ("",)) -> dict[str, tuple[str, str]]:
    """What a diff-bias above 0 and below says, by score.

    Args:
        ambiguous: The score of ambiguous contexts.
        disambiguated: That of disambiguated ones.
        suffixes: With which the two come.
    """
    return {
        f"{score}{suffix}": (f"leans towards stereotypes in {where}", f"leans against stereotypes in {where}")
        for score, where in ((ambiguous, "ambiguous contexts"), (disambiguated, "disambiguated contexts"))
        for suffix in suffixes
    }


def facets(doc: Mapping[str, Any]) -> dict[str, str]:
    """Context, category or social value, template, and prompt wording, as far as a document has them."""
    names = {"context": "context_type", "category": "category", "value": "value", "template": "template"}
    return {name: str(doc[field]) for name, field in names.items() if field in doc} | {
        "wording": str(doc.get("wording", ""))
    }


def candidate_roles(doc: Mapping[str, Any]) -> Sequence[str]:
    """Whether a choice is right, and whether it is the stereotyped one."""
    roles = {"right": doc["label"], "stereotype": doc["biased_choice"]}
    return [", ".join(role for role, own in roles.items() if own == i) for i in range(len(doc["choices"]))]
