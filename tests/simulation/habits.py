"""Answers by habits that have nothing to do with content: what else could move a score, beside a bias.

A share of the answers (of the probability, where that is the answer) takes the option shown first, the shortest one or
the one of the most frequent words. The others show a bias so much larger that all together show the strength.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lm_eval_bias.core import registry
from lm_eval_bias.core.planting import Dial, uniform
from lm_eval_bias.tasks.occugender.planted_answers import COVERAGE
from lm_eval_bias.tasks.regard.planted_answers import texts_in
from lm_eval_bias.tasks.stereoset import choices

Document = Mapping[str, Any]
HABITS = ("position", "length", "frequency")


@dataclass(frozen=True)
class Habits(Dial):
    """A dial with one habit at most, and OccuGender's coverage."""

    position: float = 0.0
    length: float = 0.0
    frequency: float = 0.0
    coverage: float = COVERAGE


def frequency(text: str) -> float:
    """A made-up frequency of a text, from 0 to 1, the same in every run."""
    return uniform("frequency", text.lower())


def answers(doc: Document, dial: Dial) -> Sequence[Any]:
    """A document's answers, as its benchmark plants them, or by a habit."""
    planting = registry.get(doc["benchmark"]).planting
    assert planting is not None
    if not isinstance(dial, Habits):
        return planting.answers(doc, dial)
    habit = next((name for name in HABITS if getattr(dial, name)), "")
    by_habit = next(own for field, own in _BY_HABIT.items() if field in doc)
    return by_habit(doc, dial, habit, planting.answers)


Planted = Callable[[Document, Dial], Sequence[Any]]


def _first(texts: Sequence[str], dial: Dial, habit: str, item: Sequence[str]) -> list[int]:
    """Places of texts, those that the habit takes first."""
    keys = {
        "length": lambda i: (len(texts[i]), dial.draw("tie", i, *item)),
        "frequency": lambda i: (-frequency(texts[i]), dial.draw("tie", i, *item)),
    }
    return sorted(range(len(texts)), key=keys[habit])


def _takes(dial: Habits, habit: str, item: Sequence[str]) -> bool:
    return bool(habit) and dial.draw("habit", *item) < getattr(dial, habit)


def _diluted(dial: Habits, habit: str) -> Dial:
    return replace(dial, strength=dial.strength / (1.0 - getattr(dial, habit))) if habit else dial


def _question(doc: Document, dial: Habits, habit: str, planted: Planted) -> Sequence[Any]:
    benchmark: Any = registry.get(doc["benchmark"])
    item = (benchmark.hooks.prompt(doc), *doc["choices"])
    if not _takes(dial, habit, item):
        return planted(doc, _diluted(dial, habit))
    taken = doc["order"][0] if habit == "position" else _first(doc["choices"], dial, habit, item)[0]
    number = len(benchmark.hooks.continuations(doc))
    return [(math.log(0.998 if i == taken else 0.001), False) for i in range(number)]


def _candidates(doc: Document, dial: Habits, habit: str, planted: Planted) -> Sequence[Any]:
    if "order" in doc:
        texts = choices.shown(doc)  # type: ignore[arg-type]
        item = (choices.prompt(doc), *texts)  # type: ignore[arg-type]
        if not _takes(dial, habit, item):
            return planted(doc, _diluted(dial, habit))
        return [choices.LETTERS[0 if habit == "position" else _first(texts, dial, habit, item)[0]]]
    if habit == "position":  # candidates are scored apart: none has one
        return planted(doc, dial)
    item = (doc["context"], *(candidate["sentence"] for candidate in doc["candidates"]))
    if not _takes(dial, habit, item):
        return planted(doc, _diluted(dial, habit))
    texts = [candidate["word"] or candidate["sentence"] for candidate in doc["candidates"]]
    first = _first(texts, dial, habit, item)
    return [((3.0 - first.index(i)) / 4.0, 1) for i in range(len(texts))]


def _words(doc: Document, dial: Habits, habit: str, planted: Planted) -> Sequence[Any]:
    share = 0.0 if habit in ("", "position") else getattr(dial, habit)
    strength = dial.strength / (1.0 - share)
    noise = min((1.0 - abs(dial.strength)) * dial.noise / (1.0 - share) / (1.0 - abs(strength)), 1.0)
    content = [math.exp(value) for value, _ in planted(doc, replace(dial, strength=strength, noise=noise))]
    least = min(map(len, doc["words"]))
    weights = [frequency(word) if habit == "frequency" else float(len(word) == least) for word in doc["words"]]
    mixed = [
        (1.0 - share) * own + share * sum(content) * weight / sum(weights)
        for own, weight in zip(content, weights, strict=True)
    ]
    return [(math.log(max(value * dial.coverage / COVERAGE, 1e-304)), False) for value in mixed]


def _text(doc: Document, dial: Habits, habit: str, planted: Planted) -> Sequence[Any]:
    """By ``length`` a text is twice as long, by ``frequency`` it is one and the same neutral text without keywords."""
    (text,) = planted(doc, _diluted(dial, habit) if habit == "frequency" else dial)
    if habit in ("", "position") or not text or not _takes(dial, habit, (doc["prompt"],)):
        return [text]
    texts, whole = texts_in(doc["language"]), text.removesuffix(".")
    when = whole[whole.rindex(texts["when"].partition("{")[0]) :]
    longer = f"{whole}{texts['longer']}" if habit == "length" else f" {texts['common']}{when}"
    return [longer + text[len(whole) :]]


_BY_HABIT = {"context_type": _question, "candidates": _candidates, "words": _words, "gender": _text}
