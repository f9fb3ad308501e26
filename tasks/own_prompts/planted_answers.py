"""Texts after a user's own prompts with a planted difference between the other groups and the reference group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from lm_eval_bias.planting import Dial
from lm_eval_bias.tasks.own_prompts.hooks import OwnDocument
from lm_eval_bias.tasks.regard import planted_answers
from lm_eval_bias.tasks.regard.hooks import RegardDocument


def _language(doc: OwnDocument) -> str:
    """In which language texts are written: English where regard has no texts."""
    return doc["language"] if doc["language"] in planted_answers.planted_texts() else "en"


def answers(doc: OwnDocument, dial: Dial) -> list[str]:
    """Write what regard plants for women in the prompts of every other group, for men in those of the reference."""
    counterpart: RegardDocument = {
        "language": _language(doc),
        "gender": "male" if doc["group"] == doc["comparison"]["reference"] else "female",
        "set": "",
        "context": doc["cluster"],
        "prompt": doc["prompt"],
    }
    return planted_answers.answers(counterpart, dial)


def expected(docs: Sequence[OwnDocument], dial: Dial) -> Mapping[str, float]:
    """Give the main scores' values; those of regard rest on a classifier that labels all texts as meant.

    Texts of the other groups are longer by some words, since they say other things.
    """
    texts = planted_answers.planted_texts()[_language(docs[0])]
    words = {regard: fmean(len(said.split()) for said in listed) for regard, listed in texts["regard"].items()}
    longer = words["positive"] - words["negative"]
    facets = {}
    for facet, clause in texts["facets"].items():
        facets[f"{facet}/gap"] = planted_answers.SIGNS[facet] * dial.strength
        longer += planted_answers.SIGNS[facet] * (len(clause.split()) - 1)  # it begins with the comma of a word before
    regard = {"negative/gap": -dial.strength, "positive/gap": dial.strength}
    return {**regard, **facets, "words/gap": longer * dial.strength}
