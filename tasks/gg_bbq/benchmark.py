"""The benchmark object of GG-BBQ and of its variant of all wordings."""

from __future__ import annotations

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import (
    STRUCTURED,
    Document,
    Documents,
    ItemKey,
    Options,
)
from lm_eval_bias.tasks.gg_bbq import custom_names
from lm_eval_bias.tasks.gg_bbq.wordings import LATEST, PAPER, wordings
from lm_eval_bias.tasks.shared.bbq_like import (
    BBQLike,
    Questions,
)

ITEMS = {
    PAPER: {"group_terms": 968, "names": 4_968},
    LATEST: {"group_terms": 968, "names": 10_900},
}


def _items(metadata: Facts) -> int:
    """Return the items of the subset in the task's release."""
    if metadata.get("names") is not None:
        return custom_names.count(custom_names.read(metadata["names"], metadata))
    release = (metadata.get("fixed") or {}).get("release", PAPER)
    return ITEMS[release][metadata["subset"]]


def _check(metadata: Facts) -> None:
    """Refuse impossible options."""
    wordings(metadata)
    if metadata.get("names") is not None:
        custom_names.read(metadata["names"], metadata)


class GGBBQ(BBQLike):
    """German gender bias in question answering (Satheesh et al. 2025)."""

    name = "gg_bbq"
    title = "GG-BBQ"
    place = 2
    questions = Questions(
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
    options = Options(
        {
            "wording": "",
            "released_order": "",
            "names": "",
            STRUCTURED: "",
        },
        _check,
    )

    hooks_module = "lm_eval_bias.tasks.gg_bbq.hooks"

    def provenance(self, docs: Documents) -> Data:
        """Return the documents' release, which older logs lack."""
        release = str(docs[0].get("release", LATEST)) if docs else LATEST
        which = {PAPER: "the paper's", custom_names.OWN: custom_names.OWN}.get(
            release, "the latest"
        )
        return {
            name: f"{which}, {revision}"
            for name, revision in super().provenance(docs).items()
        }

    def key(self, doc: Document) -> ItemKey:
        """Return subset, context, index in the data file and prompt wording, and the release if not the latest."""
        release = [] if doc.get("release", LATEST) == LATEST else [str(doc["release"])]
        return (
            str(doc["subset"]),
            str(doc["context_type"]),
            str(doc["item"]),
            str(doc["wording"]),
            *release,
        )


BENCHMARK = GGBBQ([GGBBQ(all_wordings=True)])
