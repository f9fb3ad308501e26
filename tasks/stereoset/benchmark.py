"""The benchmark object of StereoSet and of its variants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import (
    DATA,
    Asking,
    Command,
    Document,
    Options,
    Presentation,
    SavedFiles,
    Size,
)
from lm_eval_bias.tasks.kinds.with_sentences import WithSentences, deferred

_OPTIONS = {"dataset": DATA}
_CHECK = deferred("tasks.stereoset.hooks:check_options")
_TERMS = 79  # that its items are about


class StereoSet(WithSentences):
    """Stereotypes in five languages (Öztürk et al. 2023)."""

    name = "stereoset"
    title = "Multilingual StereoSet"
    place = 3
    identity = ("test", "id")  # all languages share them
    main: Sequence[str] = ("lms", "ss", "icat")
    options = Options({"bos": "", "inter": "", "masked": "", **_OPTIONS}, _CHECK)
    clusters = "target terms"
    facets = {"term": "term", "bias_type": "bias_type", "test": "test"}
    extensions = (
        Command(
            "translate", "translate StereoSet, and list what needs a person",
            "lm_eval_bias.tasks.stereoset.commands.translate",
        ),
        Command(
            "validate", "check items in StereoSet's format, and make tasks",
            "lm_eval_bias.tasks.stereoset.commands.validate",
        ),
        Command(
            "predictions", "write a run as a prediction file in the authors' format",
            "lm_eval_bias.tasks.stereoset.commands.predictions",
        ),
        SavedFiles("lm_eval_bias.tasks.stereoset.predictions:READER"),
    )  # fmt: skip

    @property
    def presentation(self) -> Presentation:  # type: ignore[override]
        """Return its sentences, and the paper's tables: each test's LMS, SS and ICAT by language."""
        groups = [self.main]
        for test in ("intra", "inter"):
            groups.append([f"{test}/{score}" for score in self.main])
        return super().presentation._replace(
            figures=Presentation().figures, by_language=groups
        )

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

    def asking(self, doc: Any) -> Asking:
        """One question per candidate, which each model family answers in its own way."""
        from lm_eval_bias.tasks.stereoset import hooks

        return Asking(hooks.questions(doc))

    def provenance(self, docs: Sequence[Any]) -> Data:
        """Name a data set that isn't the published one."""
        from lm_eval_bias.tasks.stereoset import hooks

        return hooks.provenance(docs)


class Variants(StereoSet):
    """The items between sentences by every generative way of scoring."""

    name = "stereoset_variants"
    scored_by = "stereoset:variant_scores"
    main = ("gen/lms", "gen/ss", "gen/icat")
    options = Options({"bos": "", **_OPTIONS}, _CHECK)


class Choices(StereoSet):
    """The candidates as lettered options of which a generated answer takes one."""

    name = "stereoset_choices"
    recorded_by = "choices:record"
    main = ("choice_lms", "choice_ss", "choice_icat")
    options = Options(_OPTIONS, _CHECK)

    def size(self, metadata: Facts) -> Size:
        """One text an item."""
        return super().size(metadata)._replace(requests=1)

    def asking(self, doc: Document) -> Asking:
        """Its requests are plain ones of the harness."""
        return Asking()


BENCHMARK = StereoSet([Variants(), Choices()])
