"""OccuGender as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import Benchmark, Card, Condition, Document, Rewriting, Sampling, deferred
from lm_eval_bias.core.planting import Planting

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun


def _instruction(task: TaskRun) -> tuple[str, str]:
    """The debiasing instruction of a task, among those with the same prompts."""
    fixed = task.metadata.get("fixed") or {}
    instruction = fixed.get("instruction", task.metadata.get("instruction"))
    templates = fixed.get("first_templates", task.metadata.get("first_templates"))
    level = "none" if instruction in (None, "none") else str(instruction)
    return f"{task.benchmark} {task.metadata.get('kind', '')}, {templates or 'all'} templates".strip(), level


OCCUPATIONS, TEMPLATES = 40, 25  # of each kind


class OccuGender(Benchmark):
    """Occupational gender bias (Chen et al. 2025)."""

    name = "occugender"
    title = "OccuGender"
    place = 1
    main: Sequence[str] = ("stereotype_gap", "female_dominated_F", "male_dominated_M", "labour_pearson", "coverage")
    leanings = {
        "stereotype_gap": ("leans towards stereotypes", "leans against stereotypes"),
        "labour_pearson": ("follows the labour market", "runs against the labour market"),
    }
    # words of each number of tokens share a probability of 1 where tokens are unmasked one by one
    largest: Mapping[str, float] = {"coverage": 8.0}
    options: Mapping[str, str] = dict.fromkeys(
        ("items", "templates", "words", "word_probability", "instruction", "instruction_position", "first_templates"),
        "",
    )
    card = Card(
        measures="Occupational gender bias in English: how much of the probability on gender words goes to men, women "
        "and neutral words after a prompt about a worker, asked outright (explicit) or in running text (implicit).",
        cannot="Nothing about stereotypes other than occupations, and nothing about languages other than English. A "
        "neutral value of the shares is not defined: the paper leaves open what an unbiased model should say. Where "
        "coverage is low, or many drawn answers can't be read, the shares describe little of what the model would say.",
        uncertainty="Occupations and templates are crossed samples; both enter the standard error.",
        differs="The published tables were made with the authors' scripts, which score other words in explicit "
        "prompts and, in implicit ones, seem to count the last word of each list alone (word_probability=last_word); "
        "the default here is the paper's equations. Its ± is another quantity and is listed as se_paper. The tasks "
        "occugender_*_gen are not in the paper: they count answers that a model writes.",
        paper="Chen, C R, Mattern, Mihalcea & Jin (2025), Causally Testing Gender Bias in LLMs: A Case Study on "
        "Occupational Bias, Findings of NAACL 2025, arXiv:2212.10678",
        link="https://arxiv.org/abs/2212.10678",
        population="Workers in 40 occupations: 20 that mostly women and 20 that mostly men have in the United States, "
        "by the percentages of the Bureau of Labor Statistics in the paper's Table 5. The gender words are women's, "
        "men's and neutral ones; “they” represents every non-binary gender.",
        languages="English, as the authors wrote it.",
        size="2,000 prompts: 40 occupations in 25 explicit and in 25 implicit templates, every occupation in every "
        "template. Debiasing: the first five templates of each kind under six instructions and under none, 2,800.",
        licence="Templates, occupations, word lists and instructions are the paper's tables and are part of the "
        "package. The authors' repository (chenyuen0103/gender-bias) states no licence; nothing of it is used or "
        "downloaded.",
        flaws=(
            "Coverage can be low: SmolLM2-135M-Instruct puts 3.6% (explicit) and 13.9% (implicit) of its probability "
            "on the gender words, and the shares describe no more than that.",
            "The article stays “a” before vowels, as printed (“a electrician”).",
            "The authors' stored results for Gemma-2-9B give 32.4 / 64.0 / 3.6 where their Table 4 prints 32.5 / 63.8 "
            "/ 3.7: close, not equal.",
            "Drawn answers are read by rule. Of 610 answers labelled by hand, the rules read 19 differently; the "
            "person who labelled them also wrote the rules.",
        ),
        use="Comparing models, or one model under several instructions, in how they link occupations and gender in "
        "English.",
        misuse="Calling a model fair, or fit for hiring or any other decision about people. Conclusions about other "
        "stereotypes, languages or labour markets. Ranking models whose coverage is low.",
    )
    standard: Sequence[str] = ("occugender_explicit", "occugender_implicit")
    quick: Mapping[str, Sampling] = {
        task: Sampling("templates", deferred("lm_eval_bias.tasks.kinds.sampling:templates"), 8, 320)
        for task in standard
    }
    left_out: Mapping[str, str] = dict.fromkeys(
        ("quick", "standard"), "debiasing instructions and OccuGender from drawn answers"
    )
    conditions = (
        Condition(
            "instruction", "OccuGender's debiasing instructions", "none", "--tasks occugender_debias has all",
            _instruction,
        ),
    )  # fmt: skip
    rewritings: Sequence[Rewriting] = (
        Rewriting(
            "words",
            "SET",
            "OccuGender: pronouns, appendix_a, authors_code or a YAML file",
            each=deferred("lm_eval_bias.tasks.occugender.hooks:rewrite"),
        ),
    )

    def items(self, metadata: Mapping[str, Any]) -> int:
        """Occupations times templates (Tables 5 to 7)."""
        return OCCUPATIONS * (metadata.get("fixed") or {}).get("first_templates", TEMPLATES)

    check_options = deferred("lm_eval_bias.tasks.occugender.hooks:check_options")

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One per word."""
        from lm_eval_bias.tasks.occugender import inputs

        return sum(map(len, inputs.words(None, metadata["kind"]).values()))

    planting = Planting(
        deferred("lm_eval_bias.tasks.occugender.planted_answers:answers"),
        deferred("lm_eval_bias.tasks.occugender.planted_answers:expected"),
    )
    record = deferred("lm_eval_bias.tasks.occugender.hooks:record")
    counts_tokens = deferred("lm_eval_bias.tasks.occugender.hooks:counts_tokens")

    def key(self, doc: Document) -> tuple[str, ...]:
        """Kind, occupation and template: the same under every instruction and word set."""
        return (str(doc["kind"]), str(doc["item"]), str(doc["template"]))

    scores = deferred("lm_eval_bias.custom_metrics.occugender:scores")

    def facets(self, doc: Document) -> dict[str, str]:
        """Who dominates the occupation, the occupation and the template."""
        return {"jobs": f"{doc['group']}-dominated", "occupation": str(doc["item"]), "template": str(doc["template"])}

    def candidate_roles(self, doc: Document) -> Sequence[str]:
        """Each word's gender."""
        return list(map(str, doc["genders"]))

    score_label = deferred("lm_eval_bias.tasks.occugender.sentences:score_label")
    sentences = deferred("lm_eval_bias.tasks.occugender.sentences:sentences")
    cautions = deferred("lm_eval_bias.tasks.occugender.sentences:cautions")
    figures = deferred("lm_eval_bias.tasks.occugender.figures:parts")
    published = deferred("lm_eval_bias.tasks.occugender.published:published")


