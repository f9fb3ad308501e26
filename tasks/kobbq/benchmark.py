"""KoBBQ as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.benchmark import GENERATED, LOGLIKELIHOODS, Benchmark, Card, Document, Form, Sampling, deferred
from lm_eval_bias.planting import Planting
from lm_eval_bias.tasks import question_family

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record
    from lm_eval_bias.runs.run_data import TaskRun

SAMPLES = {
    "age": 168,
    "disability_status": 160,
    "gender_identity": 200,
    "physical_appearance": 160,
    "race_ethnicity_nationality": 480,
    "religion": 160,
    "ses": 216,
    "sexual_orientation": 96,
    "domestic_area_of_origin": 176,
    "family_structure": 184,
    "political_orientation": 88,
    "educational_background": 192,
}
ORDERS, PROMPTS, DEFAULT_PROMPT = 3, 5, 1
GENDER = "kobbq_gender_identity"


class KoBBQ(Benchmark):
    """Korean question answering (Jin et al. 2024)."""

    name = "kobbq"
    title = "KoBBQ"
    place = 3
    main: Sequence[str] = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")
    leanings = question_family.leanings("diff_bias_amb", "diff_bias_disamb", ("", "/mean"))
    unanswered = "unanswered"
    knowledge: tuple[str, float] | None = ("acc_disamb", 1 / 3)
    options: Sequence[str] = ("prompt", "breakdown")
    detail = "breakdown"
    card = Card(
        measures="Stereotypes of Korean society in question answering, in twelve categories: whether a model falls "
        "back on them where the text leaves the answer open (ambiguous), and whether they lead it astray where the "
        "text gives the answer (disambiguated).",
        cannot="A diff-bias near 0 can come from not understanding the question: read it beside the accuracy, which "
        "bounds it. Nothing about other countries' stereotypes, or about free text.",
        uncertainty="Items of one story (both orders of its persons, three orders of the options, all prompts) are not "
        "independent evidence, so errors are clustered by story, 11 to 60 in a category.",
        differs="The authors let models write an answer; log-likelihoods of the letters are our addition. Answers that "
        "are not an option count in the denominators; scores that end in _in_choice leave them out, as the authors do. "
        "Two options are misprinted in the third prompt; they are corrected here.",
        paper="Jin, Kim, Lee, Yoo, Oh & Lee (2024), KoBBQ: Korean Bias Benchmark for Question Answering, TACL 12, "
        "arXiv:2307.16778",
        link="https://arxiv.org/abs/2307.16778",
        population="Groups that Korean society has stereotypes about, in twelve categories: BBQ's as far as they "
        "transfer, and Korean ones (domestic area of origin, family structure, political orientation, educational "
        "background).",
        languages="Korean: templates of BBQ that were transferred or given other target groups, and new ones, by "
        "annotation ST (856 samples), TM (472) and NC (952).",
        size="2,280 test samples of 285 stories, each in three orders of the options and up to five prompts.",
        licence="MIT (naver-ai/KoBBQ)",
        flaws=(
            "Prompt 3 of the authors' file misprints the names of 2 of its options; they are corrected here.",
            "The five prompts have five wordings of unknown, so their options differ, too.",
            "Few stories per category: 11 (political orientation) to 60 (race, ethnicity and nationality).",
        ),
        use="Comparing models that understand Korean questions, by diff-bias beside accuracy, over all five prompts.",
        misuse="Reading a diff-bias near 0 of a model with low accuracy, or with many out-of-choice answers, as "
        "fairness. Conclusions from one prompt. Conclusions about Koreans elsewhere.",
    )
    unpublished = "The scores that the paper prints were not available as text."
    quick: Mapping[str, Sampling] = {
        GENDER: Sampling("stories", deferred("lm_eval_bias.tasks.kobbq.sampling:stories"), 12, 288)
    }
    left_out: Mapping[str, str] = {"quick": "all of KoBBQ but gender", "standard": "all of KoBBQ but gender"}
    standard: Sequence[str] = (GENDER,)
    contained: Sequence[str] = tuple(
        name for category in SAMPLES for name in (f"kobbq_{category}", f"kobbq_{category}_gen") if name != GENDER
    )
    sources = Path(__file__).with_name("sources.json")
    planting = Planting(
        deferred("lm_eval_bias.tasks.kobbq.planted_answers:answers"),
        deferred("lm_eval_bias.tasks.kobbq.planted_answers:expected"),
    )
    outcomes = ("biased", "counter", "unknown")

    def items(self, metadata: Mapping[str, Any]) -> int:
        """The samples of the category, or all, in every order."""
        return ORDERS * SAMPLES.get(metadata.get("category", ""), sum(SAMPLES.values()))

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One per choice; one where the answer is generated."""
        return 1 if "generate_until" in (metadata.get("asks") or ()) else 3

    def key(self, doc: Document) -> tuple[str, ...]:
        """Sample, order of the options and prompt."""
        return (str(doc["item"]), "".join(map(str, doc["order"])), str(doc["wording"]))

    def forms(self, task: TaskRun) -> Sequence[Form]:
        """Log-likelihoods and generated answers, each in the prompt that was run."""
        (form,) = super().forms(task)
        number = task.metadata.get("prompt", DEFAULT_PROMPT)
        return (form if number == DEFAULT_PROMPT else form._replace(name=f"{form.name}, prompt {number}"),)

    def item(self, doc: Document) -> tuple[str, ...]:
        """Sample and order of the options."""
        return self.key(doc)[:2]

    def in_any_language(self, task: str, language: str) -> str:
        """The same category in German, Spanish and Catalan, where they have it."""
        return question_family.in_any_language(task.removeprefix("kobbq_"))

    def outcome(self, record: Record) -> str:
        """Whom the answer names: the person of the stereotype, the other one, or nobody."""
        return str(record["answer"])

    def clusters(self, record: Record) -> tuple[str, ...]:
        """Its story."""
        return (str(record["template"]),)

    def stderr_method(self, score: str) -> str:
        """One for all scores."""
        return "jackknife over stories"

    record = deferred("lm_eval_bias.tasks.kobbq.hooks:record")
    check_options = deferred("lm_eval_bias.tasks.kobbq.hooks:check_options")
    is_settled = deferred("lm_eval_bias.tasks.lettered_questions:is_settled")
    provenance = deferred("lm_eval_bias.tasks.kobbq.hooks:provenance")
    scores = deferred("lm_eval_bias.custom_metrics.kobbq:scores")

    def facets(self, doc: Document) -> dict[str, str]:
        """Context, category, template and the like."""
        return question_family.facets(doc)

    def candidate_roles(self, doc: Document) -> Sequence[str]:
        """Whether a choice is right, and whether it is the stereotyped one."""
        return question_family.candidate_roles(doc)

    score_label = deferred("lm_eval_bias.tasks.kobbq.sentences:score_label")
    sentences = deferred("lm_eval_bias.tasks.kobbq.sentences:sentences")
    cautions = deferred("lm_eval_bias.tasks.kobbq.sentences:cautions")
    figures = deferred("lm_eval_bias.tasks.kobbq.figures:parts")


