"""``lm-eval-bias stereoset validate``: what is wrong with a data set in StereoSet's form, and tasks over it."""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from typing import TYPE_CHECKING

from lm_eval_bias.core.errors import BiasError, printable
from lm_eval_bias.core.files import expanded

if TYPE_CHECKING:
    from lm_eval_bias.tasks.stereoset.own_sets import DataSet
    from lm_eval_bias.tasks.stereoset.stereoset_items import Item

_LIMIT = 20
_EPILOG = """exit status: 0 no problems (notes don't count), 1 problems, 2 bad usage or input

examples:
  lm-eval-bias stereoset validate stereoset_it.json
  lm-eval-bias stereoset validate stereoset_it.json --tasks TASKS
  lm-eval-bias run --include_path TASKS --tasks stereoset_it --model hf --model_args pretrained=...
  lm-eval-bias stereoset validate mine.json --language nl --source none
  lm-eval-bias stereoset validate mine.json --language nl --review sheet.csv -o better.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        "Check the items of a data set in StereoSet's format: a translation against its source, or a set of your own."
    )
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("set", metavar="FILE|LANG", help="data set (JSON), or the code of a published language")
    source = "source of the translation: a file or a published language (default: English, if ids match)"
    add("--source", metavar="FILE|LANG|none", help=source)
    add("--language", metavar="LANG", help="language of a file that doesn't state it: de, it, pt-BR, ...")
    add("--json", action="store_true", help=f"print JSON, with all findings (the text has {_LIMIT} of each kind)")
    add("--tasks", metavar="DIR", help="write task YAML files for FILE into DIR, for run --include_path DIR")
    review = "write what needs a person to a spreadsheet, and apply what that person writes in it"
    add("--review", metavar="SHEET.csv", help=review)
    add("-o", "--output", metavar="FILE.json", help="with --review: file for the corrected data set")


def run(arguments: argparse.Namespace) -> int:
    """Check a data set; status 1 where items need a person.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
    from lm_eval_bias.tasks.stereoset import own_sets
    from lm_eval_bias.tasks.stereoset.commands import review, set_checks
    from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TESTS, count_items

    if arguments.output is not None and arguments.review is None:
        raise BiasError("-o names the data set that --review corrects: give --review, too")
    data_set, file = own_sets.load(arguments.set, arguments.language), arguments.set
    if arguments.tasks is not None and arguments.set in LANGUAGES:
        raise BiasError(f"--tasks: {arguments.set} is published and already has tasks: see 'lm-eval-bias ls'")
    source, source_name = _source(data_set, arguments)
    if arguments.review is not None:
        better = _reviewed(data_set, source or [], arguments)
        data_set, file = (better, arguments.output) if arguments.output is not None else (data_set, file)
    findings = set_checks.check_set(data_set.items, source, data_set.language)
    for name in review.accepted(data_set):
        findings.pop(name, None)
    written = [] if arguments.tasks is None else own_sets.write_tasks(arguments.tasks, file, data_set)

    every = [(name, finding) for name, own in findings.items() for finding in own]
    kinds = Counter((finding.level, finding.code) for _, finding in every)
    here, there = count_items(data_set.items), count_items(source or [])
    problems = {name for name, finding in every if finding.level == set_checks.PROBLEM}
    if arguments.json:
        told = {
            "language": data_set.language,
            "items": len(data_set.items),
            "source": source_name if source is not None else None,
            "problems": len(problems),
            "coverage": [
                {"test": test, "bias_type": kind, "items": here[test, kind],
                 "of": there[test, kind] if source is not None else None}
                for test in TESTS if test in data_set.tests for kind in (*BIAS_TYPES, "all")
            ],
            "findings": [{"id": name, **vars(finding)} for name, finding in every],
            "tasks": [str(path) for path in written],
        }  # fmt: skip
        print(json.dumps(told, indent=2, ensure_ascii=False))
        return 1 if problems else 0
    print(f"{printable(file)}: {len(data_set.items):,} items in {data_set.language!r}, source: {source_name}")
    for test in data_set.tests:
        of = [f"{kind} {here[test, kind]:,}" + (f" of {there[test, kind]:,}" if source else "") for kind in BIAS_TYPES]
        print(f"{test}: {', '.join(of)}")
    for (level, code), number in sorted(kinds.items(), key=lambda kind: kind[0][0] != set_checks.PROBLEM):
        lines = [(name, f) for name, f in every if (f.level, f.code) == (level, code)]
        for name, finding in lines[:_LIMIT]:
            print(f"{level} {code}: {printable(name)} {finding.part}: {printable(finding.text)}")
        if number > _LIMIT:
            print(f"{level} {code}: ... and {number - _LIMIT:,} more (--json lists all)")
    if written:
        print(f"tasks written: {', '.join(path.stem for path in written)}")
        print(f"run them: lm-eval-bias run --include_path {arguments.tasks} --tasks {written[0].stem} ...")
    if arguments.output is not None:
        print(f"data set written: {arguments.output}")
    if arguments.review is not None and problems:
        print(f"for a person: {arguments.review}: {review.HOW}; then run this again with -o BETTER.json")
    notes = len(findings) - len(problems)
    print(f"{len(problems):,} items have problems that need a person; {notes:,} more have notes")
    return 1 if problems else 0


