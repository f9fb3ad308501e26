"""Do the intervals of a breakdown hold for all values at once? A part of the page that `coverage` writes.

Each round draws the answers anew: of StereoSet's 79 target terms with 27 items each, of OccuGender's 40 jobs in 25
templates, whose effects all jobs share, and of EuroGEST's sixteen stereotypes with 12 sentences each, as `quick` has
them, or 100. Terms, jobs and stereotypes are given, their true values stay; items and templates vary. EuroGEST's means
and spreads are those of SmolLM2-135M-Instruct on `quick`, on the scale of logits; `wide` is harder than any.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import special

from lm_eval_bias.custom_metrics import eurogest, occugender, stereoset
from lm_eval_bias.custom_metrics.breakdowns import of_part, simultaneous_level, widened
from lm_eval_bias.custom_metrics.eurogest import NAMES
from lm_eval_bias.custom_metrics.score import Score

TERMS, ITEMS = 79, 27
JOBS, TEMPLATES = 40, 25
# mean, standard deviations within and between stereotypes
LANGUAGES = {
    "en": (-0.48, 0.15, 0.04),
    "de": (0.72, 0.81, 0.23),
    "nl": (-1.79, 0.84, 0.35),
    "tr": (-7.86, 0.48, 0.15),
    "wide": (-4.0, 2.0, 0.5),
}
Parts = Iterator[tuple[float, list[Any]]]  # each part's true value, and its records


def terms(rng: np.random.Generator, truth: np.ndarray) -> Parts:
    """Items of each term, of which a true share is answered with the stereotype."""
    for number, share in enumerate(truth):
        hits = rng.random(ITEMS) < share
        yield (
            100 * share,
            [
                {"term": str(number), "outcomes": {"score": [int(hit), 2]}}
                for hit in hits
            ],
        )


def jobs(rng: np.random.Generator, truth: np.ndarray) -> Parts:
    """Prompts of each job, with effects of the templates that all jobs share, and of each prompt."""
    shared = rng.normal(0, 0.04, TEMPLATES)
    for number, gap in enumerate(truth):
        gaps = gap + shared + rng.normal(0, 0.08, TEMPLATES)
        yield gap, [
            {"item": str(number), "template": str(place), "group": "female",
             "F": 0.5 + value / 2, "M": 0.5 - value / 2, "D": 0.0, "mass": 0.5, "share": 80.0}
            for place, value in enumerate(gaps)
        ]  # fmt: skip


def stereotypes(
    rng: np.random.Generator, truth: np.ndarray, *, spread: float, sentences: int
) -> Parts:
    """Sentences of each stereotype, with a normal effect of each on the scale of logits."""
    for name, logit in zip(NAMES, truth, strict=True):
        yield (
            expected(logit, spread),
            [
                {
                    "sentence": str(number),
                    "stereotype": name,
                    "share": float(special.expit(odds)),
                    "log_odds": odds,
                    "mean_log_odds": odds,
                    "tokens": [1, 1],
                }
                for number, odds in enumerate(rng.normal(logit, spread, sentences))
            ],
        )


@cache
def expected(logit: float, spread: float) -> float:
    """Compute the mean of a logit-normal share by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    return float(weights @ special.expit(logit + spread * nodes) / weights.sum())


def held(score: Score, parts: Parts, number: int) -> tuple[float, bool]:
    """How many of the parts' own intervals hold the truth, and whether all of those at once do."""
    level = simultaneous_level(number)
    single, together = [], []
    for truth, records in parts:
        estimate = of_part(score, records)
        for kept, at in ((single, 0.95), (together, level)):
            low, high = widened(estimate, score, at)  # type: ignore[misc]
            kept.append(low <= truth <= high)
    return float(np.mean(single)), all(together)


def simulate(rounds: int) -> dict[str, tuple[float, float]]:
    """Shares of single intervals, and of rounds, that hold the truth, by design."""
    rng = np.random.default_rng(1)
    scores = {
        score.name: score
        for score in (*eurogest.scores(), *stereoset.scores(), *occugender.scores())
    }
    shares = rng.uniform(0.3, 0.8, TERMS)
    designs = {
        "StereoSet, SS by term": ("ss", terms, shares),
        "StereoSet, SS by term, up to 99%": (
            "ss",
            terms,
            np.linspace(0.5, 0.99, TERMS),
        ),
        "OccuGender, gap by job": ("stereotype_gap", jobs, rng.normal(0.2, 0.1, JOBS)),
    }
    for language, (mean, within, between) in LANGUAGES.items():
        for sentences in (12, 100):
            name = f"EuroGEST, {language}, {sentences} sentences a stereotype"
            parts = partial(stereotypes, spread=within, sentences=sentences)
            designs[name] = (
                "masculine_share",
                parts,
                rng.normal(mean, between, len(NAMES)),
            )
    results = {}
    for name, (score, parts, truth) in designs.items():
        drawn = [
            held(scores[score], parts(rng, truth), len(truth)) for _ in range(rounds)
        ]
        single, together = np.mean(drawn, axis=0)
        results[name] = (100 * float(single), 100 * float(together))
    return results
