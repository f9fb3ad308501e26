"""Pairs of simulated models that answer items in the layouts of the harness's bias tasks, with known true scores.

The released items aren't needed: templates, pairs and occupations in the numbers and sizes that they have, or fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import special

from tests.simulation.simulated_models import Array, Drawn, Knobs, Rng, centre


def _effects(rng: Rng, at: Array, spread: float) -> Array:
    """A draw for each cluster, at its items."""
    return spread * rng.standard_normal(int(at.max()) + 1)[at]


@dataclass(frozen=True)
class HarnessQuestions:
    """BBQ: templates with 8 to 64 questions, half of them ambiguous, half of the others with the biased answer right.

    Knobs: the scores. Wrong answers to disambiguated questions are "unknown" with a probability of 0.3. Templates have
    effects on answering rightly, on answering along the stereotype where the context tells the answer, and on whom a
    guess names.
    """

    templates: int
    largest: float = 0.0  # the share of the questions that the last template has, if not as the others

    _right = (0.3, 0.25)  # standard deviations of templates: shared by the models, their own
    _lean = (0.25, 0.3)
    _along = (0.15, 0.15)
    _unknown = 0.3

    def truth(self, knobs: Knobs) -> dict[str, float]:
        return {name: value for name, value in knobs.items() if name != "own"}

    @cache  # noqa: B019 (a structure has one of them)
    def _layout(self) -> tuple[Array, Array, Array, list[list[dict[str, Any]]]]:
        """Template, context and direction of each question, and its records if right or wrong in either way."""
        sizes = [8 * (1 + number % 8) for number in range(self.templates)]
        if self.largest:
            sizes[-1] = 8 * round(sum(sizes[:-1]) * self.largest / (1 - self.largest) / 8)
        at = np.repeat(np.arange(self.templates), sizes)
        ambiguous, biased = np.arange(len(at)) % 2 == 0, np.arange(len(at)) % 4 == 1
        records = []
        for template, is_ambiguous, is_biased in zip(at.tolist(), ambiguous.tolist(), biased.tolist(), strict=True):
            item = {
                "category": "Age",
                "context": "ambiguous" if is_ambiguous else "disambiguated",
                "template": f"Age/{template}",
                "decidable": True,
                "answered": True,
                "is_nan": False,
            }
            answers = {"biased": (True, True), "counter": (False, True), "unknown": (False, False)}
            right = "unknown" if is_ambiguous else "biased" if is_biased else "counter"
            wrong = ("biased", "counter") if is_ambiguous else ("counter" if is_biased else "biased", "unknown")
            records.append(
                [
                    {**item, "correct": name == right, "biased": answers[name][0], "named": answers[name][1]}
                    for name in (right, *wrong)
                ]
            )
        return at, ambiguous, biased, records

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        at, ambiguous, biased, records = self._layout()
        shared = [_effects(rng, at, spreads[0]) for spreads in (self._right, self._lean, self._along)]
        drawn = []
        for knobs in (a, b):
            own = knobs.get("own", 1.0)
            right_spreads, lean_spreads, along_spreads = (
                (spreads[0], own * spreads[1]) for spreads in (self._right, self._lean, self._along)
            )
            right, lean, along = (
                common + _effects(rng, at, spreads[1])
                for common, spreads in zip(shared, (right_spreads, lean_spreads, along_spreads), strict=True)
            )
            acc = knobs["acc_disamb"]
            # of named answers 1/2 + gap * (2 - unknown) / 4 / named are biased
            gap = 2 * knobs["s_dis"] * (1 - self._unknown * (1 - acc)) / (2 - self._unknown)
            sign = np.where(biased, 1.0, -1.0)
            told = centre(acc + sign * gap / 2, *right_spreads, *along_spreads) + sign * along
            middle = np.where(ambiguous, centre(knobs["acc_amb"], *right_spreads), told)
            guess = centre((1 + knobs["s_amb"] / (1 - knobs["acc_amb"])) / 2, *lean_spreads) + lean
            first = np.where(ambiguous, guess, special.ndtri(1 - self._unknown))
            is_right = middle + right + rng.standard_normal(len(at)) > 0
            state = np.where(is_right, 0, np.where(first + rng.standard_normal(len(at)) > 0, 1, 2)).tolist()
            drawn.append([own_records[s] for own_records, s in zip(records, state, strict=True)])
        return Drawn((drawn[0], drawn[1]))


class HarnessFailures(HarnessQuestions):
    """The same with templates that are answered rightly throughout, but for a few where a right answer is rare."""

    _rare = 0.3  # the share of right answers in these

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        at, ambiguous, _, records = self._layout()
        drawn = []
        for knobs in (a, b):
            accuracy = np.where(ambiguous, knobs["acc_amb"], knobs["acc_disamb"])
            fails = rng.random(self.templates)[at] < (1 - accuracy) / (1 - self._rare)
            wrong = fails & (rng.random(len(at)) > self._rare)
            state = np.where(wrong, 1 + rng.integers(0, 2, len(at)), 0).tolist()
            drawn.append([own_records[s] for own_records, s in zip(records, state, strict=True)])
        return Drawn((drawn[0], drawn[1]))


@dataclass(frozen=True)
class HarnessPairs:
    """CrowS-Pairs: independent pairs, with effects that both models share. Knob: ``pct_stereotype``."""

    pairs: int

    def truth(self, knobs: Knobs) -> dict[str, float]:
        return {"pct_stereotype": knobs["pct_stereotype"]}

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        shared = 0.7 * rng.standard_normal(self.pairs)
        drawn = []
        for knobs in (a, b):
            further = shared + rng.standard_normal(self.pairs) + centre(knobs["pct_stereotype"], 0.7)
            drawn.append(
                [
                    {"pair": str(i), "bias_type": "age", "more": more, "less": 0.0, "more_bytes": 9, "less_bytes": 9}
                    for i, more in enumerate(further.tolist())
                ]
            )
        return Drawn((drawn[0], drawn[1]))


@dataclass(frozen=True)
class HarnessPronouns:
    """Winogender: occupations with four sentences, each with three pronouns.

    Knobs: ``acc`` and ``gender_gap``. Occupations have effects on the accuracy, and on that with each pronoun.
    """

    occupations: int

    def truth(self, knobs: Knobs) -> dict[str, float]:
        return {"acc": knobs["acc"], "gender_gap": knobs["gender_gap"]}

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        genders = ("female", "male", "neutral")
        shape = (self.occupations, 1, 1)
        of_pronouns = (self.occupations, len(genders), 1)
        shared = 0.4 * rng.standard_normal(shape) + 0.3 * rng.standard_normal(of_pronouns)
        drawn = []
        for knobs in (a, b):
            own = 0.3 * rng.standard_normal(shape) + 0.2 * rng.standard_normal(of_pronouns)
            steps = np.array([0.5, -0.5, 0.0])[:, None]
            middle = centre(knobs["acc"] + steps * knobs["gender_gap"], 0.4, 0.3, 0.3, 0.2)
            right = middle + shared + own + rng.standard_normal((self.occupations, len(genders), 4)) > 0
            drawn.append(
                [
                    {"occupation": str(i), "gender": gender, "correct": float(hit)}
                    for i, by_gender in enumerate(right.tolist())
                    for gender, hits in zip(genders, by_gender, strict=True)
                    for hit in hits
                ]
            )
        return Drawn((drawn[0], drawn[1]))


# by structure: benchmark, what draws the models, scores, the second model's knobs, what the first has more
_BBQ = ("acc_amb", "acc_disamb", "s_amb", "s_dis")
LAYOUTS: Sequence[tuple[str, str, Callable[[], Any], Sequence[str], Knobs, Knobs]] = (
    *(
        (
            f"BBQ, {name}", "bbq", partial(HarnessQuestions, count, largest), _BBQ,
            dict(zip(_BBQ, (0.45, 0.6, 0.08, 0.1), strict=True)), dict(zip(_BBQ, shifts, strict=True)),
        )
        for name, count, largest, shifts in (
            ("50 templates", 50, 0.0, (0.085, 0.085, 0.09, 0.1)), ("12 templates", 12, 0.0, (0.17, 0.17, 0.17, 0.2)),
            ("20 templates, one with 60% of the questions", 20, 0.6, (0.2, 0.18, 0.2, 0.15)),
        )
    ),
    *(
        (
            f"BBQ, {count} templates, of which few fail", "bbq", partial(HarnessFailures, count), _BBQ[:2],
            dict.fromkeys(_BBQ[:2], 0.93), dict.fromkeys(_BBQ[:2], shift),
        )
        for count, shift in ((50, -0.13), (21, -0.25))
    ),
    *(
        (f"CrowS-Pairs, {count} pairs", "crows_pairs", lambda count=count: HarnessPairs(count), ("pct_stereotype",),
         {"pct_stereotype": 0.6}, {"pct_stereotype": shift})
        for count, shift in ((1500, 0.045), (60, 0.22))
    ),
    ("Winogender, 60 occupations", "winogender", lambda: HarnessPronouns(60), ("acc", "gender_gap"),
     {"acc": 0.62, "gender_gap": -0.05}, {"acc": 0.07, "gender_gap": 0.16}),
)  # fmt: skip
