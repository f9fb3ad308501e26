"""The benchmark object of EsBBQ and CaBBQ, and that of the harness's own tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import STRUCTURED, Document, ItemKey, Lazy, Options
from lm_eval_bias.tasks.es_bbq import UNKNOWNS
from lm_eval_bias.tasks.shared.bbq_like import BBQLike, Questions
from lm_eval_bias.tasks.shared.sized import harness_tasks

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.question_answering import Terms


def _options(doc: Document, language: str) -> list[str]:
    """List the scored texts: both persons, and all wordings of "unknown"."""
    from lm_eval_bias.tasks.es_bbq import hooks

    return [doc["ans0"], doc["ans1"], *hooks.wordings(language)["unknown"]]


HARNESS_TASKS = harness_tasks(__package__, _options)
# categories whose items differ in number between the languages
NOT_PARALLEL = ("physical_appearance",)


def _refusal(doc: Document) -> str:
    """Return a refusal in the document's language."""
    from lm_eval_bias.tasks.es_bbq import hooks

    return str(hooks.wordings(doc["language"])["refusal"])


def _items(metadata: Facts) -> int | None:
    """Return the items of the category in the task's language."""
    if "category" in metadata:
        task = f"{metadata['language']}bbq_{metadata['category']}"
        metadata = HARNESS_TASKS.tasks[task]
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
    options = Options({"eleven_options": "", STRUCTURED: ""})
    facets = {**BBQLike.facets, "category": "category", "value": "value"}

    hooks_module = "lm_eval_bias.tasks.es_bbq.hooks"

    def key(self, doc: Document) -> ItemKey:
        """Return category and number; both languages' items are parallel, except for appearance."""
        key = (str(doc["category"]), str(doc["item"]))
        return (*key, str(doc["language"])) if key[0] in NOT_PARALLEL else key


class OfHarness(EsBBQ):
    """EsBBQ and CaBBQ as the harness's own tasks, read from their sample logs."""

    name = "esbbq"
    title = "EsBBQ and CaBBQ, the harness's tasks"
    questions = EsBBQ.questions._replace(
        tokens_where_known=False,
        candidates=2 + UNKNOWNS,
        shows_options=lambda doc: False,
        balanced=None,  # its items come in another order
    )
    options = Options()
    identity = ("category", "instance_id")
    synthetic_bias = None
    extensions = (HARNESS_TASKS,)
    facets = {
        "context": "context_condition",
        "category": "category",
        "value": "relevant_social_value",
        "polarity": "question_polarity",
        "template": "template_id",
    }

    record = Lazy("lm_eval_bias.tasks.es_bbq.hooks:record_of_harness")

    @property
    def terms(self) -> Terms:
        """Return the scores without those by length, which the harness's documents lack."""
        from lm_eval_bias.tasks.es_bbq import hooks

        return hooks.OF_HARNESS


BENCHMARK = EsBBQ([OfHarness()])
