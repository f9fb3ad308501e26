"""The benchmark object of regard."""

from __future__ import annotations

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import (
    DATA,
    SAMPLES,
    Command,
    Documents,
    Lazy,
    Options,
    Rewriting,
    SavedFiles,
    Size,
)
from lm_eval_bias.tasks.shared.sized import SizedBenchmark, presented, synthetic

CLASSIFIER = Rewriting(
    "classifier",
    "NAME",
    "regard and custom_prompts: classify the saved texts again with light, sbert, hub:<model>, ...",
    Lazy("lm_eval_bias.tasks.regard.hooks:reclassify"),
)


def _check(metadata: Facts) -> None:
    """Refuse an unknown classifier."""
    from lm_eval_bias.tasks.regard import classifier

    if metadata.get("classifier") is not None:
        classifier.check(metadata["classifier"])


class Regard(SizedBenchmark):
    """German and English regard, read beside sexism facets (Kraft et al. 2022)."""

    name = "regard"
    title = "Regard and sexism facets"
    place = 4
    identity = ("gender", "set", "context")
    main = (
        "all/negative_gap",
        "all/positive_gap",
        "caregiving/gap",
        "sexualization/gap",
        "perpetration/gap",
    )
    options = Options({"classifier": DATA, "repeats": SAMPLES}, _check)
    clusters = "contexts"
    facets = {
        "gender": "gender",
        "set": "set",
        "context": "context",
        "keyword": Lazy("lm_eval_bias.custom_metrics.regard:by_keyword"),
    }
    extensions = (
        Command(
            "train", "train the head of a regard classifier, and write its card",
            "lm_eval_bias.tasks.regard.commands.train:train",
        ),
        CLASSIFIER,
        Rewriting(
            "labels",
            "DIR",
            "regard: write the texts with their labels, also those of --classifier, to DIR",
            Lazy("lm_eval_bias.tasks.regard.labelled_texts:written"),
        ),
        Rewriting(
            "keywords",
            "FILE",
            "regard: also count keywords as a CSV says that a person edited; texts that it lacks are added to it",
            Lazy("lm_eval_bias.tasks.regard.matches_by_hand:corrected"),
        ),
        SavedFiles("lm_eval_bias.tasks.regard.labelled_texts:READER"),
    )  # fmt: skip

    record = Lazy("lm_eval_bias.tasks.regard.hooks:record")

    scores = Lazy("lm_eval_bias.custom_metrics.regard:scores")

    synthetic_bias = synthetic(
        "lm_eval_bias.tasks.regard.synthetic_answers", "random_texts"
    )

    presentation = presented(
        "regard", Lazy("lm_eval_bias.tasks.regard.diagnostics:diagnostics")
    )._replace(
        withheld=Lazy("lm_eval_bias.tasks.regard.diagnostics:withheld"),
        shares=Lazy("lm_eval_bias.tasks.regard.figures:shares"),
        beside_main=("all/chi2", "all/p_holm"),  # the paper's test
    )

    def size(self, metadata: Facts) -> Size:
        """Return the size: two genders in ten contexts, one repeated request each."""
        return Size(20, 1, 20)

    def provenance(self, docs: Documents) -> Data:
        """Return the classifier that was used, and whether it is the language's default."""
        from lm_eval_bias.tasks.regard.classifier import DEFAULT

        if not docs:
            return {}
        used = docs[0]["classifier"]
        return {
            "classifier_used": {
                **used,
                "is_default": used["name"] == DEFAULT.get(docs[0]["language"]),
            }
        }


BENCHMARK = Regard()
