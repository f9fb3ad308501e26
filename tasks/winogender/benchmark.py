"""Winogender, which the harness runs: its benchmark object."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lm_eval_bias.core.benchmark import Document, Documents
from lm_eval_bias.tasks.shared.sized import SizedBenchmark, harness_tasks

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score


class Winogender(SizedBenchmark):
    """Gender in English coreference (Rudinger et al. 2018)."""

    name = "winogender"
    title = "Winogender"
    place = 52
    identity = ("sentence",)
    main = ("acc", "gender_gap")
    clusters = "occupations"
    facets = {"job": "occupation", "gender": "gender"}
    extensions = (
        harness_tasks(
            __package__, lambda doc, _: (doc["occupation"], doc["participant"])
        ),
    )

    def record(self, doc: Document, answers: Answers) -> Record:
        """Return whether the pronoun refers to the likelier of the two people, of ties the occupation."""
        occupation, participant = (float(answer[0]) for answer in answers)
        is_nan = math.isnan(occupation) or math.isnan(participant)
        return {
            "occupation": str(doc["occupation"]),
            "gender": str(doc["gender"]),
            "correct": math.nan
            if is_nan
            else float(int(participant > occupation) == doc["label"]),
        }

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return its scores."""
        from lm_eval_bias.custom_metrics import winogender

        return winogender.scores(docs)


BENCHMARK = Winogender()
