"""The review sheet of a data set that is there: its findings for a person, and their corrections as a new data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.stereoset.own_sets import item_texts, review_sheet, set_checks, set_files
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import Finding
from lm_eval_bias.tasks.stereoset.own_sets.item_texts import Texts
from lm_eval_bias.tasks.stereoset.own_sets.review_decisions import REVIEWED, Decision, Review, reviewed
from lm_eval_bias.tasks.stereoset.own_sets.set_files import DataSet
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS, Item


def accepted(data_set: DataSet) -> dict[str, str]:
    """The items that a person accepted as they are, and that still are so, with the versions of their texts."""
    versions = _reviewed(data_set).get("accepted")
    if not isinstance(versions, dict):
        return {}
    current = ((item["id"], review_sheet.version(item_texts.of(item))) for item in data_set.items)
    return {name: version for name, version in current if versions.get(name) == version}


def _reviewed(data_set: DataSet) -> Mapping[str, Any]:
    recorded = data_set.provenance.get(REVIEWED)
    return recorded if isinstance(recorded, dict) else {}


def take_in(
    data_set: DataSet, source: Sequence[Item] | None, sheet: Path, file: Path | None, output: Path | None
) -> DataSet:
    """Merge a sheet's corrections into a data set, and write the sheet anew with what is still open.

    Args:
        data_set: The data set.
        source: What it was translated from; ``None`` for a hand-made one.
        sheet: The review sheet; written where there is none.
        file: The data set's file; ``None`` for a published one.
        output: The corrected data set's file.

    Raises:
        BiasError: A sheet that can't be understood, or corrections without a place for them.
    """
    _refuse_unclear(data_set)
    _check_output(output, file)
    items = {item["id"]: item for item in data_set.items}
    edits = review_sheet.read_about(sheet, items, "data set")
    sources = {item["id"]: item for item in source or ()}
    typical = set_checks.typical_length(data_set.items, sources, data_set.language)

    def check(name: str, texts: Texts) -> list[Finding]:
        item = item_texts.with_texts(items[name], texts)
        return set_checks.check_item(item, sources.get(name), data_set.language, None, typical)

    versions = accepted(data_set)
    before = {name: Decision(accepted=version) for name, version in versions.items()}
    review = Review(items, {name: item_texts.of(item) for name, item in items.items()}, before, check)
    merged = review.merge(edits.values())
    if merged.decisions and output is None:
        raise BiasError(f"{sheet} decides about {len(merged.decisions):,} items: name the file for the result with -o")
    states = review.states()
    corrected = set(_reviewed(data_set).get("corrected", ()))
    for name, decision in merged.decisions.items():
        if decision.corrected:
            corrected.add(name)
        if decision.accepted == review_sheet.version(states[name].texts):
            versions[name] = decision.accepted
    corrected_set = DataSet(
        data_set.language,
        [item_texts.with_texts(item, states[item["id"]].texts) for item in data_set.items],
        {**data_set.provenance, REVIEWED: reviewed(corrected, versions)},
    )
    if output is not None:
        set_files.write(output, corrected_set)
    review.write(sheet, states, sources, merged.pending)
    return corrected_set


def _refuse_unclear(data_set: DataSet) -> None:
    """A sheet names an item by its id, and a candidate by its label."""
    ids: set[str] = set()
    for item in data_set.items:
        if item["id"] in ids:
            raise BiasError(f"item {item['id']} appears twice: --review needs unique ids")
        ids.add(item["id"])
        if sorted(c["label"] for c in item["candidates"]) != sorted(LABELS):
            raise BiasError(f"item {item['id']}: --review needs each of the labels {', '.join(LABELS)} once")


def _check_output(output: Path | None, file: Path | None) -> None:
    if output is None:
        return
    if output.suffix.lower() != ".json":
        raise BiasError(f"-o {output}: must end in .json")
    if output.exists() and not (file is not None and file.exists() and output.samefile(file)):
        raise BiasError(f"-o {output}: exists already: continue from it (it may be both the data set and -o)")
