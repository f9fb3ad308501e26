"""Do 95% intervals cover, and do tests err in 5%? Simulated models on the benchmarks' real items.

    python tests/simulation/coverage.py --rounds 2000 --output coverage.json

Two models answer every item. Each has effects of its own on occupations, templates, target terms or prompts, beside
what both find hard alike; item sizes and clusters are those of the pinned data. Each round draws all effects anew, asks
for the scores' intervals, their difference and its p-value through the package's own functions, and notes whether the
truth (known from the effects' distributions) was covered and, where the models are equal, whether the test rejected.
"Plain" is what an interval would have claimed that takes items as independent.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

Rng = np.random.Generator
DRAWS = 999
OWN = 5  # a run's own intervals are asked for in every fifth round: some take a bootstrap each


@dataclass
class Round:
    """One round's data.

    Attributes:
        records: Both models' records.
        truth: Both models' true scores over all clusters that there could be.
        plain: Each item's own difference, for the plain interval.
        given: The first model's true score where its interval takes the clusters as given.
    """

    records: tuple[list[dict[str, Any]], list[dict[str, Any]]]
    truth: dict[str, tuple[float, float]]
    plain: dict[str, np.ndarray]
    given: dict[str, float] = field(default_factory=dict)


def occugender(rng: Rng, shift: float, templates: int = 25) -> Round:
    """40 occupations x 25 templates, each with effects on the gap between own and other gender."""
    items = 40
    female = np.arange(items) < items // 2
    share = np.where(female, 80.0, 20.0) + 10.0 * rng.standard_normal(items)
    common = 0.10 * rng.standard_normal((items, 1)) + 0.08 * rng.standard_normal((1, templates))
    made, gaps = [], []
    for model in (0, 1):
        own = 0.06 * rng.standard_normal((items, 1)) + 0.05 * rng.standard_normal((1, templates))
        gap = 0.2 + (shift if model == 0 else 0.0) + common + own + 0.10 * rng.standard_normal((items, templates))
        cells = 0.5 + np.where(female[:, None], 1, -1) * gap / 2  # P~_f; a gap of own minus other gender
        gaps.append(gap)
        made.append(
            [
                {"item": f"{i:02d}", "template": f"{t:02d}", "share": float(share[i]), "mass": 0.5,
                 "group": "female" if female[i] else "male", "F": float(cells[i, t]), "M": 1 - float(cells[i, t]),
                 "D": 0.0}
                for i in range(items)
                for t in range(templates)
            ]
        )  # fmt: skip
    gaps_meant = (0.2 + shift, 0.2)
    # the correlation of endlessly many occupations' endlessly often measured shares: group and gap vary together
    spread = math.hypot(0.10, 0.06)
    correlations = [30 * gap / math.sqrt(30**2 + 10**2) / math.hypot(gap, spread) for gap in gaps_meant]
    truth = {"stereotype_gap": gaps_meant, "labour_pearson": (correlations[0], correlations[1])}
    return Round((made[0], made[1]), truth, {"stereotype_gap": (gaps[0] - gaps[1]).ravel()})


def _binary(mean: float, spread: float) -> float:
    """Expected share of a probit model with normal effects of that standard deviation."""
    return float(special.ndtr(mean / math.sqrt(1 + spread**2)))


def stereoset(rng: Rng, shift: float, terms: np.ndarray, labels: np.ndarray) -> Round:
    """StereoSet en's items in their target terms; preferences from a probit model with effects of term and item."""
    count = int(terms.max()) + 1
    shared_term, shared_item = 0.25 * rng.standard_normal(count), 0.5 * rng.standard_normal(len(terms))
    shared_hard = 0.3 * rng.standard_normal(count)
    made, wins = [], []
    for model in (0, 1):
        ss_mean = 0.25 + (shift if model == 0 else 0.0)
        own = 0.25 * rng.standard_normal(count)
        pro = ss_mean + (shared_term + own)[terms] + shared_item + rng.standard_normal(len(terms)) > 0
        hard = (shared_hard + 0.2 * rng.standard_normal(count))[terms]
        beaten = sum(1.2 + hard + rng.standard_normal(len(terms)) > 0 for _ in range(2))
        wins.append(pro)
        made.append(
            [
                {"test": "intra", "bias_type": "gender", "term": term, "outcomes": {"score": [bool(p), int(b)]}}
                for term, p, b in zip(labels, pro, beaten, strict=True)
            ]
        )
    spread = math.sqrt(0.25**2 + 0.25**2 + 0.5**2)
    ss = [100 * _binary(0.25 + s, spread) for s in (shift, 0.0)]
    lms = 100 * _binary(1.2, math.hypot(0.3, 0.2))
    truth = {
        "ss": (ss[0], ss[1]),
        "lms": (lms, lms),
        "icat": (lms * min(ss[0], 100 - ss[0]) / 50, lms * min(ss[1], 100 - ss[1]) / 50),
    }
    return Round((made[0], made[1]), truth, {"ss": 100.0 * (wins[0].astype(float) - wins[1])})


