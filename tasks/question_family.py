"""What the benchmarks in the manner of BBQ have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lm_eval_bias.benchmark import Benchmark, Document, Form, deferred

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record

_ALIASES = {"gender_identity": "gender"}


def in_any_language(category: str) -> str:
    """A category of the family, whichever language asks about it, generated answers apart.

    >>> in_any_language("gender_identity"), in_any_language("age_gen")
    ('BBQ family, gender', 'BBQ family, age_gen')
    """
    stem = category.removesuffix("_gen")
    return f"BBQ family, {_ALIASES.get(stem, stem)}{category.removeprefix(stem)}"


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


def forms_of_wordings(group: str, benchmark: str, names: Iterable[str]) -> list[Form]:
    """A form for each prompt wording, of a task that asks all of them.

    Args:
        group: What is asked, whatever the form.
        benchmark: Whose scores the records have.
        names: Of the forms, in the order of the wordings' numbers.
    """
    return [Form(group, name, benchmark, partial(_has_wording, number)) for number, name in enumerate(names, start=1)]


def _has_wording(number: int, doc: Document) -> bool:
    return doc.get("wording") == number


class QuestionBenchmark(Benchmark):
    """A benchmark in the manner of BBQ, with the names of scores that most papers have.

    Attributes:
        candidates: How many texts are scored for a question.
        clustered_by: What its questions are clustered by, in the plural.
    """

    main: Sequence[str] = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")
    leanings = bias_leanings("diff_bias_amb", "diff_bias_disamb", ("", "/mean"))
    unanswered = "unanswered"
    knowledge: tuple[str, float] | None = ("acc_disamb", 1 / 3)
    outcomes = ("biased", "counter", "unknown")
    candidates = 3
    clustered_by = "templates"
    is_settled = deferred("lm_eval_bias.tasks.lettered_questions:is_settled")
    provenance = deferred("lm_eval_bias.tasks.question_records:provenance")

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One per candidate; one where the answer is generated."""
        return 1 if "generate_until" in (metadata.get("asks") or ()) else self.candidates

    def outcome(self, record: Record) -> str:
        """Whom the answer names: the person of the stereotype, the other one, or nobody."""
        return str(record["answer"])

    def clusters(self, record: Record) -> tuple[str, ...]:
        """Its template, or story."""
        return (str(record["template"]),)

    def stderr_method(self, score: str) -> str:
        """One for all scores."""
        return f"jackknife over {self.clustered_by}"

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
