"""The benchmark object of EsBBQ and CaBBQ."""

from __future__ import annotations

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import STRUCTURED, Document, ItemKey, Options
from lm_eval_bias.tasks.shared.bbq_like import BBQLike, Questions

ITEMS = {
    "age": 4068, "disability_status": 2832, "gender": 4832, "lgbtqia": 2000, "nationality": 504,
    "physical_appearance": 3528, "race_ethnicity": 3716, "religion": 648, "ses": 4204, "spanish_region": 988,
}  # fmt: skip
# categories whose items differ in number between the languages, with the Catalan one
NOT_PARALLEL = {"physical_appearance": 3552}


def _refusal(doc: Document) -> str:
    """Return a refusal in the document's language."""
    from lm_eval_bias.tasks.es_bbq import hooks

    return str(hooks.wordings(doc["language"])["refusal"])


def _items(metadata: Facts) -> int | None:
    """Return the items of the category in the task's language."""
    category = metadata.get("category", "")
    items: int | None = metadata.get("n_items", ITEMS.get(category))
    return NOT_PARALLEL.get(category, items) if metadata["language"] == "ca" else items


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
    options = Options({"eleven_options": "", STRUCTURED: ""})
    facets = {**BBQLike.facets, "category": "category", "value": "value"}

    hooks_module = "lm_eval_bias.tasks.es_bbq.hooks"

    def key(self, doc: Document) -> ItemKey:
        """Return category and number; both languages' items are parallel, except for appearance."""
        key = (str(doc["category"]), str(doc["item"]))
        return (*key, str(doc["language"])) if key[0] in NOT_PARALLEL else key


BENCHMARK = EsBBQ()