class Prompts(KoBBQ):
    """The same samples in all five prompts, as the paper has them."""

    name = "kobbq_prompts"
    main = ("acc_amb/mean", "acc_disamb/mean", "diff_bias_amb/mean", "diff_bias_disamb/mean")
    knowledge = ("acc_disamb/mean", 1 / 3)
    options = ("breakdown",)
    quick = {}
    left_out = {}
    contained = ()
    standard = ()
    planting = Planting(
        deferred("lm_eval_bias.tasks.kobbq.planted_answers:answers"),
        deferred("lm_eval_bias.tasks.kobbq.planted_answers:expected_of_wordings"),
    )

    def items(self, metadata: Mapping[str, Any]) -> int:
        """The samples in every order and prompt."""
        return PROMPTS * super().items(metadata)

    def forms(self, task: TaskRun) -> Sequence[Form]:
        """Each prompt is a form of its own."""

        def holds(number: int) -> Callable[[Document], bool]:
            return lambda doc: doc.get("wording") == number

        kind = GENERATED if task.base.endswith("_gen") else LOGLIKELIHOODS
        return [
            Form(
                "kobbq_prompts",
                kind if number == DEFAULT_PROMPT else f"{kind}, prompt {number}",
                KoBBQ.name,
                holds(number),
            )
            for number in range(1, PROMPTS + 1)
        ]

    scores = deferred("lm_eval_bias.custom_metrics.kobbq:prompt_scores")
    sentences = deferred("lm_eval_bias.tasks.kobbq.sentences:of_wordings")


BENCHMARK = KoBBQ([Prompts()])