def _source(data_set: DataSet, arguments: argparse.Namespace) -> tuple[list[Item] | None, str]:
    """Find what a set was translated from, and what to call it."""
    from lm_eval_bias.tasks.stereoset import own_sets, released_sets
    from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES

    name, ids = arguments.source, {item["id"] for item in data_set.items}
    if name == "none" or (name is None and arguments.set == "en"):
        return None, "none"
    if name is None:
        try:
            items = released_sets.read_all("en", data_set.tests)
        except BiasError as error:
            raise BiasError(f"{error} (it is the source; --source none checks the set without one)") from error
        return (items, "the published English set") if any(item["id"] in ids for item in items) else (None, "none")
    items = [item for item in own_sets.load(name).items if item["test"] in data_set.tests]
    if not any(item["id"] in ids for item in items):
        raise BiasError(f"--source {name}: has no item of the same id: name the set's source, or --source none")
    return items, f"the published set in {name!r}" if name in LANGUAGES else name


def _reviewed(data_set: DataSet, source: list[Item], arguments: argparse.Namespace) -> DataSet:
    """Apply a review sheet to a set, and write the sheet and the corrected set."""
    from lm_eval_bias.tasks.stereoset import own_sets
    from lm_eval_bias.tasks.stereoset.commands import review
    from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS

    paths = [arguments.set, arguments.source, arguments.review, arguments.output]
    places = [os.path.realpath(expanded(path)) for path in paths if path is not None]
    if len(set(places)) < len(places):
        raise BiasError("--review and -o must name other files than the data set, its source and each other")
    items = {item["id"]: item for item in data_set.items}
    odd = [item["id"] for item in items.values() if sorted(c["label"] for c in item["candidates"]) != sorted(LABELS)]
    if odd or len(items) < len(data_set.items):
        raise BiasError("--review needs unique ids, and in every item each label once: see the findings without it")
    before = review.accepted(data_set)
    texts = {name: review.texts_of(item) for name, item in items.items() if name not in before}
    sources = {item["id"]: item for item in source}
    states = review.review(items, sources, texts, data_set.language, expanded(arguments.review), "data set")
    better = [review.with_texts(item, states[name].texts) if name in states else item for name, item in items.items()]
    told = review.reviewed(states)
    told["accepted"] = before | told["accepted"]
    data_set = own_sets.DataSet(data_set.language, better, {**data_set.provenance, "reviewed": told})
    if arguments.output is not None:
        own_sets.write(arguments.output, data_set)
    return data_set
