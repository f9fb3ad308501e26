"""A translation of StereoSet in a folder: what is there, what an engine adds, what people decided, what comes out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from lm_eval_bias.data.sources import manifest
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import write_whole
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets import (
    corrections,
    csv_io,
    parts,
    review,
    review_existing,
    set_checks,
    sets,
    translation_cache,
)
from lm_eval_bias.tasks.stereoset.own_sets.engines import Engine
from lm_eval_bias.tasks.stereoset.own_sets.parts import Parts
from lm_eval_bias.tasks.stereoset.own_sets.review import Decision, State
from lm_eval_bias.tasks.stereoset.own_sets.set_checks import Finding
from lm_eval_bias.tasks.stereoset.own_sets.translation_cache import Memory
from lm_eval_bias.tasks.stereoset.released_sets import Item

SHEET, OPEN_TEXTS = "review.csv", "untranslated.csv"


@dataclass(frozen=True)
class Source:
    """What is translated.

    Attributes:
        name: For people.
        language: Its language.
        items: All items, in their order.
        files: SHA-256 by file.
    """

    name: str
    language: str
    items: list[Item]
    files: dict[str, str]


def source_of(given: str, language: str | None = None) -> Source:
    """A published language, or a file in StereoSet's form.

    Args:
        given: The language's code, or the file.
        language: Of a file that doesn't say it.

    Raises:
        BiasError: It cannot be had.
    """
    if given not in released_sets.LANGUAGES:
        found = sets.read(given, language)
        released_sets.check_items(found.items, given)
        return Source(Path(given).name, found.language, found.items, {Path(given).name: sets.digest(Path(given))})
    items = [item for test in released_sets.TESTS for item in released_sets.read(given, test)]
    pinned = manifest().resolve([f"stereoset_{given}_{test}" for test in released_sets.TESTS])
    files = {f"{file.repository}@{file.commit}/{file.path}": file.sha256 for file in pinned}
    return Source(f"StereoSet ({released_sets.LANGUAGES[given]}, published)", given, items, files)


def chosen(source: Source, tests: Sequence[str], limit: int | None) -> list[Item]:
    """The source's items of some tests; as many as the limit says, in turn from every group.

    Raises:
        BiasError: There are none.
    """
    found = [item for item in source.items if item["test"] in tests]
    if limit is not None:
        wanted = {item["id"] for item in released_sets.spread(found)[:limit]}
        found = [item for item in found if item["id"] in wanted]
    if not found:
        raise BiasError(f"{source.name}: no items of {' and '.join(tests)}")
    return found


@dataclass(frozen=True)
class Outcome:
    """What a translation's folder holds after a run.

    Attributes:
        source: What was translated.
        language: Into what.
        items: The chosen items of the source.
        states: By item.
        decisions: What people decided, by item.
        stale: Items whose acceptance was for other texts than the present ones.
        unknown: How many translations of a table are of texts that the source doesn't have.
        placeholders: How BLANK was protected, and how often.
    """

    source: Source
    language: str
    items: list[Item]
    states: dict[str, State]
    decisions: dict[str, Decision]
    stale: list[str]
    unknown: int
    placeholders: dict[str, int]

    @property
    def translations(self) -> list[Item]:
        """The items that are ready for use."""
        ready = ((item, self.states[item["id"]]) for item in self.items)
        return [parts.with_texts(item, state.texts) for item, state in ready if not state.open]


@contextlib.contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """Keep other runs out of a translation's folder, which is made where it is missing.

    Raises:
        BiasError: Another run is at work in it, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=0)
        lock.acquire()
        for left in folder.glob(".????????.tmp"):  # of a run that was killed while it wrote a file
            left.unlink()
    except Timeout as error:
        raise BiasError(f"{folder}: another run is at work in it") from error
    except OSError as error:
        raise BiasError(f"{folder} cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def run(folder: Path, source: Source, items: list[Item], language: str, engine: Engine, again: bool = False) -> Outcome:
    """Translate what is lacking, take in what people wrote, and write the review sheet anew.

    Args:
        folder: Where everything is kept.
        source: What is translated.
        items: Its items that are chosen.
        language: Into what.
        engine: What translates.
        again: Ask for all texts again, of an engine that the kept ones aren't of.

    Raises:
        BiasError: What the engine raises, or a file in the folder that can't be read or written.
    """
    known = {item["id"]: item for item in source.items}
    _edits(folder, known)  # what is wrong with the sheet is said before hours of translating
    decided = corrections.read(folder)
    kept = _memory(folder, f"{source.language}>{language} {engine.identity}", again)
    texts = list(dict.fromkeys(text for item in items for text in parts.asked(item).values()))
    translation_cache.translate(texts, engine, kept)

    found = {item["id"]: parts.translated(item, kept, language, engine.human) for item in items}
    check = _check(known, language, kept, found, decided)
    edits = _edits(folder, known)
    merged = review.merge(known, found, decided, [edit for name, edit in edits.items() if name in found], check)
    corrections.add(folder, merged.decisions)
    decided |= merged.decisions
    states = {
        name: review.state_of(known[name], own, decided.get(name, Decision()), check) for name, own in found.items()
    }
    elsewhere = [edit.row for name, edit in edits.items() if name not in found]
    _write_sheet(folder / SHEET, items, states, merged.pending, elsewhere)
    if engine.human:
        _write_open(folder / OPEN_TEXTS, [text for text in texts if text not in kept])
    every = {text for item in source.items for text in parts.asked(item).values()}
    return Outcome(
        source, language, items, states, decided, merged.stale, engine.unknown(every), kept.placeholders(texts)
    )


def _write_sheet(
    path: Path,
    items: Sequence[Item],
    states: Mapping[str, State],
    pending: Mapping[str, review.Pending],
    elsewhere: Sequence[Mapping[str, str]],
) -> None:
    """Items with problems, then those with notes, then rows of items that this run isn't about."""
    listed = [item for item in items if review.listed(states[item["id"]]) or item["id"] in pending]
    listed.sort(key=lambda item: not states[item["id"]].open)
    rows = [review.row_of(item, item, states[item["id"]], pending.get(item["id"])) for item in listed]
    review.write(path, rows + [[row.get(name, "") for name in review.COLUMNS] for row in elsewhere])


def _memory(folder: Path, identity: str, again: bool) -> Memory:
    if again:
        kept = Memory(folder)
        if kept.engines - {identity}:
            kept.put_aside()
    return Memory(folder, identity)


def _edits(folder: Path, known: Mapping[str, Item]) -> dict[str, review.Edit]:
    edits = review.read(folder / SHEET)
    for name, edit in edits.items():
        if name not in known:
            raise BiasError(f"{edit.where}: no item {name!r} in the source: mend the id, or delete the row")
    return edits


def _check(
    known: Mapping[str, Item],
    language: str,
    kept: Mapping[str, str],
    found: Mapping[str, Parts],
    decided: Mapping[str, Decision],
) -> review.Check:
    """The checks of an item's texts; what length is usual follows from the items that nothing else is wrong with."""
    sound = []
    for name, own in found.items():
        texts = parts.completed(known[name], own, decided.get(name, Decision()).corrected)
        if len(texts) == len(parts.of(known[name])):
            made = parts.with_texts(known[name], texts)
            if all(f.level != set_checks.PROBLEM for f in set_checks.check_item(made, known[name], language)):
                sound.append(made)
    typical = set_checks.typical_length(sound, known, language)

    def check(name: str, texts: Parts) -> list[Finding]:
        item = known[name]
        lacking = [part for part in parts.asked(item) if part not in texts]
        if lacking:
            return [Finding("lacking", part, "no translation yet") for part in lacking]
        made = parts.with_texts(item, texts)
        return set_checks.check_item(made, item, language, kept, typical)

    return check


def _write_open(path: Path, texts: Sequence[str]) -> None:
    """The texts that a table of translations lacks, as such a table; no file where it lacks none."""
    try:
        if texts:
            write_whole(path, csv_io.as_csv([[text, ""] for text in texts]))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise BiasError(f"{path} cannot be written: {error.strerror}") from error


def counts(outcome: Outcome) -> dict[str, int]:
    """How many items came about in which way."""
    made = {"translated": 0, "corrected": 0, "accepted": 0, "left out": 0}
    for name, state in outcome.states.items():
        corrected = bool(outcome.decisions.get(name, Decision()).corrected)
        if state.open:
            made["left out"] += 1
        elif state.accepted:
            made["accepted"] += 1
        else:
            made["corrected" if corrected else "translated"] += 1
    return made


def coverage(outcome: Outcome) -> dict[str, dict[str, list[int]]]:
    """Per test and bias type: items that are ready, and items of the source."""
    made: dict[str, dict[str, list[int]]] = {}
    for item in outcome.source.items:
        pair = made.setdefault(item["test"], {}).setdefault(item["bias_type"], [0, 0])
        state = outcome.states.get(item["id"])
        pair[0] += state is not None and not state.open
        pair[1] += 1
    return {test: dict(sorted(types.items())) for test, types in made.items()}


def provenance(outcome: Outcome, engine: Engine, date: str) -> dict[str, Any]:
    """What made the data set, as plain data."""
    from lm_eval_bias import __version__

    return {
        "made by": f"lm-eval-bias {__version__} translate stereoset",
        "date": date,
        "source": {"name": outcome.source.name, "language": outcome.source.language, "sha256": outcome.source.files},
        "engine": engine.about(),
        "blank protected by": outcome.placeholders,
        "items": counts(outcome),
        "coverage": coverage(outcome),
        review_existing.REVIEWED: _reviewed(outcome),
    }


def _reviewed(outcome: Outcome) -> dict[str, Any]:
    ready = {item["id"]: state for item in outcome.items if not (state := outcome.states[item["id"]]).open}
    corrected = [name for name in ready if name in outcome.decisions and outcome.decisions[name].corrected]
    accepted = {name: review.version(state.texts) for name, state in ready.items() if state.accepted}
    return {"corrected": sorted(corrected), "accepted": dict(sorted(accepted.items()))}
