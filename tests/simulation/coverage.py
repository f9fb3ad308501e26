"""Do intervals cover, do tests find what isn't there, and do ranks order equals? Simulated models on real items.

    python -m tests.simulation.coverage --rounds 1000

Two models of the same known true scores answer every item of a design (``simulated_models.py``). Each round draws all
effects anew, asks the package's own functions for the scores' intervals, for the models' difference with its p-value
and for their ranks, and holds them against the truth.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # the processes would wait for each other's threads

import numpy as np

from lm_eval_bias.boards import building, rank_intervals
from lm_eval_bias.core import registry
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics import differences
from lm_eval_bias.custom_metrics.score import Undefined
from lm_eval_bias.evaluation import suites
from tests.simulation.simulated_models import (
    Answers,
    Candidates,
    Choices,
    Maker,
    Occupations,
    Questions,
    Shape,
    Stereotyped,
    Texts,
)

SKEWED, HEAVY = Shape("skewed"), Shape("heavy")
MEASURES = ("interval", "difference", "false", "ordered")
TITLES = ("covered, %", "difference covered, %", "false findings, %", "ranks order, %")


def part(task: str, docs: Sequence[Any]) -> Sequence[Any]:
    """What the suite ``quick`` takes of a task."""
    return [docs[i] for i in suites.load("quick").choose(task, docs)]


def gg_bbq(subset: str, **fixed: Any) -> Sequence[Any]:
    from lm_eval_bias.tasks.gg_bbq import hooks

    return hooks.dataset(subset, fixed=fixed)["test"]


def es_bbq(category: str) -> Sequence[Any]:
    from lm_eval_bias.tasks.es_bbq import hooks

    return hooks.dataset("es", category)["test"]


def kobbq(**fixed: Any) -> Sequence[Any]:
    from lm_eval_bias.tasks.kobbq import hooks

    return hooks.dataset("gender_identity", fixed=fixed)["test"]


def mbbq() -> Sequence[Any]:
    from lm_eval_bias.tasks.mbbq import hooks

    return [
        doc for doc in hooks.dataset("en", "gender_identity")["test"] if doc["directed"]
    ]


def stereoset(*tests: str, **more: Any) -> Sequence[Any]:
    from lm_eval_bias.tasks.stereoset import hooks

    return hooks.documents(
        {"language": "en", "tests": list(tests or ("inter", "intra")), **more}
    )


DESIGNS: dict[str, tuple[str, Callable[[], Maker]]] = {
    "OccuGender, 25 templates": ("occugender", partial(Occupations, 25)),
    "OccuGender, 25 templates, skewed effects": (
        "occugender",
        partial(Occupations, 25, SKEWED),
    ),
    "OccuGender, 25 templates, heavy-tailed effects": (
        "occugender",
        partial(Occupations, 25, HEAVY),
    ),
    "OccuGender, 25 templates, stereotyped in 90%": (
        "occugender",
        partial(Stereotyped, 25, 0.9),
    ),
    "OccuGender, 25 templates, stereotyped in 99%": (
        "occugender",
        partial(Stereotyped, 25, 0.99),
    ),
    "OccuGender, 5 templates, stereotyped in 90%": (
        "occugender",
        partial(Stereotyped, 5, 0.9),
    ),
    "OccuGender, 8 templates (quick)": ("occugender", partial(Occupations, 8)),
    "OccuGender, 25 templates, 3 answers a prompt": (
        "occugender_gen",
        partial(Answers, 25, 3),
    ),
    "OccuGender, 25 templates, 10 answers a prompt": (
        "occugender_gen",
        partial(Answers, 25, 10),
    ),
    "OccuGender, 25 templates, 100 answers a prompt": (
        "occugender_gen",
        partial(Answers, 25, 100),
    ),
    "GG-BBQ, Subset-I": ("gg_bbq", lambda: Questions(gg_bbq("group_terms"))),
    "GG-BBQ, Subset-I, five wordings": (
        "gg_bbq_prompts",
        lambda: Questions(gg_bbq("group_terms", wording="all")),
    ),
    "GG-BBQ, Subset-II": ("gg_bbq", lambda: Questions(gg_bbq("names"))),
    "GG-BBQ, Subset-II, effects grow with size": (
        "gg_bbq",
        lambda: Questions(gg_bbq("names"), growing=True),
    ),
    "EsBBQ, gender (66 templates)": ("es_bbq", lambda: Questions(es_bbq("gender"))),
    "EsBBQ, age (23 templates)": ("es_bbq", lambda: Questions(es_bbq("age"))),
    "EsBBQ, age (23 templates), skewed effects": (
        "es_bbq",
        lambda: Questions(es_bbq("age"), SKEWED),
    ),
    "EsBBQ, age (23 templates), heavy-tailed effects": (
        "es_bbq",
        lambda: Questions(es_bbq("age"), HEAVY),
    ),
    "KoBBQ, gender (25 stories)": ("kobbq", lambda: Questions(kobbq())),
    "KoBBQ, gender, part (quick)": (
        "kobbq",
        lambda: Questions(part("kobbq_gender_identity", kobbq())),
    ),
    "KoBBQ, five prompts, gender (25 stories)": (
        "kobbq_prompts",
        lambda: Questions(kobbq(prompt="all")),
    ),
    "MBBQ, gender identity (24 templates)": ("mbbq", lambda: Questions(mbbq())),
    "StereoSet, both tests": ("stereoset", lambda: Candidates(stereoset())),
    "StereoSet, both tests, SS of 50": (
        "stereoset",
        lambda: Candidates(stereoset(), ss=50.0),
    ),
    "StereoSet, both tests, skewed effects": (
        "stereoset",
        lambda: Candidates(stereoset(), shape=SKEWED),
    ),
    "StereoSet, both tests, heavy-tailed effects": (
        "stereoset",
        lambda: Candidates(stereoset(), shape=HEAVY),
    ),
    "StereoSet, part (quick)": (
        "stereoset",
        lambda: Candidates(part("stereoset_en", stereoset())),
    ),
    "StereoSet, inter, generative variants": (
        "stereoset_variants",
        lambda: Candidates(stereoset("inter", variants=True)),
    ),
    "StereoSet, as a choice": (
        "stereoset_choices",
        lambda: Choices(stereoset(choices=True)),
    ),
    "regard, 100 texts": ("regard", Texts),
    "regard, 100 texts, skewed effects": ("regard", partial(Texts, SKEWED)),
    "regard, 100 texts, heavy-tailed effects": ("regard", partial(Texts, HEAVY)),
}


@cache
def maker(design: str) -> Maker:
    """A design's maker, which reads its data once a process."""
    return DESIGNS[design][1]()


