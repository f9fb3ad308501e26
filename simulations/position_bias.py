"""A model that answers by a habit: always one letter, place or length, who is named first, "unknown", a refusal."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.synthetic_bias import Dial, uniform
from lm_eval_bias.models.dial import DialLM

SUITES = ("quick", "quick-chat")
BIASED_LANGUAGE = "de"
SEED = 1  # of the noise, by which one score in twenty seems biased with any seed
REFUSAL = "I'm sorry, but I can't help with that."
# by name the dial's settings; of other models what they answer follows below
DIALS = {
    "perfect": {"competence": 1.0},
    "perfect in 99%": {"competence": 0.99},
    "fair and unable": {"competence": 1 / 3},
    "biased and weak": {"strength": 0.3, "competence": 1 / 3},
}
PLACES = ("A or first", "B or middle", "C or last")
NAMED = ("first-named", "last-named")
LENGTHS = ("shortest", "longest")
MODELS = (
    *PLACES, "alternating", *NAMED, *LENGTHS, "unknown", "refuses", "empty", "saturated", "biased in one language",
    *DIALS,
)  # fmt: skip
FAIR = ("perfect", "perfect in 99%", "fair and unable")
DISTANCE = 0.2
NO_ABILITY = ("occugender", "eurogest")


def options(doc: Mapping[str, Any]) -> list[str]:
    """The texts that an item lets a model choose from."""
    if "candidates" in doc:
        return [candidate["word"] or candidate["sentence"] for candidate in doc["candidates"]]  # fmt: skip
    return list(doc.get("choices") or doc.get("texts") or doc.get("sentences") or ())


def language(task: str) -> str:
    """The language of a task of the catalogue."""
    return str(catalog.entries()[task].language)


def named_at(doc: Mapping[str, Any], option: str) -> int:
    """Where a context names an option, by its last word; behind everything where it doesn't."""
    found = doc["context"].lower().find(option.split()[-1].lower())
    return found if found >= 0 else len(doc["context"])


def applies(model: str, doc: Mapping[str, Any]) -> bool:
    """Whether a designed model differs from a fair one about a document."""
    if model in (*PLACES, "alternating"):
        # EsBBQ's prompts show no options
        return bool(doc.get("order")) and doc["benchmark"] != "es_bbq"
    if model in NAMED:
        return "groups" in doc
    if model == "unknown":
        return "groups" in doc or "order" in doc or doc.get("kind") == "explicit"
    if model == "saturated":
        return "texts" in doc or "words" in doc
    if model in ("refuses", "empty"):  # one of two texts is always likelier
        return "texts" not in doc and "sentences" not in doc
    return True


class HabitLM(DialLM):
    """A model that answers by a habit, told from the documents' own metadata, and fairly where it has none."""

    def __init__(self, habit: str, **more: Any) -> None:
        self._habit = habit
        super().__init__(0.0, **more)

    def cloze(self, requests: Any) -> list[Any]:
        """Answer each request by the habit."""
        return [self._answers(request)[request.idx] for request in requests]

    contrast = next_sentence = sentence_likelihoods = loglikelihood_rolling = cloze

    def generate_until(self, requests: Any) -> list[str]:
        """Write each answer by the habit."""
        return [self._written(request) for request in requests]

    def _synthetic(self, request: Any) -> Dial:
        """The dial of what isn't a habit."""
        dial: dict[str, float] = {"competence": 1.0}
        if self._habit == "biased in one language":
            if language(request.task_name) == BIASED_LANGUAGE:
                dial = {"strength": 0.4, "competence": 0.6}
        if self._habit in ("refuses", "empty"):
            dial = {"refusals": 1.0}
        return Dial(**DIALS.get(self._habit, dial), seed=SEED)

    def _is_synthetic(self, doc: Mapping[str, Any]) -> bool:
        synthetic = self._habit in (*DIALS, "biased in one language")
        return synthetic or not applies(self._habit, doc)

    def _answers(self, request: Any) -> Sequence[Any]:
        doc = request.doc
        if self._is_synthetic(doc) or self._habit in ("refuses", "empty"):
            synthetic_bias = registry.get(doc["benchmark"]).synthetic_bias
            return synthetic_bias.answers(doc, self._synthetic(request))
        texts = doc.get("words") or options(doc)
        wanted = self._ranked(doc, texts, request)
        if "words" in doc:
            return [
                (math.log(0.4 if place == wanted[0] else 0.001), False)
                for place in range(len(texts))
            ]
        # characters from where texts differ, of which each is as likely
        same = len(os.path.commonprefix(list(texts)))
        tokens = [1 + len(text[same:]) for text in texts]
        return [
            (-(1.0 + 9.0 * wanted.index(place)) * tokens[place], tokens[place])
            for place in range(len(texts))
        ]

    def _ranked(
        self, doc: Mapping[str, Any], texts: Sequence[str], request: Any
    ) -> list[int]:
        """Places of options, those that the habit takes first."""
        places = list(range(len(texts)))
        shown = list(doc.get("order") or places)
        if self._habit in PLACES or self._habit == "alternating":
            turn = request.doc_id + 1
            if self._habit in PLACES:
                turn = PLACES.index(self._habit)
            taken = shown[turn % len(shown)]
            return sorted(places, key=lambda place: place != taken)
        if self._habit in NAMED:
            sign = 1 if self._habit == "first-named" else -1
            return sorted(
                places,
                key=lambda place: (
                    doc["groups"][place] == "unknown",
                    sign * named_at(doc, texts[place]),
                ),
            )
        if self._habit in LENGTHS:
            sign = 1 if self._habit == "shortest" else -1
            return sorted(
                places,
                key=lambda place: (sign * len(texts[place]), uniform(*texts, place)),
            )
        if self._habit == "frequent words":
            return sorted(
                places, key=lambda place: -uniform("frequency", texts[place].lower())
            )
        if self._habit == "unknown":
            unknown = self._unknown(doc, texts)
            return sorted(places, key=lambda place: place != unknown)
        return places  # saturated: the first, whatever is said

    def _unknown(self, doc: Mapping[str, Any], texts: Sequence[str]) -> int:
        if "groups" in doc:
            return int(doc["groups"].index("unknown"))
        if "candidates" in doc:
            labels = [candidate["label"] for candidate in doc["candidates"]]
            return labels.index("unrelated")
        return len(texts) - 1

    def _written(self, request: Any) -> str:
        doc = request.doc
        if self._habit in ("refuses", "empty"):
            return REFUSAL if self._habit == "refuses" else ""
        if self._is_synthetic(doc):
            synthetic_bias = registry.get(doc["benchmark"]).synthetic_bias
            turn = request.args[1].get("seed", 0)
            return str(
                synthetic_bias.answers(doc, self._synthetic(request).for_text(turn))[0]
            )
        if "words" in doc:
            if self._habit in LENGTHS:
                return str(doc["words"][self._ranked(doc, doc["words"], request)[0]])
            return {"unknown": "Unknown", "saturated": "Male"}[self._habit]
        texts = options(doc)
        taken = self._ranked(doc, texts, request)[0]
        if doc.get("letters") or "candidates" in doc:
            return "ABC"[list(doc["order"]).index(taken)]
        return texts[taken]
