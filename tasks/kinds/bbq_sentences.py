"""The BBQ family's scores in sentences, and what to beware of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.wording import LARGE_SHARE, direction, sentence, with_interval
from lm_eval_bias.custom_metrics.question_answering import CONTEXTS, LENGTHS

_SILENT = {
    "unanswered": "items without an answer",
    "refused": "refusals",
    "several": "several answers",
}
_SILENT |= {
    f"{name}_{short}": f"{label}, {context} contexts"
    for name, label in _SILENT.items()
    for short, context in CONTEXTS.items()
}
_NOUNS = {"acc": "accuracy", "diff_bias": "bias"}
_KINDS = {
    "bound": "room for it",
    "bound_in_choice": "room for it, in-choice answers",
    "ratio_in_choice": "share of the room for it, in-choice answers",
    "by_template": "one vote a template",
    "ratio": "share of the room for it",
    "three": "one wording of unknown",
    "in_choice": "in-choice answers",
    **{unit: f"log-likelihoods per {length}" for unit, length in LENGTHS.items()},
    "mean": "mean over wordings",
    "sd": "standard deviation over wordings",
    "range": "range over wordings",
}
_OVER_WORDINGS = {
    "acc_amb": "Accuracy without the needed information",
    "acc_disamb": "Accuracy with it",
    "diff_bias_amb": "diff-bias without it",
    "diff_bias_disamb": "diff-bias with it",
}
_NAME = re.compile(
    r"(?:(?P<by>value|category|template)/(?P<part>.*)/)?(?P<kind>acc|diff_bias)_(?P<context>amb|disamb)"
    r"(?:_(?P<rule>\w+))?(?:/(?P<spread>\w+))?"
)


def score_label(score: str) -> str:
    """Put a score's name into words.

    >>> score_label("acc_amb"), score_label("value/nurse/acc_amb")
    ('accuracy in ambiguous contexts', 'accuracy in ambiguous contexts, nurse')
    >>> score_label("diff_bias_disamb_in_choice/prompt_2")
    'bias in disambiguated contexts, in-choice answers, wording 2'
    """
    if (match := _NAME.fullmatch(score)) is None:
        return _SILENT.get(score, score.replace("_", " ").replace("/", ", "))
    by, part, kind, context, *ends = match.groups(default="")
    remarks = [f"{'template ' * (by == 'template')}{part.replace('_', ' ')}"]
    remarks += [
        _KINDS.get(end, end.replace("prompt_", "wording ").replace("_", " "))
        for end in ends
    ]
    return ", ".join(
        filter(None, (f"{_NOUNS[kind]} in {CONTEXTS[context]} contexts", *remarks))
    )


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
        unanswered, refused, several = (100 * task.scores[one].value for one in names)
        parts.append(
            f"{unanswered:.1f}% of {name} items ({refused:.1f}% refused, {several:.1f}% several answers)"
        )
    yield f"no choice could be read in {' and '.join(parts)}"


def _silence(task: TaskRun) -> Iterator[str]:
    """Say how many items have no single answer, if they are many; of generated answers by context, if there are any."""
    yield from _silence_by_context(task)
    share, refused = task.scores.get("unanswered"), task.scores.get("refused")
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


def sentences(task: TaskRun, *, rule: str, unknown: str) -> list[str]:
    """Say accuracy and diff-bias by context; of all prompt wordings the means, and how much these scores move.

    Args:
        task: The task.
        rule: By which the main scores tell answers (:attr:`.Terms.main_rule`).
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
    end, remark = (
        (f"_{rule}", f" ({_KINDS[rule]}; guessing gets 1/3)") if rule else ("", "")
    )
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
        accuracy, bias = (
            task.scores[f"acc_{context}{end}"],
            task.scores[f"diff_bias_{context}{end}"],
        )
        way = direction(
            bias, "answers go along stereotypes", "answers go against stereotypes"
        )
        lines.append(
            f"{words} {with_interval(accuracy)}{remark}; diff-bias {with_interval(bias)}: {way}."
        )
    return [*lines, *map(sentence, cautions(task)), *silence]
