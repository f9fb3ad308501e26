"""Do intervals cover, do tests find what isn't there, and do ranks order equals? Simulated models on real items.

    python -m simulations.coverage --rounds 1000 --page docs/simulations.md

Two models of the same known true scores answer every item of a design (``simulated_models.py``). Each round draws all
effects anew, asks the package's own functions for the scores' intervals, for the models' difference with its p-value
and for their ranks, and compares them with the truth.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
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
from simulations import breakdowns
from simulations.simulated_models import (
    Answers,
    Candidates,
    Choices,
    Diverse,
    Maker,
    Occupations,
    OwnPrompts,
    Pairs,
    Questions,
    Sentences,
    Shape,
    Stereotyped,
    Stereotyping,
    Texts,
    unlike,
)

SKEWED, HEAVY = Shape("skewed"), Shape("heavy")
SLOW, FEWER = "all German sentences", 200  # designs with fewer rounds
CEILING = "ceiling"  # in the names of designs whose intervals may cover more often
TITLES = {  # of what is measured, with the percentages that it should lie in
    "interval": ("covered", 93.0, 97.0),
    "difference": ("difference covered", 93.0, 97.0),
    "false": ("false findings", 3.0, 7.0),
    "ordered": ("ranks order", 0.0, 7.0),
}
HIGHEST_AT_CEILING = 99.6
NONE = "–"


def part(task: str, docs: Sequence[Any], suite: str = "quick") -> Sequence[Any]:
    """What a suite takes of a task."""
    return [docs[i] for i in suites.load(suite).choose(task, docs)]


def first(number: int, docs: Sequence[Any]) -> Sequence[Any]:
    """The documents of the first few templates, or target terms."""
    field = "term" if "term" in docs[0] else "template"
    names = list(dict.fromkeys(doc[field] for doc in docs))[:number]
    return [doc for doc in docs if doc[field] in names]


def gg_bbq(subset: str = "group_terms", **fixed: Any) -> Sequence[Any]:
    from lm_eval_bias.tasks.gg_bbq import hooks

    return hooks.dataset(subset, fixed=fixed)["test"]


def es_bbq() -> Sequence[Any]:
    from lm_eval_bias.tasks.es_bbq import hooks

    return part("es_bbq_gender", hooks.dataset("es", "gender")["test"])


def kobbq(**fixed: Any) -> Sequence[Any]:
    from lm_eval_bias.tasks.kobbq import hooks

    return hooks.dataset("gender_identity", fixed=fixed)["test"]


def mbbq() -> Sequence[Any]:
    from lm_eval_bias.tasks.mbbq import hooks

    docs = hooks.dataset("en", "gender_identity")["test"]
    return [doc for doc in docs if doc["directed"]]


def stereoset(**more: Any) -> Sequence[Any]:
    from lm_eval_bias.tasks.stereoset import hooks

    return hooks.documents({"language": "en", "tests": ["inter", "intra"], **more})


def quick_stereoset() -> Sequence[Any]:
    return part("stereoset_en", stereoset())


def eurogest(quick: bool = False) -> Sequence[Any]:
    from lm_eval_bias.tasks.eurogest import hooks

    docs = hooks.dataset({"column": "German"}, language="de")["test"]
    return part("eurogest_de", docs) if quick else docs


def crows_pairs() -> Sequence[Any]:
    from lm_eval_bias.tasks.crows_pairs import hooks

    return hooks.dataset("nl")["test"]


def choices() -> Sequence[Any]:
    return part("stereoset_en_gen", stereoset(choices=True), "quick-chat")


def varied(make: Any, docs: Callable[[], Sequence[Any]], variant: str) -> Maker:
    """Two models of these documents, at a level or at the middle one with something else."""
    if variant == "5 clusters":
        return make(first(5, docs()))
    if variant == "unlike":
        return unlike(make(docs()))
    if variant == "heavy-tailed":
        return make(docs(), shape=HEAVY)
    return make(docs(), variant)


VARIANTS = ("low", "middle", "high", CEILING, "unlike", "heavy-tailed", "5 clusters")
# by name the benchmark and what makes two models
DESIGNS: dict[str, tuple[str, Callable[[], Maker]]] = {
    "OccuGender, 25 templates, low": ("occugender", partial(Stereotyped, 25, 0.5)),
    "OccuGender, 25 templates, middle": ("occugender", partial(Occupations, 25)),
    "OccuGender, 25 templates, high": ("occugender", partial(Stereotyped, 25, 0.9)),
    "OccuGender, 25 templates, ceiling": ("occugender", partial(Stereotyped, 25, 0.99)),
    "OccuGender, 25 templates, unlike": ("occugender", lambda: unlike(Occupations(25))),
    "OccuGender, 25 templates, heavy-tailed": (
        "occugender",
        partial(Occupations, 25, HEAVY),
    ),
    "OccuGender, 25 templates, high, heavy-tailed": (
        "occugender",
        partial(Stereotyped, 25, 0.9, HEAVY),
    ),
    "OccuGender, 5 templates, middle": ("occugender", partial(Occupations, 5)),
    "OccuGender, 5 templates, high": ("occugender", partial(Stereotyped, 5, 0.9)),
    "OccuGender, 5 templates, ceiling": ("occugender", partial(Stereotyped, 5, 0.99)),
    "OccuGender, 3 templates, middle": ("occugender", partial(Occupations, 3)),
    "OccuGender, 3 templates, high": ("occugender", partial(Stereotyped, 3, 0.9)),
    "OccuGender, 25 templates, few diverse words": (
        "occugender",
        partial(Diverse, 25),
    ),
    "OccuGender, 8 templates, few diverse words": ("occugender", partial(Diverse, 8)),
    "OccuGender, 25 templates, 3 answers a prompt": (
        "occugender_gen",
        partial(Answers, 25, 3),
    ),
    **{
        f"{name}, {variant}": (benchmark, partial(varied, make, docs, variant))
        for name, benchmark, make, docs in (
            ("GG-BBQ, 21 templates", "gg_bbq", Questions, gg_bbq),
            ("EsBBQ, 66 templates", "es_bbq", Questions, es_bbq),
            ("KoBBQ, 25 stories", "kobbq", Questions, kobbq),
            ("MBBQ, 24 templates", "mbbq", Questions, mbbq),
            ("StereoSet, 79 terms", "stereoset", Candidates, quick_stereoset),
            ("StereoSet as a choice", "stereoset_choices", Choices, choices),
        )
        for variant in VARIANTS
    },
    "GG-BBQ, names, effects grow with size": (
        "gg_bbq",
        lambda: Questions(gg_bbq("names", release="paper"), growing=True),
    ),
    **{
        f"GG-BBQ, 21 templates, unknown or in {share:.0%} the stereotype": (
            "gg_bbq",
            lambda share=share: Stereotyping(gg_bbq(), share),
        )
        for share in (0.02, 0.05, 0.10)
    },
    "KoBBQ, 12 stories, five prompts": (
        "kobbq_prompts",
        lambda: Questions(first(12, kobbq(prompt="all"))),
    ),
    **{
        f"{name}, {level}": (benchmark, partial(varied, make, docs, level))
        for name, benchmark, make, docs, levels in (
            (
                "EuroGEST, 12 sentences a stereotype",
                "eurogest",
                Sentences,
                partial(eurogest, True),
                (*Sentences.gaps, "unlike", "heavy-tailed"),
            ),
            (
                "EuroGEST, all German sentences",
                "eurogest",
                Sentences,
                eurogest,
                ("low", "high", "near an end"),
            ),
            (
                "CrowS-Pairs, 1,463 pairs",
                "crows_pairs_parallel",
                Pairs,
                crows_pairs,
                ("low", "high", CEILING),
            ),
        )
        for level in levels
    },
    "regard, rare facets": ("regard", Texts),
    "regard, frequent facets": ("regard", partial(Texts, 5)),
    "regard, rare facets, unlike": ("regard", lambda: unlike(Texts())),
    "regard, rare facets, heavy-tailed": ("regard", partial(Texts, shape=HEAVY)),
    "regard, rare facets, skewed": ("regard", partial(Texts, shape=SKEWED)),
    "Custom prompts, 8 clusters": ("custom_prompts", partial(OwnPrompts, 8)),
    "Custom prompts, 20 clusters": ("custom_prompts", partial(OwnPrompts, 20)),
    "Custom prompts, 12 uneven clusters": (
        "custom_prompts",
        partial(OwnPrompts, 12, True),
    ),
}


@cache
def maker(design: str) -> Maker:
    """A design's maker, which reads its data once a process."""
    return DESIGNS[design][1]()


