"""How many labelled answers need each rule by which answers with options are read: every rule is left out in turn.

Run by hand, in the root of a checkout: python -m simulations.answer_rules
"""

from __future__ import annotations

from lm_eval_bias.scoring import choice_rules as rules
from tests.support.labelled_answers import labelled, read

# what stands in for a rule that is left out
NOTHING = {
    "meaning": lambda tokens: tokens,
    "form": lambda clause: "",
    "said": lambda *said: set(),
    "sign": lambda *said: False,
    "walks": lambda sentences: {},
}
KINDS = {
    **dict.fromkeys(("ticked", "only_named"), "said"),
    **dict.fromkeys(("denied", "corrects", "breaks_off", "untold"), "sign"),
    "walks": "walks",
}
LISTS = {
    "MEANINGS": "meaning",
    "SENTENCES": "meaning",
    "FINAL": "form",
    "FIRM": "form",
    "SOFT": "form",
    "AGAIN": "form",
}


def without(name: str) -> list[str]:
    """Read all labelled answers without a rule."""
    kept = vars(rules).copy()
    try:
        for among, kind in LISTS.items():
            own = vars(rules)[among]
            own[:] = [rule if rule.name != name else NOTHING[kind] for rule in own]
        if name in KINDS:
            setattr(rules, name, NOTHING[KINDS[name]])
        return [read(answer) for answer in labelled()]
    finally:
        for among in LISTS:
            vars(rules)[among][:] = LISTED[among]
        vars(rules).update(kept)


LISTED = {among: list(vars(rules)[among]) for among in LISTS}
NAMES = list(dict.fromkeys(rule.name for own in LISTED.values() for rule in own))


def main() -> None:
    """Print a table: a row a rule."""
    right = [answer.right for answer in labelled()]
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
