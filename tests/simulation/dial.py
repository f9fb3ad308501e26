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
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.planting import Dial
from tests.simulation import habits
from tests.simulation.habits import Habits

STRENGTHS = (-0.4, -0.2, 0.0, 0.2, 0.4)
BIASED = 0.2  # the strength at which it is seen what else moves a score
OTHERS: dict[str, float] = {
    "competence": 0.75, "coverage": 0.2, "position": 0.3, "length": 0.3, "frequency": 0.3, "refusals": 0.3,
}  # fmt: skip
MOVED = 0.01  # of a score's range: what counts as moved, if it is more than chance too


@dataclass(frozen=True)
class Case:
    """A benchmark with real documents.

    Attributes:
        benchmark: Its name.
        label: What the documents are.
        documents: Gives them.
        noise: How much the bias varies between clusters.
        samples: Texts a prompt, where texts are written.
    """

    benchmark: str
    label: str
    documents: Callable[[], list[dict[str, Any]]]
    noise: float = Dial.noise
    samples: int = 10

    def records(self, dial: Dial) -> list[Any]:
        """The records of a run."""
        benchmark, docs = registry.get(self.benchmark), _documents(self)
        if benchmark.samples_texts == "never":
            return [benchmark.record(doc, habits.answers(doc, dial)) for doc in docs]
        from lm_eval_bias.tasks.regard.hooks import FirstSentenceFilter, RegardFilter

        texts = [[str(habits.answers(doc, dial.for_text(n))[0]) for n in range(self.samples)] for doc in docs]
        labelled = RegardFilter().apply(FirstSentenceFilter().apply(texts, docs), docs)
        return [benchmark.record(doc, [answer]) for doc, answer in zip(docs, labelled, strict=True)]

    def scores(self) -> list[Any]:
        """The main scores."""
        benchmark = registry.get(self.benchmark)
        return [score for score in benchmark.scores(_documents(self)) if score.name in benchmark.main]

    def expected(self, dial: Dial) -> dict[str, float]:
        """The planted values of the main scores."""
        planting = registry.get(self.benchmark).planting
        assert planting is not None
        return dict(planting.expected(_documents(self), dial))


@lru_cache(maxsize=8)
def _documents(case: Case) -> list[dict[str, Any]]:
    return case.documents()


def occugender(kind: str, **more: Any) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.occugender import hooks

    return hooks.documents(kind, **more)


def gg_bbq(subset: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.gg_bbq import hooks

    return hooks.dataset(subset)["test"]


def es_bbq(language: str, category: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.es_bbq import hooks

    return hooks.dataset(language, category)["test"]


def kobbq(category: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.kobbq import hooks

    return hooks.dataset(category)["test"]


def stereoset(language: str, number: int | None = None, choices: bool = False) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.stereoset import hooks

    return hooks.documents({"language": language, "tests": ["intra", "inter"], "choices": choices})[:number]


def regard(language: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.regard import hooks

    return hooks.dataset({"language": language}, classifier="light")["test"]


CASES = (
    Case("occugender", "implicit, 40 occupations x 10 templates", partial(occugender, "implicit", first_templates=10)),
    Case("gg_bbq", "Subset-I, 968 items in 21 templates", partial(gg_bbq, "group_terms")),
    Case("es_bbq", "es, race and ethnicity, 3,716 items in 51 templates", partial(es_bbq, "es", "race_ethnicity")),
    Case("kobbq", "gender, 600 documents in 25 stories", partial(kobbq, "gender_identity")),
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


def run(case: Case, dial: Dial) -> dict[str, tuple[float, bool]]:
    """Each main score's value, and whether its interval holds the planted one."""
    records, expected = case.records(dial), case.expected(dial)
    found = {}
    for score in case.scores():
        estimate = score.compute(records)
        ends = estimate.ends()
        found[score.name] = (estimate.value, ends is not None and ends[0] <= expected[score.name] <= ends[1])
    return found


def _one(job: tuple[Case, Dial]) -> dict[str, tuple[float, bool]]:
    return run(*job)


def recovered(case: Case, strengths: Sequence[float], seeds: Sequence[int], each: Callable[..., Any] = map) -> Any:
    """Values and coverage of every main score: arrays of shape (strengths, seeds)."""
    jobs = [(case, Dial(strength, noise=case.noise, seed=seed)) for strength in strengths for seed in seeds]
    rounds = list(each(_one, jobs))
    shape = len(strengths), len(seeds)
    return {
        name: (
            np.array([own[name][0] for own in rounds]).reshape(shape),
            np.array([own[name][1] for own in rounds]).reshape(shape),
        )
        for name in rounds[0]
    }


def moved(
    case: Case, strength: float, seeds: Sequence[int], each: Callable[..., Any] = map
) -> dict[str, dict[str, tuple[float, float]]]:
    """How far each of the other settings moves each main score, and that number's standard error, by setting.

    With and without it, the seeds are the same, and so the clusters.
    """
    plain = [Habits(strength, noise=case.noise, seed=seed) for seed in seeds]
    settings = [{}, *({name: value} for name, value in OTHERS.items())]
    rounds = list(each(_one, [(case, replace(dial, **setting)) for setting in settings for dial in plain]))
    names = list(rounds[0])
    values = np.array([[own[name][0] for name in names] for own in rounds]).reshape(len(settings), len(plain), -1)
    shifts = values[1:] - values[0]
    means, errors = shifts.mean(axis=1), shifts.std(axis=1, ddof=1) / math.sqrt(len(plain))
    return {
        other: {name: (float(means[i, k]), float(errors[i, k])) for k, name in enumerate(names)}
        for i, other in enumerate(OTHERS)
    }


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
            _documents(case)  # before the processes are forked
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
