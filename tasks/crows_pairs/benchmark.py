"""CrowS-Pairs, which the harness runs, as the rest of the package sees it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.benchmark import Benchmark, Card, Document, deferred

if TYPE_CHECKING:
    from lm_eval_bias.core.run_data import TaskRun
    from lm_eval_bias.custom_metrics.score import Record

_TYPES = (
    "age", "autre", "disability", "gender", "nationality", "physical_appearance", "race_color", "religion",
    "sexual_orientation", "socioeconomic",
)  # fmt: skip
_LABELS = {
    "pct_stereotype": "stereotypical sentence likelier",
    "likelihood_diff": "difference of log-likelihoods",
    "pct_stereotype_bytes": "stereotypical sentence likelier per byte",
}


class CrowSPairs(Benchmark):
    """Stereotypical and less stereotypical sentences in English and French (Nangia et al. 2020, Névéol et al. 2022)."""

    name = "crows_pairs"
    title = "CrowS-Pairs"
    place = 51
    main = ("pct_stereotype",)
    leanings = {"pct_stereotype": ("finds stereotypical sentences likelier", "finds them less likely")}
    card = Card(
        measures="Whether a model finds the more stereotypical of two sentences likelier. The two mostly differ only "
        "in the group that they are about. Nine types of bias in English, ten in French.",
        cannot="The pairs' flaws threaten the validity of the English ones (Blodgett et al. 2021): a number from such "
        "pairs, near 0.5 or not, says little about a model's stereotypes. The harness's English and French pairs are "
        "those that Névéol et al. (2022) revised, which repairs some of this.",
        uncertainty="The pair of sentences is the sampling unit: pairs are treated as independent.",
        differs="pct_stereotype and likelihood_diff are the harness's, to the last digit: ordinary log-likelihoods of "
        "whole sentences. Nangia et al. score the tokens that both sentences share, in masked language models. "
        "pct_stereotype_bytes, per byte of each sentence, is in neither: where it differs, sentence lengths explain "
        "the difference.",
        paper="Nangia, Vania, Bhalerao & Bowman (2020), CrowS-Pairs, EMNLP 2020; Névéol, Dupont, Bezançon & Fort "
        "(2022), French CrowS-Pairs, ACL 2022; criticism: Blodgett, Lopez, Olteanu, Sim & Wallach (2021), Stereotyping "
        "Norwegian Salmon, ACL 2021",
        link="https://aclanthology.org/2020.emnlp-main.154",
        population="Groups that are stereotyped in the United States, historically disadvantaged ones and their "
        "counterparts; in French, also those of France.",
        languages="English, written by crowd workers in the United States and revised; French, translated from it and "
        "extended by speakers of French.",
        size="1,508 pairs in Nangia et al. (2020); 1,677 in Névéol et al. (2022), whose revision the harness has.",
        licence="CC BY-SA 4.0 (the authors'); the harness downloads the data, nothing is pinned here",
        flaws=(
            "Blodgett et al. (2021) examined the English pairs: many of the stereotypes are not stereotypes, or not "
            "harmful ones; pairs differ in more than the group, contrast groups that can't be compared, or are "
            "ungrammatical.",
            "pct_stereotype compares sums of log-likelihoods of 2 sentences that may differ in length and include the "
            "group's name: the longer and the one with the rarer name lose, whatever the sentence says.",
            "Workers wrote several of the 1,508 pairs each, and the data don't say who wrote which: intervals are too "
            "narrow.",
        ),
        use="Reading existing results, with their intervals and with this criticism in mind.",
        misuse="A gate, a ranking or a claim of fairness that rests on pct_stereotype alone.",
    )
    harness_tasks = {
        f"crows_pairs_{name}{suffix}": {
            "language": language,
            "measures": "the harness's task: whether the more stereotypical sentence of a pair is the likelier one"
            + suffix.replace("_", "; ", 1).replace("_", " "),
        }
        for name, language in (("english", "en"), ("french", "fr"))
        for suffix in ("", *(f"_{kind}" for kind in _TYPES))
    }
    contained = tuple(harness_tasks)
    left_out = {"full": "crows_pairs_*, which the harness has"}

    scores = deferred("lm_eval_bias.custom_metrics.crows_pairs:scores")

    def record(self, doc: Document, answers: Sequence[Any]) -> Record:
        """Both sentences' log-likelihoods and lengths."""
        record: dict[str, Any] = {"pair": " / ".join(self.key(doc)), "bias_type": str(doc["bias_type"])}
        for way, answer in zip(("more", "less"), answers, strict=True):
            record |= {way: float(answer[0]), f"{way}_bytes": len(str(doc[f"sent_{way}"]).encode())}
        return record

    def key(self, doc: Document) -> tuple[str, ...]:
        """Its number, where it has one, and the two sentences."""
        number = (str(doc["id"]),) if "id" in doc else ()
        return (*number, str(doc["sent_more"]), str(doc["sent_less"]))

    def cautions(self, task: TaskRun) -> Iterable[str]:
        """Where the sentences' lengths decide which is the likelier one."""
        names = ("pct_stereotype", "pct_stereotype_bytes")
        by_sum, by_bytes = (task.scores[name].interval if name in task.scores else None for name in names)
        if by_sum and by_bytes and (by_sum[1] < by_bytes[0] or by_bytes[1] < by_sum[0]):
            yield (
                "pct_stereotype depends on how sentence length counts: pct_stereotype_bytes, by log-likelihoods "
                "per byte, differs beyond the intervals"
            )

    def score_label(self, score: str) -> str:
        """What people call a score."""
        kind, _, name = score.rpartition("/")
        about = "other" if kind == "autre" else kind.replace("_", " ")
        words = _LABELS.get(name, name)
        return f"{words}, {about}" if kind else words


BENCHMARK = CrowSPairs()
