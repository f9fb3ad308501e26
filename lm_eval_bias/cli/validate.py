"""``lm-eval-bias validate``: what is wrong with a data set in StereoSet's form, and tasks over it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.errors import BiasError, Parser, printable
from lm_eval_bias.files import expanded
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets import review_existing, set_checks, set_tasks, sets
from lm_eval_bias.tasks.stereoset.own_sets.set_checks import PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.released_sets import Item

SHOWN = 20
_EPILOG = """exit status: 0 no problems (notes don't count), 1 problems, 2 bad usage or input

examples:
  lm-eval-bias validate stereoset stereoset_it.json
  lm-eval-bias validate stereoset stereoset_it.json --tasks TASKS
  lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
  lm-eval-bias validate stereoset items.csv --language nl --source none
  lm-eval-bias validate stereoset items.csv --language nl --review sheet.csv -o items.json
"""


@dataclass(frozen=True)
class Examined:
    """A data set and what was found about it.

    Attributes:
        data_set: The data set.
        source: The items that it was translated from; ``None`` for a hand-made one.
        source_name: What to call them.
        findings: By item id.
    """

    data_set: sets.DataSet
    source: list[Item] | None
    source_name: str
    findings: dict[str, list[Finding]]

    @property
    def problems(self) -> int:
        """Items that need a person."""
        return sum(any(finding.level == PROBLEM for finding in own) for own in self.findings.values())

    def by_code(self) -> dict[tuple[str, str], list[tuple[str, Finding]]]:
        """Findings with their items' ids, by code and level: problems first, in the order of the codes."""
        every = [(name, finding) for name, own in self.findings.items() for finding in own]
        kinds = [(code, level) for level in (PROBLEM, set_checks.NOTE) for code in set_checks.CODES]
        grouped = {kind: [(n, f) for n, f in every if (f.code, f.level) == kind] for kind in kinds}
        return {kind: found for kind, found in grouped.items() if found}

    def coverage(self) -> Iterator[tuple[str, str, int, int | None]]:
        """Test, bias type, number of items, and how many the source has (``None`` without one)."""
        known = None if self.source is None else {item["id"] for item in self.source}
        own = [item for item in self.data_set.items if known is None or item["id"] in known]
        for test in ("intra", "inter"):
            for kind in (*BIAS_TYPES, "all"):
                here, there = (
                    sum(i["test"] == test and kind in (i["bias_type"], "all") for i in items)
                    for items in (own, self.source or [])
                )
                yield test, kind, here, None if self.source is None else there


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
    data_set = _data_set(args.set, args.language)
    examined = examine(data_set, args.source)
    file = None if args.set in released_sets.LANGUAGES else expanded(args.set)
    if args.review is not None:
        output = None if args.output is None else expanded(args.output)
        reviewed = review_existing.take_in(data_set, examined.source, expanded(args.review), file, output)
        if output is not None:
            data_set, file = reviewed, output
            examined = examine(data_set, args.source)
    elif args.output is not None:
        raise BiasError("-o is for the data set that --review corrects")
    written: list[Path] = []
    if args.tasks is not None:
        if args.set in released_sets.LANGUAGES:
            raise BiasError(f"--tasks: {args.set} is published and has its tasks: 'lm-eval-bias ls'")
        written = set_tasks.write(args.tasks, file or args.set, data_set)
    if args.json:
        print(json.dumps(_as_data(examined, written), indent=2, ensure_ascii=False))
    else:
        print(_text(examined, args.set, None if args.all else SHOWN))
        if written:
            named = ",".join(path.stem for path in written)
            print(f"tasks: lm-eval-bias run --include_path {args.tasks} --tasks {written[0].stem} ... ({named})")
        print(_verdict(examined))
    return 1 if examined.problems else 0


def _data_set(named: str, language: str | None) -> sets.DataSet:
    if named in released_sets.LANGUAGES:
        items = [item for test in released_sets.TESTS for item in released_sets.read(named, test)]
        return sets.DataSet(named, items, {"published": True})
    return sets.read(named, language)


def examine(data_set: sets.DataSet, source: str | None = None, memory: set_checks.Memory | None = None) -> Examined:
    """Check a data set against its source.

    Args:
        data_set: The data set.
        source: A file, ``none``, or ``None`` for the published English set, where it has items of the same ids.
        memory: See :func:`lm_eval_bias.tasks.stereoset.own_sets.set_checks.check_item`.

    Raises:
        BiasError: The source can't be had, or has no item in common with the set.
    """
    items, name = _source(data_set, source)
    findings = set_checks.check_set(data_set.items, items, data_set.language, memory)
    for accepted in review_existing.accepted(data_set):
        findings.pop(accepted, None)
    return Examined(data_set, items, name, findings)


def _source(data_set: sets.DataSet, named: str | None) -> tuple[list[Item] | None, str]:
    if named == "none" or (named is None and data_set.provenance.get("published") and data_set.language == "en"):
        return None, "none"
    ids = {item["id"] for item in data_set.items}
    if named is None:
        try:
            found = [item for test in data_set.tests for item in released_sets.read("en", test)]
        except BiasError as error:
            raise BiasError(f"{error} (it is the source; --source none checks the set without one)") from error
        return (found, "the published English set") if any(i["id"] in ids for i in found) else (None, "none")
    other = sets.read(named, None)
    found = [item for item in other.items if item["test"] in data_set.tests]
    if not any(item["id"] in ids for item in found):
        raise BiasError(f"--source {named}: has no item of the same id: name the set's source, or --source none")
    return found, named


def _text(examined: Examined, named: str, limit: int | None) -> str:
    """Counts, findings and coverage for people."""
    from tabulate import tabulate

    groups = examined.by_code()
    data_set = examined.data_set
    blocks = [
        f"{printable(named)}: {len(data_set.items):,} items in {data_set.language!r}, source: {examined.source_name}"
    ]
    if groups:
        rows = [
            [code, level, f"{len({name for name, _ in found}):,}", set_checks.CODES[code]]
            for (code, level), found in groups.items()
        ]
        align = ("left", "left", "right", "left")
        blocks.append(tabulate(rows, headers=["Check", "Level", "Items", "What"], tablefmt="simple", colalign=align))
    for (code, level), found in groups.items():
        lines = [f"{code} ({level}): {set_checks.CODES[code]}"]
        lines += [f"  {printable(name)} {finding.part}: {printable(finding.text)}" for name, finding in found[:limit]]
        if limit is not None and len(found) > limit:
            lines.append(f"  ... and {len(found) - limit:,} more (--all)")
        blocks.append("\n".join(lines))
    counted = [
        [test, *(f"{here:,}" if there is None else f"{here:,} of {there:,}" for _, _, here, there in rows)]
        for test, rows in _by_test(examined).items()
    ]
    headers = ["Coverage", *BIAS_TYPES, "all"]
    blocks.append(tabulate(counted, headers=headers, tablefmt="simple", disable_numparse=True))
    return "\n\n".join(blocks) + "\n"


def _by_test(examined: Examined) -> dict[str, list[tuple[str, str, int, int | None]]]:
    found: dict[str, list[tuple[str, str, int, int | None]]] = {}
    for row in examined.coverage():
        if row[0] in examined.data_set.tests:
            found.setdefault(row[0], []).append(row)
    return found


def _verdict(examined: Examined) -> str:
    missing = sum(own[0].code == "missing" for own in examined.findings.values())
    wrong, notes = examined.problems - missing, len(examined.findings) - examined.problems
    parts = [f"{missing:,} of the source's items missing"] if missing else []
    parts += [f"{notes:,} more with notes alone"] if notes else []
    found = f"problems that need a person in {wrong:,} of {len(examined.data_set.items):,} items" if wrong else ""
    return "; ".join([found or "no problems in the items", *parts])


def _as_data(examined: Examined, written: Sequence[Path]) -> Mapping[str, Any]:
    return {
        "language": examined.data_set.language,
        "items": len(examined.data_set.items),
        "source": None if examined.source is None else examined.source_name,
        "problems": examined.problems,
        "counts": [
            {"code": code, "level": level, "items": len({name for name, _ in found}), "findings": len(found)}
            for (code, level), found in examined.by_code().items()
        ],
        "coverage": [
            {"test": test, "bias_type": kind, "items": here, "of": there}
            for rows in _by_test(examined).values()
            for test, kind, here, there in rows
        ],
        "findings": [{"id": name, **vars(finding)} for name, own in examined.findings.items() for finding in own],
        "tasks": [str(path) for path in written],
    }
