"""What comes out of a translation: the data set, its tasks, its data card, and what is said about it."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabulate import tabulate

from lm_eval_bias import __version__
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes, write_whole, writing
from lm_eval_bias.tasks.stereoset.own_sets import set_files, set_tasks
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import CODES, PROBLEM
from lm_eval_bias.tasks.stereoset.own_sets.review_decisions import REVIEWED, reviewed
from lm_eval_bias.tasks.stereoset.own_sets.review_sheet import version
from lm_eval_bias.tasks.stereoset.own_sets.set_files import DataSet
from lm_eval_bias.tasks.stereoset.own_sets.translation_engines import Engine
from lm_eval_bias.tasks.stereoset.own_sets.translation_run import OPEN_TEXTS, SHEET, Outcome
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TEST_NAMES, TESTS, count_items

_CARD = Path(__file__).with_name("data_card.md")


def write(folder: Path, outcome: Outcome, engine: Engine) -> tuple[dict[str, Any], str]:
    """Write the items that are ready, with what makes tasks of them.

    Returns:
        Their provenance, and the command that runs them (empty where no item is ready).

    Raises:
        BiasError: Something cannot be written.
    """
    language = outcome.language
    path = folder / f"stereoset_{language}.json"
    data_set = DataSet(language, outcome.translations, _provenance(outcome, engine))
    with writing(folder):
        if not data_set.items:
            path.unlink(missing_ok=True)
            return data_set.provenance, ""
        data_set = _write_set(path, data_set)
        if language in LANGUAGES:
            command = f'lm-eval-bias run --tasks stereoset_{language} --metadata \'{{"dataset": "{path}"}}\' ...'
        else:
            task = set_tasks.write(folder, path, data_set)[0].stem
            command = f"lm-eval-bias run --include_path {folder} --tasks {task} ..."
        card, mark = folder / "README.md", _CARD.read_bytes().splitlines()[0]
        if not card.exists() or read_bytes(card).startswith(mark):  # not somebody else's
            write_whole(card, _card(path, data_set, command).encode())
    return data_set.provenance, command


def _write_set(path: Path, data_set: DataSet) -> DataSet:
    """Write a data set unless it is there already, but for the day: its hash stands in its tasks and in results."""
    if path.exists():
        try:
            present = set_files.read(path)
        except BiasError:
            present = DataSet(data_set.language, [], {})
        undated = {**present.provenance, "date": data_set.provenance["date"]}
        if (present.items, undated) == (data_set.items, data_set.provenance):
            return present
    set_files.write(path, data_set)
    return data_set


def _provenance(outcome: Outcome, engine: Engine) -> dict[str, Any]:
    """What made the data set, as plain data."""
    source = outcome.source
    ready, total = count_items(outcome.translations), count_items(source.items)
    states = {name: state for name, state in outcome.states.items() if not state.open}
    corrected = [name for name in states if name in outcome.decisions and outcome.decisions[name].corrected]
    return {
        "made by": f"lm-eval-bias {__version__} stereoset translate",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "source": {"name": source.name, "language": source.language, "sha256": source.files},
        "engine": engine.about(),
        "blank protected by": outcome.placeholders,
        "items": outcome.counts,
        "coverage": {
            test: {kind: [ready[test, kind], total[test, kind]] for kind in BIAS_TYPES if total[test, kind]}
            for test in TESTS
            if total[test, "all"]
        },
        REVIEWED: reviewed(corrected, {name: version(state.texts) for name, state in states.items() if state.accepted}),
    }


def _card(path: Path, data_set: DataSet, command: str) -> str:
    provenance = data_set.provenance
    source = provenance["source"]
    return _CARD.read_text("utf-8").format(
        language=data_set.language,
        source=source["name"],
        date=provenance["date"],
        items=provenance["items"],
        coverage=_coverage_table(provenance, "github"),
        command=command,
        engine=json.dumps(provenance["engine"], ensure_ascii=False, indent=2),
        files=", ".join(f"`{name}` {digest}" for name, digest in source["sha256"].items()),
        digest=set_files.digest(path),
    )


def _coverage_table(provenance: Mapping[str, Any], form: str) -> str:
    """Items that are there and items of the source, per test and bias type."""
    rows = []
    for test, types in provenance["coverage"].items():
        totals = [sum(counts) for counts in zip(*types.values(), strict=True)]
        for bias_type, (ready, total) in {**types, "all": totals}.items():
            rows.append([TEST_NAMES[test], bias_type, f"{ready:,}", f"{total:,}", f"{100 * ready / total:.1f}"])
    headers = ["Test", "Bias type", "Items", "of", "%"]
    sides = ["left", "left", "right", "right", "right"]
    return str(tabulate(rows, headers=headers, tablefmt=form, disable_numparse=True, colalign=sides))


def _reasons(outcome: Outcome) -> list[str]:
    """How many items have which finding, commonest first; those that were accepted aside."""
    counts: Counter[tuple[bool, str]] = Counter()
    for state in outcome.states.values():
        if not state.accepted:
            counts.update({(finding.level != PROBLEM, finding.code) for finding in state.findings})
    return [
        f"  {number:6,}  {code}{' (note)' if note else ''}: {CODES.get(code, 'no translation yet')}"
        for (note, code), number in sorted(counts.items(), key=lambda entry: (entry[0][0], -entry[1], entry[0][1]))
    ]


def report(outcome: Outcome, provenance: Mapping[str, Any], folder: Path, command: str) -> str:
    """What is printed: how many items are there, what needs a person, and what to do now.

    Args:
        outcome: What the folder holds.
        provenance: Of the items that are ready.
        folder: The translation's folder.
        command: How to run them; empty where no item is ready.
    """
    counts = outcome.counts
    ready = len(outcome.items) - counts["left out"]
    lines = [
        f"{outcome.source.name} in '{outcome.language}': {ready:,} of {len(outcome.items):,} items are ready "
        f"({counts['translated']:,} translated, {counts['corrected']:,} corrected, {counts['accepted']:,} accepted as "
        f"they are), {counts['left out']:,} need a person",
        "",
        _coverage_table(provenance, "simple"),
    ]
    if reasons := _reasons(outcome):
        lines += ["", "Items by finding:", *reasons]
    lines.append("")
    if outcome.unknown:
        rows = "1 row of the table matches" if outcome.unknown == 1 else f"{outcome.unknown:,} rows of the table match"
        lines.append(f"{rows} no text of the source: check for changed texts.")
    if outcome.stale:
        lines.append(f"{len(outcome.stale):,} items were accepted before their texts changed: review them again.")
    if any(finding.code == "lacking" for state in outcome.states.values() for finding in state.findings):
        lines.append(f"Texts without a translation: {folder / OPEN_TEXTS}, a table to fill in.")
    if counts["left out"]:
        lines.append(
            f"For a person: {folder / SHEET}: write better texts into the columns 'correct ...', or x into 'accept'; "
            "then run the same command again."
        )
    elif (folder / SHEET).exists():
        lines.append(f"Worth checking: {folder / SHEET} has notes about items that are in the data set.")
    if command:
        lines.append(f"Run it: {command}")
    return "\n".join(lines)
