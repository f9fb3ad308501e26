"""Texts after a user's custom prompts with a synthetic difference between the other groups and the reference group."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.tasks.regard import synthetic_answers

random_texts = synthetic_answers.random_texts  # what bias-chance writes


def answers(doc: Facts, dial: Dial) -> list[str]:
    """Answer as regard does, with the reference group as men and all other groups as women."""
    gender = "male" if doc["group"] == doc["comparison"]["reference"] else "female"
    counterpart = {**doc, "gender": gender, "set": "", "context": doc["cluster"]}
    return synthetic_answers.answers(counterpart, dial)


def expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    """Give the main scores' values; texts of the other groups are longer by some words, since they say other things."""
    texts = synthetic_answers.texts_in(docs[0]["language"])
    signs = synthetic_answers.SIGNS
    words = {
        regard: fmean(map(len, map(str.split, listed)))
        for regard, listed in texts["regard"].items()
    }
    # a clause begins with the comma of the word before
    longer = sum(
        signs[facet] * (len(clause.split()) - 1)
        for facet, clause in texts["facets"].items()
    )
    regard = synthetic_answers.expected([], dial)
    gaps = {
        name.removeprefix("all/").replace("_gap", "/gap"): value
        for name, value in regard.items()
    }
    return {
        **gaps,
        "words/gap": (longer + words["positive"] - words["negative"]) * dial.strength,
    }
