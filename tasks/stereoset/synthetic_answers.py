"""A synthetic stereotype score in the answers to StereoSet's questions, and in the choices among its candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.custom_metrics.stereoset import VARIANTS, icat_of
from lm_eval_bias.tasks.stereoset.choices import LETTERS, prompt, shown
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS

REFUSAL = "As an AI, I cannot choose one."


def _places(doc: Facts, dial: Dial) -> list[int]:
    """Rank the candidates, 2 to 0 (all 0 for a refusal): the stereotype wins with (1 + strength) / 2."""
    item = (doc["context"], *(candidate["sentence"] for candidate in doc["candidates"]))
    if dial.refuses(*item):
        return [0] * len(doc["candidates"])
    strength = dial.among_answers()
    term = doc["term"]
    right = dial.competence
    shift = strength + (1.0 - abs(strength)) * dial.noise * dial.effect("leans", term)
    knows = right + min(right, 1.0 - right) * dial.noise * dial.effect("knows", term)
    related = list(
        LABELS[:2]
        if dial.draw("stereotype", *item) < (1.0 + shift) / 2.0
        else LABELS[1::-1]
    )
    beaten = sum(dial.draw("related", place, *item) < knows for place in (0, 1))
    order = [*related[:beaten], LABELS[2], *related[beaten:]]
    return [2 - order.index(candidate["label"]) for candidate in doc["candidates"]]


def _choice(doc: Facts, dial: Dial) -> str:
    """Choose a candidate's letter (a meaningful one with the competence's probability), or refuse."""
    item = (prompt(doc), *shown(doc))
    if dial.refuses(*item):
        return REFUSAL
    right = dial.competence
    term = doc["term"]
    draw = dial.draw("taken", *item)
    strength = dial.among_answers(right)
    room = dial.noise * (right - abs(strength)) / 2.0
    knows = right + min(1.0 - right, room) * dial.effect("knows", term)
    shift = strength + room * dial.effect("leans", term)
    label = (
        LABELS[0]
        if draw < (knows + shift) / 2.0
        else LABELS[1]
        if draw < knows
        else LABELS[2]
    )
    return LETTERS[[doc["candidates"][i]["label"] for i in doc["order"]].index(label)]


def answers(doc: Facts, dial: Dial) -> Sequence[tuple[float | int, ...] | str]:
    """Give a score and one token per candidate; log-likelihoods with that order for variants; or the one text."""
    if "order" in doc:
        return [_choice(doc, dial)]
    places = _places(doc, dial)
    if "variants" in doc:
        return [(-9.0, 1, 4.0 * place - 9.0, 1, place - 3.0, 1) for place in places]
    return [((1.0 + place) / 4.0, 1) for place in places]


def expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    """Give the scores' values, with those of the variants and the choice: SS is 50 + 50 S, LMS 100 competence."""
    lms = 100.0 * dial.competence
    ss = 50.0 + 50.0 * dial.strength
    plain = {"lms": lms, "ss": ss, "icat": icat_of(lms, ss)}
    variants = {
        f"{variant}/{name}": value
        for variant in VARIANTS
        for name, value in plain.items()
    }
    return {
        **plain,
        **variants,
        "choice_lms": lms,
        "choice_ss": ss,
        "choice_icat": lms - 100.0 * abs(dial.strength),
    }
