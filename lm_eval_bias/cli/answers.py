"""The commands on saved answers: a task's items, scores again, answers without texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from lm_eval_bias.cli.output import To, ToFile, Which, read
from lm_eval_bias.cli.signatures import Names
from lm_eval_bias.core import files
from lm_eval_bias.core.errors import BiasError

INCOMPLETE = 2  # the exit status where a folder has logs that this version can't read


class _ToItems(To):
    formats = ("csv", "json")


def items(run: str, task: str, *, to: _ToItems) -> None:
    """Write a task's items with prompts and answers.

    With prompt, answer, reading and what each adds to scores.

    Args:
        run (RUN): run folder or results_*.json, made with --log_samples
        task (TASK): one of its tasks
    """
    from lm_eval_bias.report.item_pages import ItemsReport
    from lm_eval_bias.runs.items import of_task as with_log

    runs = read([run], Which(), to)
    having = [one for one in runs if task in one.tasks] or runs
    if len(having) > 1:
        names = ", ".join(str(one.path) for one in having)
        raise BiasError(f"{run}: several runs: name one of {names}")
    of_task = with_log(having[0], task)
    to.deliver(ItemsReport(of_task), f"{of_task.documents:,} items")


def rescore(
    paths: Sequence[str],
    *,
    language: str | None = None,
    table: Literal["main", "all", "none"] = "main",
    json: bool = False,
    by: Names = (),
    scores: Names = (),
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
        as_logged: keep what was read from logged texts when the run was made, instead of reading them by today's rules
    """
    from lm_eval_bias.report import breakdown_tables, rescored_tables
    from lm_eval_bias.report.tables import json_text
    from lm_eval_bias.runs import breakdowns, rescoring

    reading = rescoring.reading(rewritings, as_logged)
    if by:
        computed = breakdowns.breakdowns(paths, tuple(by), scores, language, reading)
        text = breakdown_tables.as_text(computed)
        if json:
            text = json_text(list(breakdown_tables.records(computed)), indent=2)
    elif scores:
        raise BiasError("--scores is for --by FACET: name one")
    else:
        results = rescoring.rescore(list(paths), language, reading)
        text = rescored_tables.as_text(results, table)
        if json:
            text = rescored_tables.as_json(results)
    print(text, end="")
    return INCOMPLETE if reading.unreadable else 0


def answers(paths: Sequence[str]) -> None:
    """Write a run's answers without its texts, for sharing.

    Made from the sample logs and saved beside the results: likelihoods,
    readings, keys and hashes. Runs that have such a file are skipped.

    Args:
        paths (RUN): run folders or results_*.json
    """
    from lm_eval_bias.runs import answer_files, provenance, sample_logs

    runs = read(paths, Which(), ToFile(), by_file=True)
    for file in dict.fromkeys(run.path for run in runs):
        target = answer_files.beside(file)
        if target.is_file():
            print(f"{target}: is there")
            continue
        with files.writing(target):
            answer_files.write(file, sample_logs.beside(file))
            if provenance.sums_beside(file).is_file():
                provenance.write_sums(file, [target])
        print(f"{target}: {target.stat().st_size:,} bytes")
