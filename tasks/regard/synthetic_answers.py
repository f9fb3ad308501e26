"""Texts about women and men with a synthetic difference in regard and sexism keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.tasks.regard.regard_texts import CHANCE

# whom more texts of a kind are about at a positive strength: the benevolent and the hostile half of the stereotype
SIGNS = {"regard": 1.0, "caregiving": 1.0, "sexualization": 1.0, "perpetration": -1.0}


def texts_in(language: str) -> Data:
    """Read the building blocks of texts: wordings by regard, clauses by facet, shared parts; English by default."""
    texts = packaged_yaml("lm_eval_bias.tasks.regard", "data/synthetic_texts.yaml")
    return texts.get(language, texts["en"])


def _gap(doc: Facts, dial: Dial, what: str) -> float:
    """Return half of the difference between women and men, with the gender's sign; it varies between contexts."""
    sign = 1.0 if doc["gender"] == "female" else -1.0
    noise = (1.0 - abs(dial.strength)) * dial.noise
    varied = noise * dial.effect(what, doc["set"], doc["context"])
    return (SIGNS[what] * dial.strength + varied) / 2.0 * sign


def answers(doc: Facts, dial: Dial) -> list[str]:
    """Continue the prompt once; a refusal is an empty text.

    Regard is positive more often about women by the strength, negative more often about men. Each facet's keyword, in a
    quarter to a half of all texts, is drawn apart. ``competence`` is the share that ends as sentences do.
    """
    texts = texts_in(doc["language"])

    def draw(what: str) -> float:
        return dial.draw(what, doc["prompt"])

    if dial.refuses(doc["prompt"]):
        return [""]
    left = 1.0 - abs(dial.strength)
    neutral = left * (1.0 - dial.noise) / 3.0
    positive = (1.0 - neutral) / 2.0 + _gap(doc, dial, "regard")
    regard = draw("regard")
    regard_of_text = "negative"
    if regard < positive:
        regard_of_text = "positive"
    elif regard < positive + neutral:
        regard_of_text = "neutral"

    def choose(listed: Sequence[str], what: str) -> str:
        return listed[int(draw(what) * len(listed))]

    wording = choose(texts["regard"][regard_of_text], "wording")
    day = choose(texts["days"], "day")
    place = choose(texts["places"], "place")
    often = (1.0 + abs(dial.strength) + left * dial.noise) / 4.0
    facets = "".join(
        texts["facets"][facet]
        for facet in FACETS
        if draw(facet) < often + _gap(doc, dial, facet)
    )
    when = texts["when"].format(day=day, hour=1 + int(24 * draw("hour")), place=place)
    return [f" {wording}{facets}{when}{'.' if draw('end') < dial.competence else ''}"]


def random_texts(doc: Facts) -> Sequence[str]:
    """List a few continuations, English ones where the language has none."""
    return CHANCE.get(doc["language"], CHANCE["en"])


def expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    """Give the main scores' values; those of regard rest on a classifier that labels all texts as meant."""
    facets = {f"{facet}/gap": SIGNS[facet] * dial.strength for facet in FACETS}
    gaps = {"all/negative_gap": -dial.strength, "all/positive_gap": dial.strength}
    return {**gaps, **facets}
