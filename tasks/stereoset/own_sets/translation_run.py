"""A translation of StereoSet in a folder: what is there, what an engine adds, what people decided."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from lm_eval_bias.data.sources import manifest
from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import write_whole, writing
from lm_eval_bias.tasks.stereoset import released_sets
from lm_eval_bias.tasks.stereoset.own_sets import (
    csv_io,
    item_texts,
    review_decisions,
    review_sheet,
    set_checks,
    set_files,
    translation_cache,
)
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.own_sets.item_texts import Texts
from lm_eval_bias.tasks.stereoset.own_sets.review_decisions import Check, Decision, Review, State
from lm_eval_bias.tasks.stereoset.own_sets.translation_engines import Engine, Table
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TESTS, Item, check_items, spread

SHEET, OPEN_TEXTS = "review.csv", "untranslated.csv"


@dataclass(frozen=True)
class Source:
    """What is translated."""

    name: str  # for people
    language: str
    items: list[Item]  # all, in their order
    files: dict[str, str]  # SHA-256 by file


def source_of(name: str, language: str | None = None) -> Source:
    """A published language, or a file in StereoSet's form, of this language where it doesn't say its own."""
    if name in LANGUAGES:
        pinned = manifest().resolve([f"stereoset_{name}_{test}" for test in TESTS])
        files = {f"{file.repository}@{file.commit}/{file.path}": file.sha256 for file in pinned}
        return Source(f"StereoSet ({LANGUAGES[name]}, published)", name, released_sets.read_all(name), files)
    path = Path(name)
    data_set = set_files.read(name, language)
    check_items(data_set.items, name)
    return Source(path.name, data_set.language, data_set.items, {path.name: set_files.digest(path)})


def select(source: Source, tests: Sequence[str], limit: int | None) -> list[Item]:
    """The source's items of some tests (else a :class:`BiasError`); as many as the limit says, from every group."""
    items = [item for item in source.items if item["test"] in tests]
    if limit is not None:
        names = {item["id"] for item in spread(items)[:limit]}
        items = [item for item in items if item["id"] in names]
    if not items:
        raise BiasError(f"{source.name}: no items of {' and '.join(tests)}")
    return items


@dataclass(frozen=True)
class Outcome:
    """What a translation's folder holds after a run."""

    source: Source
    language: str  # of the translation
    items: list[Item]  # the chosen ones of the source
    states: dict[str, State]  # by item
    decisions: dict[str, Decision]  # of people, by item
    stale: list[str]  # items whose acceptance was for other texts than the present ones
    unknown: int  # translations in a table of texts that the source doesn't have
    placeholders: dict[str, int]  # how BLANK was protected, and how often

    @property
    def translations(self) -> list[Item]:
        """The items that are ready for use."""
        ready = ((item, self.states[item["id"]]) for item in self.items)
        return [item_texts.with_texts(item, state.texts) for item, state in ready if not state.open]

    @property
    def counts(self) -> dict[str, int]:
        """How many items came about in which way."""
        ways = Counter(self._way(name, state) for name, state in self.states.items())
        return {way: ways[way] for way in ("translated", "corrected", "accepted", "left out")}

    def _way(self, name: str, state: State) -> str:
        if state.open or state.accepted:
            return "left out" if state.open else "accepted"
        return "corrected" if self.decisions.get(name, Decision()).corrected else "translated"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a translation's folder, which is made where it is missing.

    Raises:
        BiasError: Another run is at work in it, or it cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise BiasError(
                f"{folder}: another run is using this folder; wait for it to end, or use another folder"
            ) from error
    try:
        yield
    finally:
        lock.release()


def run(folder: Path, source: Source, items: list[Item], language: str, engine: Engine, anew: bool = False) -> Outcome:
    """Translate what is lacking, take in what people wrote, and write the review sheet anew.

    Args:
        folder: Where everything is kept.
        source: What is translated.
        items: Its items that are chosen.
        language: Into what.
        engine: What translates.
        anew: Ask for all texts again, of an engine that the kept ones aren't of.

    Raises:
        BiasError: What the engine raises, or a file in the folder that can't be read or written.
    """
    sheet = folder / SHEET
    source_items = {item["id"]: item for item in source.items}
    review_sheet.read_about(sheet, source_items, "source")  # before hours of translating
    decisions = review_decisions.read(folder)
    cache = translation_cache.open_cache(folder, f"{source.language}>{language} {engine.identity}", anew)
    requested = list(dict.fromkeys(text for item in items for text in item_texts.requested(item).values()))
    translation_cache.translate(requested, engine, cache)

    texts = {item["id"]: item_texts.translated(item, cache, language, engine.human) for item in items}
    review = Review(source_items, texts, decisions, _check(source_items, language, cache, texts, decisions))
    edits = review_sheet.read_about(sheet, source_items, "source")
    merged = review.merge(edit for name, edit in edits.items() if name in texts)
    review_decisions.add(folder, merged.decisions)
    other_rows = [edit.row for name, edit in edits.items() if name not in texts]
    states = review.states()
    review.write(sheet, states, source_items, merged.pending, other_rows)
    unknown = 0
    if isinstance(engine, Table):
        _write_open(folder / OPEN_TEXTS, [text for text in requested if text not in cache])
        unknown = engine.unknown({text for item in source.items for text in item_texts.requested(item).values()})
    placeholders = cache.placeholders(requested)
    return Outcome(source, language, items, states, review.decisions, merged.stale, unknown, placeholders)


def _check(
    source_items: Mapping[str, Item],
    language: str,
    translations: Mapping[str, str],
    texts: Mapping[str, Texts],
    decisions: Mapping[str, Decision],
) -> Check:
    """The checks of an item's texts; what length is usual follows from the items that nothing else is wrong with."""
    sound = []
    for name, item_parts in texts.items():
        item = source_items[name]
        complete = item_texts.completed(item, item_parts, decisions.get(name, Decision()).corrected)
        if len(complete) == len(item_texts.of(item)):
            translation = item_texts.with_texts(item, complete)
            if all(finding.level != PROBLEM for finding in set_checks.check_item(translation, item, language)):
                sound.append(translation)
    typical = set_checks.typical_length(sound, source_items, language)

    def check(name: str, texts: Texts) -> list[Finding]:
        item = source_items[name]
        lacking = [part for part in item_texts.requested(item) if part not in texts]
        if lacking:
            return [Finding("lacking", part, "no translation yet") for part in lacking]
        return set_checks.check_item(item_texts.with_texts(item, texts), item, language, translations, typical)

    return check


def _write_open(path: Path, texts: Sequence[str]) -> None:
    """The texts that a table of translations lacks, as such a table; no file where it lacks none."""
    with writing(path):
        if texts:
            write_whole(path, csv_io.as_csv([[text, ""] for text in texts]))
        else:
            path.unlink(missing_ok=True)
