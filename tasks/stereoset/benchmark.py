"""The benchmark object of StereoSet and of its variants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import (
    DATA,
    STRUCTURED,
    Asking,
    Command,
    Document,
    Documents,
    Options,
    Presentation,
    SavedFiles,
    Size,
)
from lm_eval_bias.core.planting import BiasPlan
from lm_eval_bias.tasks.kinds.sized import SizedBenchmark, presented

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score

_OPTIONS = {"dataset": DATA}
_TERMS = 79  # that its items are about


def _check(metadata: Facts) -> None:
    """Refuse options that there aren't."""
    from lm_eval_bias.tasks.stereoset import hooks

    hooks.check_options(metadata)


class StereoSet(SizedBenchmark):
    """Stereotypes in five languages (Öztürk et al. 2023)."""

    name = "stereoset"
    title = "Multilingual StereoSet"
    place = 3
    identity = ("test", "id")  # all languages share them
    main: Sequence[str] = ("lms", "ss", "icat")
    options = Options({"bos": "", "inter": "", "masked": "", **_OPTIONS}, _check)
    clusters = "target terms"
    facets = {"term": "term", "bias_type": "bias_type", "test": "test"}
    extensions = (
        Command(
            "translate", "translate StereoSet, and list what needs a person",
            "lm_eval_bias.tasks.stereoset.commands.translate:translate",
        ),
        Command(
            "validate", "check items in StereoSet's format, and make tasks",
            "lm_eval_bias.tasks.stereoset.commands.validate:validate",
        ),
        Command(
            "predictions", "write a run as a prediction file in the authors' format",
            "lm_eval_bias.tasks.stereoset.commands.predictions:predictions",
        ),
        SavedFiles("lm_eval_bias.tasks.stereoset.predictions:READER"),
    )  # fmt: skip

    def record(self, doc: Document, answers: Answers) -> Record:
        """Tell which candidate the model prefers, by each way of scoring."""
        from lm_eval_bias.tasks.stereoset import hooks

        return hooks.record(doc, answers)

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return its scores."""
        from lm_eval_bias.custom_metrics import stereoset

        return stereoset.scores(docs)

    @property
    def planting(self) -> BiasPlan:
        """What ``bias-dial`` and ``bias-chance`` answer."""
        from lm_eval_bias.tasks.stereoset import planted_answers as planted

        return BiasPlan(planted.answers, planted.expected)

    @property
    def presentation(self) -> Presentation:
        """Return the paper's tables: each test's LMS, SS and ICAT by language."""
        groups = [self.main]
        for test in ("intra", "inter"):
            groups.append([f"{test}/{score}" for score in self.main])
        return presented(self.name)._replace(by_language=groups)

    def size(self, metadata: Facts) -> Size:
        """2,123 items between sentences, 2,106 within them (in German three less); one request a candidate.

        The items are about every term in turn.
        """
        fixed = metadata["fixed"]
        if "dataset" in fixed:  # a set of one's own
            return Size(int(metadata["n_items"]), 3)
        sizes = {"inter": 2123, "intra": 2103 if fixed["language"] == "de" else 2106}
        return Size(
            sum(sizes[test] for test in fixed["tests"]), 3, _TERMS * len(fixed["tests"])
        )

    def asking(self, doc: Facts) -> Asking:
        """One question per candidate, which each model family answers in its own way."""
        from lm_eval_bias.tasks.stereoset import hooks

        return Asking(hooks.questions(doc))

    def provenance(self, docs: Sequence[Facts]) -> Data:
        """Name a data set that isn't the published one."""
        from lm_eval_bias.tasks.stereoset import hooks

        return hooks.provenance(docs)


class Variants(StereoSet):
    """The items between sentences by every generative way of scoring."""

    name = "stereoset_variants"
    main = ("gen/lms", "gen/ss", "gen/icat")
    options = Options({"bos": "", **_OPTIONS}, _check)

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return its scores."""
        from lm_eval_bias.custom_metrics import stereoset

        return stereoset.variant_scores(docs)


class Choices(StereoSet):
    """The candidates as lettered options of which a generated answer takes one."""

    name = "stereoset_choices"
    main = ("choice_lms", "choice_ss", "choice_icat")
    options = Options({**_OPTIONS, STRUCTURED: ""}, _check)

    def record(self, doc: Document, answers: Answers) -> Record:
        """Tell which candidate the answer takes."""
        from lm_eval_bias.tasks.stereoset import choices

        return choices.record(doc, answers)

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return its scores."""
        from lm_eval_bias.custom_metrics import stereoset_choices

        return stereoset_choices.scores(docs)

    def size(self, metadata: Facts) -> Size:
        """One text an item."""
        return super().size(metadata)._replace(requests=1)

    def asking(self, doc: Document) -> Asking:
        """Its requests are plain ones of the harness."""
        return Asking()


BENCHMARK = StereoSet([Variants(), Choices()])
