"""CrowS-Pairs: the harness's tasks, and the pairs that Dutch, French and English share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from lm_eval_bias.core import Data, run_data
from lm_eval_bias.core.benchmark import (
    STRUCTURED,
    Asking,
    Document,
    Documents,
    ItemKey,
    Lazy,
    Options,
    Presentation,
)
from lm_eval_bias.core.content_hashes import of_text
from lm_eval_bias.core.questions import Contrast
from lm_eval_bias.core.synthetic_bias import Dial, SyntheticBias
from lm_eval_bias.tasks.shared.pair_choices import PairChoices
from lm_eval_bias.tasks.shared.sized import SizedBenchmark, harness_tasks

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun
    from lm_eval_bias.custom_metrics.score import Answers, Record


def _diagnostics(task: TaskRun) -> Iterable[str]:
    """Yield a diagnostic where sentence length decides which sentence is likelier."""
    names = ("pct_stereotype", "pct_stereotype_bytes")
    by_sum, by_bytes = (
        task.scores[name].interval if name in task.scores else None for name in names
    )
    if by_sum and by_bytes and (by_sum[1] < by_bytes[0] or by_bytes[1] < by_sum[0]):
        yield (
            "pct_stereotype depends on how sentence length counts: pct_stereotype_bytes, by log-likelihoods "
            "per byte, differs beyond the intervals"
        )


class CrowSPairs(SizedBenchmark):
    """Stereotypical and less stereotypical sentences in English and French (Nangia et al. 2020, Névéol et al. 2022)."""

    name = "crows_pairs"
    title = "CrowS-Pairs"
    place = 51
    main = ("pct_stereotype",)
    clusters = "pairs"
    facets = {"bias_type": "bias_type"}
    extensions = (
        harness_tasks(__package__, lambda doc, _: (doc["sent_more"], doc["sent_less"])),
    )
    presentation = Presentation(diagnostics=_diagnostics)

    def record(self, doc: Document, answers: Answers) -> Record:
        """Make the record: both sentences' log-likelihoods and lengths."""
        record: Data = {
            "pair": " / ".join(self.key(doc)),
            "bias_type": str(doc["bias_type"]),
        }
        for sent, answer in zip(("more", "less"), answers, strict=True):
            record |= {
                sent: float(answer[0]),
                f"{sent}_bytes": len(str(doc[f"sent_{sent}"]).encode()),
            }
        return record

    scores = Lazy("lm_eval_bias.custom_metrics.crows_pairs:scores")

    def key(self, doc: Document) -> ItemKey:
        """Return its number, if it has one, and a hash of each sentence."""
        number = (str(doc["id"]),) if "id" in doc else ()
        sentences = (doc["sent_more"], doc["sent_less"])
        return (*number, *(of_text(str(sentence)) for sentence in sentences))


def _answers(doc: Document, dial: Dial) -> list[tuple[float, int]]:
    """Make the more stereotyping sentence likelier with probability (1 + strength) / 2."""
    draw = dial.draw("more", *doc["sentences"])
    share = (1.0 + dial.strength) / 2.0
    return [(math.log(0.9 if draw < share else 0.1), 1), (math.log(0.5), 1)]


def _expected(docs: Documents, dial: Dial) -> Mapping[str, float]:
    return {"stereotype_score": 50.0 + 50.0 * dial.strength}


class Parallel(SizedBenchmark):
    """The same 1,463 pairs in Dutch, French and English (Strazda & Spanakis 2025)."""

    name = "crows_pairs_parallel"
    title = "CrowS-Pairs"
    place = 5
    main = ("stereotype_score",)
    requests = 2
    smallest = 30
    clusters = "pairs"
    facets = {"bias_type": "bias_type", "direction": "direction"}
    synthetic_bias = SyntheticBias(_answers, _expected)
    presentation = Presentation(
        published=partial(run_data.published, "crows_pairs"),
        beside_main=("stereotype_score_per_token",),
    )

    record = Lazy("lm_eval_bias.tasks.crows_pairs.hooks:record")

    scores = Lazy("lm_eval_bias.custom_metrics.crows_pairs:parallel_scores")

    def asking(self, doc: Document) -> Asking:
        """Ask for each sentence's likelihood in contrast to the other."""
        more, less = doc["sentences"]
        return Asking([Contrast(more, less), Contrast(less, more)])


class CrowSPairsChoices(PairChoices):
    """CrowS-Pairs as a question with lettered options, for models that write."""

    name = "crows_pairs_choices"
    title = "CrowS-Pairs"
    clusters = "pairs"
    facets = Parallel.facets
    options = Options({STRUCTURED: ""})


BENCHMARK = CrowSPairs([Parallel(), CrowSPairsChoices()])
