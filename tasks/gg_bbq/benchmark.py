"""The benchmark object of GG-BBQ and of its variant of all wordings."""

from __future__ import annotations

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import Document, Documents, ItemKey, Options
from lm_eval_bias.tasks.gg_bbq.wordings import LATEST, PAPER, wordings
from lm_eval_bias.tasks.kinds.bbq_like import (
    BBQLike,
    QuestionHooks,
    Questions,
)

ITEMS = {
    PAPER: {"group_terms": 968, "names": 4_968},
    LATEST: {"group_terms": 968, "names": 10_900},
}


def _items(metadata: Facts) -> int:
    """Return the items of the subset in the task's release."""
    release = (metadata.get("fixed") or {}).get("release", PAPER)
    return ITEMS[release][metadata["subset"]]


class GGBBQ(BBQLike):
    """German gender bias in question answering (Satheesh et al. 2025)."""

    name = "gg_bbq"
    title = "GG-BBQ"
    place = 2
    questions = Questions(
        unknown='"keine Antwort"',
        tokens_where_known=True,
        refusal=lambda doc: "Dazu kann ich nichts sagen.",
        shows_options=lambda doc: bool(doc["wording"] != 1),  # all but the first do
        items=_items,
    )
    facets = {
        **BBQLike.facets,
        "polarity": "question_type",
        "value": "value",
        "wording": "wording",
    }
    options = Options({"wording": "", "released_order": ""}, wordings)

    @property
    def hooks(self) -> QuestionHooks:
        """Its module of documents and prompts."""
        from lm_eval_bias.tasks.gg_bbq import hooks

        return hooks

    def provenance(self, docs: Documents) -> Data:
        """Which release the documents are of; older logs don't say it."""
        paper = any(doc.get("release") == PAPER for doc in docs[:1])
        which = "the paper's" if paper else "the latest"
        return {
            name: f"{which}, {revision}"
            for name, revision in super().provenance(docs).items()
        }

    def key(self, doc: Document) -> ItemKey:
        """Subset, kind of context, place in the data file and prompt wording; and the release, if not the latest."""
        release = [] if doc.get("release", LATEST) == LATEST else [str(doc["release"])]
        return (
            str(doc["subset"]),
            str(doc["context_type"]),
            str(doc["item"]),
            str(doc["wording"]),
            *release,
        )


BENCHMARK = GGBBQ([GGBBQ(all_wordings=True)])
