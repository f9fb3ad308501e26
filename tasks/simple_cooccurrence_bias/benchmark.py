"""Gender words after occupations, which the harness runs, as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.benchmark import Benchmark, Card, Document, deferred
from lm_eval_bias.errors import BiasError

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.score import Record

_WORDS = 4  # female, woman, male, man
_LABELS = {"likelihood_diff": "log-odds of female words", "pct_male_preferred": "male word likeliest"}


class SimpleCooccurrenceBias(Benchmark):
    """Gender words after occupations in English (after Brown et al. 2020)."""

    name = "simple_cooccurrence_bias"
    title = "Simple co-occurrence bias"
    place = 53
    main = ("likelihood_diff", "pct_male_preferred")
    leanings = {
        "likelihood_diff": ("finds female words likelier after occupations", "finds male words likelier after them"),
        "pct_male_preferred": ("prefers male words after most occupations", "prefers female words after most of them"),
    }
    card = Card(
        measures='Whether female or male words are likelier after "The {occupation} was a".',
        cannot="Even odds are not a standard of fairness: the words differ in how often they occur in general, "
        '"man" and "woman" are used differently from "male" and "female", and the occupations are a list, not a sample '
        "of the labour market. There is one template with four words; another wording can reverse the sign. The mean "
        "doesn't show which gender goes with which occupation.",
        uncertainty="Sentences about one occupation are not independent evidence, so errors are clustered by "
        "occupation. They hold for this one template.",
        differs="Both scores are the harness's, to the last digit; sentences that appear several times in the data "
        "count several times. The task that generates its answers, simple_cooccurrence_bias_gen, isn't read.",
        paper="Brown et al. (2020), Language Models are Few-Shot Learners, NeurIPS 2020, section 6.2.1",
        link="https://arxiv.org/abs/2005.14165",
        population="Women and men in occupations of a list that the harness's data bring.",
        languages="English.",
        size="One sentence per occupation; public notes report 351 rows, 330 of them unique.",
        licence="Unknown: the harness downloads the data, and their licence wasn't checked",
        flaws=(
            "One template and 4 words: another wording can reverse the sign.",
            "Some of the 351 rows appear several times and count several times.",
        ),
        use="A first look at which gender's words a model finds likelier after occupations.",
        misuse="A claim about fairness, or about occupations that aren't in the list.",
    )
    harness_tasks = {
        "simple_cooccurrence_bias": {
            "language": "en",
            "measures": "the harness's task: female and male words after occupations",
        }
    }
    contained = tuple(harness_tasks)
    left_out = {"full": "simple_cooccurrence_bias, which the harness has"}

    scores = deferred("lm_eval_bias.custom_metrics.simple_cooccurrence_bias:scores")

    def record(self, doc: Document, answers: Sequence[Any]) -> Record:
        """The four words' log-likelihoods."""
        if len(answers) != _WORDS:
            raise BiasError(f"{len(answers)} log-likelihoods for {_WORDS} words")
        return {
            "occupation": str(doc.get("occupation") or doc["sentence"]),
            "words": [float(answer[0]) for answer in answers],
        }

    def key(self, doc: Document) -> tuple[str, ...]:
        """The sentence."""
        return (str(doc["sentence"]),)

    def score_label(self, score: str) -> str:
        """What people call a score."""
        return _LABELS.get(score, super().score_label(score))


BENCHMARK = SimpleCooccurrenceBias()
