"""OccuGender's scores in sentences, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lm_eval_bias.core.run_data import Remark, TaskRun, Value
from lm_eval_bias.core.wording import direction, with_interval

LOW_COVERAGE = 0.1
BEGINNINGS = {
    "in the prompt": "in the prompt, behind A:",
    "in the answer": "at the beginning of the assistant's answer",
    "by instruction": "in the prompt as an instruction (Begin with: ...), because this model can't continue a given "
    "beginning",
}
GROUPS = {
    "female": ("women", "men"),
    "male": ("men", "women"),
}  # who is stereotyped, and who is not


_WORDS = {
    "M": "men",
    "F": "women",
    "D": "neutral words",
}  # by the last letter of a share's name
_LABELS = {
    "coverage": "probability on gender words",
    "stereotype_gap": "gap towards the stereotype",
    "labour_pearson": "correlation with the labour market",
    "labour_spearman": "rank correlation with the labour market",
    "variance_items": "variance from the occupation",
    "variance_templates": "variance from the wording",
    "variance_interaction": "variance from occupation and wording together",
    "unanswered": "answers that couldn't be read",
    "refused": "refusals",
}


def score_label(score: str) -> str:
    """Put a score's name into words.

    >>> score_label("female_dominated_F"), score_label("male_dominated_M_se_paper")
    ('women in female-dominated jobs', "men in male-dominated jobs, the paper's ±")
    """
    if score in _LABELS:
        return _LABELS[score]
    group, _, kind = score.partition("_dominated_")
    if kind == "gap":
        return f"gap towards the stereotype in {group}-dominated jobs"
    words = f"{_WORDS.get(kind[:1], kind)} in {group}-dominated jobs"
    return f"{words}, the paper's ±" if kind.endswith("_se_paper") else words


def _shares_and_gaps(scores: Mapping[str, Value], whole: str) -> list[str]:
    """Say the shares by group and the gaps."""
    lines = []
    for group in GROUPS:
        shares = ", ".join(
            f"{word} {with_interval(scores[f'{group}_dominated_{letter}'], '%', 1)}"
            for letter, word in (("F", "women"), ("M", "men"), ("D", "neutral words"))
        )
        lines.append(f"{group.title()}-dominated items: {shares} of {whole}.")
    gap = scores["stereotype_gap"]
    moves = "shares move with the gender that dominates an item's group"
    lines.append(
        f"Stereotype gap {with_interval(gap)}: {direction(gap, moves, moves.replace('with', 'against'))}."
    )
    if all(
        f"{group}_dominated_gap" in scores for group in GROUPS
    ):  # older files lack them
        lines.append(
            f"Within the groups: {'; '.join(_gap_of(scores, group) for group in GROUPS)}."
        )
    return lines


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Say shares by group and the stereotype gap; how much the words catch, or how many answers couldn't be read.

    Raises:
        KeyError: A score is missing.
    """
    if task.benchmark == "occugender_gen":
        unanswered, refused = (
            with_interval(task.scores[n], "%", 1, factor=100)
            for n in ("unanswered", "refused")
        )
        silence = f"Of all drawn answers, {unanswered} name no gender that could be read; {refused} are refusals."
        if task.scores["unanswered"].value == 1:
            return [silence]
        way = BEGINNINGS.get(str(task.metadata.get("answer_beginning")))
        return [
            *_shares_and_gaps(task.scores, "the answers that could be read"),
            silence,
            *(
                [f"The sentence that a text begins with was given {way}."]
                if way
                else []
            ),
        ]
    coverage = task.scores["coverage"]
    little = coverage.value < LOW_COVERAGE
    warning = (
        ", so the shares describe only a small part of what the model would say"
        if little
        else ""
    )
    return [
        *_shares_and_gaps(task.scores, "the probability on gender words"),
        f"The word lists cover {with_interval(coverage, '%', 1, factor=100)} of its probability{warning}.",
    ]


def _gap_of(scores: Mapping[str, Value], group: str) -> str:
    """Say what the model says of a group's items, which the gap over both doesn't tell."""
    gap, (own, other) = scores[f"{group}_dominated_gap"], GROUPS[group]
    which = direction(
        gap, f"{own} are more likely there", f"{other} are more likely there"
    )
    return (
        f"{group}-dominated items, {own} minus {other}: {with_interval(gap)}, {which}"
    )


def cautions(task: TaskRun) -> Iterator[Remark]:
    """Warn of low coverage."""
    coverage = task.scores.get("coverage")
    if coverage is not None and coverage.value < LOW_COVERAGE:
        percent = f"{100 * coverage.value:.1f}%"
        text = f"low coverage: the word lists cover {percent} of the probability, the shares describe no more"
        yield Remark("low_coverage", text, f"low coverage ({percent})")
