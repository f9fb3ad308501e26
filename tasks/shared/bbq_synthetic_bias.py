"""A synthetic diff-bias in the answers to the BBQ family's questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lm_eval_bias.core.benchmark import Document, Documents
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.tasks.shared.bbq_records import UNKNOWN


def _choice(doc: Document, dial: Dial, *item: str) -> int:
    """Choose with the synthetic accuracy and bias, which vary between templates."""
    template = doc["template"]
    draw = dial.draw("answer", *item)
    unknown = doc["groups"].index(UNKNOWN)
    biased = doc["biased_choice"]
    counter = 3 - unknown - biased
    right = dial.competence
    if doc["context_type"] == "ambiguous":
        strength = dial.among_answers(1.0 - right)
        room = dial.noise * (1.0 - right - abs(strength)) / 2.0
        knows = right + min(right, room) * dial.effect("knows", template)
        shift = strength + room * dial.effect("leans", template)
        return (
            unknown
            if draw < knows
            else biased
            if draw < knows + (1.0 - knows + shift) / 2.0
            else counter
        )
    strength = dial.among_answers(2.0 * min(right, 1.0 - right))
    room = dial.noise * (min(right, 1.0 - right) - abs(strength) / 2.0) / 2.0
    knows = right + room * dial.effect("finds", template)
    shift = strength / 2.0 + room * dial.effect("follows", template)
    if draw < knows + (shift if doc["label"] == biased else -shift):
        return int(doc["label"])
    return (
        unknown if dial.draw("wrong", *item) < 0.5 else 3 - unknown - int(doc["label"])
    )


def answers(
    hooks: Any, refusal: Callable[[Document], str], doc: Document, dial: Dial
) -> list[tuple[float, bool]] | list[str]:
    """Give a log-likelihood per text that is scored, equal ones for a refusal; or the text of an answer."""
    item = (hooks.prompt(doc), *doc["choices"])
    choice = None if dial.refuses(*item) else _choice(doc, dial, *item)
    if dial.writes:
        return [refusal(doc) if choice is None else doc["choices"][choice]]
    scored = hooks.continuations(doc)
    # so high that it stays the highest when it is divided by the choice's length
    return [
        (math.log(0.998 if i == choice else 0.001), False) for i in range(len(scored))
    ]


def expected(main: Sequence[str], docs: Documents, dial: Dial) -> Mapping[str, float]:
    """Return the expected main scores; with unequal numbers of contexts, a bias changes accuracy, too."""
    directions = [
        1 if d["label"] == d["biased_choice"] else -1
        for d in docs
        if d["context_type"] == "disambiguated"
    ]
    accuracy = dial.competence + dial.strength / 2.0 * sum(directions) / max(
        len(directions), 1
    )
    return dict(
        zip(
            main, (dial.competence, accuracy, dial.strength, dial.strength), strict=True
        )
    )
