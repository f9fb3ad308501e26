"""``lm-eval-bias validate``: what is wrong with a data set in StereoSet's form, and tasks over it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from lm_eval_bias.errors import BiasError, Parser
from lm_eval_bias.files import expanded
from lm_eval_bias.tasks.stereoset.own_sets import review_existing, set_examination, set_tasks
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES

SHOWN = 20
_EPILOG = """exit status: 0 no problems (notes don't count), 1 problems, 2 bad usage or input

examples:
  lm-eval-bias validate stereoset stereoset_it.json
  lm-eval-bias validate stereoset stereoset_it.json --tasks TASKS
  lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
  lm-eval-bias validate stereoset items.csv --language nl --source none
  lm-eval-bias validate stereoset items.csv --language nl --review sheet.csv -o items.json
"""


def parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    made = Parser(
        prog="lm-eval-bias validate",
        description="Check the items of a data set in StereoSet's form: a translation against its source, or a set of "
        "your own.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("benchmark", choices=["stereoset"], metavar="stereoset", help="the form of the data set")
    made.add_argument("set", metavar="FILE|LANG", help="a data set (.json, .csv, .tsv), or a published language")
    made.add_argument(
        "--source",
        metavar="FILE|none",
        help="what it was translated from (default: the published English set where ids match)",
    )
    made.add_argument("--language", metavar="LANG", help="of a file that doesn't say it: de, it, pt-BR, ...")
    made.add_argument("--json", action="store_true", help="machine-readable, with all findings")
    made.add_argument("--all", action="store_true", help=f"list all findings, not {SHOWN} of each kind")
    made.add_argument("--tasks", metavar="DIR", help="write task YAMLs over FILE, for run --include_path DIR")
    made.add_argument(
        "--review", metavar="SHEET.csv", help="write what needs a person as a sheet, and take in what they wrote there"
    )
    made.add_argument("-o", "--output", metavar="FILE.json", help="with --review: the corrected data set")
    return made


def main(argv: Sequence[str]) -> int:
    """Check a data set; returns the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    args = parser().parse_args(list(argv))
    data_set = set_examination.data_set_of(args.set, args.language)
    examination = set_examination.examine(data_set, args.source)
    published = args.set in LANGUAGES
    file = None if published else expanded(args.set)
    if args.review is not None:
        output = None if args.output is None else expanded(args.output)
        reviewed = review_existing.take_in(data_set, examination.source, expanded(args.review), file, output)
        if output is not None:
            data_set, file = reviewed, output
            examination = set_examination.examine(data_set, args.source)
    elif args.output is not None:
        raise BiasError("-o is for the data set that --review corrects")
    tasks: list[Path] = []
    if args.tasks is not None:
        if published:
            raise BiasError(f"--tasks: {args.set} is published and has its tasks: 'lm-eval-bias ls'")
        tasks = set_tasks.write(args.tasks, file or args.set, data_set)
    if args.json:
        print(json.dumps(examination.as_data(tasks), indent=2, ensure_ascii=False))
    else:
        print(examination.text(args.set, None if args.all else SHOWN))
        if tasks:
            names = ",".join(path.stem for path in tasks)
            print(f"tasks: lm-eval-bias run --include_path {args.tasks} --tasks {tasks[0].stem} ... ({names})")
        print(examination.verdict())
    return 1 if examination.problems else 0
