"""KoBBQ as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.benchmark import DETAIL, Card, Document, Sampling, deferred
from lm_eval_bias.tasks.kinds import bbq_like as question_family

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
ORDERS = ([0, 1, 2], [1, 2, 0], [2, 0, 1])  # cyclic, as the authors'
PROMPTS = question_family.PromptWordings(
    "prompt",
    range(1, 6),
    default=1,
    all_in="kobbq_prompts",
    refusal="this task runs all five; choose one with a task of one category",
)
GENDER = "kobbq_gender_identity"


class KoBBQ(question_family.QuestionBenchmark):
    """Korean question answering (Jin et al. 2024)."""

    name = "kobbq"
    title = "KoBBQ"
    place = 3
    metrics = "lm_eval_bias.custom_metrics.kobbq"
    clustered_by = "stories"
    wordings = PROMPTS
    options: Mapping[str, str] = {"prompt": "", "breakdown": DETAIL}
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
    quick: Mapping[str, Sampling] = {
        GENDER: Sampling("stories", deferred("lm_eval_bias.tasks.kinds.sampling:stories"), 12, 288)
    }
    left_out: Mapping[str, str] = {"quick": "all of KoBBQ but gender", "standard": "all of KoBBQ but gender"}
    standard: Sequence[str] = (GENDER,)
    contained: Sequence[str] = tuple(
        name for category in SAMPLES for name in (f"kobbq_{category}", f"kobbq_{category}_gen") if name != GENDER
    )

    def refusal(self, doc: Document) -> str:
        """Give a Korean one."""
        return "죄송합니다. 답변할 수 없습니다."

    def items(self, metadata: Mapping[str, Any]) -> int:
        """The samples of the category, or all, in every order."""
        return len(ORDERS) * SAMPLES.get(metadata.get("category", ""), sum(SAMPLES.values()))

    def key(self, doc: Document) -> tuple[str, ...]:
        """Sample, order of the options and prompt."""
        return (str(doc["item"]), "".join(map(str, doc["order"])), str(doc["wording"]))


class Prompts(KoBBQ):
    """The same samples in all five prompts, as the paper has them."""

    name = "kobbq_prompts"
    main = ("acc_amb/mean", "acc_disamb/mean", "diff_bias_amb/mean", "diff_bias_disamb/mean")
    knowledge = ("acc_disamb/mean", 1 / 3)
    options = {"breakdown": DETAIL}
    quick = {}
    left_out = {}
    contained = ()
    standard = ()
    over_wordings = True

    def items(self, metadata: Mapping[str, Any]) -> int:
        """The samples in every order and prompt."""
        return len(PROMPTS.numbers) * super().items(metadata)


BENCHMARK = KoBBQ([Prompts()])
