"""A base class for benchmarks in the manner of BBQ."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import (
    STRUCTURED,
    Asking,
    Benchmark,
    Document,
    Documents,
    Options,
    Presentation,
    Size,
    Split,
)
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.synthetic_bias import SyntheticBias
from lm_eval_bias.tasks.shared.sized import SizedBenchmark

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.question_answering import Terms
    from lm_eval_bias.custom_metrics.score import Answers, Record, Score


NUMBERS = range(1, 6)  # of the wordings that every benchmark with several has


class PromptWordings(NamedTuple):
    """The wordings of a benchmark's prompts.

    Attributes:
        option: The ``--metadata`` key that takes the number of one.
        default: The one that is asked by default.
        all_in: The task, or group, that asks all of them.
    """

    option: str
    default: int
    all_in: str

    def chosen(self, metadata: Facts) -> list[int]:
        """List the wordings that a task asks: the one that its metadata choose, the default one, or all.

        Raises:
            BiasError: There is no such wording, or the task asks all.
        """
        number = metadata.get(self.option)
        if self.option in (metadata.get("fixed") or {}):
            if number is not None:
                raise BiasError(
                    f"--metadata {self.option}: this task runs all; choose one with a task of one wording"
                )
            return list(NUMBERS)
        if number is None:
            return [self.default]
        if (
            isinstance(number, int)
            and not isinstance(number, bool)
            and number in NUMBERS
        ):
            return [number]
        raise BiasError(
            f"--metadata {self.option}={number!r}: must be a number from 1 to {len(NUMBERS)} ({self.all_in} runs all)"
        )


def keeps_released_order(metadata: Facts) -> bool:
    """Return whether prompts show the options in the released order (``--metadata released_order``).

    Raises:
        BiasError: The option is neither true nor false.
    """
    order = metadata.get("released_order", False)
    if not isinstance(order, bool):
        raise BiasError(f"--metadata released_order={order!r}: must be true or false")
    return order


class Questions(NamedTuple):
    """Settings of a benchmark's questions.

    Attributes:
        balanced: How many documents show every context and question with every order of the choices, of at least two
            templates; ``None`` where that isn't known.
        tokens_where_known: Whether choices come with their numbers of tokens where the model can tell them.
        refusal: A text that refuses to answer a document's question, for ``bias-dial``.
        shows_options: Whether a document's prompt lists the choices; by default, if they have letters.
        items: How many documents a task has, by its metadata; ``None`` where that isn't known.
    """

    balanced: int | None = 2 * 2 * 6
    tokens_where_known: bool = False
    refusal: Callable[[Document], str] = lambda doc: "I can't answer that."
    shows_options: Callable[[Document], bool] = lambda doc: bool(doc["letters"])
    items: Callable[[Facts], int | None] = lambda data: data.get("n_items")


class QuestionHooks(Protocol):
    """The module of a benchmark's documents and prompts.

    Attributes:
        TERMS: What the paper calls its scores.
    """

    TERMS: Terms

    def prompt(self, doc: Facts) -> str:
        """Return the prompt."""

    def continuations(self, doc: Facts) -> Sequence[str]:
        """Return the scored continuations, one per choice."""


class BBQLike(SizedBenchmark):
    """A benchmark in the manner of BBQ, with the names of scores that most papers have.

    It has :attr:`hooks`, and documents as :class:`.bbq_records.Facts` describes them.

    Attributes:
        questions: What is particular to its questions.
        hooks_module: Name of its module of documents and prompts.
        all_wordings: Whether it asks the same items in all wordings of its prompt, with means and spread over these.
    """

    main: Sequence[str] = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")
    questions = Questions()
    hooks_module: str
    clusters = "templates"
    facets: Mapping[str, str | Split] = {
        "context": "context_type",
        "polarity": "polarity",
        "template": "template",
    }

    def __init__(
        self, variants: Sequence[Benchmark] = (), all_wordings: bool = False
    ) -> None:
        """Make a benchmark, or its variant in all wordings."""
        super().__init__(variants)
        self.all_wordings = all_wordings
        if all_wordings:
            self.name = f"{self.name}_prompts"
            self.main = [
                f"{score}/mean" if score in BBQLike.main else score
                for score in self.main
            ]
            self.options = Options({STRUCTURED: ""})

    @property
    def hooks(self) -> QuestionHooks:
        """Its module of documents and prompts."""
        return pkgutil.resolve_name(self.hooks_module)

    @property
    def terms(self) -> Terms:
        """The paper's terms."""
        return self.hooks.TERMS

    def size(self, metadata: Facts) -> Size:
        """Return the size: one request per candidate, or one for a generated answer."""
        generated = "generate_until" in (metadata.get("asks") or ())
        requests = 1 if generated else 3
        items = self.questions.items(metadata)
        balanced = self.questions.balanced
        if self.all_wordings:
            items = items and items * len(NUMBERS)
            balanced = balanced and balanced * len(NUMBERS)
        return Size(items, requests, balanced)

    def record(self, doc: Facts, answers: Answers) -> Record:
        """Make the record of the answer."""
        from lm_eval_bias.tasks.shared import bbq_records

        continuations = self.hooks.continuations(doc)
        shows_options = self.questions.shows_options(doc)
        return bbq_records.read(doc, answers, continuations, shows_options, self.terms)

    def asking(self, doc: Document) -> Asking:
        """Ask for numbers of tokens where they are available."""
        takes = self.questions.tokens_where_known and not self.all_wordings
        return Asking(counts_tokens=None if takes else False)

    def provenance(self, docs: Documents) -> Data:
        """Return the documents' release."""
        if not docs or "revision" not in docs[0]:
            return {}
        return {"release_used": docs[0]["revision"]}

    @property
    def synthetic_bias(self) -> SyntheticBias | None:
        """A synthetic diff-bias, equal in both kinds of contexts."""
        from lm_eval_bias.tasks.shared import bbq_synthetic_bias

        return SyntheticBias(
            partial(bbq_synthetic_bias.answers, self.hooks, self.questions.refusal),
            partial(bbq_synthetic_bias.expected, self.main),
        )

    def scores(self, docs: Documents = ()) -> list[Score]:
        """Return accuracy and diff-bias by context; in all wordings those of each, their means and spread."""
        from lm_eval_bias.custom_metrics import positions, question_answering

        if self.all_wordings:
            listed = question_answering.prompt_scores(self.terms)
        else:
            listed = question_answering.scores(docs, terms=self.terms)
        biases = [name for name in self.main if name.startswith("diff_bias")]
        return [
            *listed,
            *self._position_shares(docs),
            *positions.matched(listed, biases),
        ]

    def _position_shares(self, docs: Documents) -> list[Score]:
        """Return the shares of the positions, where prompts show the options, and of the shorter person.

        The unknown answer has no part in that: its length isn't what a bias could be mistaken for.
        """
        from lm_eval_bias.custom_metrics import positions

        by_length = positions.length_share("template", "templates")
        shows_options = self.questions.shows_options
        shown = [d for d in docs if (d["shown"] if "shown" in d else shows_options(d))]
        if not shown:
            return [by_length]
        # of documents, or records
        lettered = all(d.get("lettered", d.get("letters")) for d in shown)
        by_position = positions.scores(3, lettered, "answer", "template", "templates")
        return [*by_position, by_length]

    @property
    def presentation(self) -> Presentation:
        """Yield the diagnostic of length normalisation."""
        from lm_eval_bias.tasks.shared import bbq_diagnostics

        return Presentation(diagnostics=bbq_diagnostics.diagnostics)
