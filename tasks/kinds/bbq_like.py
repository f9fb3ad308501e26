"""What the benchmarks in the manner of BBQ have in common."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import Benchmark, Document, deferred
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.planting import Planting

if TYPE_CHECKING:
    from lm_eval_bias.core.page_parts import Part, ReportTask
    from lm_eval_bias.core.run_data import TaskRun
    from lm_eval_bias.custom_metrics.question_answering import Terms
    from lm_eval_bias.custom_metrics.score import Record, Score


def bias_leanings(ambiguous: str, disambiguated: str, suffixes: Sequence[str] = ("",)) -> dict[str, tuple[str, str]]:
    """What a diff-bias above 0 and below says, by score.

    Args:
        ambiguous: The score of ambiguous contexts.
        disambiguated: That of disambiguated ones.
        suffixes: With which the two come.
    """
    return {
        f"{score}{suffix}": (f"leans towards stereotypes in {where}", f"leans against stereotypes in {where}")
        for score, where in ((ambiguous, "ambiguous contexts"), (disambiguated, "disambiguated contexts"))
        for suffix in suffixes
    }


@dataclass(frozen=True)
class PromptWordings:
    """The wordings of a benchmark's prompts.

    Attributes:
        option: The ``--metadata`` key that takes the number of one.
        numbers: Of all.
        default: The one that is asked by default.
        all_in: The task, or group, that asks all of them.
        refusal: What such a task says to those who choose one.
    """

    option: str
    numbers: range
    default: int
    all_in: str
    refusal: str

    def chosen(self, metadata: Mapping[str, Any]) -> list[int]:
        """The wordings that a task asks: the one that its metadata choose, the default one, or all.

        Raises:
            BiasError: There is no such wording, or the task asks all.
        """
        number = metadata.get(self.option)
        if self.option in (metadata.get("fixed") or {}):
            if number is not None:
                raise BiasError(f"--metadata {self.option}: {self.refusal}")
            return list(self.numbers)
        if number is None:
            return [self.default]
        if isinstance(number, int) and not isinstance(number, bool) and number in self.numbers:
            return [number]
        raise BiasError(
            f"--metadata {self.option}={number!r}: must be a number from 1 to {len(self.numbers)} "
            f"({self.all_in} runs all)"
        )


class QuestionBenchmark(Benchmark):
    """A benchmark in the manner of BBQ, with the names of scores that most papers have.

    Attributes:
        metrics: The module that has its ``TERMS``, ``scores`` and, over prompt wordings, ``prompt_scores``.
        over_wordings: Whether its scores are means over prompt wordings.
        unknown: How a sentence names the answer that is right where the text leaves it open.
        candidates: How many texts are scored for a question.
        clustered_by: What its questions are clustered by, in the plural.
        wordings: Of its prompts, where they have several.
        tokens_where_known: Whether choices come with their numbers of tokens where the model can tell them.
    """

    main: Sequence[str] = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")
    leanings = bias_leanings("diff_bias_amb", "diff_bias_disamb", ("", "/mean"))
    unanswered = "unanswered"
    knowledge: tuple[str, float] | None = ("acc_disamb", 1 / 3)
    metrics: str
    over_wordings = False
    unknown = "that it is unknown"
    candidates = 3
    clustered_by = "templates"
    wordings: PromptWordings | None = None
    tokens_where_known = False
    is_settled = deferred("lm_eval_bias.tasks.kinds.lettered_questions:is_settled")
    provenance = deferred("lm_eval_bias.tasks.kinds.bbq_records:provenance")
    planting: Planting | None = Planting(
        deferred("lm_eval_bias.tasks.kinds.bbq_planting:answers"),
        deferred("lm_eval_bias.tasks.kinds.bbq_planting:expected"),
    )

    @property
    def terms(self) -> Terms:
        """What the paper calls its scores."""
        terms: Terms = importlib.import_module(self.metrics).TERMS
        return terms

    @property
    def hooks(self) -> Any:
        """The module with its ``prompt``, ``continuations`` and ``record``, beside its own."""
        return importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.hooks")

    def record(self, doc: Document, answers: Sequence[Any]) -> Record:
        """Read whom the answer names (:mod:`.question_records`)."""
        record: Record = self.hooks.record(doc, answers)
        return record

    def scores(self, docs: Sequence[Document] = (), detailed: bool = False) -> list[Score]:
        """List the scores, of one prompt wording or over all of them."""
        module = importlib.import_module(self.metrics)
        made: list[Score] = (module.prompt_scores if self.over_wordings else module.scores)(docs, detailed)
        return made

    def refusal(self, doc: Document) -> str:
        """Give a text that refuses to answer, for ``bias-dial``."""
        return "I can't answer that."

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One per candidate; one where the answer is generated."""
        return 1 if "generate_until" in (metadata.get("asks") or ()) else self.candidates

    def counts_tokens(self, doc: Document) -> bool | None:
        """Never needed, and taken by some where they are known."""
        return None if self.tokens_where_known else False

    def check_options(self, metadata: Mapping[str, Any]) -> None:
        """Refuse a prompt wording that there isn't, or that the task doesn't let choose."""
        if self.wordings is not None:
            self.wordings.chosen(metadata)

    def facets(self, doc: Document) -> dict[str, str]:
        """Context, category or social value, template, and prompt wording, as far as a document has them."""
        names = {"context": "context_type", "category": "category", "value": "value", "template": "template"}
        return {name: str(doc[field]) for name, field in names.items() if field in doc} | {
            "wording": str(doc.get("wording", ""))
        }

    def candidate_roles(self, doc: Document) -> Sequence[str]:
        """Whether a choice is right, and whether it is the stereotyped one."""
        roles = {"right": doc["label"], "stereotype": doc["biased_choice"]}
        return [", ".join(role for role, own in roles.items() if own == i) for i in range(len(doc["choices"]))]

    def score_label(self, score: str) -> str:
        """Put a score's name into words."""
        from lm_eval_bias.tasks.kinds import bbq_sentences as question_sentences

        return question_sentences.score_label(score, terms=self.terms)

    def sentences(self, task: TaskRun, beside_tables: bool = False) -> list[str]:
        """Say accuracy and bias by context; over wordings also how much they move."""
        from lm_eval_bias.tasks.kinds import bbq_sentences as question_sentences

        if self.over_wordings:
            return question_sentences.of_wordings(task, terms=self.terms)
        return question_sentences.sentences(task, terms=self.terms, unknown=self.unknown)

    def cautions(self, task: TaskRun) -> Iterable[str]:
        """Warn of many items without a single answer, and of scores that rest on how lengths count."""
        from lm_eval_bias.tasks.kinds import bbq_sentences as question_sentences

        return question_sentences.cautions(task, terms=self.terms)

    def figures(self, tasks: Sequence[ReportTask]) -> list[Part]:
        """Draw accuracy against bias, and the spread over prompt wordings."""
        from lm_eval_bias.tasks.kinds import bbq_figures as question_figures

        return question_figures.parts(tasks, name=self.folder.name, terms=self.terms)