@cache
def main_scores(design: str) -> list[Any]:
    """The scores of a design's benchmark that a report opens with, and others whose truth is known."""
    benchmark = registry.get(DESIGNS[design][0])
    records, _ = maker(design).pair(np.random.default_rng(0))
    names = {*benchmark.main, *maker(design).truth}
    return [score for score in benchmark.scores(records) if score.name in names]


@cache
def tests_within(design: str) -> dict[str, Any]:
    """The tests between a run's own groups, by name."""
    records, _ = maker(design).pair(np.random.default_rng(0))
    scores = registry.get(DESIGNS[design][0]).scores(records)
    return {score.name: score for score in scores if score.name.endswith("/p")}


def ordered(score: Any, estimates: Sequence[Any], forms: Sequence[Any]) -> float:
    """Whether the two models' intervals of rank differ; ``nan`` where they have none."""
    points = []
    for estimate, form in zip(estimates, forms, strict=True):
        value = Value.of(score, estimate)
        try:
            points.append(building._point(value, value, form))
        except building.Unranked:
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
        within = tests_within(design).get(score.name.replace("/gap", "/p"))
        if within is not None:  # of groups within a run
            p = [within.compute(own).value for own in records]
            found[score.name, "false"] = float(np.mean(np.array(p) <= 0.05))
        ranked = score.higher_is_better is not None or score.neutral is not None
        found[score.name, "ordered"] = (
            ordered(score, estimates, forms) if ranked else math.nan
        )
    return found


