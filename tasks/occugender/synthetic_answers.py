"""A synthetic stereotype gap in the probabilities of OccuGender's words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.custom_metrics.occugender import DOMINATED

REFUSAL = "I'm sorry, but as an AI I can't answer that."
OTHER = "No answer."
REFUSED = 1e-3  # what a refusal leaves of the words' probability
COVERAGE = 0.5  # the words' probability


def _room(dial: Dial) -> tuple[float, float]:
    """Return the spread of the bias, and the share of neutral words that it leaves room for."""
    spread = (1.0 - abs(dial.strength)) * dial.noise
    return spread, (1.0 - abs(dial.strength) - spread) / 3.0


def _shares(doc: Facts, dial: Dial) -> tuple[list[float], float]:
    """Return each word's share among the words (F - M is ± the strength), and the probability of all words."""

    def varied(what: str) -> float:
        drawn = 2.0 * dial.draw(what, doc["kind"], doc["item"], doc["template"]) - 1.0
        return (
            dial.effect(what, doc["item"]) + dial.effect(what, doc["template"]) + drawn
        ) / 3.0

    spread, diverse = _room(dial)
    gap = spread * varied("gap") + (dial.strength if doc["group"] in DOMINATED else 0.0)
    female = (1.0 - diverse + (-gap if doc["group"] == "male" else gap)) / 2.0
    shares = {"female": female, "male": 1.0 - diverse - female, "diverse": diverse}
    mass = COVERAGE + min(COVERAGE, 1.0 - COVERAGE) * dial.noise * varied("coverage")
    return [
        shares[gender] / doc["genders"].count(gender) for gender in doc["genders"]
    ], mass


def random_texts(doc: Facts) -> Sequence[str]:
    """List the first word of each gender."""
    return list(
        dict(
            zip(reversed(doc["genders"]), reversed(doc["words"]), strict=True)
        ).values()
    )


def answers(doc: Facts, dial: Dial) -> list[tuple[float, bool]] | list[str]:
    """Give a log-likelihood per word, from the shares of its gender; or one sample of the text."""
    place = (doc["kind"], doc["item"], doc["template"])
    shares, mass = _shares(
        doc, replace(dial, sample=0)
    )  # a prompt's shares are those of all its samples
    if not dial.writes:
        mass *= REFUSED if dial.refuses(*place) else 1.0
        return [(math.log(max(mass * share, 1e-304)), False) for share in shares]
    if dial.refuses("text", *place):
        return [REFUSAL]
    if dial.draw("answered", *place) > mass:
        return [OTHER]
    left = dial.draw("word", *place) * sum(shares)
    for word, share in zip(doc["words"], shares, strict=True):
        left -= share
        if left < 0:
            return [f" {word}."]
    return [f" {doc['words'][-1]}."]


def expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    """Give the main scores' values; the correlation is that of endlessly many templates and samples."""
    import numpy as np

    strength, (spread, diverse) = dial.strength, _room(dial)
    share = 50.0 * (1.0 - diverse + strength)
    labour = {doc["item"]: (float(doc["female_share"]), doc["group"]) for doc in docs}
    signs = np.array(
        [{"female": 1.0, "male": -1.0}.get(group, 0.0) for _, group in labour.values()]
    )
    synthetic = strength / 2.0 * signs.std()
    # an occupation's part of P~_f's deviation is uniform within ± spread / 6
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.corrcoef(signs, [women for women, _ in labour.values()])[0, 1]
        pearson = float(
            correlation * synthetic / np.hypot(synthetic, spread / 6.0 / math.sqrt(3.0))
        )
    return {
        "stereotype_gap": strength,
        "female_dominated_F": share,
        "male_dominated_M": share,
        "labour_pearson": pearson,
        "coverage": 100 * COVERAGE,
        "unanswered": 1.0 - COVERAGE,
        "unclear": 1.0 - COVERAGE,
    }
