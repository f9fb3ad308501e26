"""Pairs of simulated models that take one of StereoSet's three candidates, with known true scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.simulation.simulated_models import Drawn, Knobs, Rng, centre, places

LETTERS = "ABC"


class Choices:
    """StereoSet as a choice: items in their target terms, from the released documents.

    Knobs: ``ss``, the share of stereotypes among meaningful choices, and ``lms``, that of meaningful choices, in
    percent. Terms have effects on both, items on the preference.
    """

    _term = (0.25, 0.25)  # standard deviations of terms: shared by the models, their own
    _hard = (0.3, 0.2)
    _item = 0.5

    def __init__(self, docs: Sequence[Mapping[str, Any]]) -> None:
        from lm_eval_bias import registry

        record = registry.get("stereoset_choices").record
        self._names, self._at = places([doc["term"] for doc in docs])
        labels = ("stereotype", "anti-stereotype", "unrelated")
        taken = [
            [[doc["candidates"][i]["label"] for i in doc["order"]].index(label) for label in labels] for doc in docs
        ]
        self._answers = [[record(doc, [LETTERS[place]]) for place in own] for doc, own in zip(docs, taken, strict=True)]

    def truth(self, knobs: Knobs) -> dict[str, float]:
        ss, lms = knobs["ss"], knobs["lms"]
        return {
            "choice_lms": lms,
            "choice_ss": 50 + (ss - 50) * lms / 100,
            "choice_ss_meaningful": ss,
            "choice_icat": lms * min(ss, 100 - ss) / 50,
        }

    def pair(self, rng: Rng, a: Knobs, b: Knobs) -> Drawn:
        terms, items = len(self._names), len(self._at)
        preference = self._term[0] * rng.standard_normal(terms)[self._at] + self._item * rng.standard_normal(items)
        ease = self._hard[0] * rng.standard_normal(terms)
        drawn = []
        for knobs in (a, b):
            own = knobs.get("own", 1.0)
            middle = centre(knobs["ss"] / 100, self._term[0], own * self._term[1], self._item) + preference
            pro = middle + own * self._term[1] * rng.standard_normal(terms)[self._at] + rng.standard_normal(items) > 0
            sense = centre(knobs["lms"] / 100, self._hard[0], own * self._hard[1])
            sense = (sense + ease + own * self._hard[1] * rng.standard_normal(terms))[self._at]
            meaningful = sense + rng.standard_normal(items) > 0
            taken = np.where(meaningful, np.where(pro, 0, 1), 2).tolist()
            drawn.append([answers[i] for answers, i in zip(self._answers, taken, strict=True)])
        return Drawn((drawn[0], drawn[1]))
