"""What can be wrong with an item of a data set in StereoSet's form, as far as texts can tell.

A ``problem`` needs a person; a ``note`` is something to know. What no check can know: whether a translation is right,
and whether two candidates between sentences were exchanged with their ids and labels, unless there is a record of what
was translated from what (``translations``).
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets import agreement_checks, cloze_checks
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import NOTE, PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.own_sets.set_texts import abbreviated, any_ends, final, plain, sure_ends, words
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS, Item

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
    translations: Mapping[str, str] | None = None,
    typical: float | None = None,
) -> list[Finding]:
    """All findings about an item.

    Args:
        item: As :func:`lm_eval_bias.tasks.stereoset.released_sets.read` returns them.
        source: What it was translated from; ``None`` for a hand-made item.
        language: Its language, for what depends on it.
        translations: By source text, as the translation's maker gave them.
        typical: See :func:`typical_length`; that of a published language without it.
    """
    length = LENGTHS.get(language, 0.0) if typical is None else typical
    return [
        *_check_kinds(item, source),
        *_check_empty(item),
        *_check_blank(item, source),
        *_check_different(item),
        *(cloze_checks.check(item) if item["test"] == "intra" else ()),
        *_check_sentences(item, source, language, length, from_other=language != "en" or translations is not None),
        *(_check_moved(item, source, translations) if source is not None and translations is not None else ()),
        *agreement_checks.check(item, language),
    ]


def check_set(
    items: Sequence[Item], source: Sequence[Item] | None = None, language: str = ""
) -> dict[str, list[Finding]]:
    """The findings about each item of a set (or of its part of one test) that has any, by id."""
    sources = {item["id"]: item for item in source or ()}
    findings: dict[str, list[Finding]] = {}
    typical = typical_length(items, sources, language)
    counts = Counter(name for item in items for _, name in _ids(item))
    first_ids: dict[tuple[str, ...], str] = {}
    for item in items:
        item_findings = check_item(item, sources.get(item["id"]), language, typical=typical)
        for part, name in _ids(item):
            if counts[name] > 1:
                item_findings.append(Finding("id", part, f"the id {name} appears {counts[name]} times"))
        first = first_ids.setdefault(_texts(item), item["id"])
        if first != item["id"]:
            item_findings.append(Finding("repeated", "item", f"the texts of item {first}"))
        if sources and item["id"] not in sources:
            item_findings.append(Finding("id", "item", "the source has no item of this id"))
        if item_findings:
            findings.setdefault(item["id"], []).extend(item_findings)
    for name in sources:
        if name not in counts:
            findings[name] = [Finding("missing", "item", "an item of the source is missing")]
    return findings


def _ids(item: Item) -> list[tuple[str, str]]:
    return [("item", item["id"]), *((candidate["label"], candidate["id"]) for candidate in item["candidates"])]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _texts(item: Item) -> tuple[str, ...]:
    """An item's test, context and sentences in any order, as they look."""
    return (item["test"], _plain(item["context"]), *sorted(_plain(c["sentence"]) for c in item["candidates"]))


def typical_length(items: Sequence[Item], sources: Mapping[str, Item], language: str) -> float:
    """Median ratio of the contexts' lengths to the sources', known or counted; 0 where there are too few to tell."""
    if language in LENGTHS:
        return LENGTHS[language]
    pairs = [(item["context"], sources[item["id"]]["context"]) for item in items if item["id"] in sources]
    ratios = [len(text) / len(original) for text, original in pairs if text.strip() and original.strip()]
    return statistics.median(ratios) if len(ratios) >= 20 else 0.0


