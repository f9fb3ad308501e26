"""What people decide about items in a review sheet, and what becomes of the items; kept line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.stereoset.own_sets import item_texts, jsonl, review_sheet
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.own_sets.item_texts import NAMES, Texts
from lm_eval_bias.tasks.stereoset.own_sets.review_sheet import Edit, version
from lm_eval_bias.tasks.stereoset.stereoset_items import Item, check_items

FILE = "corrections.jsonl"
REVIEWED = "reviewed"  # in a data set's provenance: what people corrected, and what they accepted as it is

Check = Callable[[str, Texts], list[Finding]]  # what is to be said about an item's texts
Pending = tuple[Edit, list[Finding]]  # an edit that can't be merged yet, and what is to be said about the item with it


@dataclass
class Decision:
    """What was decided about an item."""

    corrected: Texts = field(default_factory=dict)  # by a person
    replaced: Texts = field(default_factory=dict)  # what stood there before
    accepted: str = ""  # the version of the texts that was accepted in spite of findings
    comment: str = ""  # the last one


@dataclass(frozen=True)
class State:
    """An item after all decisions."""

    texts: Texts  # some may lack
    findings: list[Finding]
    accepted: bool  # a person took exactly these texts as they are
    open: bool  # it needs a person before it can be used

    @property
    def listed(self) -> bool:
        """Whether it has a row of its own: it needs a person, or grammar may decide between its candidates."""
        return self.open or (not self.accepted and any(finding.code == "grammar" for finding in self.findings))


@dataclass(frozen=True)
class Merged:
    """What came of a sheet, by item."""

    decisions: dict[str, Decision] = field(default_factory=dict)  # new ones
    pending: dict[str, Pending] = field(default_factory=dict)  # what can't be merged yet
    stale: list[str] = field(default_factory=list)  # what was accepted with other texts than the present ones


@dataclass
class Review:
    """Items under review, by id."""

    items: Mapping[str, Item]
    texts: Mapping[str, Texts]  # of the items that are reviewed now, before any decision
    decisions: dict[str, Decision]
    check: Check

    def state(self, name: str, decision: Decision | None = None) -> State:
        """An item with what was decided about it (or with another decision)."""
        item, decision = self.items[name], decision or self.decisions.get(name, Decision())
        texts = item_texts.completed(item, self.texts[name], decision.corrected)
        findings = self.check(name, texts)
        accepted = bool(findings) and decision.accepted == version(texts) and _usable(item, texts)
        problem = any(finding.level == PROBLEM for finding in findings)
        return State(texts, findings, accepted, problem and not accepted)

    def merge(self, edits: Iterable[Edit]) -> Merged:
        """Check what a person wrote like everything else, and take it in where it holds or was accepted.

        Raises:
            BiasError: A correction of a text that the item doesn't have.
        """
        merged = Merged()
        for edit in edits:
            name = edit.row["id"]
            item, before = self.items[name], self.decisions.get(name, Decision())
            present = item_texts.completed(item, self.texts[name], before.corrected)
            for part in edit.corrected:
                if part not in item_texts.of(item):
                    raise BiasError(f"{edit.where} (item {name}): it has no {part!r} to correct: clear that cell")
            changed = {part: text for part, text in edit.corrected.items() if present.get(part) != text}
            after = Decision(
                {**before.corrected, **changed},
                {**before.replaced, **{part: present.get(part, "") for part in changed}},
                before.accepted,
                edit.comment or before.comment,
            )
            state = self.state(name, after)
            if edit.accept and not state.accepted:
                if edit.shows(present):
                    after.accepted = version(state.texts)
                    state = self.state(name, after)
                else:
                    merged.stale.append(name)
            if state.open or (state.listed and not changed):
                if edit.corrected or edit.comment:
                    merged.pending[name] = edit, state.findings
            elif after != before:
                merged.decisions[name] = after
        self.decisions |= merged.decisions
        return merged

    def states(self) -> dict[str, State]:
        """The items that are reviewed now."""
        return {name: self.state(name) for name in self.texts}

    def write(
        self,
        sheet: Path,
        states: Mapping[str, State],
        sources: Mapping[str, Item],
        pending: Mapping[str, Pending],
        rows: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Write a sheet with the items that need a person, then those with notes, then ``rows`` of other items."""
        listed = [name for name, state in states.items() if state.listed or name in pending]
        item_rows = []
        for name in sorted(listed, key=lambda name: not states[name].open):
            edit, findings = pending.get(name, (None, states[name].findings))
            row = review_sheet.row_of(self.items[name], sources.get(name), states[name].texts, findings, edit)
            item_rows.append(row)
        review_sheet.write(sheet, [*item_rows, *rows])


def _usable(item: Item, texts: Texts) -> bool:
    """Whether a task can have the item at all: with every text, and a blank where there has to be one."""
    if len(texts) < len(item_texts.of(item)):
        return False
    try:
        check_items([item_texts.with_texts(item, texts)], "")
    except BiasError:
        return False
    return True


def reviewed(corrected: Iterable[str], accepted: Mapping[str, str]) -> dict[str, Any]:
    """What a data set's provenance says of a review: corrected items, and the accepted texts' versions by item."""
    return {"corrected": sorted(corrected), "accepted": dict(sorted(accepted.items()))}


def read(folder: Path) -> dict[str, Decision]:
    """The last decision about each item of a translation's folder; a :class:`BiasError` if the file is damaged."""
    decisions = {}
    for record in jsonl.read(folder / FILE, ("id", "accepted", "comment")):
        corrected, replaced = (record.get(name) for name in ("corrected", "replaced"))
        if not _are_texts(corrected) or not _are_texts(replaced):
            raise BiasError(f"{folder / FILE}: item {record['id']}: damaged: it has no texts; remove the line")
        decisions[record["id"]] = Decision(corrected, replaced, record["accepted"], record["comment"])
    return decisions


def _are_texts(value: Any) -> TypeGuard[Texts]:
    return isinstance(value, dict) and all(name in NAMES and isinstance(text, str) for name, text in value.items())


def add(folder: Path, decisions: Mapping[str, Decision]) -> None:
    """Keep new decisions; a :class:`BiasError` if they cannot be written."""
    if decisions:
        jsonl.append(folder / FILE, [{"id": name, **asdict(decision)} for name, decision in decisions.items()])
