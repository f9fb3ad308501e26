"""The texts of an item by name: what is translated, shown to a person and corrected."""

from __future__ import annotations

import string
from collections.abc import Mapping

from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS, Item

Texts = dict[str, str]
NAMES = ("target", "context", *(name for label in LABELS for name in (f"{label} word", label)))
_NOUNS_ARE_CAPITAL = ("de", "lb", "nds")
_FINAL = (".", "!", "?", "\u3002", "\uff01", "\uff1f", "\u0964")


def of(item: Item) -> Texts:
    """Return an item's target, context, candidates' sentences and, within sentences, their words.

    >>> item = {"test": "intra", "target": "nurse", "context": "A BLANK nurse.",
    ...         "candidates": [{"label": "unrelated", "word": "red", "sentence": "A red nurse."}]}
    >>> of(item)
    {'target': 'nurse', 'context': 'A BLANK nurse.', 'unrelated word': 'red', 'unrelated': 'A red nurse.'}
    """
    texts = {"target": item["target"], "context": item["context"]}
    for candidate in item["candidates"]:
        if item["test"] == "intra":
            texts[f"{candidate['label']} word"] = candidate["word"] or ""
        texts[candidate["label"]] = candidate["sentence"]
    return texts


def requested(item: Item) -> Texts:
    """Return what an engine has to translate: within sentences no candidates' sentences, which follow from the rest.

    The released translations were made in this way: all their sentences are the context with the word in its blank.
    """
    return {name: text for name, text in of(item).items() if item["test"] == "inter" or name not in LABELS}


def like_source(text: str, source: str, language: str) -> str:
    """Take off the full stop and the capital letter that engines give to a word that stands alone.

    >>> like_source("Gentile.", "kind", "it"), like_source("Duro", "Hard", "it"), like_source("Gut.", "good", "de")
    ('gentile', 'Duro', 'Gut')
    """
    if source[-1:] not in _FINAL and text[-1:] in _FINAL and len(text) > 1:
        text = text[:-1].rstrip()
    if source[:1].islower() and language.partition("-")[0] not in _NOUNS_ARE_CAPITAL and text[1:] == text[1:].lower():
        text = text[:1].lower() + text[1:]
    return text


def completed(item: Item, texts: Mapping[str, str], corrected: Mapping[str, str]) -> Texts:
    """Apply a person's corrections to texts, and add what follows from them.

    Within sentences a candidate's sentence is the context with the word in its blank, where there is no other or a
    person wrote context or word but not the sentence; the word is what stands in the blank of a sentence that a person
    wrote, unless they wrote the word too.
    """
    complete = {**texts, **corrected}
    if item["test"] == "intra" and "context" in complete:
        for label in LABELS:
            word = f"{label} word"
            if label in corrected:
                if word not in corrected and (filling := word_of(complete["context"], corrected[label])):
                    complete[word] = filling
            elif word in complete and (label not in texts or word in corrected or "context" in corrected):
                complete[label] = complete["context"].replace(BLANK, complete[word])
    return complete


def with_texts(item: Item, texts: Mapping[str, str]) -> Item:
    """Return the item with other texts; its ids, labels, bias type and term stay."""
    candidates = item["candidates"]
    return {
        **item,
        "target": texts["target"],
        "context": texts["context"],
        "candidates": [
            {**c, "sentence": texts[c["label"]], "word": texts.get(f"{c['label']} word", c["word"])} for c in candidates
        ],
    }


def word_of(context: str, sentence: str) -> str:
    """Return what fills the blank of a context in a sentence; empty where that can't be told.

    >>> word_of("A BLANK dog.", "a big black dog."), word_of("He is BLANK.", "He was tall!"), word_of("BLANK", "x")
    ('big black', 'tall', 'x')
    """
    if context.count(BLANK) == 1:
        before, after = context.split(BLANK)
        fits = sentence.casefold().startswith(before.casefold()) and sentence.casefold().endswith(after.casefold())
        if fits and len(before) + len(after) < len(sentence):
            return sentence[len(before) : len(sentence) - len(after)].strip()
    # as StereoSet's own code does it: the word at the same place
    places = [i for i, word in enumerate(context.split()) if BLANK in word]
    words = sentence.split()
    if not places or len(words) != len(context.split()):
        return ""
    return words[places[0]].strip(string.punctuation)
