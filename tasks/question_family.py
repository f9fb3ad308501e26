"""What the benchmarks in the manner of BBQ call their categories when languages are compared."""

from __future__ import annotations

_ALIASES = {"gender_identity": "gender"}


def in_any_language(category: str) -> str:
    """A category of the family, whichever language asks about it, generated answers apart.

    >>> in_any_language("gender_identity"), in_any_language("age_gen")
    ('BBQ family, gender', 'BBQ family, age_gen')
    """
    stem = category.removesuffix("_gen")
    return f"BBQ family, {_ALIASES.get(stem, stem)}{category.removeprefix(stem)}"
