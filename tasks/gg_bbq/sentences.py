"""GG-BBQ's scores in sentences, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.custom_metrics.gg_bbq import CONTEXTS, LENGTHS
from lm_eval_bias.report.sentences import LARGE_SHARE, direction, sentence, with_margin
from lm_eval_bias.runs.run_data import TaskRun, Value

_STEMS = {"acc": "accuracy", "diff_bias": "bias"}
_KINDS = {
    "bound": "room for it",
    "ratio": "share of the room for it",
    **{unit: f"log-likelihoods per {length}" for unit, length in LENGTHS.items()},
    "mean": "mean over wordings",
    "sd": "standard deviation over wordings",
    "range": "largest minus smallest over wordings",
}


def score_label(score: str) -> str:
    """What people call a score.

    >>> score_label("acc_amb"), score_label("diff_bias_disamb/mean"), score_label("value/nurse/acc_amb")
    ('accuracy in ambiguous contexts', 'bias in disambiguated contexts, mean over wordings', \
'accuracy in ambiguous contexts, nurse')
    """
    if score == "unanswered":
        return "items without an answer"
    of_value, _, own = score.removeprefix("value/").rpartition("/") if score.startswith("value/") else ("", "", score)
    for stem, what in _STEMS.items():
        for context, long in CONTEXTS.items():
            if own.startswith(f"{stem}_{context}"):
                kind = own.removeprefix(f"{stem}_{context}")[1:]
                remarks = [of_value.replace("_", " "), _KINDS.get(kind, kind.replace("prompt_", "wording "))]
                return ", ".join(filter(None, (f"{what} in {long} contexts", *remarks)))
    return own.replace("_", " ").replace("/", ", ")


def _apart(one: Value, other: Value | None) -> bool:
    """Whether two scores differ beyond their intervals."""
    if other is None or one.interval is None or other.interval is None:
        return False
    return one.interval[1] < other.interval[0] or other.interval[1] < one.interval[0]


def _length_effects(task: TaskRun) -> Iterator[str]:
    """Which scores depend on how the answers' lengths count."""
    for context, long in CONTEXTS.items():
        for stem, label in (("acc", "accuracy"), ("diff_bias", "diff-bias")):
            by_sum = task.scores.get(f"{stem}_{context}")
            others = {unit: task.scores.get(f"{stem}_{context}_{unit}") for unit in LENGTHS}
            differing = [
                f"{with_margin(other)} per {LENGTHS[unit]}"
                for unit, other in others.items()
                if by_sum is not None and other is not None and _apart(by_sum, other)
            ]
            if by_sum is not None and differing:
                yield (
                    f"{label} in {long} contexts rests on how the answers' lengths count: {with_margin(by_sum)} by the "
                    f"sum of log-likelihoods, {', '.join(differing)}"
                )


def _silence(task: TaskRun) -> Iterator[str]:
    """How many items have no single answer, if it is many."""
    share = task.scores.get("unanswered")
    if share is not None and share.value == 1:
        yield "no item has a single answer: accuracies are 0 by definition, and nothing is told of bias"
    elif share is not None and share.value > LARGE_SHARE:
        yield (
            f"{100 * share.value:.0f}% of the items have no single answer: they count as wrong, and as neither biased "
            "nor counter-biased, which draws diff-bias towards 0"
        )


def _as_sentences(*texts: Iterator[str]) -> list[str]:
    return [sentence(line) for lines in texts for line in lines]


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Accuracy and diff-bias by context.

    Raises:
        KeyError: A score is missing.
    """
    lines = []
    for context, words in (
        ("amb", 'Where the text leaves the answer open, the model rightly says "keine Antwort" for a share of'),
        ("disamb", "Where the text gives the answer, the model finds it for a share of"),
    ):
        accuracy, bias = task.scores[f"acc_{context}"], task.scores[f"diff_bias_{context}"]
        way = direction(bias, "answers go along stereotypes", "answers go against stereotypes")
        lines.append(f"{words} {with_margin(accuracy)}; diff-bias {with_margin(bias)}: {way}.")
    return lines + _as_sentences(_length_effects(task), _silence(task))


def of_wordings(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """The same over all prompt wordings, and how much they move from one to another.

    Raises:
        KeyError: A score is missing.
    """
    lines = [
        f"{label}: {with_margin(task.scores[f'{stem}/mean'])} on average, from wording to wording it moves by "
        f"{with_margin(task.scores[f'{stem}/range'])} (largest minus smallest)."
        for stem, label in (
            ("acc_amb", "Accuracy without the needed information"),
            ("acc_disamb", "Accuracy with it"),
            ("diff_bias_amb", "diff-bias without it"),
            ("diff_bias_disamb", "diff-bias with it"),
        )
    ]
    return lines + _as_sentences(_silence(task))


def cautions(task: TaskRun) -> Iterator[str]:
    """Many items without a single answer, and scores that rest on how lengths count."""
    yield from _silence(task)
    yield from _length_effects(task)