def _check_kinds(item: Item, source: Item | None) -> Iterator[Finding]:
    labels = [candidate["label"] for candidate in item["candidates"]]
    if sorted(labels) != sorted(LABELS):
        yield Finding("label", "item", f"labels {', '.join(labels)}: each of {', '.join(LABELS)} must appear once")
    if source is None:
        return
    for part, name, value, original in (
        ("item", "test", item["test"], source["test"]),
        ("item", "bias type", item["bias_type"], source["bias_type"]),
        ("term", "group", item["term"], source["term"]),
    ):
        if value != original:
            yield Finding("source", part, f"{name} {value!r}, but {original!r} in the source")
    source_labels = {candidate["id"]: candidate["label"] for candidate in source["candidates"]}
    for candidate in item["candidates"]:
        label = source_labels.get(candidate["id"])
        if label is None:
            yield Finding("id", candidate["label"], f"the source's item has no candidate {candidate['id']}")
        elif label != candidate["label"]:
            yield Finding("label", candidate["label"], f"candidate {candidate['id']} is {label} in the source")


def _check_empty(item: Item) -> Iterator[Finding]:
    parts = [("context", item["context"], "context"), ("term", item["term"], "group")]
    for candidate in item["candidates"]:
        parts.append((candidate["label"], candidate["sentence"], "sentence"))
        if item["test"] == "intra":
            parts.append((candidate["label"], candidate["word"] or "", "word"))
    for part, text, name in parts:
        if not words(text):
            yield Finding("empty", part, f"the {name} is empty" if not text.strip() else f"the {name} has no letters")


def _check_blank(item: Item, source: Item | None) -> Iterator[Finding]:
    context = item["context"]
    count = context.count(BLANK)
    expected = int(item["test"] == "intra") if source is None else source["context"].count(BLANK)
    if count < expected:
        other_case = re.findall(rf"\b{BLANK}\b", context.replace(BLANK, ""), re.IGNORECASE)
        how = f"as {other_case[0]!r}" if other_case else "missing or translated"
        yield Finding("blank", "context", f"{BLANK} {count} instead of {expected} times: {how}")
    elif count > expected and item["test"] == "intra":
        yield Finding("doubled", "context", f"{BLANK} {count} times instead of {expected}")
    elif count > 1:
        yield Finding("doubled", "context", f"{BLANK} {count} times, as in the source", NOTE)
    if item["test"] == "inter" and count:
        as_source = source is not None and count == expected
        yield Finding("stray", "context", f"{BLANK} between sentences", NOTE if as_source else PROBLEM)
    if _GLUED.search(context):
        piece = next(word for word in context.split() if BLANK in word)
        yield Finding("glued", "context", f"{BLANK} touches letters: {piece}")
    source_sentences = _sentences(source)
    for candidate in item["candidates"]:
        if BLANK in candidate["sentence"] or BLANK in (candidate["word"] or ""):
            level = NOTE if BLANK in source_sentences.get(candidate["id"], "") else PROBLEM
            yield Finding("stray", candidate["label"], f"{BLANK} in the candidate: {candidate['sentence']}", level)


def _sentences(item: Item | None) -> dict[str, str]:
    """The candidates' sentences by their ids."""
    return {c["id"]: c["sentence"] for c in item["candidates"]} if item is not None else {}


def _check_different(item: Item) -> Iterator[Finding]:
    for first, second in combinations(item["candidates"], 2):
        pairs = {"word": (first["word"], second["word"]), "sentence": (first["sentence"], second["sentence"])}
        same = {
            name: text
            for name, (text, against) in pairs.items()
            if text and against and _plain(text) == _plain(against)
        }
        if same:
            text = f"the same {' and '.join(same)} as the {second['label']}: {next(iter(same.values()))}"
            yield Finding("equal", first["label"], text)


