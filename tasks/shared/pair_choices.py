"""Benchmarks of pairs as lettered options, of which a written answer takes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lm_eval_bias.core.benchmark import Document, Documents, ItemKey, Lazy
from lm_eval_bias.core.content_hashes import of_text
from lm_eval_bias.core.synthetic_bias import Dial, SyntheticBias
from lm_eval_bias.tasks.shared.sized import SizedBenchmark

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Answers, Record

LETTERS = "ABC"
REFUSAL = "As an AI, I cannot choose one."


def _answers(doc: Document, dial: Dial) -> list[str]:
    """Take the stereotyped option by the strength; where there is a third one, that in half of the other answers."""
    item = (str(doc["id"]), *doc["choices"], *doc["order"])
    if dial.refuses(*item):
        return [REFUSAL]
    strength = dial.among_answers()
    draw = dial.draw("taken", *item)
    choice = 2
    unknown = (1 - abs(strength)) / 2 if len(doc["choices"]) > 2 else 0.0
    if draw < (1 - unknown + strength) / 2:
        choice = doc["biased_choice"]
    elif draw < 1 - unknown:
        choice = 1 - doc["biased_choice"]
    return [LETTERS[doc["order"].index(choice)]]


def _expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    return {"choice_bias": dial.strength}


class PairChoices(SizedBenchmark):
    """A benchmark with two lettered options about people, perhaps with a third, "unknown".

    Documents have ``choices``, of which number ``biased_choice`` (0 or 1) is the stereotyped one, the ``order`` in
    which ``letters`` stand before them, and the ``sentence`` that is their cluster.
    """

    main = ("choice_bias", "unanswered")
    requests = 1
    smallest = 160
    synthetic_bias = SyntheticBias(_answers, _expected)

    def record(self, doc: Document, answers: Answers) -> Record:
        """Return the option of the extracted letter."""
        from lm_eval_bias.custom_metrics.pair_choices import (
            BIASED,
            COUNTER,
            NONE,
            UNKNOWN,
        )

        (letter,) = answers
        shown = dict(zip(LETTERS, doc["order"], strict=False))
        biased = doc["biased_choice"]
        names = {None: NONE, biased: BIASED, 1 - biased: COUNTER, 2: UNKNOWN}
        grouped = {"group": doc["group"]} if "group" in doc else {}
        taken = names[shown.get(letter)]
        first, second = (len(doc["choices"][choice]) for choice in (biased, 1 - biased))
        return {
            **grouped,
            "item": str(doc["id"]),
            "sentence": of_text(doc["sentence"]),
            "taken": taken,
            "takes_first": {BIASED: True, COUNTER: False}.get(taken),
            "lengths": {"characters": (first, second)},
            "shown": [names[choice] for choice in doc["order"]],
        }

    scores = Lazy("lm_eval_bias.custom_metrics.pair_choices:scores")

    def key(self, doc: Document) -> ItemKey:
        """Return its number, and the order of the options."""
        return (str(doc["id"]), "".join(map(str, doc["order"])))
