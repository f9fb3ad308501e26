"""Reports on runs, in each format of ``lm-eval-bias report``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import cards, content, item_pages, overview, parts, tables, templates
from lm_eval_bias.report.item_pages import ItemPages
from lm_eval_bias.runs import printable_runs, run_file
from lm_eval_bias.runs.run_data import Problem, Run

COLUMNS = (
    "run", "task", "benchmark", "language", "documents", "items", "score", "value", "stderr", "interval_low",
    "interval_high", "range_low", "range_high", "neutral", "unit", "direction", "note", "fixed_interval_low",
    "fixed_interval_high",
)  # fmt: skip


def records(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """A row per run, task and score: :data:`COLUMNS` and ``dof``; no withheld scores."""
    for run in printable_runs.presentable(runs):
        for task in run.tasks.values():
            for value in task.scores.values():
                cells = [
                    run.name, task.task, task.benchmark, task.language, task.documents, task.items or None, value.name,
                    value.value, value.stderr, *(value.interval or (None, None)), value.low, value.high, value.neutral,
                    value.unit, value.direction, value.note, *(value.fixed_interval or (None, None)),
                ]  # fmt: skip
                yield {**dict(zip(COLUMNS, cells, strict=True)), "dof": value.dof}


def _json(runs: Sequence[Run]) -> str:
    """A run file of one run, a list of several; each meets the schema."""
    data = [run_file.as_data(run) for run in runs]
    for run, run_data in zip(runs, data, strict=True):
        try:
            run_file.check(run_data)
        except BiasError as error:
            raise BiasError(f"{run.path}: {error}") from error
    return tables.json_text(data[0] if len(data) == 1 else data, indent=1)


def items(runs: Sequence[Run], most: int, folder: str, page: str) -> ItemPages:
    """Pages of the items behind the main scores of some runs (:func:`lm_eval_bias.report.item_pages.build`)."""
    return item_pages.build(parts.report_tasks(printable_runs.presentable(runs)), most, folder, page)


def render(form: str, runs: Sequence[Run], problems: Sequence[Problem], pages: ItemPages | None = None) -> str:
    """The report about some runs; the same runs always give the same text.

    Args:
        form: ``html``; ``md``, sentences, warnings, tables of the main scores, provenance; ``latex``, the tables for a
            paper; ``csv``, a row per run, task and score; or ``json``.
        runs: The runs.
        problems: Files that were passed over.
        pages: Pages of items that a page of HTML leads to.

    Raises:
        BiasError: A run that can't be written as JSON, since the schema doesn't allow it.
    """
    if form == "json":
        return _json(runs)
    if form == "csv":
        return tables.csv_text(COLUMNS, ([row[column] for column in COLUMNS] for row in records(runs)))
    return templates.render(
        f"report.{templates.ENDINGS[form]}.j2",
        report=content.build(runs, problems, pages),
        main_tables=content.main_tables,
        breakdowns=content.breakdowns,
        card_details=cards.folded,
        many=overview.MANY,
        most_in_words=content.SENTENCES,
    )
