"""Rescored answers, as a table or as JSON."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from lm_eval_bias import catalog
from lm_eval_bias.custom_metrics.score import Estimate, Score, finite
from lm_eval_bias.report import sentences
from lm_eval_bias.report.numbers import bound, few, score_range
from lm_eval_bias.report.tables import Column, grid, json_text
from lm_eval_bias.runs import harness_results
from lm_eval_bias.runs.rescoring import Rescored
from lm_eval_bias.runs.run_data import TaskRun


def _interval(score: Score, estimate: Estimate) -> list[float] | None:
    """The 95% interval, cut to the score's range; ``None`` where there is none."""
    ends = estimate.ends()
    return None if ends is None else [min(max(end, score.low), score.high) for end in ends]


def _data(result: Rescored) -> Mapping[str, object]:
    """A saved task's scores with value, stderr (``None`` for nan, with the reason) and meaning."""
    return {
        "path": str(result.part.path),
        "task": result.part.task,
        "benchmark": result.part.benchmark,
        "filter": result.part.filter,
        "documents": result.documents,
        **result.provenance,
        "scores": {
            score.name: {
                "value": finite(estimate.value),
                "stderr": finite(estimate.stderr),
                "interval": _interval(score, estimate),
                **({} if estimate.fixed_interval is None else {"fixed_interval": list(estimate.fixed_interval)}),
                "dof": finite(estimate.dof),
                "n": estimate.n,
                "reason": estimate.reason,
                **{key: entry for key, entry in score.describe().items() if key != "name"},
            }
            for score, estimate in result.scores
        },
    }


def as_json(results: Sequence[Rescored]) -> str:
    """A list with an entry per saved task."""
    return json_text([_data(result) for result in results], indent=2)


def _sentences(result: Rescored) -> str:
    """What the scores say, as after a run; empty for a part of a task."""
    name, benchmark = result.part.task, result.part.benchmark
    entry = catalog.entries().get(name)
    if entry is None or entry.kind != "task":
        return ""
    scores = {score.name: harness_results.estimated(score, estimate) for score, estimate in result.scores}
    task = TaskRun(name, benchmark, entry.language, "", result.documents, 0, result.provenance, scores)
    return f"In words ({sentences.LEGEND}):\n{sentences.block(task)}"


def _ends(ends: Sequence[float] | None) -> str:
    return "" if ends is None else " … ".join(f"{end:.4f}" for end in ends)


def _row(score: Score, estimate: Estimate, fixed: bool) -> list[str]:
    return [
        score.name,
        f"{estimate.value:.4f}",
        "" if math.isnan(estimate.stderr) else f"{estimate.stderr:.4f}",
        _ends(_interval(score, estimate)),
        *([_ends(estimate.fixed_interval)] if fixed else []),
        score_range(score, " … "),
        bound(score.neutral),
    ]


def _block(result: Rescored) -> str:
    filtered = "" if result.part.filter == "none" else f", filter {result.part.filter}"
    fixed = any(estimate.fixed_interval for _, estimate in result.scores)
    labels = ("Value", "Stderr", "95% interval", *(("of items as given",) if fixed else ()), "Range", "Neutral")
    columns = [Column("Score"), *(Column(label, True) for label in labels)]
    reasons = defaultdict(list)
    for score, estimate in result.scores:
        if estimate.reason:
            reasons[estimate.reason].append(score.name)
    lines = [
        f"{result.part.task}: {result.documents:,} documents{filtered} ({result.part.path})",
        grid(columns, [_row(*scored, fixed) for scored in result.scores], "github"),
        *(f"note: {reason}: {few(names, 8)}" for reason, names in reasons.items()),
        _sentences(result),
    ]
    return "\n".join(line for line in lines if line)


def as_text(results: Sequence[Rescored]) -> str:
    """One table per saved task, with each score's range and neutral value, and why a score is nan."""
    return "\n\n".join(map(_block, results)) + "\n"
