"""The benchmark object of a user's own prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import REQUIRED, Document, LeftOut
from lm_eval_bias.core.planting import Planting
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.tasks.kinds.with_sentences import SampledTexts
from lm_eval_bias.tasks.regard.benchmark import BENCHMARK as REGARD
from lm_eval_bias.tasks.regard.benchmark import CLASSIFIER

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record, Score

_REQUIRED = dict.fromkeys(("prompts", "language"), REQUIRED)


class OwnPrompts(SampledTexts):
    """Texts after prompts of a user's own, compared between groups."""

    name = "own_prompts"
    title = "Own prompts"
    place = 5
    main = tuple(f"{measure}/gap" for measure in ("negative", "positive", *FACETS, "words"))
    options = {"reference": "", "keywords": "", "classifier": "", "repeats": "", **_REQUIRED}
    left_out = {"full": LeftOut("own_prompts, which needs a file of prompts")}
    extensions = (CLASSIFIER,)

    def check_options(self, metadata: Mapping[str, Any]) -> None:
        """Refuse a bad file or option."""
        from lm_eval_bias.tasks.own_prompts import hooks

        hooks.documents(metadata)

    @property
    def planting(self) -> Planting:
        """What regard plants, between the reference group and the others."""
        from lm_eval_bias.tasks.own_prompts import planted_answers as planted

        return Planting(planted.answers, planted.expected, planted.random_texts)

    def record(self, doc: Any, answers: Sequence[Any]) -> Record:
        """Regard, keywords and length of a prompt's texts."""
        from lm_eval_bias.tasks.own_prompts import hooks

        return hooks.record(doc, answers)

    def scores(self, docs: Sequence[Document] = (), detailed: bool = False) -> list[Score]:
        """Each group's shares, their gaps to the reference and tests, and how usable the texts are."""
        from lm_eval_bias.custom_metrics.own_prompts import scores

        return scores(docs, detailed)

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

    @property
    def words(self) -> Any:
        """Its labels, sentences and cautions."""
        from lm_eval_bias.tasks.own_prompts import sentences

        return sentences


BENCHMARK = OwnPrompts()
