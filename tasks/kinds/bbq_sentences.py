"""The BBQ family's scores in sentences, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import LARGE_SHARE, direction, sentence, with_interval
from lm_eval_bias.custom_metrics.question_answering import CONTEXTS, LENGTHS, Terms

_SILENT = {"unanswered": "items without an answer", "refused": "refusals"}
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


def score_label(score: str, *, terms: Terms) -> str:
    """Put a score's name into words.

    >>> from lm_eval_bias.custom_metrics.question_answering import GG_BBQ as TERMS
    >>> score_label("acc_amb", terms=TERMS), score_label("value/nurse/acc_amb", terms=TERMS)
    ('accuracy in ambiguous contexts', 'accuracy in ambiguous contexts, nurse')
    >>> score_label("diff_bias_disamb/mean", terms=TERMS)
    'bias in disambiguated contexts, mean over wordings'
    """
    if score in _SILENT:
        return _SILENT[score]
    by, _, rest = score.partition("/")
    part, _, own = rest.rpartition("/") if by in _BREAKDOWNS else ("", "", score)
    for kind, what in _NOUNS.items():
        for context, long in CONTEXTS.items():
            name = terms.name(kind, context)
            if own.startswith(name):
                remarks = [_BREAKDOWNS.get(by, "").format(part.replace("_", " ")), *_remarks(own.removeprefix(name))]
                return ", ".join(filter(None, (f"{what} in {long} contexts", *remarks)))
    return own.replace("_", " ").replace("/", ", ")


_BREAKDOWNS = {"value": "{}", "category": "{}", "template": "template {}"}


def _remarks(end: str) -> list[str]:
    """Put the end of a score's name into words: ``_bound``, ``_in_choice/mean``, ``/prompt_2``."""
    rule, _, spread = end.partition("/")
    kinds = (rule.removeprefix("_"), spread)
    return [_KINDS.get(kind, kind.replace("prompt_", "wording ").replace("_", " ")) for kind in kinds]


def _apart(one: Value, other: Value | None) -> bool:
    """Whether two scores differ beyond their intervals."""
    if other is None or one.interval is None or other.interval is None:
        return False
    return one.interval[1] < other.interval[0] or other.interval[1] < one.interval[0]


def _length_effects(task: TaskRun, terms: Terms) -> Iterator[str]:
    """Say which scores depend on how the answers' lengths count."""
    for context, long in CONTEXTS.items():
        for kind in ("acc", "diff_bias"):
            label, name = terms.titles[kind], terms.name(kind, context)
            by_sum = task.scores.get(name)
            others = {unit: task.scores.get(f"{name}_{unit}") for unit in LENGTHS}
            differing = [
                f"{with_interval(other)} per {LENGTHS[unit]}"
                for unit, other in others.items()
                if by_sum is not None and other is not None and _apart(by_sum, other)
            ]
            if by_sum is not None and differing:
                yield (
                    f"{label} in {long} contexts depends on how answer length counts: {with_interval(by_sum)} by the "
                    f"sum of log-likelihoods, {', '.join(differing)}"
                )


def _silence(task: TaskRun) -> Iterator[str]:
    """Say how many items have no single answer, if they are many."""
    share, refused = task.scores.get("unanswered"), task.scores.get("refused")
    refusals = f" ({100 * refused.value:.0f}% refused)" if refused is not None and refused.value > 0 else ""
    if share is not None and share.value == 1:
        yield f"no item has a single answer{refusals}: the scores say nothing about the model"
    elif share is not None and share.value > LARGE_SHARE:
        yield (
            f"{100 * share.value:.0f}% of the items have no single answer{refusals}: they count as wrong, and as "
            "neither biased nor counter-biased, which pulls diff-bias towards 0"
        )


def _is_silent(task: TaskRun) -> bool:
    """Whether no item has an answer."""
    return "unanswered" in task.scores and task.scores["unanswered"].value == 1


def _as_sentences(*texts: Iterator[str]) -> list[str]:
    return [sentence(line) for lines in texts for line in lines]


def sentences(task: TaskRun, *, terms: Terms, unknown: str) -> list[str]:
    """Say accuracy and diff-bias by context.

    Args:
        task: The task.
        terms: What the paper calls its scores.
        unknown: The answer that is right where the text leaves it open, as the sentence names it.

    Raises:
        KeyError: A score is missing.
    """
    lines: list[str] = []
    if _is_silent(task):
        return _as_sentences(_silence(task))
    for context, words in (
        ("amb", f"Where the text leaves the answer open, the model rightly says {unknown} for a share of"),
        ("disamb", "Where the text gives the answer, the model finds it for a share of"),
    ):
        accuracy, bias = (task.scores[terms.main(kind, context)] for kind in ("acc", "diff_bias"))
        way = direction(bias, "answers go along stereotypes", "answers go against stereotypes")
        rule = f" ({_KINDS[terms.main_rule]}; guessing gets 1/3)" if terms.main_rule else ""
        lines.append(
            f"{words} {with_interval(accuracy)}{rule}; {terms.titles['diff_bias']} {with_interval(bias)}: {way}."
        )
    return lines + _as_sentences(_length_effects(task, terms), _silence(task))


def of_wordings(task: TaskRun, *, terms: Terms) -> list[str]:
    """Say the same of all prompt wordings, and how much scores move from one to another.

    Raises:
        KeyError: A score is missing.
    """
    if _is_silent(task):
        return _as_sentences(_silence(task))
    lines = [
        f"{label}: {with_interval(task.scores[f'{name}/mean'])} on average, from wording to wording it moves by "
        f"{with_interval(task.scores[f'{name}/range'])} (largest minus smallest)."
        for name, label in (
            (terms.name("acc", "amb"), "Accuracy without the needed information"),
            (terms.name("acc", "disamb"), "Accuracy with it"),
            (terms.name("diff_bias", "amb"), "diff-bias without it"),
            (terms.name("diff_bias", "disamb"), "diff-bias with it"),
        )
    ]
    return lines + _as_sentences(_silence(task))


def cautions(task: TaskRun, *, terms: Terms) -> Iterator[str]:
    """Warn of scores that rest on how lengths count."""
    yield from _length_effects(task, terms)
