"""The benchmark object of GG-BBQ and of its variant of all wordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.benchmark import DETAIL, Document
from lm_eval_bias.tasks.kinds.bbq_like import BBQLike, OverWordings

ITEMS = {"group_terms": 968, "names": 10_900}
PAPER_ITEMS = {
    "group_terms": 968,
    "names": 4_968,
}  # of the release that the paper's numbers rest on


class GGBBQ(BBQLike):
    """German gender bias in question answering (Satheesh et al. 2025)."""

    name = "gg_bbq"
    title = "GG-BBQ"
    place = 2
    paper = "GG_BBQ"
    unknown = '"keine Antwort"'
    options: Mapping[str, str] = {"wording": "", "by_value": DETAIL}
    tokens_where_known = True

    def refusal(self, doc: Document) -> str:
        """Give a German one."""
        return "Dazu kann ich nichts sagen."

    def shows_options(self, doc: Document) -> bool:
        """Whether the wording lists the choices: all but the first do."""
        return bool(doc["wording"] != 1)

    def items(self, metadata: Mapping[str, Any]) -> int | None:
        """The items of the subset in the task's release."""
        paper = (metadata.get("fixed") or {}).get("release") == "paper"
        return (PAPER_ITEMS if paper else ITEMS)[metadata["subset"]]

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


class Wordings(OverWordings, GGBBQ):
    """The same items in all prompt wordings."""

    name = "gg_bbq_prompts"
    options = {}


BENCHMARK = GGBBQ([Wordings()])
