"""BBQ, which the harness runs, as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lm_eval_bias.benchmark import Benchmark, Card, Document, deferred
from lm_eval_bias.tasks.question_family import bias_leanings

if TYPE_CHECKING:
    from lm_eval_bias.runs.run_data import TaskRun

_LABELS = {
    "acc": "accuracy",
    "accuracy_amb": "accuracy in ambiguous contexts",
    "accuracy_disamb": "accuracy in disambiguated contexts",
    "s_amb": "bias in ambiguous contexts",
    "s_dis": "bias in disambiguated contexts",
    "amb_bias_score": "bias in ambiguous contexts as the harness has it",
    "disamb_bias_score": "bias in disambiguated contexts as the harness has it",
    "unanswered": "items without an answer",
}
_CONTEXTS = {"": "", "_ambig": ", ambiguous contexts alone", "_disambig": ", disambiguated contexts alone"}
_CHOSEN = "the harness's task: English questions about people, answered by log-likelihoods"
_WRITTEN = "the harness's task: English questions about people, answered in generated text"


class BBQ(Benchmark):
    """Stereotypes in English question answering (Parrish et al. 2022)."""

    name = "bbq"
    title = "BBQ"
    place = 50
    main = ("accuracy_amb", "accuracy_disamb", "s_amb", "s_dis")
    leanings = bias_leanings("s_amb", "s_dis")
    unanswered = "unanswered"
    # of a guess between the two people; the harness's ten ways to say "unknown" leave 1/12 to one among all choices
    knowledge = ("accuracy_disamb", 0.5)
    card = Card(
        measures="Social stereotypes in English question answering, in eleven categories: whether a model falls back "
        "on them where the text leaves the answer open (ambiguous), and whether they lead it astray where the text "
        "gives the answer (disambiguated).",
        cannot="A bias score near 0 can come from not understanding the questions: read it beside the accuracy. The "
        "stereotypes are those of the United States, chosen and worded by the authors, who warn that a low score "
        "proves neither that a model has no bias nor that it behaves this way in other tasks. Accuracies here are not "
        "the paper's: the harness offers ten ways to say that the answer isn't known, so that a uniform guess is right "
        "in 10/12 of ambiguous and 1/12 of disambiguated items.",
        uncertainty="Questions made from one template are not independent evidence, so errors are clustered by "
        "category and question_index.",
        differs="acc, accuracy_* and *_bias_score are the harness's, to the last digit. Where no answer is biased, the "
        "harness writes 0, although a model whose answers all go against the stereotype has a score of -1, and one "
        "that names nobody has none. s_amb and s_dis make this distinction, and leave out items for which the harness "
        "marks neither or both people as the biased answer, which happens where groups are intersectional.",
        paper="Parrish, Chen, Nangia, Padmakumar, Phang, Thompson, Htut & Bowman (2022), BBQ: A Hand-Built Bias "
        "Benchmark for Question Answering, Findings of ACL 2022",
        link="https://aclanthology.org/2022.findings-acl.165",
        population="Groups that are stereotyped in the United States: nine categories, and race with "
        "gender and with socioeconomic status.",
        languages="English, as written in the United States.",
        size="58,492 items, half of them ambiguous, in eleven categories.",
        licence="CC BY 4.0 (the authors'); the harness downloads the data, nothing is pinned here",
        flaws=(
            "Ten of the twelve options that the harness scores mean that the answer isn't known.",
            "The harness's bias score is 0 where no answer is biased: both for a model whose answers all go against "
            "the stereotype (-1) and for one that names nobody (undefined).",
            "Items about intersections of groups can have no or 2 people marked as the biased answer.",
        ),
        use="Reading results of the harness's tasks with intervals that respect their templates; comparing models that "
        "understand English questions, by bias beside accuracy.",
        misuse="Reading a bias near 0 of a model with low accuracy as fairness. Conclusions about other countries. "
        "Comparing accuracies with the paper's.",
    )
    harness_tasks = {
        **{f"bbq{suffix}": {"language": "en", "measures": _CHOSEN + more} for suffix, more in _CONTEXTS.items()},
        **{
            f"bbq_generate{suffix}": {"language": "en", "measures": _WRITTEN + more, "asks": ["generate_until"]}
            for suffix, more in _CONTEXTS.items()
        },
    }
    contained = tuple(harness_tasks)
    left_out = {"full": "bbq*, which the harness has"}

    record = deferred("lm_eval_bias.tasks.bbq.answer_matching:record")
    scores = deferred("lm_eval_bias.custom_metrics.bbq:scores")

    def key(self, doc: Document) -> tuple[str, ...]:
        """Category and number in its file."""
        return str(doc["category"]), str(doc["example_id"])

    def score_label(self, score: str) -> str:
        """Put a score's name into words, such as ``Age/s_amb`` and ``disamb_bias_score_Age``."""
        from lm_eval_bias.custom_metrics.bbq import CATEGORIES

        category = next((c for c in CATEGORIES if score.startswith(f"{c}/") or score.endswith(f"_score_{c}")), "")
        kind = score.removeprefix(f"{category}/").removesuffix(f"_{category}") if category else score
        words = _LABELS.get(kind, kind.replace("_", " ").replace("/", ", "))
        about = category.replace("SES", "socio-economic status").replace("_x_", " by ").replace("_", " ").lower()
        return f"{words}, {about}" if category else words

    def cautions(self, task: TaskRun) -> Iterable[str]:
        """Warn of many texts that name no choice."""
        share = task.scores.get("unanswered")
        if share is not None and share.value > 0.1:
            yield (
                f"{100 * share.value:.0f}% of the generated answers name none of the choices, as the harness reads "
                "them; they count as wrong, and as naming nobody"
            )


BENCHMARK = BBQ()
