"""Do the intervals of a breakdown hold for all values at once?

    python -m tests.simulation.breakdowns --rounds 1000

Each round draws the answers anew: of StereoSet's 79 target terms with 27 items each, and of OccuGender's 40 jobs in 25
templates, whose effects all jobs share. Terms and jobs are given, their true values stay; items and templates vary.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from lm_eval_bias.custom_metrics import occugender, stereoset
from lm_eval_bias.custom_metrics.breakdowns import of_part, simultaneous_level, widened
from lm_eval_bias.custom_metrics.score import Score

TERMS, ITEMS = 79, 27
JOBS, TEMPLATES = 40, 25
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
        score.name: score for score in (*stereoset.scores(), *occugender.scores())
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
    results = {}
    for name, (score, parts, truth) in designs.items():
        drawn = [
            held(scores[score], parts(rng, truth), len(truth)) for _ in range(rounds)
        ]
        single, together = np.mean(drawn, axis=0)
        results[name] = (100 * float(single), 100 * float(together))
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    for name, (single, together) in simulate(parser.parse_args().rounds).items():
        print(f"{name}: each {single:.1f}%, all at once {together:.1f}%")
