"""GG-BBQ as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_bias.core.benchmark import DETAIL, Card, Document, Sampling, deferred
from lm_eval_bias.tasks.kinds import bbq_like as question_family

ITEMS = {"group_terms": 968, "names": 10_900}
PAPER_ITEMS = {"group_terms": 968, "names": 4_968}  # of the release that the paper's numbers rest on
WORDINGS = question_family.PromptWordings(
    "wording",
    range(1, 6),
    default=2,
    all_in="gg_bbq_prompts",
    refusal="this task runs all wordings; choose one with the task without _prompts",
)


class GGBBQ(question_family.QuestionBenchmark):
    """German gender bias in question answering (Satheesh et al. 2025)."""

    name = "gg_bbq"
    title = "GG-BBQ"
    place = 2
    metrics = "lm_eval_bias.custom_metrics.gg_bbq"
    unknown = '"keine Antwort"'
    wordings = WORDINGS
    options: Mapping[str, str] = {"wording": "", "by_value": DETAIL}
    tokens_where_known = True
    card = Card(
        measures="Gender stereotypes in German question answering: whether a model falls back on them where the text "
        "leaves the answer open (ambiguous), and whether they lead it astray where the text gives the answer "
        "(disambiguated).",
        cannot="A diff-bias near 0 can come from not understanding the question: read it beside the accuracy, which "
        "bounds it. Nothing about other languages or about free text.",
        uncertainty="Items of one template are not independent evidence, so errors are clustered by template, 21 in "
        "each subset.",
        differs="The paper's five prompt texts are not public; ours are similar in spirit, and options are shown in "
        "all six orders. The latest Subset-II is larger than the paper's, whose release the gg_bbq_*_paper tasks take. "
        "Both have unequal numbers of biased and counter-biased contexts, so Eq. 4 is not a strict bound in "
        "disambiguated contexts. Which answer is likeliest depends on how length counts; the default is the sum of "
        "log-likelihoods.",
        paper="Satheesh, Klug, Beckh, Allende-Cid, Houben & Hassan (2025), GG-BBQ: German Gender Bias Benchmark for "
        "Question Answering, arXiv:2507.16410",
        link="https://arxiv.org/abs/2507.16410",
        population="Women, men and, in some templates, trans people in everyday scenes. Names are common German first "
        "names, eight in the paper's release and fifteen in the latest. Stereotypes come from BBQ (Parrish et al. "
        "2022), which was made for the United States.",
        languages="German: BBQ's gender templates, translated by machine (nllb-200), then reviewed and corrected by "
        "one language expert.",
        size="Subset-I (group terms) 968 items, Subset-II (names) 10,900, 4,968 in the paper's release; half are "
        "ambiguous. 21 templates a subset.",
        licence="CC BY 4.0 (shalakasatheesh/GG-BBQ)",
        flaws=(
            "Biased and counter-biased contexts are not balanced: 208 and 276 in Subset-I, 1,250 and 4,200 in "
            "Subset-II, where no template has both. There the disambiguated diff-bias compares different templates.",
            "The paper's release of Subset-I differs in 16 of 484 rows: six have “Die Freund”, ten a blank that was "
            "not filled in. They are scored as released.",
            "Six items of the paper's Subset-II can't be answered: both people have the same name.",
            "Names don't show who is trans; the text does.",
            "Templates are unequal: one has 1,600 of the 5,450 items of either kind in Subset-II.",
            "One expert revised the translation, so every item reflects one person's judgement (a limitation that the "
            "paper names). Stereotypes that only Germany has are missing.",
        ),
        use="Comparing models that understand German questions, by diff-bias beside accuracy.",
        misuse="Reading a diff-bias near 0 of a model with low accuracy as fairness. Conclusions about non-binary "
        "people, race, age or several of them together, which have no items here. Comparing numbers of the two "
        "releases.",
    )
    standard = ("gg_bbq_group_terms", "gg_bbq_names")
    quick = {
        task: Sampling("quadruples", deferred("lm_eval_bias.tasks.kinds.sampling:quadruples"), 6, items)
        for task, items in zip(standard, (360, 504), strict=True)
    }
    left_out = {
        "quick": "prompt wordings and the paper's release of GG-BBQ",
        "standard": "prompt wordings and answers from generated texts, and the paper's release of GG-BBQ",
    }

    def refusal(self, doc: Document) -> str:
        """Give a German one."""
        return "Dazu kann ich nichts sagen."

    def items(self, metadata: Mapping[str, Any]) -> int:
        """The items of the subset in the task's release."""
        paper = (metadata.get("fixed") or {}).get("release") == "paper"
        return (PAPER_ITEMS if paper else ITEMS)[metadata["subset"]]

    is_settled = deferred("lm_eval_bias.tasks.gg_bbq.filters:is_settled")
    provenance = deferred("lm_eval_bias.tasks.gg_bbq.hooks:provenance")

    def key(self, doc: Document) -> tuple[str, ...]:
        """Subset, kind of context, place in the data file and prompt wording; and the release, if not the latest."""
        release = [] if doc.get("release", "latest") == "latest" else [str(doc["release"])]
        return (str(doc["subset"]), str(doc["context_type"]), str(doc["item"]), str(doc["wording"]), *release)


class Wordings(GGBBQ):
    """The same items in all prompt wordings."""

    name = "gg_bbq_prompts"
    main = ("acc_amb/mean", "acc_disamb/mean", "diff_bias_amb/mean", "diff_bias_disamb/mean")
    knowledge = ("acc_disamb/mean", 1 / 3)
    over_wordings = True
    options = {}
    tokens_where_known = False

    def items(self, metadata: Mapping[str, Any]) -> int:
        """The items of the subset in every wording."""
        return len(WORDINGS.numbers) * super().items(metadata)


BENCHMARK = GGBBQ([Wordings()])
