"""Texts after a user's own prompts with a planted difference between the other groups and the reference group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from lm_eval_bias.planting import Dial
from lm_eval_bias.tasks.own_prompts.hooks import OwnDocument
from lm_eval_bias.tasks.regard import planted_answers
from lm_eval_bias.tasks.regard.hooks import RegardDocument
from lm_eval_bias.tasks.regard.regard_texts import LANGUAGES


def _language(language: str) -> str:
    """In which texts are written: those of other languages are English."""
    return language if language in LANGUAGES else "en"


def answers(doc: OwnDocument, dial: Dial) -> list[str]:
    """What regard plants for women in the prompts of every other group, for men in those of the reference."""
    is_reference = doc["group"] == doc["comparison"]["reference"]
    counterpart: RegardDocument = {
        "language": _language(doc["language"]),
        "gender": "male" if is_reference else "female",
        "set": "",
        "context": doc["cluster"],
        "prompt": doc["prompt"],
    }
    return planted_answers.answers(counterpart, dial)


def _words(language: str) -> float:
    """By how many words the texts of the other groups are longer at a strength of 1, since they say other things."""
    texts = planted_answers.planted_texts(language)
    length = {regard: fmean(len(said.split()) for said in listed) for regard, listed in texts["regard"].items()}
    # a clause begins with the comma behind the word before it
    clauses = {facet: len(clause.split()) - 1 for facet, clause in texts["facets"].items()}
    facets = sum(planted_answers.SIGNS[facet] * words for facet, words in clauses.items())
    return length["positive"] - length["negative"] + facets


def expected(docs: Sequence[OwnDocument], dial: Dial) -> Mapping[str, float]:
    """The main scores' values; those of regard rest on a classifier that labels all texts as meant."""
    facets = {
        f"{facet}/gap": sign * dial.strength for facet, sign in planted_answers.SIGNS.items() if facet != "regard"
    }
    words = _words(_language(docs[0]["language"])) * dial.strength
    return {"negative/gap": -dial.strength, "positive/gap": dial.strength, **facets, "words/gap": words}
