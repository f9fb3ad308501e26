"""A planted diff-bias in the answers to the BBQ family's questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lm_eval_bias.custom_metrics.question_answering import Terms
from lm_eval_bias.planting import HABITS, Dial, log, word_frequency
from lm_eval_bias.tasks.question_records import UNKNOWN, Question

Prompt = Callable[[Any], str]


def _by_content(doc: Question, dial: Dial, *item: str) -> int:
    """The answer of a model with the planted accuracy and bias, which vary between templates.

    Ambiguous: "no answer" with the accuracy's probability, else the biased person more often than the other by the
    strength. Disambiguated: right more often in biased contexts than in counter-biased ones by the strength.
    """
    template, draw = doc["template"], dial.draw("answer", *item)
    unknown, biased = doc["groups"].index(UNKNOWN), doc["biased_choice"]
    counter = 3 - unknown - biased
    right = dial.competence
    if doc["context_type"] == "ambiguous":
        strength = dial.of_content(HABITS, 1.0 - right)
        room = dial.noise * (1.0 - right - abs(strength)) / 2.0
        knows = right + min(right, room) * dial.effect("knows", template)
        leans = strength + room * dial.effect("leans", template)
        return unknown if draw < knows else biased if draw < knows + (1.0 - knows + leans) / 2.0 else counter
    strength = dial.of_content(HABITS, 2.0 * min(right, 1.0 - right))
    room = dial.noise * (min(right, 1.0 - right) - abs(strength) / 2.0) / 2.0
    knows = right + room * dial.effect("finds", template)
    leans = strength / 2.0 + room * dial.effect("follows", template)
    if draw < knows + (leans if doc["label"] == biased else -leans):
        return doc["label"]
    return unknown if dial.draw("wrong", *item) < 0.5 else 3 - unknown - doc["label"]


def chosen(doc: Question, dial: Dial, prompt: Prompt) -> int | None:
    """The index of the answer; ``None`` for a refusal.

    Args:
        doc: The document.
        dial: What is planted.
        prompt: Gives a document's prompt.
    """
    item = (prompt(doc), *doc["choices"])
    choices = range(len(doc["choices"]))
    match dial.habit(HABITS, *item):
        case "position":
            return doc["order"][0]
        case "length":
            return min(choices, key=lambda i: (len(doc["choices"][i]), dial.draw("tie", i, *item)))
        case "frequency":
            return max(choices, key=lambda i: word_frequency(doc["choices"][i]))
        case "refusals":
            return None
    return _by_content(doc, dial, *item)


def answers(doc: Question, dial: Dial, *, prompt: Prompt, refusal: str) -> list[tuple[float, bool]] | list[str]:
    """A log-likelihood per choice, equal ones for a refusal; or the text of an answer.

    The answer's is so high that it stays the highest when it is divided by the choice's length.

    Args:
        doc: The document.
        dial: What is planted.
        prompt: Gives a document's prompt.
        refusal: A text that refuses.
    """
    choice = chosen(doc, dial, prompt)
    if dial.writes:
        return [refusal if choice is None else doc["choices"][choice]]
    return [(log(0.998 if i == choice else 0.001), False) for i in range(len(doc["choices"]))]


def expected(docs: Sequence[Question], dial: Dial, *, terms: Terms) -> Mapping[str, float]:
    """The main scores' values. Where more contexts are counter-biased than biased, a bias takes accuracy with it.

    Args:
        docs: Documents.
        dial: What is planted.
        terms: What the paper calls its scores.
    """
    directions = [1 if d["label"] == d["biased_choice"] else -1 for d in docs if d["context_type"] == "disambiguated"]
    return {
        terms.name("acc", "amb"): dial.competence,
        terms.name("acc", "disamb"): dial.competence + dial.strength / 2.0 * sum(directions) / max(len(directions), 1),
        terms.name("diff_bias", "amb"): dial.strength,
        terms.name("diff_bias", "disamb"): dial.strength,
    }


def expected_of_wordings(docs: Sequence[Question], dial: Dial, *, terms: Terms) -> Mapping[str, float]:
    """The same for the means over prompt wordings."""
    return {f"{name}/mean": value for name, value in expected(docs, dial, terms=terms).items()}