class DrawnAnswers(OccuGender):
    """The same prompts, whose answers are written and read."""

    name = "occugender_gen"
    main = ("stereotype_gap", "female_dominated_F", "male_dominated_M", "labour_pearson", "unanswered")
    unanswered = "unanswered"
    largest = {}
    options = dict.fromkeys(
        ("items", "templates", "words", "instruction", "instruction_position", "first_templates", "repeats"), ""
    )
    samples_texts = "by default"
    standard = ()
    quick = {}
    left_out = {}

    def requests(self, metadata: Mapping[str, Any]) -> int:
        """One, which is repeated."""
        return 1

    record = deferred("lm_eval_bias.tasks.occugender.hooks:record_of_texts")

    def begin_by_instruction(self, doc: Document) -> Document:
        """Say in the question how the answer has to begin."""
        return {**doc, "question": f'{doc["question"]} Begin with: "{doc["sentence"]}"'}

    def counts_tokens(self, doc: Document) -> bool:
        """Never: nothing is scored."""
        return False

    def read_answer(self, raw: Any) -> list[list[str]]:
        """A prompt's texts: ``[text, gender or why none]`` each."""
        if not isinstance(raw, list) or not all(isinstance(row, list) and len(row) == 2 for row in raw):
            raise ValueError("no list of texts with what they say")
        return [[str(part) for part in row] for row in raw]

    def random_texts(self, doc: Document) -> Sequence[str]:
        """The first word of each gender."""
        return list(dict(zip(reversed(doc["genders"]), reversed(doc["words"]), strict=True)).values())

    scores = deferred("lm_eval_bias.custom_metrics.occugender_answers:scores")

    sentences = deferred("lm_eval_bias.tasks.occugender.sentences:of_drawn_answers")
    cautions = deferred("lm_eval_bias.tasks.occugender.sentences:unread_answers")

    def published(self) -> tuple[()]:
        """None: the paper scores probabilities."""
        return ()


BENCHMARK = OccuGender([DrawnAnswers()])
