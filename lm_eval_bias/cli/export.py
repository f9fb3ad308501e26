"""``lm-eval-bias export``: runs in other people's formats, on this machine alone."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from typing import TYPE_CHECKING, Any

from lm_eval_bias import registry
from lm_eval_bias.benchmark import ExportFormat
from lm_eval_bias.cli import output
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded, whole_folder, write_whole, writing

if TYPE_CHECKING:
    from lm_eval_bias.exports.bundle import Bundle

_EXAMPLES = """examples:
  lm-eval-bias export OUT --to eee                         # a preview
  lm-eval-bias export OUT --to model-card -o bias.md
  lm-eval-bias export OUT --to evidence -o evidence/
"""


def _brought() -> dict[str, ExportFormat]:
    """The formats that benchmarks bring, by name."""
    return {form.name: form for benchmark in registry.benchmarks() for form in benchmark.export_formats}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    from lm_eval_bias.exports import bundle, formats

    brought = _brought()
    lines = [f"  {form.name:<16} {form.help}" for form in formats.FORMATS]
    lines += [f"  {form.name:<16} {form.help}" for form in brought.values()]
    parser.description = "Write runs in a format that others read, or preview it. Nothing is ever uploaded."
    parser.epilog = "\n".join(["formats:", *lines, "", _EXAMPLES])
    parser.add_argument("paths", nargs="+", metavar="RUN", help="run folders, results_*.json or run files")
    parser.add_argument(
        "--to",
        choices=[*formats.BY_NAME, *brought],
        metavar="FORMAT",
        help=f"see below{f'; {next(iter(brought))} without it' if brought else ''}",
    )
    parser.add_argument(
        "-o", "--output", metavar="PATH", help="write it there: a file, or for formats of several files a new folder"
    )
    parser.add_argument("--name", metavar="NAME", help="the model's name, as OWNER/NAME where it is on the Hub")
    parser.add_argument("--scores", choices=["main", "all"], help="default: main for the Hub's formats, else all")
    parser.add_argument("--no-items", action="store_true", help="eee: leave out the records of single items")
    parser.add_argument("--organization", metavar="NAME", help="eee, evidence: who evaluated")
    parser.add_argument("--relationship", choices=bundle.RELATIONSHIPS, help="eee: theirs to the model (default other)")
    parser.add_argument("--dataset", metavar="OWNER/NAME", help="hf-eval-results: the leaderboard's data set")
    for form in brought.values():
        _add_flags(parser.add_argument_group(f"--to {form.name}"), form)


def _add_flags(parser: Any, form: ExportFormat) -> None:
    importlib.import_module(form.module).add_arguments(parser)


def _refuse_foreign(form: str, arguments: argparse.Namespace) -> None:
    """Refuse options that mean nothing for a format: they would seem to have been heeded.

    Raises:
        BiasError: The first of them.
    """
    from lm_eval_bias.exports import formats

    takes = {one.name: set(one.takes) for one in formats.FORMATS}
    for one in _brought().values():
        own = argparse.ArgumentParser(add_help=False)
        _add_flags(own, one)
        takes[one.name] = set(vars(own.parse_args([])))
    for option in sorted(set().union(*takes.values()) - takes[form]):
        if getattr(arguments, option) not in (None, False):
            takers = ", ".join(name for name, options in takes.items() if option in options)
            raise BiasError(f"--{option.replace('_', '-')} means nothing for --to {form}: it is for {takers}")


def run(arguments: argparse.Namespace) -> int:
    """Preview or write an export; returns the exit status.

    Raises:
        BiasError: Bad usage, no run at all, or a place that can't be written.
    """
    brought = _brought()
    form = arguments.to or next(iter(brought), None)
    if form is None:
        raise BiasError("export needs --to FORMAT ('lm-eval-bias export --help' lists them)")
    _refuse_foreign(form, arguments)
    if form in brought:
        if arguments.output is None:
            raise BiasError(f"--to {form} needs a file: add -o FILE")
        return int(importlib.import_module(brought[form].module).run(arguments))
    return _export(form, arguments)


def _export(name: str, arguments: argparse.Namespace) -> int:
    from lm_eval_bias.exports import bundle, directions, formats
    from lm_eval_bias.report import export_previews
    from lm_eval_bias.runs import printable_runs, run_discovery

    form = formats.BY_NAME[name]
    if form.is_folder:
        _check_folder(arguments.output, arguments.paths)
    else:
        output.check_place(arguments.output, arguments.paths)
    runs, problems = run_discovery.read(arguments.paths)
    output.name_problems(problems)
    runs = printable_runs.presentable(printable_runs.runs(runs))
    settings = bundle.Settings(
        name=arguments.name,
        main_only=form.main_only if arguments.scores is None else arguments.scores == "main",
        with_items=not arguments.no_items,
        organization=arguments.organization or "",
        relationship=arguments.relationship or bundle.Settings().relationship,
        dataset=arguments.dataset or "",
        now=_now(),
    )
    made = form.make(runs, problems, settings)
    files = {path or arguments.output or "the file": text for path, text in made.files.items()}
    preview = export_previews.text(name, made.scores, directions.names(made.left_out), made.shown, files, made.remarks)
    # written before anything is said: what is refused prints nothing
    if arguments.output is not None and form.is_folder:
        _write_folder(made, arguments.output)
    elif arguments.output is not None:
        with writing(arguments.output):
            write_whole(expanded(arguments.output), made.files[""].encode("utf-8", "backslashreplace"))
    print(f"{preview}\n{arguments.output or 'Only a preview: -o PATH writes it.'}")
    return 0


def _now() -> float:
    """When the export is made: ``SOURCE_DATE_EPOCH``, as builds that can be repeated set it, else now.

    Raises:
        BiasError: The variable is no number.
    """
    value = os.environ.get("SOURCE_DATE_EPOCH")
    if not value:
        return time.time()
    if not value.isascii() or not value.isdigit() or len(value) > 11:
        raise BiasError(f"SOURCE_DATE_EPOCH={value[:40]!r}: must be whole seconds since 1970")
    return float(value)


def _check_folder(place: str | None, inputs: list[str]) -> None:
    """Refuse a folder that holds something, before the work for it is done.

    Raises:
        BiasError: It does, or is none.
    """
    if place is None:
        return
    path = expanded(place)
    with writing(place):
        if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
            raise BiasError(f"-o {place}: there is something already: name a new folder")
    output.refuse_inputs(place, inputs)


def _write_folder(made: Bundle, place: str) -> None:
    path = expanded(place).absolute()
    with writing(place), whole_folder(path) as folder:
        for name, text in made.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8", "backslashreplace"))
        if made.store is not None:
            made.store(folder)
        folder.chmod(0o755)
