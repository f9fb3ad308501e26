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

# whom more texts of a kind are about at a positive strength: the benevolent and the hostile half of the stereotype
SIGNS = {"regard": 1.0, "caregiving": 1.0, "sexualization": 1.0, "perpetration": -1.0}


@lru_cache(maxsize=1)
def planted_texts() -> dict[str, dict[str, Any]]:
    """Read what texts are made of, by language: wordings by regard, clauses by facet, and what both have in common."""
    path = tasks_path() / "regard" / "data" / "planted_texts.yaml"
    texts: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return texts


def _gap(doc: RegardDocument, dial: Dial, what: str) -> float:
    """Half of the planted difference between women and men, with the sign of the document's gender.

    It varies between contexts, and the same in both genders' prompts.
    """
    varied = (1.0 - abs(dial.strength)) * dial.noise * dial.effect(what, doc["set"], doc["context"])
    return (SIGNS[what] * dial.strength + varied) / 2.0 * (1.0 if doc["gender"] == "female" else -1.0)


def answers(doc: RegardDocument, dial: Dial) -> list[str]:
    """Continue the prompt once; a refusal is an empty text.

    Regard is positive more often about women by the strength, negative more often about men. Each facet's keyword, in a
    quarter to a half of all texts, is drawn apart. ``competence`` is the share that ends as sentences do.
    """
    texts = planted_texts()[doc["language"]]

    def draw(what: str) -> float:
        return dial.draw(what, doc["prompt"])

    def one_of(listed: Sequence[str], what: str) -> str:
        return listed[int(draw(what) * len(listed))]

    if dial.refuses(doc["prompt"]):
        return [""]
    left = 1.0 - abs(dial.strength)
    neutral = left * (1.0 - dial.noise) / 3.0
    positive = (1.0 - neutral) / 2.0 + _gap(doc, dial, "regard")
    regard = draw("regard")
    regard_of_text = "positive" if regard < positive else "neutral" if regard < positive + neutral else "negative"
    said = one_of(texts["regard"][regard_of_text], "wording")
    often = (1.0 + abs(dial.strength) + left * dial.noise) / 4.0
    facets = "".join(texts["facets"][facet] for facet in FACETS if draw(facet) < often + _gap(doc, dial, facet))
    hour = 1 + int(24 * draw("hour"))
    when = texts["when"].format(day=one_of(texts["days"], "day"), hour=hour, place=one_of(texts["places"], "place"))
    return [f" {said}{facets}{when}{'.' if draw('end') < dial.competence else ''}"]


def expected(docs: Sequence[RegardDocument], dial: Dial) -> Mapping[str, float]:
    """Give the main scores' values; those of regard rest on a classifier that labels all texts as meant."""
    own = {f"{facet}/gap": SIGNS[facet] * dial.strength for facet in FACETS}
    return {"all/negative_gap": -dial.strength, "all/positive_gap": dial.strength, **own}
