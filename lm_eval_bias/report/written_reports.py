"""Reports as files: what ``report`` and the Python interface share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lm_eval_bias import output_files
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import run_reports
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Problem, Run


def check(form: str, place: str | None, inputs: Sequence[str], items: int, flag: str = "-o") -> None:
    """Refuse a report that can't be written, before the work for it is done.

    Args:
        form: See :func:`lm_eval_bias.report.run_reports.render`.
        place: The file; ``None`` is standard output.
        inputs: Files and folders that are read.
        items: How many items of each kind the pages beside a page of HTML show; 0 for no such pages.
        flag: What names the file.

    Raises:
        BiasError: The first thing that is wrong.
    """
    if items < 0:
        raise BiasError(f"--items {items}: must be 0 or more")
    output_files.check_place(place, inputs, flag)
    if form == "html" and items and place is not None:
        output_files.folder_beside(place, flag)


def write(form: str, runs: Sequence[Run], problems: Sequence[Problem], place: str, items: int) -> None:
    """Write a report that was checked, and the pages of items that a page of HTML leads to.

    Raises:
        BiasError: A run that the format can't hold, or a file that can't be written.
    """
    shown, pages = printable_runs.runs(runs), None
    if form == "html" and items:
        folder = output_files.folder_beside(place)
        pages = run_reports.items(shown, items, folder.name, Path(place).name)
    text = run_reports.render(form, shown, problems, pages)
    if pages is not None and pages.files:
        output_files.write_folder(pages.files, folder)
    output_files.write(text, place)
