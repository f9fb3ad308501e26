"""The commands on saved answers: a task's items or one of them, scores again, answers without texts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from lm_eval_bias.cli.output import To, ToFile, Which, read
from lm_eval_bias.cli.signatures import Names
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import Run, TaskRun

INCOMPLETE = 2  # the exit status where a folder has logs that this version can't read


class _ToItems(To):
    formats = ("csv", "json")


def _found(path: str, name: str, to: ToFile) -> tuple[Run, TaskRun]:
    """Read a run and one of its tasks.

    Raises:
        BiasError: There isn't one run, no such task, or no log of it.
    """
    from lm_eval_bias.runs import items

    runs = read([path], Which(), to)
    having = [run for run in runs if name in run.tasks] or runs
    if len(having) > 1:
        names = ", ".join(str(run.path) for run in having)
        raise BiasError(f"{path}: several runs: name one of {names}")
    return having[0], items.of_task(having[0], name)


def items(run: str, task: str, *, to: _ToItems) -> None:
    """Write a task's items with prompts and answers.

    With prompt, answer, reading and what each adds to scores.

    Args:
        run (RUN): run folder or results_*.json, made with --log_samples
        task (TASK): one of its tasks
    """
    from lm_eval_bias.report.item_pages import ItemsReport

    _, of_task = _found(run, task, to)
    to.deliver(ItemsReport(of_task), f"{of_task.documents:,} items")


def show(run: str, task: str, *, item: int = 0) -> None:
    """Print one item with its prompt and the model's answer.

    With all that is known of it: the prompt as sent, the answer, its reading.

    Args:
        run (RUN): run folder or results_*.json, made with --log_samples
        task (TASK): one of its tasks
        item (N): place of the item in the log, from 0 (default: 0)
    """
    from itertools import islice

    from lm_eval_bias.report import item_pages
    from lm_eval_bias.runs import items

    of_run, of_task = _found(run, task, ToFile())
    found = next(islice(items.items(of_task), max(item, 0), None), None)
    if found is None or item < 0:
        raise BiasError(
            f"--item {item}: {task} has the items 0 to {of_task.documents - 1}"
        )
    sys.stdout.write(item_pages.as_text(of_run, of_task, found))


def rescore(
    paths: Sequence[str],
    *,
    language: str | None = None,
    table: Literal["main", "all", "none"] = "main",
    json: bool = False,
    by: Names = (),
    scores: Names = (),
    csv: str | None = None,
    as_logged: bool = False,
    **rewritings: Annotated[str, "lm_eval_bias.runs.rescoring:known_rewritings"],
) -> int:
    """Recompute every score from saved samples, without the model.

    A flag for one benchmark's answers skips the samples of all others, with a
    note.

    Args:
        paths (PATH): run folders (--output_path), answers or sample logs in them, or prediction files
        language (LANG): language of files that don't state it: de, en, ...
        table: table to print after the scores in words: the main scores (main, the default), every score (all) or none
        json: print JSON, with every score
        by (FACET): show the main scores by what the items differ in, such as job, template or term, or by two facets
            (a,b), in place of the scores; ls --card NAME lists a benchmark's facets
        scores (A,B): with --by: scores to show (default: the main scores)
        csv (FILE): with --by: write the values to FILE instead of printing them
        as_logged: keep what was read from logged texts when the run was made, instead of reading them by today's rules
    """
    from lm_eval_bias.core.csv_text import csv_of
    from lm_eval_bias.report import breakdown_tables, rescored_tables
    from lm_eval_bias.report.tables import json_text
    from lm_eval_bias.runs import breakdowns, rescoring

    reading = rescoring.reading(rewritings, as_logged)
    if by:
        files.check_place(csv, paths, "--csv")
        computed = breakdowns.breakdowns(paths, tuple(by), scores, language, reading)
        text = breakdown_tables.as_text(computed)
        if csv is not None:
            files.write(csv_of(breakdown_tables.records(computed)), csv)
            text = ""
        elif json:
            text = json_text(list(breakdown_tables.records(computed)), indent=2)
    elif scores or csv:
        flag = "scores" if scores else "csv"
        raise BiasError(f"--{flag} is for --by FACET: name one")
    else:
        results = rescoring.rescore(list(paths), language, reading)
        text = rescored_tables.as_text(results, table)
        if json:
            text = rescored_tables.as_json(results)
    print(text, end="")
    return INCOMPLETE if reading.unreadable else 0


def answers(paths: Sequence[str], *, again: bool = False) -> None:
    """Write a run's answers without its texts, for sharing.

    Made from the sample logs and saved beside the results: likelihoods,
    readings, keys and hashes. Runs that have such a file are skipped.

    Args:
        paths (RUN): run folders or results_*.json
        again: write all again
    """
    from lm_eval_bias.runs import answer_files, provenance, sample_logs

    runs = read(paths, Which(), ToFile(), by_file=True)
    for file in dict.fromkeys(run.path for run in runs):
        target = answer_files.beside(file)
        if target.is_file() and not again:
            print(f"{target}: is there")
            continue
        with files.writing(target):
            answer_files.write(file, sample_logs.beside(file))
            if provenance.sums_beside(file).is_file():
                provenance.write_sums(file, [target])
        print(f"{target}: {target.stat().st_size:,} bytes")