def gg_bbq(rng: Rng, shift: float, docs: list[dict[str, Any]]) -> Round:
    """Subset-I's items in their templates: three answers to ambiguous contexts, right or wrong in the others."""
    names = sorted({d["template"] for d in docs})
    at = np.array([names.index(d["template"]) for d in docs])
    ambiguous = np.array([d["context_type"] == "ambiguous" for d in docs])
    shared, shared_item = 0.3 * rng.standard_normal(len(names)), 0.4 * rng.standard_normal(len(docs))
    made, signed = [], []
    for model in (0, 1):
        own = 0.25 * rng.standard_normal(len(names))
        hard = (shared + own)[at] + shared_item + rng.standard_normal(len(docs))
        knows = hard > (-0.2 - (shift if model == 0 else 0.0))
        own_lean = 0.3 * rng.standard_normal(len(names))
        leans = own_lean[at] + rng.standard_normal(len(docs)) > 0
        records = []
        for d, right, lean, is_open in zip(docs, knows, leans, ambiguous, strict=True):
            answer = ("unknown" if is_open else "biased") if right else ("biased" if lean else "counter")
            records.append(
                {"context": d["context_type"], "answer": answer, "correct": bool(right), "template": d["template"],
                 "biased_context": d["label"] == d["biased_choice"], "value": "", "wording": 2}
            )  # fmt: skip
        made.append(records)
        signed.append(knows.astype(float)[ambiguous])
    spread = math.sqrt(0.3**2 + 0.25**2 + 0.4**2)
    acc = [_binary(0.2 + s, spread) for s in (shift, 0.0)]
    truth = {"acc_amb": (acc[0], acc[1]), "acc_disamb": (acc[0], acc[1]), "diff_bias_amb": (0.0, 0.0)}
    return Round((made[0], made[1]), truth, {"acc_amb": signed[0] - signed[1]})


def regard(rng: Rng, shift: float) -> Round:
    """10 contexts x 2 genders x 100 texts; how often a text is positive varies by context, gender and model."""
    contexts, texts = 10, 100
    shared = 0.5 * rng.standard_normal(contexts)
    made, rates, given = [], [], []
    for model in (0, 1):
        records = []
        own = 0.2 * rng.standard_normal(contexts)
        hits, means = [], []
        for female in (True, False):
            mean = shared + own + 0.15 * rng.standard_normal(contexts)
            mean = mean + (shift if model == 0 and female else 0.0)
            means.append(float(special.ndtr(mean).mean()))
            positive = rng.random((contexts, texts)) < special.ndtr(mean)[:, None]
            hits.append(positive)
            records += [
                {"gender": "female" if female else "male", "context": f"{c}",
                 "texts": [("positive" if p else "neutral", [], []) for p in positive[c]],
                 "repeated": False, "drawn": texts, "unfinished": 0, "wordings": [], "has_other": False, "caveat": ""}
                for c in range(contexts)
            ]  # fmt: skip
        made.append(records)
        given.append(means[0] - means[1])
        rates.append(hits[0].astype(float) - hits[1])
    spread = math.sqrt(0.5**2 + 0.2**2 + 0.15**2)
    gap = _binary(shift, spread) - _binary(0.0, spread)
    name = "all/positive_gap"
    return Round((made[0], made[1]), {name: (gap, 0.0)}, {name: (rates[0] - rates[1]).ravel()}, {name: given[0]})


def _plain(values: np.ndarray) -> tuple[float, float]:
    mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean - half, mean + half


def _scores(benchmark: str) -> dict[str, Any]:
    from lm_eval_bias import registry

    return {score.name: score for score in registry.get(benchmark).scores([])}


