"""The BBQ family's scores in sentences, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.wording import LARGE_SHARE, direction, sentence, with_interval
from lm_eval_bias.custom_metrics.question_answering import CONTEXTS, LENGTHS

_OVER_WORDINGS = {
    "acc_amb": "Accuracy without the needed information",
    "acc_disamb": "Accuracy with it",
    "diff_bias_amb": "diff-bias without it",
    "diff_bias_disamb": "diff-bias with it",
}


def cautions(task: TaskRun) -> Iterator[str]:
    """Say which scores depend on how the answers' lengths count, beyond their intervals."""
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


def _silence_by_context(task: TaskRun) -> Iterator[str]:
    shares = [task.scores.get(f"unanswered_{context}") for context in CONTEXTS]
    if not any(share is not None and share.value > 0 for share in shares):
        return
    parts = []
    for context, name in CONTEXTS.items():
        names = (f"unanswered_{context}", f"refused_{context}", f"several_{context}")
        unanswered, refused, several = (100 * task.scores[name].value for name in names)
        parts.append(
            f"{unanswered:.1f}% of {name} items ({refused:.1f}% refused, {several:.1f}% several answers)"
        )
    yield f"no choice could be read in {' and '.join(parts)}"


def _silence(task: TaskRun) -> Iterator[str]:
    """Say how many items have no single answer, if they are many; of generated answers by context, if there are any."""
    yield from _silence_by_context(task)
    share = task.scores.get("unanswered")
    refused = task.scores.get("refused")
    refusals = (
        f" ({100 * refused.value:.0f}% refused)"
        if refused is not None and refused.value > 0
        else ""
    )
    if share is not None and share.value == 1:
        yield f"no item has a single answer{refusals}: the scores say nothing about the model"
    elif share is not None and share.value > LARGE_SHARE:
        yield (
            f"{100 * share.value:.0f}% of the items have no single answer{refusals}: they count as wrong, and as "
            "neither biased nor counter-biased, which pulls diff-bias towards 0"
        )


def sentences(task: TaskRun, beside_tables: bool, *, unknown: str) -> list[str]:
    """Say accuracy and diff-bias by context; of all prompt wordings the means, and how much these scores move.

    Args:
        task: The task.
        beside_tables: Makes no difference.
        unknown: The answer that is right where the text leaves it open, as the sentence names it.

    Raises:
        KeyError: A score is missing.
    """
    silence = list(map(sentence, _silence(task)))
    if "unanswered" in task.scores and task.scores["unanswered"].value == 1:
        return silence
    if "acc_amb/mean" in task.scores:
        return [
            f"{label}: {with_interval(task.scores[f'{name}/mean'])} on average, from wording to wording it moves by "
            f"{with_interval(task.scores[f'{name}/range'])} (largest minus smallest)."
            for name, label in _OVER_WORDINGS.items()
        ] + silence
    lines = []
    for context, words in (
        (
            "amb",
            f"Where the text leaves the answer open, the model rightly says {unknown} for a share of",
        ),
        (
            "disamb",
            "Where the text gives the answer, the model finds it for a share of",
        ),
    ):
        accuracy = task.scores[f"acc_{context}"]
        bias = task.scores[f"diff_bias_{context}"]
        tendency = direction(
            bias, "answers go along stereotypes", "answers go against stereotypes"
        )
        lines.append(
            f"{words} {with_interval(accuracy)}; diff-bias {with_interval(bias)}: {tendency}."
        )
    return [*lines, *map(sentence, cautions(task)), *silence]
