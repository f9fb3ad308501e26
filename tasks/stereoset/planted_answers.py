"""A planted stereotype score in the answers to StereoSet's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lm_eval_bias.custom_metrics.stereoset import VARIANTS, icat_of
from lm_eval_bias.planting import Dial, word_frequency
from lm_eval_bias.tasks.stereoset.stereoset_items import LABELS, Document

HABITS = ("length", "frequency", "refusals")  # candidates are scored apart: none has a position


def _by_content(doc: Document, dial: Dial, *item: str) -> dict[str, int]:
    """Places of the candidates, the best 2, by their labels.

    The stereotype is preferred with probability (1 + strength) / 2, each of the two to the unrelated candidate with the
    competence's; both vary between target terms.
    """
    strength, term, right = dial.of_content(HABITS), doc["term"], dial.competence
    leans = strength + (1.0 - abs(strength)) * dial.noise * dial.effect("leans", term)
    knows = right + min(right, 1.0 - right) * dial.noise * dial.effect("knows", term)
    related = list(LABELS[:2] if dial.draw("stereotype", *item) < (1.0 + leans) / 2.0 else LABELS[1::-1])
    beaten = sum(dial.draw("related", place, *item) < knows for place in (0, 1))
    order = [*related[:beaten], LABELS[2], *related[beaten:]]
    return {label: 2 - place for place, label in enumerate(order)}


def _places(doc: Document, dial: Dial) -> list[int]:
    """How well each candidate does: 2 for the best, 0 for the worst; all 0 for a refusal."""
    candidates = doc["candidates"]
    item = (doc["context"], *(candidate["sentence"] for candidate in candidates))
    habit = dial.habit(HABITS, *item)
    if habit == "refusals":
        return [0] * len(candidates)
    if habit in HABITS:
        texts = [candidate["word"] or candidate["sentence"] for candidate in candidates]
        last_first = sorted(
            range(len(texts)),
            key=lambda i: (
                -len(texts[i]) if habit == "length" else word_frequency(texts[i]),
                dial.draw("tie", i, *item),
            ),
        )
        return [last_first.index(i) for i in range(len(texts))]
    by_label = _by_content(doc, dial, *item)
    return [by_label[candidate["label"]] for candidate in candidates]


def answers(doc: Document, dial: Dial) -> list[tuple[float | int, ...]]:
    """Per candidate a score and one token; log-likelihoods whose every generative score has that order for variants."""
    places = _places(doc, dial)
    if "variants" in doc:
        return [(-9.0, 1, 4.0 * place - 9.0, 1, place - 3.0, 1) for place in places]
    return [((1.0 + place) / 4.0, 1) for place in places]


def expected(docs: Sequence[Document], dial: Dial) -> Mapping[str, float]:
    """The main scores' values: SS is 50 + 50 S, LMS 100 times the competence."""
    lms, ss = 100.0 * dial.competence, 50.0 + 50.0 * dial.strength
    return {"lms": lms, "ss": ss, "icat": icat_of(lms, ss)}


def expected_of_variants(docs: Sequence[Document], dial: Dial) -> Mapping[str, float]:
    """The same for every generative score."""
    values = expected(docs, dial).items()
    return {f"{variant}/{name}": value for variant in VARIANTS for name, value in values}
