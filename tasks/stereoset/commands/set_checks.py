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


Faults = Iterator[
    str
]  # each begins with its part: the item, its context, term or a candidate's label


def _labels(item: Facts, source: Facts | None) -> Faults:
    """Find missing or repeated labels."""
    labels = [candidate["label"] for candidate in item["candidates"]]
    if sorted(labels) != sorted(LABELS):
        yield f"item: labels {', '.join(labels)}: each of {', '.join(LABELS)} must appear once"


def _texts(item: Facts) -> Iterator[tuple[str, str, str]]:
    """Yield the label, the kind and the text of what the candidates are told apart by."""
    kinds = ("sentence", "word") if item["test"] == "intra" else ("sentence",)
    for candidate, kind in product(item["candidates"], kinds):
        yield candidate["label"], kind, candidate[kind] or ""


def _empty(item: Facts, source: Facts | None) -> Faults:
    """Find texts without letters."""
    own = [("context", "context", item["context"]), ("term", "group", item["term"])]
    for part, name, text in [*own, *_texts(item)]:
        if not re.search(r"[^\W_]", text):
            state = "has no letters" if text.strip() else "is empty"
            yield f"{part}: the {name} {state}"


def _lost_blank(item: Facts, source: Facts | None) -> Faults:
    """Find a lost blank."""
    count, expected = _blanks(item, source)
    if count < expected:
        yield f"context: {BLANK} {count} instead of {expected} times: missing or translated"


def _equal(item: Facts, source: Facts | None) -> Faults:
    """Find candidates that differ only in case or final punctuation."""
    for (part, kind, text), (other, same, its) in combinations(_texts(item), 2):
        if text and kind == same and _folded(text) == _folded(its):
            yield f"{part}: the same {kind} as the {other}: {text!r}"


def _more_blanks(item: Facts, source: Facts | None) -> Faults:
    """Find more blanks than the source has."""
    count, expected = _blanks(item, source)
    if count > expected:
        yield f"context: {BLANK} {count} times, and {expected} expected"


def _glued(item: Facts, source: Facts | None) -> Faults:
    """Find letters that touch the blank."""
    if _GLUED.search(item["context"]):
        yield f"context: {BLANK} touches letters: {item['context']}"


def _punctuation(item: Facts, source: Facts | None) -> Faults:
    """Find texts that lost their final punctuation."""
    if source is None:
        return
    pairs = [("context", item["context"], source["context"])]
    if item["test"] == "inter":
        both = zip(_texts(item), _texts(source), strict=True)
        pairs += [(label, text, its) for (label, _, text), (_, _, its) in both]
    for part, text, original in pairs:
        if _END.search(original.rstrip()) and not _END.search(text.rstrip()):
            yield f"{part}: the final punctuation is lost: {text}"


SCORABLE = (_labels, _empty, _lost_blank, _equal)  # without which no task can have it
CHECKS = (*SCORABLE, _more_blanks, _glued, _punctuation)


def _blanks(item: Facts, source: Facts | None) -> tuple[int, int]:
    """Return the actual and the expected number of blanks in a context."""
    expected = int(item["test"] == "intra")
    if source is not None:
        expected = source["context"].count(BLANK)
    return item["context"].count(BLANK), expected


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFC", text).casefold()
    return " ".join(plain.split()).removesuffix(".")


def check_item(item: Facts, source: Facts | None = None) -> list[str]:
    """Return the faults of a translated item, compared with its source."""
    return [fault for check in CHECKS for fault in check(item, source)]


def check_items(items: Documents, where: str) -> None:
    """Refuse items that can't be scored.

    Raises:
        BiasError: The first thing that is wrong, with the item's id behind ``where``.
    """
    counts = Counter[str]()
    for item in items:
        counts.update([item["id"], *(own["id"] for own in item["candidates"])])
    for item in items:
        faults = [fault for check in SCORABLE for fault in check(item, None)]
        for name in (item["id"], *(own["id"] for own in item["candidates"])):
            if counts[name] > 1:
                faults.append(f"item: {name} appears {counts[name]} times")
        if faults:
            raise BiasError(f"{where}, item {item['id']}: {faults[0]}")
