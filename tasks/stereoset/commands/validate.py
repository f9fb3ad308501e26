"""``lm-eval-bias validate``: what is wrong with a data set in StereoSet's form, and tasks over it."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded

_LIMIT = 20
_EPILOG = """exit status: 0 no problems (notes don't count), 1 problems, 2 bad usage or input

examples:
  lm-eval-bias stereoset validate stereoset_it.json
  lm-eval-bias stereoset validate stereoset_it.json --tasks TASKS
  lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
  lm-eval-bias stereoset validate items.csv --language nl --source none
  lm-eval-bias stereoset validate items.csv --language nl --review sheet.csv -o items.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.description = (
        "Check the items of a data set in StereoSet's format: a translation against its source, or a set of your own."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "set", metavar="FILE|LANG", help="data set (.json, .csv or .tsv), or the code of a published language"
    )
    parser.add_argument(
        "--source",
        metavar="FILE|LANG|none",
        help="source of the translation: a file or a published language (default: English, if ids match)",
    )
    parser.add_argument(
        "--language", metavar="LANG", help="language of a file that doesn't state it: de, it, pt-BR, ..."
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with all findings")
    parser.add_argument("--all", action="store_true", help=f"list all findings (default: {_LIMIT} of each kind)")
    parser.add_argument(
        "--tasks", metavar="DIR", help="write task YAML files for FILE into DIR, for run --include_path DIR"
    )
    parser.add_argument(
        "--review",
        metavar="SHEET.csv",
        help="write what needs a person to a spreadsheet, and read back what that person wrote",
    )
    parser.add_argument("-o", "--output", metavar="FILE.json", help="with --review: file for the corrected data set")


def run(arguments: argparse.Namespace) -> int:
    """Check a data set; status 1 where items need a person.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.tasks.stereoset.own_sets import review_existing, set_tasks
    from lm_eval_bias.tasks.stereoset.own_sets.set_examination import data_set_of, examine
    from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES

    if arguments.output is not None and arguments.review is None:
        raise BiasError("-o names the data set that --review corrects: give --review, too")
    if arguments.review is not None:
        for name in (arguments.set, arguments.source, arguments.output):
            if name is not None and os.path.realpath(expanded(name)) == os.path.realpath(expanded(arguments.review)):
                raise BiasError(
                    f"--review {arguments.review}: this is a data set, which the sheet would replace: name another file"
                )
    published = arguments.set in LANGUAGES
    data_set = data_set_of(arguments.set, arguments.language)
    examination = examine(data_set, arguments.source)
    file = None if published else expanded(arguments.set)
    if arguments.review is not None:
        output = None if arguments.output is None else expanded(arguments.output)
        sheet = expanded(arguments.review)
        reviewed = review_existing.take_in(data_set, examination.source, sheet, file, output)
        if output is not None:
            data_set, file = reviewed, output
            examination = examine(data_set, arguments.source)
    files: list[Path] = []
    if arguments.tasks is not None:
        if published:
            raise BiasError(f"--tasks: {arguments.set} is published and already has tasks: see 'lm-eval-bias ls'")
        files = set_tasks.write(arguments.tasks, file or arguments.set, data_set)
    if arguments.json:
        print(json.dumps(examination.as_data(files), indent=2, ensure_ascii=False))
    else:
        print(examination.text(arguments.set, None if arguments.all else _LIMIT))
        if files:
            print(f"tasks written: {', '.join(path.stem for path in files)}")
            print(f"run them: lm-eval-bias run --include_path {arguments.tasks} --tasks {files[0].stem} ...")
        if arguments.output is not None:
            print(f"data set written: {arguments.output}")
        if arguments.review is not None and expanded(arguments.review).exists():
            print(_next_step(arguments))
        print(examination.verdict())
    return 1 if examination.problems else 0


def _next_step(arguments: argparse.Namespace) -> str:
    """What to do with a review sheet."""
    sheet, result = arguments.review, arguments.output or "BETTER.json"
    taken = arguments.output or arguments.set
    return (
        f"for a person: {sheet}: write better texts into the columns 'correct ...', or x into 'accept'; then:\n"
        f"  lm-eval-bias stereoset validate {taken} --review {sheet} -o {result}"
    )
