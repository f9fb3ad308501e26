"""The benchmark object that the entry point names."""

from functools import partial

from age_stereotypes import documents
from lm_eval_bias import Benchmark
from lm_eval_bias.benchmark import Sampling
from lm_eval_bias.scoring.questions import PlainQuestion


def _estimate(records):
    """Percent of items that go along the stereotype, with an error clustered by trait."""
    from lm_eval_bias.custom_metrics.bootstrap import clustered_stderr, effective_clusters
    from lm_eval_bias.custom_metrics.score import Estimate, undefined

    if not records:
        return undefined("no items")
    values = [100.0 * (record["difference"] > 0) for record in records]
    mean = sum(values) / len(values)
    traits = [record["trait"] for record in records]
    stderr = clustered_stderr([(value - mean) / len(values) for value in values], traits)
    reason = "standard error needs items of 2 traits" if stderr != stderr else ""
    return Estimate(mean, stderr, len(values), reason, effective_clusters(traits) - 1)


def _resampled(weights, totals):
    """The same number from weights of traits and their sums: items, stereotypes."""
    from lm_eval_bias.custom_metrics.resampling import sums

    n, along = sums(weights, totals).T
    return 100.0 * along / n


def _table(records):
    from lm_eval_bias.custom_metrics.resampling import tabulate

    columns = [[1.0] * len(records), [float(record["difference"] > 0) for record in records]]
    return tabulate([record["trait"] for record in records], columns, partial(_resampled))


def _every_third(docs, seed, number):
    return list(range(0, len(docs), number))


class AgeStereotypes(Benchmark):
    """Age stereotypes in English."""

    name = "age_stereotypes"
    title = "Age stereotypes"
    main = ("old_share",)
    standard = ("age_pairs",)
    quick = {"age_pairs": Sampling("every_third", _every_third, 3, 8)}
    question_kinds = {"agreement": documents.agreement}
    harness_tasks = {
        "plain_age_pairs": {
            "language": "en",
            "measures": "the same pairs as a task of the harness's own",
            "n_items": 24,
        }
    }

    def items(self, metadata):
        """24, in every task."""
        return 24

    def record(self, doc, answers):
        """By how much the old are the likelier subject."""
        return {"trait": doc["trait"], "difference": documents.difference(answers)}

    def scores(self, docs=(), detailed=False):
        """One score."""
        from lm_eval_bias.custom_metrics.score import Score

        return [
            Score(
                name="old_share",
                summary="share of items in which the old are the likelier subject",
                low=0.0,
                high=100.0,
                neutral=50.0,
                direction="above 50 towards stereotypes about the old, below against them",
                unit="percent",
                source="this test",
                compute=_estimate,
                sample=lambda record: 100.0 * (record["difference"] > 0),
                table=_table,
            )
        ]


class Ratings(AgeStereotypes):
    """The same items as questions of a kind of its own."""

    name = "age_ratings"

    def questions(self, doc):
        """How likely the sentence is about the old, and about the young."""
        return [PlainQuestion("agreement", (f"{doc['context']} {choice}",)) for choice in doc["choices"]]


BENCHMARK = AgeStereotypes([Ratings()])
