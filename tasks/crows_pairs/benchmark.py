"""CrowS-Pairs: the pairs that Dutch, French and English share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from lm_eval_bias.core import run_data
from lm_eval_bias.core.benchmark import (
    STRUCTURED,
    Asking,
    Document,
    Documents,
    Lazy,
    Options,
    Presentation,
)
from lm_eval_bias.core.questions import Contrast
from lm_eval_bias.core.synthetic_bias import Dial, SyntheticBias
from lm_eval_bias.tasks.shared.pair_choices import PairChoices
from lm_eval_bias.tasks.shared.sized import SizedBenchmark

if TYPE_CHECKING:
    pass


def _answers(doc: Document, dial: Dial) -> list[tuple[float, int]]:
    """Make the more stereotyping sentence likelier with probability (1 + strength) / 2."""
    draw = dial.draw("more", *doc["sentences"])
    share = (1.0 + dial.strength) / 2.0
    return [(math.log(0.9 if draw < share else 0.1), 1), (math.log(0.5), 1)]


def _expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    return {"stereotype_score": 50.0 + 50.0 * dial.strength}


class Parallel(SizedBenchmark):
    """The same 1,463 pairs in Dutch, French and English (Strazda & Spanakis 2025)."""

    name = "crows_pairs_parallel"
    title = "CrowS-Pairs"
    place = 5
    main = ("stereotype_score",)
    requests = 2
    smallest = 30
    clusters = "pairs"
    facets = {"bias_type": "bias_type", "direction": "direction"}
    synthetic_bias = SyntheticBias(_answers, _expected)
    presentation = Presentation(
        published=partial(run_data.published, "crows_pairs"),
        beside_main=("stereotype_score_per_token",),
    )

    record = Lazy("lm_eval_bias.tasks.crows_pairs.hooks:record")

    scores = Lazy("lm_eval_bias.custom_metrics.crows_pairs:scores")

    def asking(self, doc: Document) -> Asking:
        """Ask for each sentence's likelihood in contrast to the other."""
        more, less = doc["sentences"]
        return Asking([Contrast(more, less), Contrast(less, more)])


class CrowSPairsChoices(PairChoices):
    """CrowS-Pairs as a question with lettered options, for models that write."""

    name = "crows_pairs_choices"
    title = "CrowS-Pairs"
    clusters = "pairs"
    facets = Parallel.facets
    options = Options({STRUCTURED: ""})


class CrowSPairs(Parallel):
    """The family of both, by which people name them."""

    name = "crows_pairs"


BENCHMARK = CrowSPairs([Parallel(), CrowSPairsChoices()])
