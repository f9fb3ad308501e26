"""The benchmark object of GG-BBQ and of its variant of all wordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.benchmark import Document, Options
from lm_eval_bias.tasks.kinds.bbq_like import BBQLike, PromptWordings, Questions

ITEMS = {"group_terms": 968, "names": 10_900}
PAPER_ITEMS = {
    "group_terms": 968,
    "names": 4_968,
}  # of the release that the paper's numbers rest on


NUMBERS = PromptWordings("wording", 2, "gg_bbq_prompts")


def _items(metadata: Mapping[str, Any]) -> int:
    """Return the items of the subset in the task's release."""
    paper = (metadata.get("fixed") or {}).get("release") == "paper"
    return (PAPER_ITEMS if paper else ITEMS)[metadata["subset"]]


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
    options = Options({"wording": ""}, NUMBERS.chosen)

    def provenance(self, docs: Sequence[Document]) -> dict[str, Any]:
        """Which release the documents are of; older logs don't say it."""
        paper = any(doc.get("release") == "paper" for doc in docs[:1])
        which = "the paper's" if paper else "the latest"
        return {
            name: f"{which}, {revision}"
            for name, revision in super().provenance(docs).items()
        }

    def key(self, doc: Document) -> tuple[str, ...]:
        """Subset, kind of context, place in the data file and prompt wording; and the release, if not the latest."""
        release = (
            [] if doc.get("release", "latest") == "latest" else [str(doc["release"])]
        )
        return (
            str(doc["subset"]),
            str(doc["context_type"]),
            str(doc["item"]),
            str(doc["wording"]),
            *release,
        )


BENCHMARK = GGBBQ([GGBBQ(all_wordings=True)])
