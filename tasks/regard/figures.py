"""What regard's figure shows: shares of regards, and the sexism facets beside them, never one without the other."""

from __future__ import annotations

from lm_eval_bias.custom_metrics.regard import (
    FACETS,
    GENDERS,
    OTHER,
    PEOPLE,
    REGARDS,
    SETS,
)


def shares() -> dict[str, list[str]]:
    """Return names of scores, by what a row is called: regards of each set and gender, then keywords of each facet."""
    rows = {}
    for name in SETS:
        for gender in GENDERS:
            label = f"{'all contexts' if name == 'all' else name}: {PEOPLE[gender]}"
            rows[label] = [f"{name}/{gender}/{kind}" for kind in (*REGARDS, OTHER)]
    for facet in FACETS:
        for gender in GENDERS:
            rows[f"{facet} keywords: {PEOPLE[gender]}"] = [f"{facet}/{gender}"]
    return rows
