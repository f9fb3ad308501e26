"""Is a worsening that ``check --base`` promises to find with 80% probability found so often?

    python -m simulations.promised_power --rounds 600

The base says "unknown", and in a few items names the stereotype, or names both persons equally often. A like model
gives the smallest worsening that would be found; a model that is worse by that is drawn, and tested.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lm_eval_bias.comparing import power
from lm_eval_bias.comparing.findings import Finding
from lm_eval_bias.core.benchmark import UnknownBenchmark
from lm_eval_bias.custom_metrics import question_answering
from lm_eval_bias.custom_metrics.differences import LEVEL, paired, unpaired
from lm_eval_bias.gate import regression

# templates, items of each, and by how much rates differ between templates
DESIGNS = {"21 x 12": (21, 12, 0.0), "21 x 12, unlike": (21, 12, 0.5), "84 x 7": (84, 7, 0.3)}  # fmt: skip
BASES = {
    "stereotype in 2%": (0.02, 0.0),
    "stereotype in 5%": (0.05, 0.0),
    "stereotype in 10%": (0.1, 0.0),
    "either in 10%": (0.1, 0.1),
    "neutral": (0.25, 0.25),
}
SCORE = next(
    score
    for score in question_answering.scores(terms=question_answering.Terms("x"))
    if score.name == "diff_bias_amb"
)


def answers(rng: np.random.Generator, design: str, biased: float, counter: float) -> list[dict]:  # fmt: skip
    """Records of ambiguous items, answered with these probabilities."""
    templates, items, unlike = DESIGNS[design]
    records = []
    for template in range(templates):
        factor = 1 + unlike * rng.uniform(-1, 1)
        p = min(1.0, biased * factor), min(1.0, counter * factor)
        left = max(0.0, 1 - sum(p))
        drawn = rng.choice(3, size=items, p=np.array([*p, left]) / (sum(p) + left))
        names = ("biased", "counter", "unknown")
        common = {"context": "ambiguous", "template": template, "biased_context": False}
        records += [
            {**common, "answer": names[one], "correct": one == 2} for one in drawn
        ]
    return records


def finding(base: list[dict], other: list[dict]) -> Finding:
    """Compare two models."""
    one, two = SCORE.design(base), SCORE.design(other)
    return Finding(
        "task", "base", "other", SCORE, one.value, two.value, paired(two, one), 0.0, True, len(base),
        UnknownBenchmark("x"), level=LEVEL,
    )  # fmt: skip


def round_of(rng: np.random.Generator, design: str, base: str) -> tuple[float, bool, float, bool]:  # fmt: skip
    """Smallest worsening that check and power promise to find, each with whether one so large is found."""
    biased, counter = BASES[base]
    of_base = answers(rng, design, biased, counter)
    alike = finding(of_base, answers(rng, design, biased, counter))
    worsening = regression.minimum_detectable(alike, 0.0)
    is_found = False
    if worsening <= 1 - biased - counter:
        drawn = finding(of_base, answers(rng, design, biased + worsening, counter))
        is_worse = math.prod(moved for moved, _ in drawn.moves()) > 0
        is_found = is_worse and drawn.p_further() <= LEVEL
    one = SCORE.design(of_base)
    estimate = one.estimate()
    values = estimate.value, estimate.stderr, estimate.dof
    like = unpaired(values, values)
    planned = power.smallest_difference(replace(like, designs=(one, one)), LEVEL, 2.0)
    other = SCORE.design(answers(rng, design, min(1 - counter, biased + planned), counter)).estimate()  # fmt: skip
    test = unpaired((other.value, other.stderr, other.dof), values)
    return worsening, is_found, planned, bool(test.p <= LEVEL)


def main(argv: Sequence[str] | None = None) -> None:
    """Print how often what is promised is found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=600)
    args = parser.parse_args(argv)
    heads = (
        "check: smallest worsening | found, % | power: smallest difference | found, %"
    )
    print(f"| design | base | {heads} |")
    print("|---|---|---|---|---|---|")
    for design in DESIGNS:
        for base in BASES:
            rng = np.random.default_rng(1)
            rows = [round_of(rng, design, base) for _ in range(args.rounds)]
            worse, found, planned, told = map(np.array, zip(*rows, strict=True))
            known = np.isfinite(worse)
            checked = f"{worse[known].mean():.3f} | {100 * found[known].mean():.0f}"
            power = f"{planned.mean():.3f} | {100 * told.mean():.0f}"
            print(f"| {design} | {base} | {checked} | {power} |", flush=True)


if __name__ == "__main__":
    main()
