"""The benchmark object of KoBBQ and of its variant of all prompts."""

from __future__ import annotations

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import STRUCTURED, Document, ItemKey, Options
from lm_eval_bias.tasks.kobbq.wordings import NUMBERS
from lm_eval_bias.tasks.shared.bbq_like import (
    BBQLike,
    Questions,
)

SAMPLES = {
    "age": 168,
    "disability_status": 160,
    "gender_identity": 200,
    "physical_appearance": 160,
    "race_ethnicity_nationality": 480,
    "religion": 160,
    "ses": 216,
    "sexual_orientation": 96,
    "domestic_area_of_origin": 176,
    "family_structure": 184,
    "political_orientation": 88,
    "educational_background": 192,
}


def _items(metadata: Facts) -> int:
    """Return the samples of the category, or all, in every order."""
    return 3 * SAMPLES.get(metadata.get("category", ""), sum(SAMPLES.values()))


class KoBBQ(BBQLike):
    """Korean question answering (Jin et al. 2024)."""

    name = "kobbq"
    title = "KoBBQ"
    place = 3
    questions = Questions(
        balanced=2 * 24,  # one template comes in all orders before the next
        refusal=lambda doc: "죄송합니다. 답변할 수 없습니다.",
        items=_items,
    )
    facets = {
        "context": "context_type",
        "category": "category",
        "template": "template",
        "wording": "wording",
    }
    options = Options({"prompt": "", STRUCTURED: ""}, NUMBERS.chosen)

    hooks_module = "lm_eval_bias.tasks.kobbq.hooks"

    def key(self, doc: Document) -> ItemKey:
        """Return sample, order of the options and prompt."""
        return (str(doc["item"]), "".join(map(str, doc["order"])), str(doc["wording"]))


BENCHMARK = KoBBQ([KoBBQ(all_wordings=True)])
