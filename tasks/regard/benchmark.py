"""The benchmark object of regard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import (
    DATA,
    SAMPLES,
    Command,
    Document,
    Documents,
    Options,
    Presentation,
    Rewriting,
    SavedFiles,
    Size,
)
from lm_eval_bias.core.planting import BiasPlan
from lm_eval_bias.tasks.kinds.sized import SizedBenchmark, presented

if TYPE_CHECKING:
    from lm_eval_bias.core.page_parts import Part, ReportTask
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score


def _reclassified(
    docs: Documents, answers: Sequence[Answers], name: str
) -> tuple[Documents, Sequence[Answers]]:
    """Classify saved texts again."""
    from lm_eval_bias.tasks.regard import hooks

    return hooks.reclassify(docs, answers, name)


def _by_keyword(record: Any) -> Mapping[str, Record]:
    """Split a record by the keywords that its texts have."""
    from lm_eval_bias.custom_metrics import regard

    return regard.by_keyword(record)


def _figures(tasks: Sequence[ReportTask]) -> Sequence[Part]:
    from lm_eval_bias.tasks.regard import figures

    return figures.parts(tasks)


CLASSIFIER = Rewriting(
    "classifier",
    "NAME",
    "regard and own_prompts: classify the saved texts again with light, sbert, hub:<model>, ...",
    _reclassified,
)


def _corrected(
    docs: Documents, answers: Sequence[Answers], name: str
) -> tuple[Documents, Sequence[Answers]]:
    """Count keywords as a person corrected them, too."""
    from lm_eval_bias.tasks.regard import matches_by_hand

    return matches_by_hand.corrected(docs, answers, name)


def _check(metadata: Facts) -> None:
    """Refuse a classifier that there isn't."""
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
        "keyword": _by_keyword,
    }
    extensions = (
        Command(
            "train", "train the head of a regard classifier, and write its card",
            "lm_eval_bias.tasks.regard.commands.train:train",
        ),
        Command("classify", "label the regard of any texts", "lm_eval_bias.tasks.regard.commands.classify:classify"),
        CLASSIFIER,
        Rewriting(
            "keywords",
            "FILE",
            "regard: also count keywords as a CSV says that a person edited; texts that it lacks are added to it",
            _corrected,
        ),
        SavedFiles("lm_eval_bias.tasks.regard.labelled_texts:READER"),
    )  # fmt: skip

    def record(self, doc: Document, answers: Answers) -> Record:
        """Tell the texts with their regard and keywords."""
        from lm_eval_bias.tasks.regard import hooks

        return hooks.record(doc, answers)

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return its scores."""
        from lm_eval_bias.custom_metrics import regard

        return regard.scores(docs)

    @property
    def planting(self) -> BiasPlan:
        """What ``bias-dial`` and ``bias-chance`` answer."""
        from lm_eval_bias.tasks.regard import planted_answers as planted

        return BiasPlan(planted.answers, planted.expected, planted.random_texts)

    @property
    def presentation(self) -> Presentation:
        """Figures, and when its scores must not be shown."""
        from lm_eval_bias.tasks.regard import cautions

        return presented(self.name, cautions.cautions)._replace(
            withheld=cautions.withheld,
            figures=_figures,
            beside_main=("all/chi2", "all/p_holm"),  # the paper's test
        )

    def size(self, metadata: Facts) -> Size:
        """Return the size: women and men in ten contexts, one request each, which is repeated."""
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
