"""What can be wrong with an item of a data set in StereoSet's form, as far as texts can tell.

A ``problem`` needs a person; a ``note`` is something to know. What no check can know: whether a translation is right,
and whether two candidates between sentences were exchanged with their ids and labels, unless there is a record of what
was translated from what (``memory``).
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets import fill, grammar, set_texts
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import CODES, NOTE, PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.released_sets import LABELS, Item

__all__ = ["CODES", "NOTE", "PROBLEM", "Finding", "Memory", "check_item", "check_set"]

Memory = Mapping[str, str]
# letters beside it, but for scripts that put no spaces between words
_LETTER = "[^\\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_GLUED = re.compile(f"{_LETTER}{BLANK}|{BLANK}{_LETTER}")


# median length of a translation over that of its English source, in characters, in the published sets
LENGTHS = {"en": 1.0, "de": 1.13, "es": 1.06, "fr": 1.17, "tr": 0.93}
# words that English has and its neighbours don't
_ENGLISH = frozenset(
    "the and are were they their them with that this these those have because which would could should she his "
    "very from people when who whose been there where while what how your you it my our then about after before "
    "into every always never other only some any many most had does did doing being".split()
)


def check_item(
    item: Item,
    source: Item | None = None,
    language: str = "",
    memory: Memory | None = None,
    typical: float | None = None,
) -> list[Finding]:
    """All findings about an item.

    Args:
        item: As :func:`lm_eval_bias.tasks.stereoset.released_sets.read` returns them.
        source: What it was translated from; ``None`` for a hand-made item.
        language: Its language, for what depends on it.
        memory: Translations by source text, as the translation's maker gave them.
        typical: See :func:`typical_length`; that of a published language without it.
    """
    return list(_check(item, source, language, memory, LENGTHS.get(language, 0.0) if typical is None else typical))


def check_set(
    items: Sequence[Item],
    source: Sequence[Item] | None = None,
    language: str = "",
    memory: Memory | None = None,
) -> dict[str, list[Finding]]:
    """The findings about each item of a set that has any, by id.

    Args:
        items: The set, or its part of one test.
        source: What it was translated from, of the same tests.
        language: Its language.
        memory: See :func:`check_item`.
    """
    originals = {item["id"]: item for item in source or ()}
    found: dict[str, list[Finding]] = {}
    typical = typical_length(items, originals, language)
    counts: dict[str, int] = {}
    for item in items:
        for name in (item["id"], *(candidate["id"] for candidate in item["candidates"])):
            counts[name] = counts.get(name, 0) + 1
    for item in items:
        own = list(_check(item, originals.get(item["id"]), language, memory, typical))
        for part, name in [("item", item["id"]), *((c["label"], c["id"]) for c in item["candidates"])]:
            if counts[name] > 1:
                own.append(Finding("id", part, f"the id {name} stands there {counts[name]} times"))
        if originals and item["id"] not in originals:
            own.append(Finding("id", "item", "the source has no item of this id"))
        if own:
            found.setdefault(item["id"], []).extend(own)
    for name in originals:
        if name not in counts:
            found[name] = [Finding("missing", "item", "an item of the source that isn't there")]
    return found


def typical_length(items: Sequence[Item], originals: Mapping[str, Item], language: str) -> float:
    """Median ratio of the contexts' lengths to the sources', known or counted; 0 where there are too few to tell."""
    if language in LENGTHS:
        return LENGTHS[language]
    pairs = [(item["context"], originals[item["id"]]["context"]) for item in items if item["id"] in originals]
    ratios = [len(own) / len(other) for own, other in pairs if own.strip() and other.strip()]
    return statistics.median(ratios) if len(ratios) >= 20 else 0.0


def _check(item: Item, source: Item | None, language: str, memory: Memory | None, typical: float) -> Iterator[Finding]:
    yield from _check_kinds(item, source)
    yield from _check_empty(item)
    yield from _check_blank(item, source)
    yield from _check_different(item)
    if item["test"] == "intra":
        yield from fill.check(item)
    yield from _check_texts(item, source, language, typical)
    if source is not None and memory is not None:
        yield from _check_memory(item, source, memory)
    yield from (Finding("grammar", part, text, NOTE) for part, text in grammar.trap(item, language))


def _pairs(item: Item, source: Item | None) -> list[tuple[str, str, str]]:
    """Part, text and source text of what is a sentence (within sentences the candidates' follow from the context)."""
    found = [("context", item["context"], "" if source is None else source["context"])]
    if item["test"] == "inter":
        others = {c["id"]: c["sentence"] for c in (source or {"candidates": ()})["candidates"]}
        found += [(c["label"], c["sentence"], others.get(c["id"], "")) for c in item["candidates"]]
    return found


def _check_kinds(item: Item, source: Item | None) -> Iterator[Finding]:
    labels = [candidate["label"] for candidate in item["candidates"]]
    if sorted(labels) != sorted(LABELS):
        yield Finding("label", "item", f"labels {', '.join(labels)}: each of {', '.join(LABELS)} is needed once")
    if source is None:
        return
    for key, name in (("test", "test"), ("bias_type", "bias type"), ("term", "group")):
        if item[key] != source[key]:
            part = "term" if key == "term" else "item"
            yield Finding("source", part, f"{name} {item[key]!r}, but {source[key]!r} in the source")
    theirs = {candidate["id"]: candidate["label"] for candidate in source["candidates"]}
    for candidate in item["candidates"]:
        said = theirs.get(candidate["id"])
        if said is None:
            yield Finding("id", candidate["label"], f"the source's item has no candidate {candidate['id']}")
        elif said != candidate["label"]:
            yield Finding("label", candidate["label"], f"candidate {candidate['id']} is {said} in the source")


def _check_empty(item: Item) -> Iterator[Finding]:
    parts = [("context", item["context"], "context"), ("term", item["term"], "group")]
    for candidate in item["candidates"]:
        parts.append((candidate["label"], candidate["sentence"], "sentence"))
        if item["test"] == "intra":
            parts.append((candidate["label"], candidate["word"] or "", "word"))
    for part, text, name in parts:
        if not set_texts.words(text):
            yield Finding("empty", part, f"the {name} is empty" if not text.strip() else f"the {name} has no letters")


def _check_blank(item: Item, source: Item | None) -> Iterator[Finding]:
    context = item["context"]
    count = context.count(BLANK)
    wanted = int(item["test"] == "intra") if source is None else source["context"].count(BLANK)
    other_case = re.findall(rf"\b{BLANK}\b", re.sub(BLANK, "", context), re.IGNORECASE)
    if count < wanted:
        how = f"as {other_case[0]!r}" if other_case else "missing or translated"
        yield Finding("blank", "context", f"{BLANK} {count} instead of {wanted} times: {how}")
    elif count > wanted and item["test"] == "intra":
        yield Finding("doubled", "context", f"{BLANK} {count} times instead of {wanted}")
    elif count > 1:
        yield Finding("doubled", "context", f"{BLANK} {count} times, as in the source", NOTE)
    if item["test"] == "inter" and count:
        as_source = source is not None and count == wanted
        yield Finding("stray", "context", f"{BLANK} between sentences", NOTE if as_source else PROBLEM)
    if _GLUED.search(context):
        piece = next(word for word in context.split() if BLANK in word)
        yield Finding("glued", "context", f"{BLANK} touches letters: {piece}")
    theirs = {c["id"]: c["sentence"] for c in source["candidates"]} if source is not None else {}
    for candidate in item["candidates"]:
        if BLANK in candidate["sentence"] or BLANK in (candidate["word"] or ""):
            level = NOTE if BLANK in theirs.get(candidate["id"], "") else PROBLEM
            yield Finding("stray", candidate["label"], f"{BLANK} in the candidate: {candidate['sentence']}", level)


def _check_different(item: Item) -> Iterator[Finding]:
    for one, other in combinations(item["candidates"], 2):
        same = {
            key
            for key in ("sentence", "word")
            if one[key] and other[key] and one[key].strip().casefold() == other[key].strip().casefold()
        }
        if same:
            what = " and ".join(sorted(same, reverse=True))
            yield Finding("equal", one["label"], f"the same {what} as the {other['label']}: {one[max(same)]}")


def _check_texts(item: Item, source: Item | None, language: str, typical: float) -> Iterator[Finding]:
    """The sentences, each against its source."""
    for part, text, original in _pairs(item, source):
        if not set_texts.words(text):
            continue
        leftover = _leftover(text, original, language)
        if leftover:
            yield Finding("untranslated", part, leftover)
        end = set_texts.final(text)
        if (
            len(end) > 1
            and end not in ("...", "…")
            and len(end) > len(set_texts.final(original))
            and len(set(end)) <= 2
        ):
            yield Finding("punctuation", part, f"ends with {end!r}", NOTE)
        if not end and not set_texts.final(original):
            yield Finding("open", part, f"no final punctuation: {text}", NOTE)
        elif not original and set_texts.abbreviated(text):
            yield Finding("open", part, f"ends with what may be an abbreviation: {text}", NOTE)
        if original:
            yield from _check_length(part, text, original, typical)


def _check_length(part: str, text: str, original: str, typical: float) -> Iterator[Finding]:
    ratio = len(text.strip()) / max(1, len(original.strip()))
    end, theirs = set_texts.final(text), set_texts.final(original)
    short = ratio < 0.8 * (typical or 1.0)
    open_end = set_texts.abbreviated(text) and set_texts.words(text)[-1] not in set_texts.words(original)
    if theirs and short and open_end and not set_texts.abbreviated(original):
        yield Finding("open", part, f"short, and ends with what may be an abbreviation: {text}", NOTE)
    elif theirs and not end:
        lost = "short, and without its final punctuation" if short else "the final punctuation is lost"
        yield Finding("cut" if short else "punctuation", part, f"{lost}: {text}")
    elif theirs and end and theirs[-1] in ".!?" and end[-1] in ".!?" and theirs[-1] != end[-1]:
        yield Finding("punctuation", part, f"ends with {end!r} instead of {theirs!r}", NOTE)
    elif set_texts.any_ends(text) < set_texts.sure_ends(original):
        yield Finding("cut", part, f"fewer sentences than the source: {text}")
    elif theirs and set_texts.any_ends(text) < set_texts.any_ends(original):
        yield Finding("open", part, f"less punctuation inside than in the source: {text}", NOTE)
    # short texts vary more; the bounds lie beyond every published pair but the odd ones
    allowed = (0.5 if typical else 1.0) + 2.7 / math.sqrt(max(1, len(original.strip())))
    if abs(math.log(ratio / (typical or 1.0))) > allowed:
        yield Finding("length", part, f"{ratio:.2f} times as long as the source: {text}")


def _leftover(text: str, original: str, language: str) -> str:
    """What shows that a text is not translated; empty if nothing does."""
    own, theirs = (
        [w for w in set_texts.words(text) if w != "blank"],
        [w for w in set_texts.words(original) if w != "blank"],
    )
    if not theirs:
        found = {word for word in own if word in _ENGLISH}
        share = sum(word in _ENGLISH for word in own) / max(1, len(own))
        return "" if language == "en" or len(found) < 2 or share < 0.3 else f"English words: {', '.join(sorted(found))}"
    if language == "en":
        return ""
    if own == theirs and len(own) > 2:
        return f"is the source's text: {text}"
    shared = [word for word in re.findall(r"[^\W_]+", text) if set_texts.plain(word) in theirs and word != BLANK]
    # capitalised ones can be names and titles
    english = sorted({set_texts.plain(word) for word in shared if word[0].islower()} & _ENGLISH)
    return f"words of the source ({', '.join(english)}): {text}" if len(english) > 1 else ""


def _check_memory(item: Item, source: Item, memory: Memory) -> Iterator[Finding]:
    """Candidates that are the translation of another text of their item."""
    keys = ("sentence",) if item["test"] == "inter" else ("sentence", "word")
    for key in keys:
        theirs = {c["id"]: c[key] for c in source["candidates"]}
        for candidate in item["candidates"]:
            own = theirs.get(candidate["id"])
            if own is None or memory.get(own) is None or memory[own] == candidate[key]:
                continue
            for other in source["candidates"]:
                if other["id"] != candidate["id"] and memory.get(other[key]) == candidate[key]:
                    what = f"its {key} is the translation of the {other['label']}'s: {candidate[key]}"
                    yield Finding("swapped", candidate["label"], what)
                    break
