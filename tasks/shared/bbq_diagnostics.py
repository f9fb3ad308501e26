"""What to beware of in the BBQ family's scores."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.wording import with_interval
from lm_eval_bias.custom_metrics.question_answering import CONTEXTS, LENGTHS


def diagnostics(task: TaskRun) -> Iterator[str]:
    """Yield a diagnostic of scores that depend on the length normalisation."""
    for context, long in CONTEXTS.items():
        for kind, label in (("acc", "accuracy"), ("diff_bias", "diff-bias")):
            by_sum = task.scores.get(f"{kind}_{context}")
            if by_sum is None or by_sum.interval is None:
                continue
            low, high = by_sum.interval
            others = {
                unit: task.scores.get(f"{kind}_{context}_{unit}") for unit in LENGTHS
            }
            differing = [
                f"{with_interval(other)} per {LENGTHS[unit]}"
                for unit, other in others.items()
                if other is not None and other.interval is not None
                if high < other.interval[0] or other.interval[1] < low
            ]
            if differing:
                yield (
                    f"{label} in {long} contexts depends on how answer length counts: {with_interval(by_sum)} by the "
                    f"sum of log-likelihoods, {', '.join(differing)}"
                )
