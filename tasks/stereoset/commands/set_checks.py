"""Checks the items of a data set in StereoSet's form, as far as texts can tell.

A ``problem`` needs a person; a ``note`` is something to know. What no check can know: whether a translation is right,
and whether two candidates between sentences were exchanged with their ids and labels.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS

PROBLEM = "problem"
NOTE = "note"
# letters beside it, but for scripts that put no spaces between words
_LETTER = "[^\\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_GLUED = re.compile(f"{_LETTER}{BLANK}|{BLANK}{_LETTER}")
# closing quotes and brackets may stand behind it
_END = re.compile(r"[.!?…。！？؟।][\s\"'“”„«»’‘」』)\]]*$")


@dataclass(frozen=True)
class SetFinding:
    """Something about an item.

    Its code is one of

    - ``missing``: an item of the source is missing
    - ``id``: ids that appear twice, or are not in the source
    - ``source``: test, bias type or group differ from the source
    - ``label``: labels that differ from the source, or don't appear exactly once
    - ``empty``: an empty text
    - ``blank``: BLANK is missing, translated or in another case
    - ``doubled``: BLANK more than once
    - ``glued``: BLANK touches letters
    - ``stray``: BLANK where it doesn't belong
    - ``equal``: two candidates are the same
    - ``fill``: a sentence that is not the context with the word in its blank
    - ``untranslated``: the source's text in the translation
    - ``punctuation``: final punctuation lost, often with the end
    - ``length``: much shorter or longer than the source
    """

    code: str
    part: str  # item, context, term or a candidate's label
    text: str  # what is wrong, for a person
    level: str = PROBLEM


def words_of(text: str) -> list[str]:
    """Return the words of a text without case and accents; in scripts without spaces a whole stretch is one.

    >>> words_of(" The  İce!")
    ['the', 'ice']
    """
    bare = unicodedata.normalize("NFKD", text.casefold())
    return re.findall(
        r"[^\W_]+", "".join(c for c in bare if not unicodedata.combining(c))
    )


def check_set(
    items: Documents, source: Documents | None = None, language: str = ""
) -> dict[str, list[SetFinding]]:
    """Return the findings about each item of a set (or of its part of one test) that has any, by id."""
    sources = {item["id"]: item for item in source or ()}
    findings: dict[str, list[SetFinding]] = {}
    counts = Counter(item["id"] for item in items)
    for item in items:
        counts.update(candidate["id"] for candidate in item["candidates"])
    for item in items:
        of_item = check_item(item, sources.get(item["id"]), language)
        names = [("item", item["id"])]
        names += [(c["label"], c["id"]) for c in item["candidates"]]
        for part, name in names:
            if counts[name] > 1:
                text = f"the id {name} appears {counts[name]} times"
                of_item.append(SetFinding("id", part, text))
        if sources and item["id"] not in sources:
            text = "the source has no item of this id"
            of_item.append(SetFinding("id", "item", text))
        if of_item:
            findings.setdefault(item["id"], []).extend(of_item)
    missing = {
        name: [SetFinding("missing", "item", "an item of the source is missing")]
        for name in sources
        if name not in counts
    }
    return findings | missing


def check_items(items: Documents, where: str) -> None:
    """Refuse items that cannot be scored: doubled ids, other than the three labels, missing or equal texts.

    Candidates that differ in case or a full stop alone are equal: no model can choose between them.

    Raises:
        BiasError: The first thing that is wrong, with the item's id behind ``where``.
    """
    for name, findings in check_set(items).items():
        for finding in findings:
            if finding.code in ("id", "label", "blank", "empty", "equal"):
                raise BiasError(f"{where}, item {name}: {finding.part}: {finding.text}")


def check_item(
    item: Facts, source: Facts | None = None, language: str = ""
) -> list[SetFinding]:
    """Return all findings about an item, and what it was translated from (``None`` for a hand-made one)."""
    findings = []
    labels = [candidate["label"] for candidate in item["candidates"]]
    if sorted(labels) != sorted(LABELS):
        told = (
            f"labels {', '.join(labels)}: each of {', '.join(LABELS)} must appear once"
        )
        findings.append(SetFinding("label", "item", told))
    originals = {}
    if source is not None:
        originals = {c["id"]: c for c in source["candidates"]}
    findings += [*_check_blank(item, source, originals), *_check_candidates(item)]
    if source is not None:
        findings += _check_kinds(item, source, originals)
        findings += _check_texts(item, source, originals, language)
    return findings


def _check_kinds(item: Facts, source: Facts, originals: Facts) -> Iterator[SetFinding]:
    for part, name, field in (
        ("item", "test", "test"),
        ("item", "bias type", "bias_type"),
        ("term", "group", "term"),
    ):
        value = item[field]
        original = source[field]
        if value != original:
            text = f"{name} {value!r}, but {original!r} in the source"
            yield SetFinding("source", part, text)
    for candidate in item["candidates"]:
        name = candidate["id"]
        label = candidate["label"]
        if name not in originals:
            text = f"the source's item has no candidate {name}"
            yield SetFinding("id", label, text)
        elif label != originals[name]["label"]:
            text = f"candidate {name} is {originals[name]['label']} in the source"
            yield SetFinding("label", label, text)


def _check_blank(
    item: Facts, source: Facts | None, originals: Facts
) -> Iterator[SetFinding]:
    context = item["context"]
    intra = item["test"] == "intra"
    count = context.count(BLANK)
    expected = int(intra) if source is None else source["context"].count(BLANK)
    if count < expected:
        yield SetFinding(
            "blank",
            "context",
            f"{BLANK} {count} instead of {expected} times: missing or translated",
        )
    elif count > 1:
        level = PROBLEM if intra and count > expected else NOTE
        yield SetFinding(
            "doubled",
            "context",
            f"{BLANK} {count} times, and {expected} expected",
            level,
        )
    if not intra and count:
        level = NOTE if source is not None and count == expected else PROBLEM
        yield SetFinding("stray", "context", f"{BLANK} between sentences", level)
    if _GLUED.search(context):
        piece = next(word for word in context.split() if BLANK in word)
        yield SetFinding("glued", "context", f"{BLANK} touches letters: {piece}")
    for candidate in item["candidates"]:
        sentence = candidate["sentence"]
        original = originals.get(candidate["id"])
        if BLANK in sentence or BLANK in (candidate["word"] or ""):
            level = NOTE if original and BLANK in original["sentence"] else PROBLEM
            text = f"{BLANK} in the candidate: {sentence}"
            yield SetFinding("stray", candidate["label"], text, level)


def _check_candidates(item: Facts) -> Iterator[SetFinding]:
    """Check for empty and equal texts and, within sentences, for words that don't stand in their sentence."""
    intra = item["test"] == "intra"
    context = item["context"]
    candidates = item["candidates"]
    kinds = ("sentence", "word") if intra else ("sentence",)
    texts = [("context", "context", context), ("term", "group", item["term"])]
    for candidate in candidates:
        texts += [(candidate["label"], kind, candidate[kind] or "") for kind in kinds]
    for part, name, text in texts:
        if not words_of(text):
            state = "has no letters" if text.strip() else "is empty"
            yield SetFinding("empty", part, f"the {name} {state}")
    for (first, second), kind in product(combinations(candidates, 2), kinds):
        text = first[kind] or ""
        if words_of(text) and _folded(text) == _folded(second[kind] or ""):
            told = f"the same {kind} as the {second['label']}: {text!r}"
            yield SetFinding("equal", first["label"], told)
    if not intra or BLANK not in context:
        return
    for candidate in candidates:
        label = candidate["label"]
        sentence = candidate["sentence"]
        word = candidate["word"] or ""
        present = words_of(sentence)
        expected = words_of(context.replace(BLANK, word))
        if not words_of(word) or not present or expected == present:
            continue
        if " ".join(words_of(word)) not in " ".join(present):
            told = f"the word {word!r} isn't in its sentence: {sentence}"
            yield SetFinding("fill", label, told)
        else:  # as many words can be other forms of them
            level = NOTE if len(present) == len(expected) else PROBLEM
            told = f"differs from the context outside the blank: {sentence}"
            yield SetFinding("fill", label, told, level)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).removesuffix(
        "."
    )


def _check_texts(
    item: Facts, source: Facts, originals: Facts, language: str
) -> Iterator[SetFinding]:
    """Hold what is a sentence against its source; within sentences the candidates' follow from the context."""
    pairs = [("context", item["context"], source["context"])]
    for candidate in item["candidates"]:
        if item["test"] == "inter" and candidate["id"] in originals:
            original = originals[candidate["id"]]["sentence"]
            pairs.append((candidate["label"], candidate["sentence"], original))
    for part, text, original in pairs:
        words = words_of(text)
        size = len(original.strip())
        if not words or not size:
            continue
        if language != "en" and len(words) > 2 and words == words_of(original):
            yield SetFinding("untranslated", part, f"is the source's text: {text}")
        if _END.search(original.rstrip()) and not _END.search(text.rstrip()):
            yield SetFinding(
                "punctuation", part, f"the final punctuation is lost: {text}"
            )
        # short texts vary more; the bound lies beyond every published pair but the odd ones
        ratio = len(text.strip()) / size
        if abs(math.log(ratio)) > 1 + 2.7 / math.sqrt(size):
            yield SetFinding(
                "length", part, f"{ratio:.2f} times as long as the source: {text}"
            )
