"""The benchmark object of StereoSet and of its variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import (
    DATA,
    STRUCTURED,
    Asking,
    Command,
    Document,
    Lazy,
    Options,
    Rewriting,
    SavedFiles,
    Size,
)
from lm_eval_bias.tasks.shared.sized import SizedBenchmark, presented, synthetic

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun

_OPTIONS = {"dataset": DATA}
_CHECK = Lazy("lm_eval_bias.tasks.stereoset.hooks:check_options")
_MAIN = ("lms", "ss", "icat")
_TERMS = 79  # that its items are about


def _diagnostics(task: TaskRun) -> Iterator[str]:
    """Yield a diagnostic of predictions for items that the data lack."""
    for test, count in (task.metadata.get("left_out") or {}).items():
        yield (
            f"left out: the scores of {count['candidates']} candidates of {count['items']} items ({test}), which the "
            f"released {task.language} data don't have"
        )


class StereoSet(SizedBenchmark):
    """Stereotypes in five languages (Öztürk et al. 2023)."""

    name = "stereoset"
    title = "Multilingual StereoSet"
    place = 3
    identity = ("test", "id")  # all languages share them
    main: Sequence[str] = _MAIN
    options = Options({"bos": "", "inter": "", **_OPTIONS}, _CHECK)
    clusters = "target terms"
    halves = ("_intra", "_inter")
    facets = {"term": "term", "bias_type": "bias_type", "test": "test"}
    extensions = (
        Command(
            "translate", "translate StereoSet, and list what needs a person",
            "lm_eval_bias.tasks.stereoset.commands.translate:translate",
        ),
        Command(
            "tasks", "make tasks of a data set in StereoSet's form",
            "lm_eval_bias.tasks.stereoset.commands.tasks:tasks",
        ),
        Rewriting(
            "predictions",
            "DIR",
            "StereoSet: write the scores as prediction files in the authors' format to DIR",
            Lazy("lm_eval_bias.tasks.stereoset.predictions:written"),
        ),
        SavedFiles("lm_eval_bias.tasks.stereoset.predictions:READER"),
    )  # fmt: skip

    record = Lazy("lm_eval_bias.tasks.stereoset.hooks:record")

    scores = Lazy("lm_eval_bias.custom_metrics.stereoset:scores")

    synthetic_bias = synthetic("lm_eval_bias.tasks.stereoset.synthetic_answers")

    presentation = presented("stereoset", _diagnostics)

    def size(self, metadata: Facts) -> Size:
        """Return the size: 2,123 inter- and 2,106 intra-sentence items (German: three fewer), a request per candidate.

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
        """Ask one question per candidate; each model family answers it in its own way."""
        from lm_eval_bias.tasks.stereoset import hooks

        return Asking(hooks.questions(doc))

    provenance = Lazy("lm_eval_bias.tasks.stereoset.hooks:provenance")


class Variants(StereoSet):
    """StereoSet's inter-sentence items, by every generative scoring."""

    name = "stereoset_variants"
    main = ("gen/lms", "gen/ss", "gen/icat")
    options = Options({"bos": "", **_OPTIONS}, _CHECK)

    scores = Lazy("lm_eval_bias.custom_metrics.stereoset:variant_scores")


class Choices(StereoSet):
    """StereoSet as a question with lettered options, for models that write."""

    name = "stereoset_choices"
    main = ("choice_lms", "choice_ss", "choice_icat")
    options = Options({**_OPTIONS, STRUCTURED: ""}, _CHECK)

    record = Lazy("lm_eval_bias.tasks.stereoset.choices:record")

    scores = Lazy("lm_eval_bias.custom_metrics.stereoset_choices:scores")

    def size(self, metadata: Facts) -> Size:
        """Return the size: one text per item."""
        return super().size(metadata)._replace(requests=1)

    def asking(self, doc: Document) -> Asking:
        """Use the harness's plain requests."""
        return Asking()


BENCHMARK = StereoSet([Variants(), Choices()])
