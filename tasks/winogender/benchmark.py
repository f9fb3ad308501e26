"""Winogender, which the harness runs: its benchmark object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import (
    Document,
    HarnessTasks,
    ItemKey,
)
from lm_eval_bias.tasks.kinds.with_sentences import WithModules

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record

_PRONOUNS = {"": "", "_male": ", he", "_female": ", she", "_neutral": ", they"}
_PARTS = {
    **{f"winogender{suffix or '_all'}": more for suffix, more in _PRONOUNS.items()},
    **{
        f"winogender_gotcha{suffix}": f"{more}; the pronoun's gender is not that of most people in the occupation"
        for suffix, more in _PRONOUNS.items()
        if suffix != "_neutral"
    },
}


class Winogender(WithModules):
    """Gender in English coreference (Rudinger et al. 2018)."""

    name = "winogender"
    title = "Winogender"
    place = 52
    main = ("acc", "gender_gap")
    facets = {"job": "occupation", "gender": "gender"}
    extensions = (
        HarnessTasks(
            {
                name: {
                    "language": "en",
                    "measures": f"the harness's task: whom a pronoun in a sentence refers to{more}",
                }
                for name, more in _PARTS.items()
            }
        ),
    )

    def record(self, doc: Document, answers: Sequence[Any]) -> Record:
        """Tell whether the pronoun refers to the likelier of the two people, of ties the occupation."""
        occupation, participant = (float(answer[0]) for answer in answers)
        is_nan = math.isnan(occupation) or math.isnan(participant)
        return {
            "occupation": str(doc["occupation"]),
            "gender": str(doc["gender"]),
            "correct": math.nan
            if is_nan
            else float(int(participant > occupation) == doc["label"]),
        }

    def key(self, doc: Document) -> ItemKey:
        """Return the sentence, which names the pronoun."""
        return (str(doc["sentence"]),)


BENCHMARK = Winogender()
