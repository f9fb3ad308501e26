"""``lm-eval-bias export``: runs in other people's formats, on this machine alone."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from lm_eval_bias import registry
from lm_eval_bias.benchmark import ExportFormat
from lm_eval_bias.cli import output
from lm_eval_bias.errors import BiasError

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
    parser.description = "Write runs in another tool's format, or preview the result. Nothing is ever uploaded."
    parser.epilog = "\n".join(["formats:", *lines, "", _EXAMPLES])
    parser.add_argument("paths", nargs="+", metavar="RUN", help="run folders, results_*.json or run files")
    parser.add_argument(
        "--to",
        choices=[*formats.BY_NAME, *brought],
        metavar="FORMAT",
        help=f"output format, see below{f' (default: {next(iter(brought))})' if brought else ''}",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="file to write, or a new folder for formats of several files (default: only a preview)",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the model, as OWNER/NAME if it is on the Hub")
    parser.add_argument(
        "--scores", choices=["main", "all"], help="which scores (default: main for the Hub's formats, else all)"
    )
    parser.add_argument("--no-items", action="store_true", help="eee: leave out the records of individual items")
    parser.add_argument(
        "--organization", metavar="NAME", help="eee, evidence: the organization that ran the evaluation"
    )
    parser.add_argument(
        "--relationship",
        choices=bundle.RELATIONSHIPS,
        help="eee: that organization's relationship to the model (default other)",
    )
    parser.add_argument(
        "--dataset", metavar="OWNER/NAME", help="hf-eval-results: the data set of the leaderboard on the Hub"
    )
    for form in brought.values():
        _add_flags(parser.add_argument_group(f"--to {form.name}"), form)


def _add_flags(parser: Any, form: ExportFormat) -> None:
    importlib.import_module(form.module).add_arguments(parser)


def _own_options(form: ExportFormat) -> list[str]:
    own = argparse.ArgumentParser(add_help=False)
    _add_flags(own, form)
    return list(vars(own.parse_args([])))


def run(arguments: argparse.Namespace) -> int:
    """Preview or write an export; returns the exit status.

    Raises:
        BiasError: Bad usage, no run at all, or a place that can't be written.
    """
    from lm_eval_bias.exports import delivery

    brought = _brought()
    form = arguments.to or next(iter(brought), None)
    if form is None:
        raise BiasError("export needs --to FORMAT ('lm-eval-bias export --help' lists them)")
    options = {key: value for key, value in vars(arguments).items() if key not in ("paths", "to", "output")}
    given = {key: value for key, value in options.items() if value not in (None, False)}
    delivery.refuse_foreign(form, given, {name: _own_options(one) for name, one in brought.items()})
    if form in brought:
        if arguments.output is None:
            raise BiasError(f"--to {form} needs a file: add -o FILE")
        return int(importlib.import_module(brought[form].module).run(arguments))
    return _export(form, arguments.paths, arguments.output, given)


def _export(name: str, paths: list[str], place: str | None, options: dict[str, Any]) -> int:
    from lm_eval_bias.exports import delivery, directions, formats
    from lm_eval_bias.report import export_previews
    from lm_eval_bias.runs import run_discovery

    form = formats.BY_NAME[name]
    if place is not None:
        delivery.check(form, place, paths)
    runs, problems = run_discovery.read(paths)
    output.name_problems(problems)
    made = delivery.make(form, runs, problems, **options)
    files = {path or place or "the file": text for path, text in made.files.items()}
    left_out, lacking = directions.names(made.left_out), directions.without_value(made.lacking)
    preview = export_previews.text(name, made.scores, left_out, lacking, made.shown, files, made.remarks)
    if place is not None:  # before anything is said: what is refused prints nothing
        delivery.write(made, form, place)
    print(f"{preview}\n{place or 'This is only a preview: -o PATH writes the files.'}")
    return 0
