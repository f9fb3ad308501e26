"""The review sheet of a data set that is there: its findings for a person, and their corrections as a new data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.stereoset.own_sets import parts, review, set_checks, sets
from lm_eval_bias.tasks.stereoset.own_sets.parts import Parts
from lm_eval_bias.tasks.stereoset.own_sets.review import Decision
from lm_eval_bias.tasks.stereoset.own_sets.set_checks import Finding
from lm_eval_bias.tasks.stereoset.own_sets.sets import DataSet
from lm_eval_bias.tasks.stereoset.released_sets import LABELS, Item

REVIEWED = "reviewed"  # in a data set's provenance: what people corrected, and what they accepted as it is


def accepted(data_set: DataSet) -> set[str]:
    """The items that a person accepted as they are, and that still are so."""
    said = data_set.provenance.get(REVIEWED)
    versions = said.get("accepted") if isinstance(said, dict) else None
    if not isinstance(versions, dict):
        return set()
    return {item["id"] for item in data_set.items if versions.get(item["id"]) == review.version(parts.of(item))}


def take_in(
    data_set: DataSet, source: Sequence[Item] | None, sheet: Path, given: Path | None, output: Path | None
) -> DataSet:
    """Merge a sheet's corrections into a data set, and write the sheet anew with what is still open.

    Args:
        data_set: The data set.
        source: What it was translated from; ``None`` for a hand-made one.
        sheet: The review sheet; written where there is none.
        given: The data set's file; ``None`` for a published one.
        output: The corrected data set's file.

    Returns:
        The corrected data set.

    Raises:
        BiasError: A sheet that can't be understood, or corrections without a place for them.
    """
    items = {item["id"]: item for item in data_set.items}
    _refuse_unclear(data_set)
    _check_output(output, given)
    edits = review.read(sheet)
    for name, edit in edits.items():
        if name not in items:
            raise BiasError(f"{edit.where}: no item {name!r} in the data set: mend the id, or delete the row")
    originals = {item["id"]: item for item in source or ()}
    typical = set_checks.typical_length(data_set.items, originals, data_set.language)

    def check(name: str, texts: Parts) -> list[Finding]:
        made = parts.with_texts(items[name], texts)
        return set_checks.check_item(made, originals.get(name), data_set.language, None, typical)

    found = {name: parts.of(item) for name, item in items.items()}
    decided = {name: Decision(accepted=review.version(found[name])) for name in accepted(data_set)}
    merged = review.merge(items, found, decided, edits.values(), check)
    if merged.decisions and output is None:
        raise BiasError(f"{sheet} decides about {len(merged.decisions):,} items: say with -o where to write the result")
    made = _corrected(data_set, merged.decisions)
    if output is not None:
        sets.write(output, made)
    decided |= merged.decisions
    states = {
        name: review.state_of(item, found[name], decided.get(name, Decision()), check) for name, item in items.items()
    }
    listed = [name for name, state in states.items() if review.listed(state) or name in merged.pending]
    listed.sort(key=lambda name: not states[name].open)
    review.write(
        sheet,
        [review.row_of(items[name], originals.get(name), states[name], merged.pending.get(name)) for name in listed],
    )
    return made


def _refuse_unclear(data_set: DataSet) -> None:
    """A sheet names an item by its id, and a candidate by its label."""
    seen: set[str] = set()
    for item in data_set.items:
        if item["id"] in seen:
            raise BiasError(f"item {item['id']} stands there twice: --review needs ids that differ")
        seen.add(item["id"])
        if sorted(c["label"] for c in item["candidates"]) != sorted(LABELS):
            raise BiasError(f"item {item['id']}: --review needs each of the labels {', '.join(LABELS)} once")


def _check_output(output: Path | None, given: Path | None) -> None:
    if output is None:
        return
    if output.suffix.lower() != ".json":
        raise BiasError(f"-o {output}: must end in .json")
    if output.exists() and not (given is not None and given.exists() and output.samefile(given)):
        raise BiasError(f"-o {output}: exists already: go on from it (it may be both the data set and -o)")


def _corrected(data_set: DataSet, decisions: dict[str, Decision]) -> DataSet:
    made = []
    before = data_set.provenance.get(REVIEWED)
    before = before if isinstance(before, dict) else {}
    corrected = set(before.get("corrected", ()))
    versions = {name: review.version(parts.of(i)) for i in data_set.items if (name := i["id"]) in accepted(data_set)}
    for item in data_set.items:
        decision = decisions.get(item["id"])
        if decision is not None:
            item = parts.with_texts(item, parts.completed(item, parts.of(item), decision.corrected))
            if decision.corrected:
                corrected.add(item["id"])
            if decision.accepted == review.version(parts.of(item)):
                versions[item["id"]] = decision.accepted
        made.append(item)
    reviewed = {"corrected": sorted(corrected), "accepted": dict(sorted(versions.items()))}
    return DataSet(data_set.language, made, {**data_set.provenance, REVIEWED: reviewed})
