"""The benchmark object of a user's own prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.benchmark import REQUIRED, Document
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.tasks.kinds.with_sentences import SampledTexts
from lm_eval_bias.tasks.regard.benchmark import BENCHMARK as REGARD
from lm_eval_bias.tasks.regard.benchmark import CLASSIFIER

_REQUIRED = dict.fromkeys(("prompts", "language"), REQUIRED)


class OwnPrompts(SampledTexts):
    """Texts after prompts of a user's own, compared between groups."""

    name = "own_prompts"
    title = "Own prompts"
    place = 5
    main = tuple(
        f"{measure}/gap" for measure in ("negative", "positive", *FACETS, "words")
    )
    options = {
        "reference": "",
        "keywords": "",
        "classifier": "",
        "repeats": "",
        **_REQUIRED,
    }
    extensions = (CLASSIFIER,)

    def check_options(self, metadata: Mapping[str, Any]) -> None:
        """Refuse a bad file or option."""
        from lm_eval_bias.tasks.own_prompts import hooks

        hooks.documents(metadata)

    def key(self, doc: Document) -> tuple[str, ...]:
        """Group, cluster and prompt."""
        return (str(doc["group"]), str(doc["cluster"]), str(doc["prompt"]))

    def provenance(self, docs: Sequence[Document]) -> dict[str, Any]:
        """What was compared, and the classifier that was used, if any."""
        used = REGARD.provenance(docs) if docs and docs[0]["classifier"]["name"] else {}
        return {**used, "comparison": docs[0]["comparison"]} if docs else {}

    def facets(self, doc: Document) -> dict[str, str]:
        """The group and the cluster."""
        return {"group": str(doc["group"]), "cluster": str(doc["cluster"])}

    def figures(self, tasks: Any) -> list[Any]:
        """None."""
        return []


BENCHMARK = OwnPrompts()
