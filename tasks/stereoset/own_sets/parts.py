"""The texts of an item by name: what is translated, shown to a person and corrected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets.sets import word_of
from lm_eval_bias.tasks.stereoset.released_sets import LABELS, Item

Parts = dict[str, str]
WORD = "{} word"
NAMES = ("target", "context", *(name for label in LABELS for name in (WORD.format(label), label)))
_NOUNS_ARE_CAPITAL = ("de", "lb", "nds")
_FINAL = (".", "!", "?", "\u3002", "\uff01", "\uff1f", "\u0964")


def of(item: Item) -> Parts:
    """An item's target, context, candidates' sentences and, within sentences, their words.

    >>> item = {"test": "intra", "target": "nurse", "context": "A BLANK nurse.",
    ...         "candidates": [{"label": "unrelated", "word": "red", "sentence": "A red nurse."}]}
    >>> of(item)
    {'target': 'nurse', 'context': 'A BLANK nurse.', 'unrelated word': 'red', 'unrelated': 'A red nurse.'}
    """
    found = {"target": item["target"], "context": item["context"]}
    for candidate in item["candidates"]:
        if item["test"] == "intra":
            found[WORD.format(candidate["label"])] = candidate["word"]
        found[candidate["label"]] = candidate["sentence"]
    return found


def asked(item: Item) -> Parts:
    """What an engine is asked for: within sentences not the candidates' sentences, which follow from context and word.

    The released translations were made in this way: all their sentences are the context with the word in its blank.
    """
    intra = item["test"] == "intra"
    return {name: text for name, text in of(item).items() if not (intra and name in LABELS)}


def translated(item: Item, memory: Mapping[str, str], language: str, as_they_are: bool) -> Parts:
    """The translations of an item's texts that there are.

    Args:
        item: The source.
        memory: Translation by source text.
        language: Of the translation.
        as_they_are: A person made them. An engine's target and words, which it was asked for without a sentence, lose a
            full stop and a capital letter that the source doesn't have (not the letter where nouns have one).
    """
    found = {name: memory[text] for name, text in asked(item).items() if text in memory}
    if not as_they_are:
        for name, text in asked(item).items():
            if name in found and (name == "target" or name.endswith(WORD.format(""))):
                found[name] = _like_the_source(found[name], text, language)
    return found


def _like_the_source(text: str, source: str, language: str) -> str:
    if source[-1:] not in _FINAL and text[-1:] in _FINAL and len(text) > 1:
        text = text[:-1].rstrip()
    if source[:1].islower() and language.partition("-")[0] not in _NOUNS_ARE_CAPITAL and text[1:] == text[1:].lower():
        text = text[:1].lower() + text[1:]
    return text


def completed(item: Item, found: Mapping[str, str], corrected: Mapping[str, str]) -> Parts:
    """Texts with a person's corrections, and what follows from them.

    Within sentences a candidate's sentence is the context with the word in its blank, where there is no other or a
    person wrote context or word but not the sentence; the word is what stands in the blank of a sentence that a person
    wrote, unless they wrote the word too.
    """
    made = {**found, **corrected}
    if item["test"] == "intra" and "context" in made:
        for label in LABELS:
            word = WORD.format(label)
            if label in corrected:
                if word not in corrected and (told := word_of(made["context"], corrected[label])):
                    made[word] = told
            elif word in made and (label not in found or word in corrected or "context" in corrected):
                made[label] = made["context"].replace(BLANK, made[word])
    return made


def with_texts(item: Item, texts: Mapping[str, str]) -> Item:
    """The item with other texts; its ids, labels, bias type and term stay."""
    made: dict[str, Any] = {**item, "target": texts["target"], "context": texts["context"]}
    made["candidates"] = [
        {**c, "sentence": texts[c["label"]], "word": texts.get(WORD.format(c["label"]), c["word"])}
        for c in item["candidates"]
    ]
    return made
