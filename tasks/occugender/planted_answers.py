"""A planted stereotype gap in the probabilities of OccuGender's words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_eval_bias.custom_metrics.occugender import DOMINATED
from lm_eval_bias.planting import Dial, log, word_frequency
from lm_eval_bias.tasks.occugender.hooks import OccuGenderDocument

HABITS = ("length", "frequency")  # nothing has a position, and a refusal only takes probability from all words
REFUSAL = "I'm sorry, but as an AI I can't answer that."
OTHER = "No answer."
REFUSED = 1e-3  # what a refusal leaves of the words' probability


def _room(dial: Dial) -> tuple[float, float, float]:
    """Of what goes by content: its bias, how far it varies, and the share of neutral words that has room beside both.

    How far all answers vary doesn't depend on the habits, as long as there is room for it.
    """
    strength = dial.of_content(HABITS)
    content = 1.0 - dial.length - dial.frequency
    spread = min((1.0 - abs(dial.strength)) * dial.noise / content, 1.0 - abs(strength))
    return strength, spread, (1.0 - abs(strength) - spread) / 3.0


def _varied(dial: Dial, doc: OccuGenderDocument, what: str) -> float:
    """What an occupation, a template and the two together make different, from -1 to 1."""
    own = 2.0 * dial.draw(what, doc["kind"], doc["item"], doc["template"]) - 1.0
    return (dial.effect(what, doc["item"]) + dial.effect(what, doc["template"]) + own) / 3.0


def _shares(doc: OccuGenderDocument, dial: Dial) -> tuple[dict[str, float], float]:
    """The shares of the genders in what goes by content, and how much of the probability the words get.

    F - M is the strength after an occupation that women dominate, the strength's opposite after one that men do; it
    varies with occupation, template and both.
    """
    strength, spread, diverse = _room(dial)
    gap = spread * _varied(dial, doc, "gap") + (strength if doc["group"] in DOMINATED else 0.0)
    sign = -1.0 if doc["group"] == "male" else 1.0
    female = (1.0 - diverse + sign * gap) / 2.0
    shares = {"female": female, "male": 1.0 - diverse - female, "diverse": diverse}
    mass = dial.coverage + min(dial.coverage, 1.0 - dial.coverage) * dial.noise * _varied(dial, doc, "coverage")
    return shares, mass


def answers(doc: OccuGenderDocument, dial: Dial) -> list[tuple[float, bool]]:
    """A log-likelihood per word, from the shares of its gender.

    The share of the probability that goes by ``length`` goes to the shortest words, whomever they name, and that by
    ``frequency`` to each word by its frequency.
    """
    shares, mass = _shares(doc, dial)
    if dial.habit(("refusals",), doc["kind"], doc["item"], doc["template"]) == "refusals":
        mass *= REFUSED
    words, genders = doc["words"], doc["genders"]
    shortest = min(map(len, words))
    short = [float(len(word) == shortest) for word in words]
    frequencies = [word_frequency(word) for word in words]
    content = 1.0 - dial.length - dial.frequency
    return [
        (
            log(
                mass
                * (
                    content * shares[gender] / genders.count(gender)
                    + dial.length * is_short / sum(short)
                    + dial.frequency * frequency / sum(frequencies)
                )
            ),
            False,
        )
        for gender, is_short, frequency in zip(genders, short, frequencies, strict=True)
    ]


def texts(doc: OccuGenderDocument, dial: Dial) -> list[str]:
    """One sample of the answer: a word of a gender drawn from the prompt's shares, another text, or a refusal."""
    shares, mass = _shares(doc, replace(dial, sample=0))  # a prompt's shares are those of all its samples
    place = (doc["kind"], doc["item"], doc["template"])
    habit = dial.habit(("refusals",), "text", *place)
    if habit == "refusals":
        return [REFUSAL]
    if dial.draw("answered", *place) > mass:
        return [OTHER]
    words, genders = doc["words"], doc["genders"]
    content = 1.0 - dial.length - dial.frequency
    least = min(map(len, words))
    shortest = {word for word in words if len(word) == least}
    by_frequency = sum(map(word_frequency, words))
    weights = [
        content * shares[gender] / genders.count(gender)
        + dial.length * (word in shortest) / len(shortest)
        + dial.frequency * word_frequency(word) / by_frequency
        for word, gender in zip(words, genders, strict=True)
    ]
    left = dial.draw("word", *place) * sum(weights)
    for word, weight in zip(words, weights, strict=True):
        left -= weight
        if left < 0:
            return [f" {word}."]
    return [f" {words[-1]}."]


def expected(docs: Sequence[OccuGenderDocument], dial: Dial) -> Mapping[str, float]:
    """The main scores' values.

    The correlation is that of endlessly many templates: the gap's part of the variance of P~_f over occupations, times
    the correlation of the gap's sign with the labour statistics; ``nan`` where nothing varies.
    """
    import numpy as np

    strength, spread, diverse = _room(replace(dial, length=0.0, frequency=0.0))
    share = 50.0 * (1.0 - diverse + strength)
    labour = {doc["item"]: (float(doc["female_share"]), doc["group"]) for doc in docs}
    statistics = np.array([own for own, _ in labour.values()])
    signs = np.array([{"female": 1.0, "male": -1.0}.get(group, 0.0) for _, group in labour.values()])
    # an occupation's part of P~_f's deviation is uniform within ± spread / 6
    deviation = math.hypot(strength / 2.0 * float(signs.std()), spread / 6.0 / math.sqrt(3.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = strength / 2.0 * float(np.mean((signs - signs.mean()) * (statistics - statistics.mean())))
        pearson = float(np.float64(covariance) / (deviation * statistics.std()))
    return {
        "stereotype_gap": strength,
        "female_dominated_F": share,
        "male_dominated_M": share,
        "labour_pearson": pearson,
        "coverage": dial.coverage,
    }


def expected_of_texts(docs: Sequence[OccuGenderDocument], dial: Dial) -> Mapping[str, float]:
    """The same of drawn answers; the correlation is that of endlessly many samples, too."""
    values = dict(expected(docs, dial))
    return {**values, "unanswered": 1.0 - values.pop("coverage")}
