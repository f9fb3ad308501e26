"""``lm-eval-bias validate``: what is wrong with a data set in StereoSet's form, and tasks over it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.errors import BiasError, printable
from lm_eval_bias.files import expanded

if TYPE_CHECKING:
    from lm_eval_bias.tasks.stereoset.own_sets.set_examination import Examination
    from lm_eval_bias.tasks.stereoset.own_sets.sets import DataSet

_SHOWN = 20
_EPILOG = """exit status: 0 no problems (notes don't count), 1 problems, 2 bad usage or input

examples:
  lm-eval-bias validate stereoset stereoset_it.json
  lm-eval-bias validate stereoset stereoset_it.json --tasks TASKS
  lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
  lm-eval-bias validate stereoset items.csv --language nl --source none
  lm-eval-bias validate stereoset items.csv --language nl --review sheet.csv -o items.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command understands."""
    parser.description = (
        "Check the items of a data set in StereoSet's form: a translation against its source, or a set of your own."
    )
    parser.epilog = _EPILOG
    parser.add_argument("benchmark", choices=["stereoset"], metavar="stereoset", help="the form of the data set")
    parser.add_argument("set", metavar="FILE|LANG", help="a data set (.json, .csv, .tsv), or a published language")
    parser.add_argument(
        "--source",
        metavar="FILE|none",
        help="what it was translated from (default: the published English set where ids match)",
    )
    parser.add_argument("--language", metavar="LANG", help="of a file that doesn't say it: de, it, pt-BR, ...")
    parser.add_argument("--json", action="store_true", help="machine-readable, with all findings")
    parser.add_argument("--all", action="store_true", help=f"list all findings, not {_SHOWN} of each kind")
    parser.add_argument("--tasks", metavar="DIR", help="write task YAMLs over FILE, for run --include_path DIR")
    parser.add_argument(
        "--review", metavar="SHEET.csv", help="write what needs a person as a sheet, and take in what they wrote there"
    )
    parser.add_argument("-o", "--output", metavar="FILE.json", help="with --review: the corrected data set")


def run(arguments: argparse.Namespace) -> int:
    """Check a data set; status 1 where items need a person.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.tasks.stereoset import released_sets
    from lm_eval_bias.tasks.stereoset.own_sets import review_existing, set_tasks
    from lm_eval_bias.tasks.stereoset.own_sets.set_examination import examine

    published = arguments.set in released_sets.LANGUAGES
    data_set = _data_set(arguments.set, arguments.language)
    examination = examine(data_set, arguments.source)
    file = None if published else expanded(arguments.set)
    if arguments.review is not None:
        output = None if arguments.output is None else expanded(arguments.output)
        sheet = expanded(arguments.review)
        reviewed = review_existing.take_in(data_set, examination.source, sheet, file, output)
        if output is not None:
            data_set, file = reviewed, output
            examination = examine(data_set, arguments.source)
    elif arguments.output is not None:
        raise BiasError("-o is for the data set that --review corrects")
    written: list[Path] = []
    if arguments.tasks is not None:
        if published:
            raise BiasError(f"--tasks: {arguments.set} is published and has its tasks: 'lm-eval-bias ls'")
        written = set_tasks.write(arguments.tasks, file or arguments.set, data_set)
    if arguments.json:
        print(json.dumps(_as_data(examination, written), indent=2, ensure_ascii=False))
    else:
        print(_as_text(examination, arguments.set, None if arguments.all else _SHOWN))
        if written:
            names = ",".join(path.stem for path in written)
            print(f"tasks: lm-eval-bias run --include_path {arguments.tasks} --tasks {written[0].stem} ... ({names})")
        print(_verdict(examination))
    return 1 if examination.problems else 0


def _data_set(named: str, language: str | None) -> DataSet:
    from lm_eval_bias.tasks.stereoset import released_sets
    from lm_eval_bias.tasks.stereoset.own_sets import sets

    if named in released_sets.LANGUAGES:
        items = [item for test in released_sets.TESTS for item in released_sets.read(named, test)]
        return sets.DataSet(named, items, {"published": True})
    return sets.read(named, language)


def _as_text(examination: Examination, named: str, limit: int | None) -> str:
    """Counts, findings and coverage for people."""
    from tabulate import tabulate

    from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
    from lm_eval_bias.tasks.stereoset.own_sets.check_findings import CODES

    groups, data_set = examination.by_code(), examination.data_set
    blocks = [
        f"{printable(named)}: {len(data_set.items):,} items in {data_set.language!r}, source: {examination.source_name}"
    ]
    if groups:
        rows = [
            [code, level, f"{len({name for name, _ in findings}):,}", CODES[code]]
            for (code, level), findings in groups.items()
        ]
        align = ("left", "left", "right", "left")
        blocks.append(tabulate(rows, headers=["Check", "Level", "Items", "What"], tablefmt="simple", colalign=align))
    for (code, level), findings in groups.items():
        lines = [f"{code} ({level}): {CODES[code]}"]
        lines += [f"  {printable(name)} {own.part}: {printable(own.text)}" for name, own in findings[:limit]]
        if limit is not None and len(findings) > limit:
            lines.append(f"  ... and {len(findings) - limit:,} more (--all)")
        blocks.append("\n".join(lines))
    counts = [
        [test, *(f"{here:,}" if there is None else f"{here:,} of {there:,}" for _, here, there in rows)]
        for test, rows in examination.coverage().items()
    ]
    headers = ["Coverage", *BIAS_TYPES, "all"]
    blocks.append(tabulate(counts, headers=headers, tablefmt="simple", disable_numparse=True))
    return "\n\n".join(blocks) + "\n"


def _verdict(examination: Examination) -> str:
    missing = sum(own[0].code == "missing" for own in examination.findings.values())
    wrong, notes = examination.problems - missing, len(examination.findings) - examination.problems
    items = f"{wrong:,} of {len(examination.data_set.items):,} items"
    parts = [f"problems that need a person in {items}" if wrong else "no problems in the items"]
    parts += [f"{missing:,} of the source's items missing"] if missing else []
    parts += [f"{notes:,} more with notes alone"] if notes else []
    return "; ".join(parts)


def _as_data(examination: Examination, written: Sequence[Path]) -> dict[str, Any]:
    return {
        "language": examination.data_set.language,
        "items": len(examination.data_set.items),
        "source": None if examination.source is None else examination.source_name,
        "problems": examination.problems,
        "counts": [
            {"code": code, "level": level, "items": len({name for name, _ in findings}), "findings": len(findings)}
            for (code, level), findings in examination.by_code().items()
        ],
        "coverage": [
            {"test": test, "bias_type": kind, "items": here, "of": there}
            for test, rows in examination.coverage().items()
            for kind, here, there in rows
        ],
        "findings": [{"id": name, **vars(finding)} for name, own in examination.findings.items() for finding in own],
        "tasks": [str(path) for path in written],
    }