def one_round(
    seed: int, benchmark: str, make: Callable[[Rng, float], Round], shift: float
) -> dict[str, dict[str, bool]]:
    """Which intervals covered in one round and which tests rejected, by score."""
    from lm_eval_bias.custom_metrics import resampling

    made = make(np.random.default_rng([seed, len(benchmark), round(1000 * shift)]), shift)
    found: dict[str, dict[str, bool]] = {}
    scores = _scores(benchmark)
    for name, (a, b) in made.truth.items():
        score = scores[name]
        difference = resampling.paired(*(score.table(r) for r in made.records), draws=DRAWS, seed=seed)
        interval = difference.interval
        cell = {
            "difference": interval[0] <= a - b <= interval[1],
            "rejected": difference.p <= 0.05,
        }
        if seed % OWN == 0:
            own = score.compute(made.records[0]).ends()
            cell["score"] = own[0] <= made.given.get(name, a) <= own[1]
        if name in made.plain:
            low, high = _plain(made.plain[name])
            cell["plain"] = low <= a - b <= high
        found[name] = cell
    return found


def _structures() -> dict[str, Callable[[Rng, float], Round]]:
    """The makers with the real items, where the data can be had."""
    from lm_eval_bias.errors import BiasError

    makers: dict[str, Callable[[Rng, float], Round]] = {
        "occugender": occugender,
        "occugender, 5 templates": partial(occugender, templates=5),
        "regard": regard,
    }
    try:
        from lm_eval_bias.tasks.gg_bbq import released_items as bbq
        from lm_eval_bias.tasks.stereoset import released_sets as stereo

        items = [item for test in ("intra", "inter") for item in stereo.read("en", test)]
        labels, terms = np.unique([item["term"] for item in items], return_inverse=True)
        makers["stereoset"] = partial(stereoset, terms=terms, labels=labels[terms])
        makers["gg_bbq"] = partial(gg_bbq, docs=bbq.items("group_terms"))
    except BiasError as error:
        print(f"without StereoSet and GG-BBQ: {error}")
    return makers


SHIFTS = {"occugender": (0.0, 0.05), "stereoset": (0.0, 0.1), "gg_bbq": (0.0, 0.15), "regard": (0.0, 0.3)}


def main() -> None:
    """Simulate and print a table."""
    from tabulate import tabulate
    from tqdm import tqdm

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--output", metavar="FILE", help="the table as JSON")
    args = parser.parse_args()
    rows, saved = [], []
    with multiprocessing.get_context("fork").Pool(args.processes) as pool:
        for benchmark, make in _structures().items():
            for shift in SHIFTS[benchmark.partition(",")[0]]:
                job = partial(one_round, benchmark=benchmark.partition(",")[0], make=make, shift=shift)
                done = pool.imap_unordered(job, range(args.rounds), chunksize=8)
                rounds = list(tqdm(done, total=args.rounds, desc=f"{benchmark}, shift {shift}"))
                for name in rounds[0]:
                    keys = dict.fromkeys(key for r in rounds for key in r[name])
                    share = {key: float(np.mean([r[name][key] for r in rounds if key in r[name]])) for key in keys}
                    true_shift = make(np.random.default_rng(0), shift).truth[name]
                    equal = true_shift[0] == true_shift[1]
                    saved.append({"benchmark": benchmark, "score": name, "difference": true_shift[0] - true_shift[1],
                                  "rounds": len(rounds), **share})  # fmt: skip
                    plain = f"{100 * share['plain']:.1f}" if "plain" in share else "–"
                    rows.append(
                        [benchmark, name, f"{true_shift[0] - true_shift[1]:.3g}", f"{100 * share['score']:.1f}",
                         f"{100 * share['difference']:.1f}", plain,
                         f"{100 * share['rejected']:.1f}{' (false)' if equal else ''}"]
                    )  # fmt: skip
    headers = ["benchmark", "score", "true difference", "score's interval covers, %", "difference's covers, %",
               "plain interval covers, %", "test rejects, %"]  # fmt: skip
    error = 100 * stats.binom.std(args.rounds, 0.05) / args.rounds
    print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True))
    print(f"\n{args.rounds:,} rounds, which measure 5% and 95% to ± {1.96 * error:.1f} percentage points.")
    print(f"A score's own interval was asked for in every {OWN}th of them.")
    if args.output:
        Path(args.output).write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