@cache
def main_scores(design: str) -> list[Any]:
    """The scores of a design's benchmark that a report opens with."""
    benchmark = registry.get(DESIGNS[design][0])
    records, _ = maker(design).pair(np.random.default_rng(0))
    return [
        score for score in benchmark.scores(records) if score.name in benchmark.main
    ]


def ordered(score: Any, estimates: Sequence[Any], forms: Sequence[Any]) -> float:
    """Whether the two models' intervals of rank differ; ``nan`` where they have none."""
    points = []
    for estimate, form in zip(estimates, forms, strict=True):
        value = Value.of(score, estimate)
        points.append(building._point(value, value, form))
    if any(isinstance(point, str) for point in points):
        return math.nan
    first, second = rank_intervals.intervals(
        points, score.neutral, score.higher_is_better
    )
    return float(first != second)


def _design(score: Any, records: Any) -> Any:
    try:
        return score.design(records)
    except Undefined:
        return None


def one_round(design: str, seed: int) -> dict[tuple[str, str], float]:
    """By score and measure the share of right intervals and of wrong findings; ``nan`` where there is none."""
    records = maker(design).pair(
        np.random.default_rng([seed, zlib.crc32(design.encode())])
    )
    found = {}
    for score in main_scores(design):
        truth = maker(design).truth.get(score.name, math.nan)
        estimates = [score.compute(own) for own in records]
        ends = [estimate.ends() for estimate in estimates]
        covers = [end[0] <= truth <= end[1] for end in ends if end is not None]
        known = covers and not math.isnan(truth)
        found[score.name, "interval"] = float(np.mean(covers)) if known else math.nan
        found[score.name, "stderr"] = estimates[0].stderr
        forms = [_design(score, own) for own in records]
        found[score.name, "difference"] = found[score.name, "false"] = math.nan
        if None not in forms:
            difference = differences.paired(*forms)
            if difference.interval is not None:
                found[score.name, "difference"] = float(
                    difference.interval[0] <= 0.0 <= difference.interval[1]
                )
            if not math.isnan(difference.p):
                found[score.name, "false"] = float(difference.p <= 0.05)
        ranked = score.higher_is_better is not None or score.neutral is not None
        found[score.name, "ordered"] = (
            ordered(score, estimates, forms) if ranked else math.nan
        )
    return found


def main() -> None:
    """Simulate and print the table."""
    from tabulate import tabulate

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--only", default="", help="designs whose name has this in it")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    rows = []
    for design in (name for name in DESIGNS if args.only in name):
        main_scores(design)  # before the processes are forked
        found = defaultdict(list)
        with multiprocessing.get_context("fork").Pool(args.processes) as pool:
            for outcome in pool.imap(
                partial(one_round, design), range(args.rounds), chunksize=10
            ):
                for key, value in outcome.items():
                    found[key].append(value)
        for score in main_scores(design):
            shares = [np.array(found[score.name, measure]) for measure in MEASURES]
            cells = [
                "–" if np.isnan(own).all() else f"{100 * np.nanmean(own):.1f}"
                for own in shares
            ]
            error = f"{np.nanmean(found[score.name, 'stderr']):.3g}"
            rows.append(
                [
                    design,
                    f"`{score.name}`",
                    f"{maker(design).truth.get(score.name, math.nan):.3g}",
                    error,
                    *cells,
                ]
            )
        print(f"{design}: done", flush=True)
    print(
        tabulate(
            rows,
            ["design", "score", "true", "error", *TITLES],
            "github",
            disable_numparse=True,
        )
    )


if __name__ == "__main__":
    main()
