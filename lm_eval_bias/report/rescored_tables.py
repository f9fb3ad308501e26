"""Rescored answers, in words and tables or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lm_eval_bias.core import catalog
from lm_eval_bias.core.numbers import aim, bracketed, fixed_interval, number, score_range
from lm_eval_bias.core.page_parts import Column
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.report import run_output, sentences
from lm_eval_bias.report.tables import grid, json_text
from lm_eval_bias.runs import harness_results
from lm_eval_bias.runs.rescoring import Rescored


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
                "interval": ends and list(ends),
                **({} if estimate.fixed_interval is None else {"fixed_interval": list(estimate.fixed_interval)}),
                "dof": finite(estimate.dof),
                "n": estimate.n,
                "reason": estimate.reason,
                **{key: entry for key, entry in score.describe().items() if key != "name"},
            }
            for score, estimate in result.scores
            for ends in [harness_results.estimated(score, estimate).interval]
        },
    }


def as_json(results: Sequence[Rescored]) -> str:
    """A list with an entry per saved task."""
    return json_text([_data(result) for result in results], indent=2)


def items(results: Sequence[Rescored], suffix: str) -> str:
    """Write every record as a line of CSV (``.csv``) or JSON (``.jsonl``)."""
    import pandas

    frame = pandas.DataFrame([row for result in results for row in result.items])
    if suffix == ".csv":
        return str(frame.to_csv(index=False))
    return str(frame.to_json(orient="records", lines=True, force_ascii=False, double_precision=15))


def _tasks(results: Sequence[Rescored]) -> list[TaskRun]:
    """The results as tasks of one run; those of the same name are numbered."""
    entries, tasks = catalog.entries(), []
    count = Counter(result.part.task for result in results)
    number: Counter[str] = Counter()
    for result in results:
        name, benchmark = result.part.task, result.part.benchmark
        number[name] += 1
        label = f"{name} [{number[name]}]" if count[name] > 1 else name
        language = entries[name].language if name in entries else ""
        scores = {score.name: harness_results.estimated(score, estimate) for score, estimate in result.scores}
        usual = catalog.usual_repeats(name)
        tasks.append(
            TaskRun(label, benchmark, language, "", result.documents, 0, result.provenance, scores, usual_repeats=usual)
        )
    return tasks


def runs(results: Sequence[Rescored]) -> list[Run]:
    """Each result as a run, called by its file."""
    return [
        Run(str(result.part.path), result.part.path, {}, "", {task.task: task})
        for result, task in zip(results, _tasks(results), strict=True)
    ]


def _every_score(task: TaskRun) -> str:
    rows = [
        [one.name, number(one.value, one.unit), f"{bracketed(one)} {fixed_interval(one)}", score_range(one), aim(one)]
        for one in task.scores.values()
    ]
    columns = [Column("Score"), Column("Value", True), *map(Column, ("95% interval", "Range", "Neutral or best"))]
    return f"{task.task}\n{grid(columns, rows, 'github')}"


def as_text(results: Sequence[Rescored], table: str) -> str:
    """What was read, the scores in words, the tables that are wanted, and why scores are missing, as after a run.

    Args:
        results: Of one command.
        table: One of :data:`lm_eval_bias.report.run_output.TABLES`.
    """
    tasks, headings = _tasks(results), []
    for result, task in zip(results, tasks, strict=True):
        filtered = "" if result.part.filter == "none" else f", filter {result.part.filter}"
        headings.append(f"{task.task}: {result.documents:,} documents{filtered} ({result.part.path})")
    # no sentence speaks of a part of a task
    whole = [task for task in tasks if (entry := catalog.entries().get(task.task)) and entry.kind == "task"]
    words = sentences.describe(whole, beside_tables=table != "all")
    blocks = ["\n".join(headings), f"In words ({sentences.LEGEND}):\n{words}" if words else ""]
    if table == "main":
        blocks.append(run_output.main_scores(tasks))
    if table == "all":
        blocks += map(_every_score, tasks)
    blocks.append(run_output.notes(tasks, table == "all", words))
    return "\n\n".join(block for block in blocks if block) + "\n"
