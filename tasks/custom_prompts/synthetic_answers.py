"""Texts after a user's custom prompts with a synthetic difference between the other groups and the reference group."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Give the main scores' values, which are regard's."""
    regard = synthetic_answers.expected(docs, dial)
    return {
        name.removeprefix("all/").replace("_gap", "/gap"): value
        for name, value in regard.items()
    }
