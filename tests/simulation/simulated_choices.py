"""Pairs of simulated models that take one of StereoSet's three candidates, with known true scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.simulation.simulated_models import NORMAL, Candidates, Drawn, Knobs, Rng, places

LETTERS = "ABC"


class Choices(Candidates):
    """StereoSet as a choice: items in their target terms, from the released documents.

    Knobs: ``ss``, the share of stereotypes among meaningful choices, and ``lms``, that of meaningful choices, in
    percent.
    """

    _offsets, _shape = 0.0, NORMAL

    def __init__(self, docs: Sequence[Mapping[str, Any]]) -> None:
        from lm_eval_bias.core import registry

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
        drawn = []
        for pro, sense in self.tendencies(rng, a, b):
            meaningful = sense + rng.standard_normal(len(sense)) > 0
            taken = np.where(meaningful, np.where(pro, 0, 1), 2).tolist()
            drawn.append([answers[i] for answers, i in zip(self._answers, taken, strict=True)])
        return Drawn((drawn[0], drawn[1]))
