"""``doctor --self-test``: do the scores of this installation recover a bias that was planted in the answers?"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.errors import BiasError
from lm_eval_bias.harness import internals
from lm_eval_bias.installation import Finding

if TYPE_CHECKING:
    from lm_eval_bias.benchmark import Benchmark
    from lm_eval_bias.custom_metrics.score import Estimate, Record

logger = logging.getLogger("lm_eval.bias")
STRENGTHS = (-0.3, 0.0, 0.3)
RUNS = 3  # at each strength, with a seed each
TOLERANCE = 0.05  # of a score's range, for the mean over the runs of a strength
# or this many standard errors of that mean, for few clusters: the 100 or so means of a self-test are all within it but
# once in 1,000 times, where 3 would give a false alarm in one installation of four
CHANCE = 4.5
LEAST = 0.5  # more of the 95% intervals must hold the planted value: by chance fewer do once in 10,000 times


@contextlib.contextmanager
def _quietly_offline() -> Iterator[None]:
    """Let nothing be downloaded, and keep progress bars and cautions about the made-up answers to itself."""
    before, level = os.environ.get("HF_HUB_OFFLINE"), logger.level
    os.environ["HF_HUB_OFFLINE"] = "1"
    logger.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logger.setLevel(level)
        del os.environ["HF_HUB_OFFLINE"]
        if before is not None:
            os.environ["HF_HUB_OFFLINE"] = before


def records(task: Any, model: Any) -> list[Record]:
    """The records of a task's documents with a model's answers, as a run has them.

    Args:
        task: With its requests built.
        model: With a method for each kind of request.
    """
    for instance in task.instances:
        instance.resps, instance.filtered_resps = [], {}
    in_order = sorted(task.instances, key=attrgetter("request_type"))
    for kind, instances in groupby(in_order, key=attrgetter("request_type")):
        asked = [instance for instance in instances for _ in range(instance.repeats)]
        for instance, answer in zip(asked, getattr(model, kind)(asked), strict=True):
            instance.resps.append(answer)
    task.apply_filters()
    by_doc: dict[int, list[Any]] = {}
    for instance in sorted(task.instances, key=attrgetter("idx")):
        by_doc.setdefault(instance.doc_id, []).append(next(iter(instance.filtered_resps.values())))
    return [task.benchmark.record(task.eval_docs[place], answers) for place, answers in sorted(by_doc.items())]


def _verdict(label: str, low: float, high: float, planted: Sequence[float], found: Sequence[list[Estimate]]) -> Finding:
    """Whether a score recovered what was planted at each strength."""
    means = [math.fsum(estimate.value for estimate in own) / len(own) for own in found]
    ends = [(value, estimate.ends()) for value, own in zip(planted, found, strict=True) for estimate in own]
    held = sum(end is not None and end[0] <= value <= end[1] for value, end in ends)
    errors = [math.sqrt(math.fsum(e.stderr**2 for e in own if e.stderr == e.stderr)) / len(own) for own in found]
    allowed = [max(TOLERANCE * (high - low), CHANCE * error) for error in errors]
    near = all(abs(a - b) <= most for a, b, most in zip(means, planted, allowed, strict=True))
    good = near and held > LEAST * len(ends)
    numbers = ", ".join(f"{value + 0.0:.3g} as {mean:.3g}" for value, mean in zip(planted, means, strict=True))
    what = "recovered" if good else "NOT recovered"
    return Finding(
        "ok" if good else "problem",
        f"self-test: {label} {what}: planted {numbers}; in {held} of {len(ends)} intervals",
    )


def _of_benchmark(benchmark: Benchmark, name: str) -> list[Finding]:
    from lm_eval_bias.models.dial import DialLM

    planting = benchmark.planting
    assert planting is not None
    manager = internals.task_manager([benchmark.folder], planting.metadata, include_defaults=False)
    task = manager.load([name])["tasks"][name]
    task.build_all_requests(rank=0, world_size=1)
    main = benchmark.main or [score.name for score in catalog.headline(benchmark.name)]
    scores = [score for score in task.scores if score.name in main]
    planted: dict[str, list[float]] = {score.name: [] for score in scores}
    found: dict[str, list[list[Estimate]]] = {score.name: [] for score in scores}
    for number, strength in enumerate(STRENGTHS):
        models = [DialLM(strength, seed=RUNS * number + run) for run in range(RUNS)]
        answered = [records(task, model) for model in models]
        expected = planting.expected(task.eval_docs, models[0].dial)
        for score in scores:
            planted[score.name].append(expected[score.name])
            found[score.name].append([score.compute(own) for own in answered])
    return [
        _verdict(f"{name} {score.name}", score.low, score.high, planted[score.name], found[score.name])
        for score in scores
    ]


def examine() -> list[Finding]:
    """A line per main score of every benchmark whose data are there, and one for each that is left out."""
    findings = []
    for benchmark in registry.benchmarks():
        label = benchmark.title or benchmark.name
        tasks = [*benchmark.standard, *(e.name for e in catalog.packaged().values() if e.benchmark == benchmark.name)]
        if benchmark.planting is None or not tasks:
            findings.append(
                Finding("note", f"self-test: {label} is left out: the benchmark doesn't say how to plant answers")
            )
            continue
        try:
            with _quietly_offline():
                findings += _of_benchmark(benchmark, tasks[0])
        except BiasError as error:
            findings.append(Finding("note", f"self-test: {label} is left out: {error}"))
    return findings
