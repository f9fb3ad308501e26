"""EsBBQ and CaBBQ as the rest of the package sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.benchmark import DETAIL, Card, Document, Sampling, deferred
from lm_eval_bias.tasks.kinds import bbq_like as question_family

ITEMS = {
    "age": 4_068,
    "disability_status": 2_832,
    "gender": 4_832,
    "lgbtqia": 2_000,
    "nationality": 504,
    "physical_appearance": 3_528,
    "race_ethnicity": 3_716,
    "religion": 648,
    "ses": 4_204,
    "spanish_region": 988,
}
MORE_IN_CATALAN = {"physical_appearance": 24}
OPTIONS = 11  # two persons, nine wordings of "unknown"
LANGUAGES = {"es": "Spanish", "ca": "Catalan"}
HARNESS_GROUPS = {"es": "esbbq", "ca": "cabbq"}


def _items(language: str, category: str) -> int:
    return ITEMS[category] + (MORE_IN_CATALAN.get(category, 0) if language == "ca" else 0)


class EsBBQ(question_family.QuestionBenchmark):
    """Spanish and Catalan question answering (Ruiz-Fernández et al. 2025)."""

    name = "es_bbq"
    title = "EsBBQ and CaBBQ"
    place = 3
    main = ("acc_ambig_three", "acc_disambig_three", "bias_score_ambig_three", "bias_score_disambig_three")
    leanings = question_family.bias_leanings("bias_score_ambig_three", "bias_score_disambig_three")
    knowledge = ("acc_disambig_three", 1 / 3)
    metrics = "lm_eval_bias.custom_metrics.es_bbq"
    candidates = OPTIONS
    options: Mapping[str, str] = {"by_value": DETAIL}
    tokens_where_known = True
    card = Card(
        measures="Stereotypes of Spain's society in question answering, in Spanish and Catalan and in ten categories: "
        "whether a model falls back on them where the text leaves the answer open (ambiguous), and whether they lead "
        "it astray where the text gives the answer (disambiguated).",
        cannot="A bias score near 0 can come from not understanding the question: read it beside the accuracy, which "
        "bounds it. Nothing about other countries' stereotypes, or about free text.",
        uncertainty="Items of one template are not independent evidence, so errors are clustered by template, 15 to 66 "
        "in a category.",
        differs='Nine wordings of "unknown" beside two persons, as in the authors\' task in lm-evaluation-harness, '
        'favour "unknown" (guessing is right in 9/11 of ambiguous and 1/11 of disambiguated items): the main scores, '
        "whose names end in _three, take one wording, and guessing gets 1/3. Ties are unanswered here, and the first "
        "option there. CaBBQ has 24 items about appearance that EsBBQ lacks; in 4 and 12 disambiguated items about "
        "appearance the question's type contradicts the groups, and the type is followed, as the authors do.",
        paper="Ruiz-Fernández, Mina, Falcão, Vasquez-Reina, Sallés, Gonzalez-Agirre & Perez-de-Viñaspre (2025), EsBBQ "
        "and CaBBQ: The Spanish and Catalan Bias Benchmarks for Question Answering, arXiv:2507.11216",
        link="https://arxiv.org/abs/2507.11216",
        population="Groups that are stereotyped in Spain: by age, disability, gender, sexual orientation "
        "and gender identity, nationality, appearance, race and ethnicity, religion, socioeconomic status and region "
        "of Spain.",
        languages="Spanish (EsBBQ) and Catalan (CaBBQ), adapted from BBQ to Spain by the authors.",
        size="27,320 items in Spanish and 27,344 in Catalan, from 504 to 4,832 a category, 323 templates in all.",
        licence="Apache-2.0 (langtech-bsc/EsBBQ-CaBBQ)",
        flaws=(
            'Nine of the eleven options mean "unknown", which favours it.',
            "In 4 (es) and 12 (ca) disambiguated items about appearance the type of the question contradicts the "
            "groups; the type decides.",
            "About socioeconomic status 1,484 contexts are along the stereotype and 1,340 against it.",
            "CaBBQ has 24 items about appearance that EsBBQ lacks, so that this category isn't parallel.",
        ),
        use="Comparing models that understand Spanish or Catalan questions, by bias scores beside accuracies; "
        "comparing a model's two languages item by item.",
        misuse="Reading a bias score near 0 of a model with low accuracy as fairness. Conclusions about other "
        "Spanish-speaking countries. Adding up categories.",
    )
    quick: Mapping[str, Sampling] = {
        f"{language}_bbq_gender": Sampling("cells", deferred("lm_eval_bias.tasks.kinds.sampling:cells"), 1, 396)
        for language in LANGUAGES
    }
    standard: Sequence[str] = tuple(quick)
    left_out: Mapping[str, str] = {
        **dict.fromkeys(("quick", "standard"), "all of EsBBQ and CaBBQ but gender"),
        "full": "esbbq_* and cabbq_*, which the harness has",
    }

    def refusal(self, doc: Document) -> str:
        """Give one in the document's language."""
        return str(self.hooks.wordings(doc["language"])["refusal"])

    def items(self, metadata: Mapping[str, Any]) -> int | None:
        """The items of the category in the task's language."""
        return _items(metadata["language"], metadata["category"]) if "category" in metadata else None

    def key(self, doc: Document) -> tuple[str, ...]:
        """Category and number: the two languages' items are parallel, but for those about appearance."""
        own = (str(doc["category"]), str(doc["item"]))
        return (*own, str(doc["language"])) if doc["category"] in MORE_IN_CATALAN else own

    def candidate_roles(self, doc: Document) -> Sequence[str]:
        """Whether an option is right, and whether it is the stereotyped one; all behind the persons say "unknown"."""
        own = super().candidate_roles(doc)
        return own if doc.get("generated") else [*own, *[own[-1]] * (OPTIONS - len(own))]


class HarnessTasks(EsBBQ):
    """The same questions as the harness's own tasks ask them, read from their sample logs."""

    name = "esbbq"
    title = "EsBBQ and CaBBQ, the harness's tasks"
    options = {}
    tokens_where_known = False
    planting = None
    quick = {}
    standard = ()
    left_out = {}
    harness_tasks = {
        f"{HARNESS_GROUPS[language]}_{category}": {
            "language": language,
            "measures": f"{word} question answering, {category.replace('_', ' ')}: lm-evaluation-harness's own task",
            "n_items": _items(language, category),
        }
        for language, word in LANGUAGES.items()
        for category in ITEMS
    }

    contained = tuple(harness_tasks)

    def items(self, metadata: Mapping[str, Any]) -> int | None:
        """The items of the category."""
        return metadata.get("n_items")

    def key(self, doc: Document) -> tuple[str, ...]:
        """Category and number."""
        return (str(doc["category"]), str(doc["instance_id"]))

    def facets(self, doc: Document) -> dict[str, str]:
        """Context, category and template."""
        names = {"context": "context_condition", "category": "category", "template": "template_id"}
        return {name: str(doc[field]) for name, field in names.items()}

    def candidate_roles(self, doc: Document) -> Sequence[str]:
        """Which option is right; all behind the persons say "unknown"."""
        return ["right" if min(i, 2) == doc["label"] else "" for i in range(OPTIONS)]

    record = deferred("lm_eval_bias.tasks.es_bbq.hooks:record_of_harness")
    scores = deferred("lm_eval_bias.custom_metrics.es_bbq:scores_of_harness_tasks")


BENCHMARK = EsBBQ([HarnessTasks()])