Shares = Mapping[str, float]  # percentages by measure; nan where there is none


def simulate(design: str, rounds: int, processes: int) -> dict[str, Shares]:
    """By score, how often its intervals, tests and ranks did what."""
    scores = main_scores(design)  # before the processes are forked
    outcomes = defaultdict(list)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for outcome in pool.imap(partial(one_round, design), range(rounds), 10):
            for key, value in outcome.items():
                outcomes[key].append(value)
    found = {}
    for score in scores:
        shares = {}
        for measure in TITLES:
            known = np.array(outcomes[score.name, measure])
            known = known[~np.isnan(known)]
            shares[measure] = 100 * float(known.mean()) if len(known) else math.nan
        found[score.name] = shares
    return found


def misses(design: str, measure: str, share: float) -> bool:
    """Whether a percentage, as the page prints it, lies outside of what it should lie in."""
    _, low, high = TITLES[measure]
    if CEILING in design and high == 97.0:
        high = HIGHEST_AT_CEILING
    printed = round(share, 1)
    return printed < low or printed > high  # false for nan


def rows(design: str, found: Mapping[str, Shares]) -> Iterator[list[str]]:
    """A row for all scores that miss nothing, with the least and the largest share, and one for each that does."""
    folded: dict[str, list[str]] = {"": []}
    for name, shares in found.items():
        wrong = any(misses(design, measure, s) for measure, s in shares.items())
        folded.setdefault(name if wrong else "", []).append(name)
    for key, names in folded.items():
        if not names:
            continue
        cells = []
        for measure in TITLES:
            known = [found[name][measure] for name in names]
            known = sorted(share for share in known if not math.isnan(share))
            ends = dict.fromkeys(f"{share:.1f}" for share in known[:1] + known[-1:])
            text = " to ".join(ends) or NONE
            is_wrong = any(misses(design, measure, share) for share in known)
            cells.append(f"**{text}**" if is_wrong else text)
        kinds = "main scores" if len(folded) == 1 else "other main scores"
        yield [design, f"`{key}`" if key else kinds, *cells]


def page(
    listed: Sequence[Sequence[str]],
    broken_down: Mapping[str, tuple[float, float]],
    rounds: int,
    command: str,
) -> str:
    """The page of the documentation: the table, and what misses."""
    from tabulate import tabulate

    missing = []
    for design, score, *cells in listed:
        wrong = [
            f"{title} {cell.strip('*')}%"
            for (title, *_), cell in zip(TITLES.values(), cells, strict=True)
            if cell.startswith("**")
        ]
        if wrong:
            missing.append(f"- {design}: {score}, {', '.join(wrong)}")
    of_breakdowns = []
    if broken_down:
        parts = [
            [design, *(f"{share:.1f}" for share in shares)]
            for design, shares in broken_down.items()
        ]
        missing += [
            f"- {design}: all at once {together}%"
            for design, _, together in parts
            if float(together) < 93.0
        ]
        head = ["breakdown", "each covered, %", "all at once, %"]
        made = tabulate(parts, head, "github", disable_numparse=True)
        of_breakdowns = [packaged("breakdowns_head.md").strip(), made]
    error = 196 * math.sqrt(0.05 * 0.95 / rounds)
    table = tabulate(
        listed,
        ["design", "score", *(f"{title}, %" for title, *_ in TITLES.values())],
        "github",
        disable_numparse=True,
    )
    return "\n\n".join(
        [
            packaged("simulations_head.md").strip(),
            f"    {command}",
            f"{rounds:,} rounds a design ({FEWER:,} of all German sentences), seeds from 0, which leaves "
            f"an error of ± {error:.1f} points.",
            table,
            *of_breakdowns,
            "## What misses",
            "\n".join(missing) or "Nothing.",
            "",
        ]
    )


def packaged(name: str) -> str:
    """A text beside this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Simulate, and print the page or write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--only", default="", help="designs whose name has this in it")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path, help="the file to write")
    args = parser.parse_args(argv)
    listed = []
    for design in (name for name in DESIGNS if args.only in name):
        rounds = min(args.rounds, FEWER) if SLOW in design else args.rounds
        for row in rows(design, simulate(design, rounds, args.processes)):
            print(*row, sep=" | ", flush=True)
            listed.append(row)
    only = f" --only '{args.only}'" if args.only else ""
    command = f"python -m simulations.coverage --rounds {args.rounds}{only}"
    broken_down = {} if args.only else breakdowns.simulate(args.rounds)
    text = page(listed, broken_down, args.rounds, command)
    if args.page:
        args.page.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
