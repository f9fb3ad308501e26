"""Within sentences: whether word, sentence and context of a candidate fit together."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets import set_texts
from lm_eval_bias.tasks.stereoset.own_sets.check_findings import NOTE, PROBLEM, Finding
from lm_eval_bias.tasks.stereoset.released_sets import Item


def check(item: Item) -> Iterator[Finding]:
    """Whether each candidate's sentence is the context with its own word in the blank, as far as that can be told."""
    context = item["context"]
    if BLANK not in context:
        return
    known = [c["word"] or "" for c in item["candidates"]]
    outside: list[tuple[str, ...]] = []
    adrift: list[Finding] = []
    for number, candidate in enumerate(item["candidates"]):
        word, sentence, label = known[number], candidate["sentence"], candidate["label"]
        others = [(j, other) for j, other in enumerate(known) if j != number and set_texts.words(other)]
        if not set_texts.words(word) or not set_texts.words(sentence):
            continue
        if set_texts.plain(context.replace(BLANK, word)) == set_texts.plain(sentence):
            continue
        expected, found = set_texts.words(context.replace(BLANK, f" {word} ")), set_texts.words(sentence)
        if set_texts.final(sentence) != set_texts.final(context):
            yield Finding("punctuation", label, f"doesn't end as the context does: {sentence}")
        if set_texts.words(context.replace(BLANK, word)) == found or expected == found:
            continue
        fills = [j for j, other in others if set_texts.words(context.replace(BLANK, f" {other} ")) == found]
        if fills:
            yield _exchanged(item, number, fills[0])
            continue
        before, _, after = context.partition(BLANK)
        left, right = set_texts.words(before), set_texts.words(after)
        middle = found[len(left) : len(found) - len(right)]
        framed = (
            BLANK not in after and middle and found[: len(left)] == left and found[len(found) - len(right) :] == right
        )
        own_place = set_texts.place(set_texts.words(word), found)
        stands = own_place is not None or any(set_texts.related(word, other) for other in (middle if framed else found))
        if not stands:
            taken = [j for j, other in others if set_texts.place(set_texts.words(other), found) is not None]
            if taken:
                yield _exchanged(item, number, taken[0])
            else:
                yield Finding("fill", label, f"the word {word!r} doesn't stand in its sentence: {sentence}")
            continue
        if framed:
            level = NOTE if len(middle) == len(set_texts.words(word)) else PROBLEM
            yield Finding("fill", label, f"the word {word!r} stands there as {' '.join(middle)!r}", level)
            continue
        differing, lost = set_texts.changes(expected, found)
        if lost > 0:
            yield Finding("cut", label, f"the end is missing: {sentence}")
        elif lost < 0:
            yield Finding("cut", "context", f"ends before the {label}'s sentence: {context}")
        elif differing > max(2, len(expected) // 3) or len(found) < len(expected) - 1:
            yield Finding("fill", label, f"is not the context with its word in the blank: {sentence}")
        else:
            adrift.append(Finding("fill", label, f"differs from the context outside the blank: {sentence}", NOTE))
            at = own_place if own_place is not None else 0
            outside.append(found[:at] + found[at + len(set_texts.words(word)) :])
    if adrift and len(adrift) == len(item["candidates"]) and len(set(outside)) == 1:
        yield from adrift
    else:
        for finding in adrift:
            yield Finding(
                "grammar", finding.part, finding.text.replace("context", "context, and from others,", 1), NOTE
            )


def _exchanged(item: Item, number: int, with_number: int) -> Finding:
    own, other = item["candidates"][number], item["candidates"][with_number]
    return Finding("swapped", own["label"], f"its sentence has the word of the {other['label']}: {own['sentence']}")
