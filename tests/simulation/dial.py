"""Does every main score recover a planted bias, and does anything else move it? The tables of tests/simulation/DIAL.md.

    python -m tests.simulation.dial --seeds 1000 --output dial.md

Each seed is one run of ``bias-dial`` on a benchmark's real documents: its answers, their records and the main scores
with their intervals, without the harness around them. The clusters' deviations are drawn anew with every seed, so that
an interval has to cover the planted value and not what the clusters of one run happen to have.
"""

from __future__ import annotations

import argparse
import logging
import math
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.planting import Dial
from tests.simulation.planted_runs import (
    OTHERS,
    Case,
    documents_of,
    es_bbq,
    gg_bbq,
    kobbq,
    mbbq,
    moved,
    occugender,
    recovered,
    regard,
    stereoset,
)

STRENGTHS = (-0.4, -0.2, 0.0, 0.2, 0.4)
BIASED = 0.2  # the strength at which it is seen what else moves a score
MOVED = 0.01  # of a score's range: what counts as moved, if it is more than chance too


CASES = (
    Case("occugender", "implicit, 40 occupations x 10 templates", partial(occugender, "implicit", first_templates=10)),
    Case("gg_bbq", "Subset-I, 968 items in 21 templates", partial(gg_bbq, "group_terms")),
    Case("es_bbq", "es, race and ethnicity, 3,716 items in 51 templates", partial(es_bbq, "es", "race_ethnicity")),
    Case("kobbq", "gender, 600 documents in 25 stories", partial(kobbq, "gender_identity")),
    Case("mbbq", "en, gender, 1,072 documents in 24 templates", partial(mbbq, "en", "gender_identity")),
    Case("stereoset", "the first 1,500 items of en, in 79 terms", partial(stereoset, "en", 1500)),
    Case("regard", "de, 20 prompts x 10 texts, labelled by light", partial(regard, "de")),
)
# what else is asked whether habits move it: all items, other words
WHOLE = (
    Case("occugender", "explicit, 40 occupations x 25 templates", partial(occugender, "explicit")),
    Case("gg_bbq", "Subset-II, 10,900 items in 21 templates", partial(gg_bbq, "names")),
    Case("es_bbq", "ca, gender, 4,832 items in 66 templates", partial(es_bbq, "ca", "gender")),
    Case("kobbq", "race, 1,440 documents in 60 stories", partial(kobbq, "race_ethnicity_nationality")),
    *(
        Case("stereoset", f"{language}, all items", partial(stereoset, language))
        for language in ("en", "de", "es", "fr", "tr")
    ),
    Case("regard", "en, 20 prompts x 10 texts, labelled by light", partial(regard, "en")),
)


def _steps(means: np.ndarray) -> str:
    """Whether values rise or fall all the way, or up to the middle and down again."""
    half = len(means) // 2
    rising = np.diff(means) > 0
    if np.ptp(means) < 0.01 * max(1.0, abs(float(means.mean()))):
        return "flat"
    if rising.all():
        return "rises"
    if not rising.any():
        return "falls"
    if rising[:half].all() and not rising[half:].any():
        return "peaks at 0"
    return "NO"


def _cell(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 1 else f"{round(value, 3) + 0.0:.3g}"


def _recovery(case: Case, seeds: Sequence[int], each: Callable[..., Any]) -> list[list[str]]:
    rows = []
    for name, (values, covered) in recovered(case, STRENGTHS, seeds, each).items():
        means, share = values.mean(axis=1), 100 * covered.mean(axis=1)
        planted = [case.expected(Dial(strength, noise=case.noise))[name] for strength in STRENGTHS]
        rows.append(
            [
                case.benchmark, name, ", ".join(map(_cell, planted)), ", ".join(map(_cell, means)),
                f"{covered.mean() * 100:.1f} ({share.min():.1f}–{share.max():.1f})", _steps(means),
            ]
        )  # fmt: skip
    return rows


def _movement(case: Case, seeds: Sequence[int], each: Callable[..., Any]) -> list[list[str]]:
    ranges = {score.name: score.high - score.low for score in case.scores()}
    cells: dict[str, list[str]] = {name: [] for name in ranges}
    for strength in (0.0, BIASED):
        texts: dict[str, list[str]] = {name: [] for name in ranges}
        for other, shifts in moved(case, strength, seeds, each).items():
            for name, (shift, error) in shifts.items():
                if not abs(shift) <= max(MOVED * ranges[name], 4 * error):
                    texts[name].append(f"{other} {shift:+.3g}" if abs(shift) < 1 else f"{other} {shift:+.1f}")
        for name, own in texts.items():
            cells[name].append("; ".join(own) or "nothing")
    return [[f"{case.benchmark}: {case.label}", name, *own] for name, own in cells.items()]


def main() -> None:
    """Simulate and print the tables."""
    from tabulate import tabulate

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--movement-seeds", type=int, default=100)
    parser.add_argument("--benchmarks", nargs="*", help="these alone")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--output", metavar="FILE", help="the tables as Markdown")
    args = parser.parse_args()
    logging.getLogger("lm_eval.bias").setLevel(logging.ERROR)
    recovery, movement = [], []
    for case in (*CASES, *WHOLE):
        if args.benchmarks and case.benchmark not in args.benchmarks:
            continue
        try:
            documents_of(case)  # before the processes are forked
        except BiasError as error:
            print(f"without {case.benchmark}, {case.label}: {error}")
            continue
        with multiprocessing.get_context("fork").Pool(args.processes) as pool:
            each = partial(pool.imap, chunksize=4)
            few = range(args.movement_seeds if case in CASES else max(args.movement_seeds // 10, 3))
            movement += _movement(case, few, each)
            if case in CASES:
                recovery += _recovery(case, range(args.seeds), each)
        print(f"{case.benchmark}, {case.label}: done", flush=True)
    error = 196 * math.sqrt(0.95 * 0.05 / args.seeds)
    text = tabulate(
        recovery,
        ["benchmark", "score", "planted at S = " + ", ".join(map(str, STRENGTHS)), "recovered mean",
         "interval covers, % (least–most of the strengths)", "with S"],
        tablefmt="github", disable_numparse=True,
    )  # fmt: skip
    text += f"\n\n{args.seeds:,} seeds a strength, which measure 95% to ± {error:.1f} percentage points.\n\n"
    text += tabulate(
        movement, ["documents", "score", "moved at S = 0 by", f"moved at S = {BIASED} by"],
        tablefmt="github", disable_numparse=True,
    )  # fmt: skip
    settings = ", ".join(f"{name} = {value}" for name, value in OTHERS.items())
    text += f"\n\n{args.movement_seeds} seeds ({max(args.movement_seeds // 10, 3)} for further data), {settings}.\n"
    print(text)
    if args.output:
        Path(args.output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
