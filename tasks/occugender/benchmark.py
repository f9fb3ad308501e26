"""The benchmark object of OccuGender and of its variant with written answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import (
    SAMPLES_BY_DEFAULT,
    Asking,
    Condition,
    Document,
    Documents,
    Lazy,
    Options,
    Rewriting,
    Size,
)
from lm_eval_bias.tasks.shared.sized import SizedBenchmark, presented, synthetic

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun
    from lm_eval_bias.custom_metrics.score import Answers


def _instruction(task: TaskRun) -> tuple[str, str]:
    """Return a task's prompts and its debiasing instruction."""
    is_given = task.option("instruction") is not None
    templates = task.option("first_templates") or "all"
    return (
        f"{task.benchmark} {task.metadata.get('kind', '')}, {templates} templates".strip(),
        task.option_text("instruction") if is_given else "none",
    )


def _with_words(
    docs: Documents, answers: Sequence[Answers], words: str
) -> tuple[list[Document], list[Answers]]:
    from lm_eval_bias.tasks.occugender import hooks

    sets = {doc["kind"]: hooks.genders_by_word(words, doc["kind"]) for doc in docs}
    pairs = [
        hooks.rewrite(doc, given, words, sets[doc["kind"]])
        for doc, given in zip(docs, answers, strict=True)
    ]
    return [doc for doc, _ in pairs], [given for _, given in pairs]


OCCUPATIONS = 40
TEMPLATES = 25  # of each kind but stories
CONTEXTS = 3  # of stories
WORDS = {"explicit": 26, "implicit": 6}  # that are scored


_OPTIONS = (
    "items",
    "templates",
    "words",
    "word_probability",
    "instruction",
    "instruction_position",
    "first_templates",
)
_OF_TEXTS = [option for option in _OPTIONS if option != "word_probability"]


class OccuGender(SizedBenchmark):
    """Occupational gender bias (Chen et al. 2025)."""

    name = "occugender"
    title = "OccuGender"
    place = 1
    identity = (
        "kind",
        "item",
        "template",
    )  # the same under every instruction and word set
    main: Sequence[str] = (
        "stereotype_gap",
        "female_dominated_F",
        "male_dominated_M",
        "labour_pearson",
        "coverage",
    )
    options = Options(
        dict.fromkeys(_OPTIONS, ""), Lazy("lm_eval_bias.tasks.occugender.hooks:check")
    )
    clusters = "templates"
    facets = {"job": "item", "template": "template", "group": "group"}
    extensions = (
        Condition(
            "instruction", "OccuGender's debiasing instructions", "none", "--tasks occugender_debias has all",
            _instruction,
        ),
        Rewriting("words", "SET", "OccuGender: pronouns, appendix_a, authors_code or a YAML file", _with_words),
    )  # fmt: skip

    record = Lazy("lm_eval_bias.tasks.occugender.hooks:record")

    scores = Lazy("lm_eval_bias.custom_metrics.occugender:scores")

    synthetic_bias = synthetic(
        "lm_eval_bias.tasks.occugender.synthetic_answers", "random_texts"
    )

    presentation = presented(
        "occugender", Lazy("lm_eval_bias.tasks.occugender.diagnostics:diagnostics")
    )._replace(
        # neutral words, into which debiasing instructions turn words of gender
        beside_main=(
            "female_dominated_M",
            "female_dominated_D",
            "male_dominated_F",
            "male_dominated_D",
        ),
    )

    def size(self, metadata: Facts) -> Size:
        """Occupations times templates (Tables 5 to 7), one request per word; intervals need two whole templates."""
        items = OCCUPATIONS * (metadata.get("fixed") or {}).get(
            "first_templates", TEMPLATES
        )
        return Size(items, WORDS[metadata["kind"]], 2 * OCCUPATIONS)

    def asking(self, doc: Document) -> Asking:
        """Score the words, with their numbers of tokens unless the probability is the plain product."""
        return Asking(counts_tokens=doc["word_probability"] != "product")


class DrawnAnswers(OccuGender):
    """OccuGender with written answers."""

    name = "occugender_gen"
    main = (
        "stereotype_gap",
        "female_dominated_F",
        "male_dominated_M",
        "labour_pearson",
        "unanswered",
    )
    options = Options(
        {**dict.fromkeys(_OF_TEXTS, ""), "repeats": SAMPLES_BY_DEFAULT},
        Lazy("lm_eval_bias.tasks.occugender.hooks:check"),
    )

    record = Lazy("lm_eval_bias.tasks.occugender.hooks:record_of_texts")

    scores = Lazy("lm_eval_bias.custom_metrics.occugender_answers:scores")

    def size(self, metadata: Facts) -> Size:
        """Return the size, with one repeated request per prompt."""
        return super().size(metadata)._replace(requests=1)

    def asking(self, doc: Document) -> Asking:
        """Ask in the question for the answer's beginning, where it can't be prefilled."""
        return Asking(
            begins_by_instruction={
                **doc,
                "question": f'{doc["question"]} Begin with: "{doc["sentence"]}"',
            }
        )


class Stories(DrawnAnswers):
    """Stories, personas and exercises about occupations, and the gender of their people (Lum et al. 2025)."""

    name = "occugender_stories"
    main = (*DrawnAnswers.main[:-1], "unclear")

    scores = Lazy("lm_eval_bias.custom_metrics.occugender_answers:story_scores")

    def size(self, metadata: Facts) -> Size:
        """Occupations times contexts; intervals need two whole contexts."""
        return Size(OCCUPATIONS * CONTEXTS, 1, 2 * OCCUPATIONS)


BENCHMARK = OccuGender([DrawnAnswers(), Stories()])
