"""A base class for benchmarks in the manner of BBQ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval_bias.core.benchmark import DETAIL, Asking, Benchmark, Document, Size
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.planting import Planting
from lm_eval_bias.tasks.kinds.with_sentences import module_of

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun
    from lm_eval_bias.custom_metrics.question_answering import Terms
    from lm_eval_bias.custom_metrics.score import Record, Score


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

    def chosen(self, metadata: Mapping[str, Any]) -> list[int]:
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


class BBQLike(Benchmark):
    """A benchmark in the manner of BBQ, with the names of scores that most papers have.

    It has :attr:`hooks`, and documents as :class:`.bbq_records.QuestionDocument` describes them.

    Attributes:
        paper: The name of its terms in :mod:`lm_eval_bias.custom_metrics.question_answering`.
        unknown: How a sentence names the answer that is right where the text leaves it open.
        candidates: How many texts are scored for a question.
        balanced: How many documents show every context and question with every order of the choices, of at least two
            templates; ``None`` where that isn't known.
        tokens_where_known: Whether choices come with their numbers of tokens where the model can tell them.
    """

    main: Sequence[str] = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")
    unanswered = "unanswered"
    knowledge: tuple[str, float] | None = ("acc_disamb", 1 / 3)
    paper: str
    unknown = "that it is unknown"
    candidates = 3
    balanced: int | None = 2 * 2 * 6
    tokens_where_known = False

    @property
    def hooks(self) -> Any:
        """Its module with ``prompt(doc)`` and ``continuations(doc)``: what is scored for a document.

        Where prompts have several wordings, its ``NUMBERS`` (:class:`PromptWordings`) say which are asked.
        """
        return module_of(self, "hooks")

    @property
    def terms(self) -> Terms:
        """What the paper calls its scores."""
        from lm_eval_bias.custom_metrics import question_answering

        terms: Terms = getattr(question_answering, self.paper)
        return terms

    def items(self, metadata: Mapping[str, Any]) -> int | None:
        """How many documents a task has, by default the metadata's ``n_items``; ``None`` where that isn't known."""
        return metadata.get("n_items")

    def size(self, metadata: Mapping[str, Any]) -> Size:
        """One request a candidate; one where the answer is generated."""
        generated = "generate_until" in (metadata.get("asks") or ())
        return Size(
            self.items(metadata), 1 if generated else self.candidates, self.balanced
        )

    def refusal(self, doc: Document) -> str:
        """Give a text that refuses to answer, for ``bias-dial``."""
        return "I can't answer that."

    def shows_options(self, doc: Document) -> bool:
        """Whether the prompt lists the choices; by default, if they have letters."""
        return bool(doc["letters"])

    def record(self, doc: Any, answers: Sequence[Any]) -> Record:
        """Read whom the answer names."""
        from lm_eval_bias.tasks.kinds import bbq_records

        return bbq_records.read(
            doc,
            answers,
            self.hooks.continuations(doc),
            self.shows_options(doc),
            self.terms,
        )

    def asking(self, doc: Document) -> Asking:
        """Numbers of tokens are never needed, and taken by some where they are known."""
        return Asking(counts_tokens=None if self.tokens_where_known else False)

    def provenance(self, docs: Sequence[Document]) -> dict[str, Any]:
        """Which release the documents are of."""
        return (
            {"release_used": docs[0]["revision"]}
            if docs and "revision" in docs[0]
            else {}
        )

    @property
    def planting(self) -> Planting | None:
        """A diff-bias, the same in both kinds of contexts."""
        from lm_eval_bias.tasks.kinds import bbq_planting

        return Planting(
            partial(bbq_planting.answers, self.hooks, self.refusal),
            partial(bbq_planting.expected, self.main),
        )

    def check_options(self, metadata: Mapping[str, Any]) -> None:
        """Refuse a prompt wording that there isn't, or that the task doesn't let choose."""
        if hasattr(self.hooks, "NUMBERS"):
            self.hooks.NUMBERS.chosen(metadata)

    def scores(
        self, docs: Sequence[Document] = (), detailed: bool = False
    ) -> list[Score]:
        """Accuracy and diff-bias by context."""
        from lm_eval_bias.custom_metrics import question_answering

        return question_answering.scores(docs, detailed, terms=self.terms)

    def facets(self, doc: Document) -> dict[str, str]:
        """Context, category or social value, template, and prompt wording, as far as a document has them."""
        names = {
            "context": "context_type",
            "category": "category",
            "value": "value",
            "template": "template",
        }
        return {
            name: str(doc[field]) for name, field in names.items() if field in doc
        } | {"wording": str(doc.get("wording", ""))}

    def score_label(self, score: str) -> str:
        """Put a score's name into words."""
        from lm_eval_bias.tasks.kinds import bbq_sentences

        return bbq_sentences.score_label(score)

    def sentences(self, task: TaskRun, beside_tables: bool = False) -> list[str]:
        """Say accuracy and bias by context, and how much they move from wording to wording."""
        from lm_eval_bias.tasks.kinds import bbq_sentences

        return bbq_sentences.sentences(
            task, rule=self.terms.main_rule, unknown=self.unknown
        )

    def cautions(self, task: TaskRun) -> Iterable[str]:
        """Warn of scores that rest on how lengths count."""
        from lm_eval_bias.tasks.kinds import bbq_sentences

        return bbq_sentences.cautions(task)


class OverWordings(BBQLike):
    """Put before a benchmark: the same items in all wordings of its prompt, with means and spread over these."""

    main: Sequence[str] = tuple(f"{score}/mean" for score in BBQLike.main)
    knowledge: tuple[str, float] | None = ("acc_disamb/mean", 1 / 3)
    tokens_where_known = False

    def items(self, metadata: Mapping[str, Any]) -> int | None:
        """The items in every wording."""
        items = super().items(metadata)
        return items and items * len(NUMBERS)

    def size(self, metadata: Mapping[str, Any]) -> Size:
        """The balanced items in every wording."""
        return (
            super()
            .size(metadata)
            ._replace(smallest=self.balanced and self.balanced * len(NUMBERS))
        )

    def scores(
        self, docs: Sequence[Document] = (), detailed: bool = False
    ) -> list[Score]:
        """The scores of every wording, their means and spread."""
        from lm_eval_bias.custom_metrics import question_answering

        return question_answering.prompt_scores(
            docs, detailed and DETAIL in self.options.values(), terms=self.terms
        )