def _check_sentences(
    item: Item, source: Item | None, language: str, typical: float, from_other: bool
) -> Iterator[Finding]:
    """What is a sentence, against its source; within sentences the candidates' follow from the context.

    An English set's source can be English too, unless it is known to be a translation (``from_other``).
    """
    pairs = [("context", item["context"], "" if source is None else source["context"])]
    if item["test"] == "inter":
        originals = _sentences(source)
        pairs += [(c["label"], c["sentence"], originals.get(c["id"], "")) for c in item["candidates"]]
    for part, text, original in pairs:
        if not words(text):
            continue
        if leftover := _leftover(text, original, language, from_other):
            yield Finding("untranslated", part, leftover)
        end, original_end = final(text), final(original)
        doubled = len(end) > 1 and end not in ("...", "…") and len(set(end)) <= 2
        if doubled and len(end) > len(original_end):
            yield Finding("punctuation", part, f"ends with {end!r}", NOTE)
        if not end and not original_end:
            yield Finding("open", part, f"no final punctuation: {text}", NOTE)
        elif not original and abbreviated(text):
            yield Finding("open", part, f"ends with what may be an abbreviation: {text}", NOTE)
        if original:
            yield from _check_length(part, text, original, typical)


def _check_length(part: str, text: str, original: str, typical: float) -> Iterator[Finding]:
    ratio = len(text.strip()) / max(1, len(original.strip()))
    end, original_end = final(text), final(original)
    short = ratio < 0.8 * (typical or 1.0)
    open_end = abbreviated(text) and words(text)[-1] not in words(original)
    if original_end and short and open_end and not abbreviated(original):
        yield Finding("open", part, f"short, and ends with what may be an abbreviation: {text}", NOTE)
    elif original_end and not end:
        lost = "short, and without its final punctuation" if short else "the final punctuation is lost"
        yield Finding("cut" if short else "punctuation", part, f"{lost}: {text}")
    elif original_end and original_end[-1] in ".!?" and end[-1] in ".!?" and original_end[-1] != end[-1]:
        yield Finding("punctuation", part, f"ends with {end!r} instead of {original_end!r}", NOTE)
    elif any_ends(text) < sure_ends(original):
        yield Finding("cut", part, f"fewer sentences than the source: {text}")
    elif original_end and any_ends(text) < any_ends(original):
        yield Finding("open", part, f"less punctuation inside than in the source: {text}", NOTE)
    # short texts vary more; the bounds lie beyond every published pair but the odd ones
    allowed = (0.5 if typical else 1.0) + 2.7 / math.sqrt(max(1, len(original.strip())))
    if abs(math.log(ratio / (typical or 1.0))) > allowed:
        yield Finding("length", part, f"{ratio:.2f} times as long as the source: {text}")


def _leftover(text: str, original: str, language: str, from_other: bool) -> str:
    """What shows that a text is not translated; empty if nothing does."""
    text_words, source_words = ([w for w in words(sentence) if w != "blank"] for sentence in (text, original))
    if from_other and text_words == source_words and len(text_words) > 2:
        return f"is the source's text: {text}"
    if language == "en":
        return ""
    if not source_words:
        english = sorted({word for word in text_words if word in _ENGLISH})
        share = sum(word in _ENGLISH for word in text_words) / max(1, len(text_words))
        return f"English words: {', '.join(english)}" if len(english) > 1 and share >= 0.3 else ""
    # capitalised ones can be names and titles
    small = {plain(word) for word in re.findall(r"[^\W_]+", text) if word[0].islower()}
    english = sorted(small & set(source_words) & _ENGLISH)
    return f"words of the source ({', '.join(english)}): {text}" if len(english) > 1 else ""


def _check_moved(item: Item, source: Item, translations: Mapping[str, str]) -> Iterator[Finding]:
    """Candidates that are the translation of another text of their item."""
    keys: tuple[Literal["sentence", "word"], ...] = ("sentence",) if item["test"] == "inter" else ("sentence", "word")
    for key in keys:
        originals = {c["id"]: c[key] for c in source["candidates"]}
        expected = {name: translations.get(text or "") for name, text in originals.items()}
        for candidate in item["candidates"]:
            name, text = candidate["id"], candidate[key]
            if expected.get(name) in (None, text):
                continue
            moved = next((c for c in source["candidates"] if c["id"] != name and expected[c["id"]] == text), None)
            if moved is not None:
                message = f"its {key} is the translation of the {moved['label']}'s: {text}"
                yield Finding("swapped", candidate["label"], message)
