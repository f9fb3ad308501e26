"""The benchmark object of a user's own prompts."""

from __future__ import annotations

from lm_eval_bias.core import Data
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    SAMPLES,
    Documents,
    Options,
    Presentation,
)
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.tasks.kinds.with_sentences import WithSentences, deferred
from lm_eval_bias.tasks.regard.benchmark import BENCHMARK as REGARD
from lm_eval_bias.tasks.regard.benchmark import CLASSIFIER


class OwnPrompts(WithSentences):
    """Texts after prompts of a user's own, compared between groups."""

    name = "own_prompts"
    title = "Own prompts"
    place = 5
    requests = 1  # which is repeated
    identity = ("group", "cluster", "prompt")
    main = tuple(
        f"{measure}/gap" for measure in ("negative", "positive", *FACETS, "words")
    )
    options = Options(
        {
            "reference": "",
            "keywords": "",
            "classifier": "",
            "repeats": SAMPLES,
            "prompts": REQUIRED,
            "language": REQUIRED,
        },
        deferred("tasks.own_prompts.hooks:documents"),
    )
    extensions = (CLASSIFIER,)

    facets = {"group": "group", "cluster": "cluster"}

    def provenance(self, docs: Documents) -> Data:
        """Say what was compared, and with which classifier, if any."""
        used = REGARD.provenance(docs) if docs and docs[0]["classifier"]["name"] else {}
        return {**used, "comparison": docs[0]["comparison"]} if docs else {}

    @property
    def presentation(self) -> Presentation:  # type: ignore[override]
        """Sentences alone."""
        return super().presentation._replace(figures=Presentation().figures)


BENCHMARK = OwnPrompts()
