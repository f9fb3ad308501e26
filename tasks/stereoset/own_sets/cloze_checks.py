"""Within sentences: whether word, sentence and context of a candidate fit together."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import NOTE, PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.own_sets.set_texts import changes, final, plain, position, related, words
from lm_eval_bias.tasks.stereoset.stereoset_items import Candidate, Item


def check(item: Item) -> Iterator[Finding]:
    """Whether each candidate's sentence is the context with its own word in the blank, as far as that can be told."""
    context = item["context"]
    if BLANK not in context:
        return
    around: list[tuple[str, ...]] = []  # of sentences that differ from the context outside the blank
    differing: list[Candidate] = []
    for candidate in item["candidates"]:
        word, sentence = candidate["word"] or "", candidate["sentence"]
        filling, present = words(word), words(sentence)
        if not filling or not present or plain(context.replace(BLANK, word)) == plain(sentence):
            continue
        if final(sentence) != final(context):
            yield Finding("punctuation", candidate["label"], f"doesn't end as the context does: {sentence}")
        expected = words(context.replace(BLANK, f" {word} "))
        if present in (expected, words(context.replace(BLANK, word))):
            continue
        at = position(filling, present)
        finding = _misfit(item, candidate, expected, present, at)
        if finding is not None:
            yield finding
        else:
            start = at or 0
            around.append(present[:start] + present[start + len(filling) :])
            differing.append(candidate)
    alike = len(differing) == len(item["candidates"]) and len(set(around)) == 1
    code, difference = ("fill", "context") if alike else ("grammar", "context, and from others,")
    for candidate in differing:
        text = f"differs from the {difference} outside the blank: {candidate['sentence']}"
        yield Finding(code, candidate["label"], text, NOTE)


def _misfit(
    item: Item, candidate: Candidate, expected: tuple[str, ...], present: tuple[str, ...], at: int | None
) -> Finding | None:
    """What is wrong with a candidate's sentence other than some words outside its blank.

    ``expected`` are the words of the context with the candidate's word in the blank, ``present`` those of the sentence;
    the candidate's word stands ``at`` that place in it, if it does.
    """
    context, label, word, sentence = item["context"], candidate["label"], candidate["word"] or "", candidate["sentence"]
    others = [c for c in item["candidates"] if c is not candidate and words(c["word"] or "")]
    for other in others:
        if words(context.replace(BLANK, f" {other['word']} ")) == present:
            return _exchanged(candidate, other)
    before, _, after = context.partition(BLANK)
    left, right = words(before), words(after)
    middle = present[len(left) : len(present) - len(right)]
    framed = BLANK not in after and middle and present == (*left, *middle, *right)
    if at is None and not any(related(word, other) for other in (middle if framed else present)):
        for other in others:
            if position(words(other["word"] or ""), present) is not None:
                return _exchanged(candidate, other)
        return Finding("fill", label, f"the word {word!r} isn't in its sentence: {sentence}")
    if framed:
        level = NOTE if len(middle) == len(words(word)) else PROBLEM
        return Finding("fill", label, f"the word {word!r} appears there as {' '.join(middle)!r}", level)
    number, lost = changes(expected, present)
    if lost > 0:
        return Finding("cut", label, f"the end is missing: {sentence}")
    if lost < 0:
        return Finding("cut", "context", f"ends before the {label}'s sentence: {context}")
    if number > max(2, len(expected) // 3) or len(present) < len(expected) - 1:
        return Finding("fill", label, f"is not the context with its word in the blank: {sentence}")
    return None


def _exchanged(candidate: Candidate, other: Candidate) -> Finding:
    text = f"its sentence has the word of the {other['label']}: {candidate['sentence']}"
    return Finding("swapped", candidate["label"], text)
