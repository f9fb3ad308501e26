"""What is wrong with items in StereoSet's form, as far as texts can tell: a list of checks.

What no check can know: whether a translation is right, and whether two candidates between sentences were exchanged with
their ids and labels.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS

# letters beside it, but for scripts that put no spaces between words
_LETTER = "[^\\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
_GLUED = re.compile(f"{_LETTER}{BLANK}|{BLANK}{_LETTER}")
# closing quotes and brackets may stand behind it
_END = re.compile(r"[.!?…。！？؟।][\s\"'“”„«»’‘」』)\]]*$")


class Fault(NamedTuple):
    """A fault in a part of an item: the item, its context, term or a candidate's label."""

    part: str
    text: str


def _labels(item: Facts, source: Facts | None) -> Iterator[Fault]:
    """Find missing or repeated labels."""
    labels = [candidate["label"] for candidate in item["candidates"]]
    if sorted(labels) != sorted(LABELS):
        problem = (
            f"labels {', '.join(labels)}: each of {', '.join(LABELS)} must appear once"
        )
        yield Fault("item", problem)


def _empty(item: Facts, source: Facts | None) -> Iterator[Fault]:
    """Find texts without letters."""
    texts = [("context", "context", item["context"]), ("term", "group", item["term"])]
    for candidate in item["candidates"]:
        for kind in _kinds(item):
            texts.append((candidate["label"], kind, candidate[kind] or ""))
    for part, name, text in texts:
        if not re.search(r"[^\W_]", text):
            state = "has no letters" if text.strip() else "is empty"
            yield Fault(part, f"the {name} {state}")


def _lost_blank(item: Facts, source: Facts | None) -> Iterator[Fault]:
    """Find a lost blank."""
    count, expected = _blanks(item, source)
    if count < expected:
        problem = f"{BLANK} {count} instead of {expected} times: missing or translated"
        yield Fault("context", problem)


def _equal(item: Facts, source: Facts | None) -> Iterator[Fault]:
    """Find candidates that differ only in case or final punctuation."""
    for (first, second), kind in product(
        combinations(item["candidates"], 2), _kinds(item)
    ):
        text = first[kind] or ""
        if text and _folded(text) == _folded(second[kind] or ""):
            problem = f"the same {kind} as the {second['label']}: {text!r}"
            yield Fault(first["label"], problem)


def _more_blanks(item: Facts, source: Facts | None) -> Iterator[Fault]:
    """Find more blanks than the source has."""
    count, expected = _blanks(item, source)
    if count > expected:
        yield Fault("context", f"{BLANK} {count} times, and {expected} expected")


def _glued(item: Facts, source: Facts | None) -> Iterator[Fault]:
    """Find letters that touch the blank."""
    context = item["context"]
    if _GLUED.search(context):
        piece = next(word for word in context.split() if BLANK in word)
        yield Fault("context", f"{BLANK} touches letters: {piece}")


def _punctuation(item: Facts, source: Facts | None) -> Iterator[Fault]:
    """Find texts that lost their final punctuation."""
    if source is None:
        return
    pairs = [("context", item["context"], source["context"])]
    if item["test"] == "inter":
        both = zip(item["candidates"], source["candidates"], strict=True)
        pairs += [(own["label"], own["sentence"], its["sentence"]) for own, its in both]
    for part, text, original in pairs:
        if _END.search(original.rstrip()) and not _END.search(text.rstrip()):
            yield Fault(part, f"the final punctuation is lost: {text}")


SCORABLE = (_labels, _empty, _lost_blank, _equal)  # without which no task can have it
CHECKS = (*SCORABLE, _more_blanks, _glued, _punctuation)


def _kinds(item: Facts) -> tuple[str, ...]:
    return ("sentence", "word") if item["test"] == "intra" else ("sentence",)


def _blanks(item: Facts, source: Facts | None) -> tuple[int, int]:
    """Return the actual and the expected number of blanks in a context."""
    expected = int(item["test"] == "intra")
    if source is not None:
        expected = source["context"].count(BLANK)
    return item["context"].count(BLANK), expected


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFC", text).casefold()
    return " ".join(plain.split()).removesuffix(".")


def check_item(item: Facts, source: Facts | None = None) -> list[Fault]:
    """Return the faults of a translated item, compared with its source."""
    return [fault for check in CHECKS for fault in check(item, source)]


def check_items(items: Documents, where: str) -> None:
    """Refuse items that can't be scored.

    Raises:
        BiasError: The first thing that is wrong, with the item's id behind ``where``.
    """
    counts = Counter(item["id"] for item in items)
    for item in items:
        counts.update(candidate["id"] for candidate in item["candidates"])
    for item in items:
        names = [item["id"], *(candidate["id"] for candidate in item["candidates"])]
        faults = [fault for check in SCORABLE for fault in check(item, None)]
        for name in names:
            if counts[name] > 1:
                faults.append(Fault("item", f"{name} appears {counts[name]} times"))
        for part, text in faults[:1]:
            raise BiasError(f"{where}, item {item['id']}: {part}: {text}")
