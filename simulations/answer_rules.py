"""How many labelled answers need each rule by which answers with options are read: every rule is left out in turn.

Run by hand, in the root of a checkout: python -m simulations.answer_rules
"""

from __future__ import annotations

from lm_eval_bias.scoring import choice_rules as rules
from tests.support.labelled_answers import labelled, read

# rules that are functions, with what stands in for one that is left out
KINDS = {
    "only_named": lambda *said: set(),
    "walks": lambda *said: set(),
    "breaks_off": lambda *said: set(),
    **dict.fromkeys(("denied", "corrects", "untold"), lambda *said: False),
}
SECTIONS = [rules.TABLE[name] for name in ("meanings", "sentences", "forms")]
NAMES = [name for section in SECTIONS for name in section]


def without(name: str) -> list[str]:
    """Read all labelled answers without a rule."""
    kept = vars(rules).copy()
    rows = [section[name] for section in SECTIONS if name in section]
    lists = [(row, dict(row)) for row in rows]
    try:
        for row in rows:
            row.update({"replaces": [], "finds": []})
        if name in KINDS:
            setattr(rules, name, KINDS[name])
        return [read(answer) for answer in labelled()]
    finally:
        for row, whole in lists:
            row.update(whole)
        vars(rules).update(kept)


def main() -> None:
    """Print a table: a row a rule."""
    right = [answer["right"] for answer in labelled()]
    whole = [read(answer) for answer in labelled()]
    print(f"{len(right)} answers, {len(NAMES + list(KINDS))} rules\n")
    print(
        "| rule | read rightly only with it | wrongly without it | rightly only without it |"
    )
    print("|---|---:|---:|---:|")
    for name in [*NAMES, *KINDS]:
        left = without(name)
        rows = list(zip(right, whole, left, strict=True))
        needed = sum(a == b != c for a, b, c in rows)
        wrong = sum(a == b != c and len(c) == 1 for a, b, c in rows)
        spoiled = sum(b != a == c for a, b, c in rows)
        print(f"| `{name}` | {needed} | {wrong} | {spoiled} |")


if __name__ == "__main__":
    main()
