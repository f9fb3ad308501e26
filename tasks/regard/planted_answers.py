"""Texts about women and men with a planted difference in regard and sexism keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.files import tasks_path
from lm_eval_bias.planting import Dial
from lm_eval_bias.tasks.regard.hooks import RegardDocument

# an empty text is left out, and a long one says what a short one does: these two dilute nothing
DILUTING = ("frequency",)
HABITS = (*DILUTING, "length", "refusals")  # nothing has a position
# whom more texts of a kind are about at a positive strength: the benevolent and the hostile half of the stereotype
SIGNS = {"regard": 1.0, "caregiving": 1.0, "sexualization": 1.0, "perpetration": -1.0}


@lru_cache(maxsize=1)
def _texts() -> dict[str, dict[str, Any]]:
    path = tasks_path() / "regard" / "data" / "planted_texts.yaml"
    texts: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return texts


def planted_texts(language: str) -> dict[str, Any]:
    """What the texts of a language are made of: wordings by regard, clauses by facet, and what both have in common."""
    return _texts()[language]


def _gap(doc: RegardDocument, dial: Dial, what: str) -> float:
    """Half of the planted difference between women and men, with the sign of the document's gender.

    It varies between contexts, and the same in both genders' prompts.
    """
    strength = SIGNS[what] * dial.of_content(DILUTING)
    varied = (1.0 - abs(strength)) * dial.noise * dial.effect(what, doc["set"], doc["context"])
    return (strength + varied) / 2.0 * (1.0 if doc["gender"] == "female" else -1.0)


def _regard(doc: RegardDocument, dial: Dial, draw: float) -> str:
    """Positive more often about women by the strength, negative more often about men."""
    neutral = (1.0 - abs(dial.of_content(DILUTING))) * (1.0 - dial.noise) / 3.0
    positive = (1.0 - neutral) / 2.0 + _gap(doc, dial, "regard")
    return "positive" if draw < positive else "neutral" if draw < positive + neutral else "negative"


def _has(doc: RegardDocument, dial: Dial, facet: str, draw: float) -> bool:
    """Whether a text has a keyword: between a quarter and a half of all texts do."""
    largest = abs(dial.of_content(DILUTING))
    largest += (1.0 - largest) * dial.noise
    return draw < (1.0 + largest) / 4.0 + _gap(doc, dial, facet)


def answers(doc: RegardDocument, dial: Dial) -> list[str]:
    """One continuation of the prompt.

    Its regard and each facet's keyword are drawn apart. ``competence`` is the share that ends as sentences do; by
    ``length`` a text is twice as long, by ``frequency`` it is one and the same neutral text without keywords, and a
    refusal is an empty one.
    """
    texts = planted_texts(doc["language"])

    def draw(what: str) -> float:
        return dial.draw(what, doc["prompt"])

    def one_of(listed: Sequence[str], what: str) -> str:
        return listed[int(draw(what) * len(listed))]

    habit = dial.habit(HABITS, doc["prompt"])
    if habit == "refusals":
        return [""]
    facets = ""
    if habit == "frequency":
        said = texts["common"]
    else:
        said = one_of(texts["regard"][_regard(doc, dial, draw("regard"))], "wording")
        facets = "".join(texts["facets"][facet] for facet in FACETS if _has(doc, dial, facet, draw(facet)))
    hour = 1 + int(24 * draw("hour"))
    when = texts["when"].format(day=one_of(texts["days"], "day"), hour=hour, place=one_of(texts["places"], "place"))
    longer = texts["longer"] if habit == "length" else ""
    return [f" {said}{facets}{when}{longer}{'.' if draw('end') < dial.competence else ''}"]


def expected(docs: Sequence[RegardDocument], dial: Dial) -> Mapping[str, float]:
    """The main scores' values; those of regard rest on a classifier that labels all texts as meant."""
    own = {f"{facet}/gap": SIGNS[facet] * dial.strength for facet in FACETS}
    return {"all/negative_gap": -dial.strength, "all/positive_gap": dial.strength, **own}
