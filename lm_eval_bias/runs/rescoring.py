"""Scores from saved answers, as data, JSON or a table."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.benchmark import Rewriting
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score, finite
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import sentences
from lm_eval_bias.runs import sample_logs, saved_answers
from lm_eval_bias.runs.sample_logs import DAMAGE, Part, Sample, damaged


@dataclass(frozen=True)
class Rescored:
    """The scores of one saved task.

    Attributes:
        part: What was read.
        documents: How many there were.
        scores: Each score with its estimate.
        told: What the benchmark tells about how they came about.
    """

    part: Part
    documents: int
    scores: list[tuple[Score, Estimate]]
    told: dict[str, Any]


def rescore(
    paths: list[str],
    language: str | None = None,
    rewritings: Sequence[tuple[Rewriting, str]] = (),
    only: str | None = None,
) -> list[Rescored]:
    """Recompute every score of everything saved under the paths.

    Args:
        paths: Files or folders.
        language: The language of files that don't say it themselves.
        rewritings: Benchmarks' ways to score their saved answers otherwise, each with its value; files of other
            benchmarks are then refused.
        only: Pass over all benchmarks but this one.

    Raises:
        BiasError: Files that cannot be read or scored, or that cannot be rewritten so.
    """
    return saved_answers.each(paths, partial(_file, rewritings=rewritings, only=only), language)


def _file(
    samples: Iterable[Sample], rewritings: Sequence[tuple[Rewriting, str]], only: str | None
) -> dict[Part, Rescored]:
    """The scores of a file's parts; of its documents no more than the records is kept."""
    kept: dict[Part, tuple[Mapping[str, Any], list[Record]]] = {}
    for rewriting, value in rewritings:
        samples = _rewritten(samples, rewriting, value, only)
    for part, doc, answers in samples:
        if only not in (None, part.benchmark):
            return {}
        with _blamed(part, f"document {len(kept[part][1]) if part in kept else 0}"):
            kept.setdefault(part, (doc, []))[1].append(registry.get(part.benchmark).record(doc, answers))
    found = {}
    for part, (first, records) in kept.items():
        with _blamed(part, "its scores"):
            scores = registry.get(part.benchmark).scores(records, detailed=True)
            estimates = [(score, score.compute(records)) for score in scores]
            told = registry.get(part.benchmark).provenance([first])
            json.dumps(told, allow_nan=False)
            found[part] = Rescored(part, len(records), estimates, told)
    return found


def _rewritten(samples: Iterable[Sample], rewriting: Rewriting, value: str, only: str | None) -> Iterator[Sample]:
    """Saved documents and answers as a benchmark rewrites them: one by one, or all of a part at once."""

    def check(part: Part) -> None:
        benchmark = registry.family(part.benchmark)
        if benchmark is None or rewriting not in benchmark.rewritings:
            owner = rewriting.help.partition(":")[0]
            raise BiasError(f"{part.path}: --{rewriting.flag} is for {owner}, this is {part.benchmark}")

    if rewriting.each is not None:
        count: Counter[Part] = Counter()
        for part, doc, answers in samples:
            check(part)
            with _blamed(part, f"document {count[part]}"):
                doc, answers = rewriting.each(doc, answers, value)
            count[part] += 1
            yield Sample(part, doc, answers)
    if rewriting.all is not None:
        for part, whole in sample_logs.collect(samples).items():
            if only in (None, part.benchmark):
                check(part)
                with _blamed(part, "its texts"):
                    docs, results = rewriting.all(whole.docs, whole.results, value)
                yield from replace(whole, docs=docs, results=results).samples()


@contextlib.contextmanager
def _blamed(part: Part, at: str) -> Iterator[None]:
    """Errors name the file and the place in it."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(part, error, at) from error


def _interval(score: Score, estimate: Estimate) -> list[float] | None:
    """The 95% interval, cut to the score's range; ``None`` where there is none."""
    ends = estimate.ends()
    return None if ends is None else [min(max(end, score.low), score.high) for end in ends]


def _cell(interval: list[float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.4f} … {interval[1]:.4f}"


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _in_words(result: Rescored) -> str:
    """What the scores say, as after a run; empty for a part of a task."""
    scores: dict[str, Any] = {}
    listed = []
    for score, estimate in result.scores:
        scores |= {f"{score.name},none": estimate.value, f"{score.name}_stderr,none": estimate.stderr}
        ends = None if estimate.interval is None else list(estimate.interval)
        listed.append({"metric": score.name, "dof": finite(estimate.dof), "interval": ends})
    part = result.part
    said = sentences.describe({part.task: scores}, {part.task: {"metric_list": listed, "metadata": result.told}})
    return f"In words (± is a 95% interval):\n{said}" if said else ""


def as_data(results: list[Rescored]) -> list[dict[str, Any]]:
    """Plain data: per saved task its scores with value, stderr (``None`` for nan, with the reason) and meaning."""
    return [
        {
            "path": str(result.part.path),
            "task": result.part.task,
            "benchmark": result.part.benchmark,
            "filter": result.part.filter,
            "documents": result.documents,
            **result.told,
            "scores": {
                score.name: {
                    "value": finite(estimate.value),
                    "stderr": finite(estimate.stderr),
                    "interval": _interval(score, estimate),
                    "dof": finite(estimate.dof),
                    "n": estimate.n,
                    "reason": estimate.reason,
                    **{key: entry for key, entry in score.describe().items() if key != "name"},
                }
                for score, estimate in result.scores
            },
        }
        for result in results
    ]


def as_json(results: list[Rescored]) -> str:
    """:func:`as_data` as JSON that any reader accepts (no NaN)."""
    return json.dumps(as_data(results), indent=2, ensure_ascii=False, allow_nan=False)


def as_table(results: list[Rescored]) -> str:
    """One table per saved task, with each score's range and neutral value, and why a score is nan."""
    from tabulate import tabulate

    blocks = []
    for result in results:
        part = result.part
        rows = [
            [
                score.name,
                f"{estimate.value:.4f}",
                "" if math.isnan(estimate.stderr) else f"± {estimate.stderr:.4f}",
                _cell(_interval(score, estimate)),
                catalog.format_range(score),
                catalog.format_number(score.neutral),
            ]
            for score, estimate in result.scores
        ]
        headers = ["Score", "Value", "Stderr", "95% interval", "Range", "Neutral"]
        align = ("left", "right", "right", "right", "right", "right")
        table = tabulate(rows, headers=headers, tablefmt="github", colalign=align, disable_numparse=True)
        filtered = "" if part.filter == "none" else f", filter {part.filter}"
        lines = [f"{part.task}: {result.documents:,} documents{filtered} ({part.path})", table]
        reasons: dict[str, list[str]] = {}
        for score, estimate in result.scores:
            if estimate.reason:
                reasons.setdefault(estimate.reason, []).append(score.name)
        lines += [f"note: {reason}: {_few(names)}" for reason, names in reasons.items()]
        lines.append(_in_words(result))
        blocks.append("\n".join(line for line in lines if line))
    return "\n\n".join(blocks)
