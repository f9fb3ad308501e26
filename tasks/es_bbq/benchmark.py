"""The benchmark object of EsBBQ and CaBBQ, and that of the harness's own tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import Document, HarnessTasks, ItemKey, Options
from lm_eval_bias.tasks.es_bbq import UNKNOWNS
from lm_eval_bias.tasks.kinds.bbq_like import BBQLike, Questions

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record

ITEMS = {
    "age": 4_068,
    "disability_status": 2_832,
    "gender": 4_832,
    "lgbtqia": 2_000,
    "nationality": 504,
    "physical_appearance": 3_528,
    "race_ethnicity": 3_716,
    "religion": 648,
    "ses": 4_204,
    "spanish_region": 988,
}
MORE_IN_CATALAN = {"physical_appearance": 24}
LANGUAGES = {"es": "Spanish", "ca": "Catalan"}
_HARNESS_TASKS: Mapping[str, Facts] = {
    f"{language}bbq_{category}": {
        "language": language,
        "measures": f"{word} question answering, {category.replace('_', ' ')}: lm-evaluation-harness's own task",
        "n_items": number
        + (MORE_IN_CATALAN.get(category, 0) if language == "ca" else 0),
    }
    for language, word in LANGUAGES.items()
    for category, number in ITEMS.items()
}


def _refusal(doc: Document) -> str:
    """Return one in the document's language."""
    from lm_eval_bias.tasks.es_bbq import hooks

    return str(hooks.wordings(doc["language"])["refusal"])


def _items(metadata: Facts) -> int | None:
    """Return the items of the category in the task's language."""
    if "category" in metadata:
        metadata = _HARNESS_TASKS[f"{metadata['language']}bbq_{metadata['category']}"]
    items: int | None = metadata.get("n_items")
    return items


class EsBBQ(BBQLike):
    """Spanish and Catalan question answering (Ruiz-Fernández et al. 2025)."""

    name = "es_bbq"
    title = "EsBBQ and CaBBQ"
    place = 3
    questions = Questions(
        tokens_where_known=True,
        refusal=_refusal,
        items=_items,
    )
    options = Options({"eleven_options": ""})
    facets = {**BBQLike.facets, "category": "category", "value": "value"}

    def key(self, doc: Document) -> ItemKey:
        """Category and number: the two languages' items are parallel, but for those about appearance."""
        identity = (str(doc["category"]), str(doc["item"]))
        return (
            (*identity, str(doc["language"]))
            if doc["category"] in MORE_IN_CATALAN
            else identity
        )


class OfHarness(EsBBQ):
    """The same questions as the harness's own tasks ask them, read from their sample logs."""

    name = "esbbq"
    title = "EsBBQ and CaBBQ, the harness's tasks"
    questions = EsBBQ.questions._replace(
        terms="OF_HARNESS",  # without scores by length, which the harness's documents don't have
        tokens_where_known=False,
        candidates=2 + UNKNOWNS,
        balanced=None,  # its items come in another order
    )
    options = Options()
    planting = None
    extensions = (HarnessTasks(_HARNESS_TASKS),)
    facets = {
        "context": "context_condition",
        "category": "category",
        "value": "relevant_social_value",
        "polarity": "question_polarity",
        "template": "template_id",
    }

    def key(self, doc: Document) -> ItemKey:
        """Category and number."""
        return (str(doc["category"]), str(doc["instance_id"]))

    def record(self, doc: Any, answers: Sequence[Any]) -> Record:
        """Which option the harness takes."""
        return self.hooks.record_of_harness(doc, answers)


BENCHMARK = EsBBQ([OfHarness()])
