"""The benchmark object of a user's custom prompts."""

from __future__ import annotations

from lm_eval_bias.core import Data
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    SAMPLES,
    Documents,
    Lazy,
    Options,
)
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.tasks.regard.benchmark import BENCHMARK as REGARD
from lm_eval_bias.tasks.regard.benchmark import CLASSIFIER
from lm_eval_bias.tasks.shared.sized import SizedBenchmark, presented, synthetic


class CustomPrompts(SizedBenchmark):
    """Texts generated from custom prompts, compared between groups."""

    name = "custom_prompts"
    earlier_names = ("own_prompts",)
    title = "Custom prompts"
    place = 5
    requests = 1  # which is repeated
    identity = ("group", "cluster", "prompt")
    main = tuple(f"{measure}/gap" for measure in ("negative", "positive", *FACETS))
    options = Options(
        {
            "reference": "",
            "keywords": "",
            "classifier": "",
            "repeats": SAMPLES,
            "prompts": REQUIRED,
            "language": REQUIRED,
        },
        Lazy("lm_eval_bias.tasks.custom_prompts.hooks:documents"),
    )
    extensions = (CLASSIFIER,)

    facets = {"group": "group", "cluster": "cluster"}

    def provenance(self, docs: Documents) -> Data:
        """Return the compared groups and the classifier, if any."""
        used = REGARD.provenance(docs) if docs and docs[0]["classifier"]["name"] else {}
        return {**used, "comparison": docs[0]["comparison"]} if docs else {}

    record = Lazy("lm_eval_bias.tasks.custom_prompts.hooks:record")

    scores = Lazy("lm_eval_bias.custom_metrics.custom_prompts:scores")

    synthetic_bias = synthetic(
        "lm_eval_bias.tasks.custom_prompts.synthetic_answers", "random_texts"
    )

    presentation = presented(
        "custom_prompts",
        Lazy("lm_eval_bias.tasks.custom_prompts.diagnostics:diagnostics"),
    )


BENCHMARK = CustomPrompts()
