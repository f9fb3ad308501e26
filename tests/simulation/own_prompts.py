"""How often intervals and tests of a user's own prompts are right, on clusters that are made up.

    python tests/simulation/own_prompts.py --rounds 600

No group differs from another in what is expected. Clusters differ in their shares and lengths, and so, less, do prompts
within clusters, on a logistic scale; 20 texts each. ``uneven`` files lack one group in every fourth cluster and have
two prompts of another where negative texts are frequent.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict

import numpy as np

from lm_eval_bias.custom_metrics import own_prompts

TEXTS = 20
DESIGNS = (
    (8, 2, False),
    (20, 2, False),
    (12, 2, True),
    (12, 3, False),
)  # clusters, groups, uneven


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def records(
    rng: np.random.Generator, clusters: int, groups: int, uneven: bool
) -> list[own_prompts.PromptRecord]:
    """The records of a run."""
    names = [f"g{number}" for number in range(groups)]
    comparison: own_prompts.Comparison = {
        "groups": names,
        "reference": "g0",
        "facets": ["rare"],
        "clusters": clusters,
    }
    made: list[own_prompts.PromptRecord] = []
    for cluster in range(clusters):
        negative, length = rng.normal(-0.5, 0.8), rng.normal(15, 2)
        for number, group in enumerate(names):
            if uneven and number == 1 and cluster % 4 == 0:
                continue
            for _ in range(2 if uneven and number == 0 and negative > -0.5 else 1):
                share, rare = (
                    _share(negative + rng.normal(0, 0.5)),
                    _share(rng.normal(-3, 0.5)),
                )
                words = np.maximum(rng.normal(length + rng.normal(0, 1), 5, TEXTS), 1)
                texts = [
                    (
                        "negative" if first < share else "positive",
                        ["rare"] if second < rare else [],
                        int(n),
                    )
                    for first, second, n in zip(
                        rng.random(TEXTS), rng.random(TEXTS), words, strict=True
                    )
                ]
                made.append(
                    {
                        "group": group, "cluster": str(cluster), "comparison": comparison, "texts": texts,
                        "drawn": TEXTS, "unfinished": 0, "wordings": [f"{len(made)} {n}" for n in range(TEXTS)],
                        "has_other": False, "caveat": "", "unlabelled": "",
                    }
                )  # fmt: skip
    return made


def main() -> None:
    """Simulate and print a line per design."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for design in DESIGNS:
        rng, right, family = (
            np.random.default_rng([args.seed, *design]),
            defaultdict(list),
            0,
        )
        for _ in range(args.rounds):
            made, any_found = records(rng, *design), False
            for score in own_prompts.scores(made):
                measure, _, what = score.name.partition("/")
                if what.startswith("gap"):
                    estimate = score.compute(made)
                    for kind, ends in (
                        ("interval", estimate.ends()),
                        ("fixed", estimate.fixed_interval),
                    ):
                        right[kind, measure].append(
                            ends is not None and ends[0] <= 0 <= ends[1]
                        )
                elif what.startswith("p_holm"):
                    any_found |= score.compute(made).value < 0.05
                elif what == "p" or what.startswith("p/"):
                    right[what.partition("/")[0], measure].append(
                        score.compute(made).value < 0.05
                    )
            family += any_found
        clusters, groups, uneven = design
        print(
            f"{clusters} clusters, {groups} groups{', uneven' if uneven else ''}: percent that",
            flush=True,
        )
        for (kind, measure), hits in sorted(right.items()):
            if measure != "positive":  # the others
                does = {
                    "interval": "hold 0",
                    "fixed": "hold 0, for these prompts alone",
                }.get(kind, "reject")
                print(f"    {measure} {kind}: {100 * np.mean(hits):.1f} {does}")
        print(f"    any p_holm: {100 * family / args.rounds:.1f} reject")


if __name__ == "__main__":
    main()
