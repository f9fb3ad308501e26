"""OccuGender's scores in sentences, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lm_eval_bias.report.sentences import direction, with_margin
from lm_eval_bias.runs.run_data import TaskRun, Value

LOW_COVERAGE = 0.1
GROUPS = {"female": ("women", "men"), "male": ("men", "women")}  # who is stereotyped, and who is not


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Shares by group, the stereotype gap and how much the words catch.

    Raises:
        KeyError: A score is missing.
    """
    scores = task.scores
    lines = []
    for group in GROUPS:
        shares = ", ".join(
            f"{word} {with_margin(scores[f'{group}_dominated_{letter}'], '%', 1)}"
            for letter, word in (("F", "women"), ("M", "men"), ("D", "neutral words"))
        )
        lines.append(f"{group.title()}-dominated items: {shares} of the probability on gender words.")
    gap, coverage = scores["stereotype_gap"], scores["coverage"]
    moves = "shares move with the gender that dominates an item's group"
    lines.append(f"Stereotype gap {with_margin(gap)}: {direction(gap, moves, moves.replace('with', 'against'))}.")
    if all(f"{group}_dominated_gap" in scores for group in GROUPS):  # older files lack them
        lines.append(f"Within the groups: {'; '.join(_gap_of(scores, group) for group in GROUPS)}.")
    little = coverage.value < LOW_COVERAGE
    warning = ": so little that the shares describe a small part of what the model would say" if little else ""
    lines.append(f"The word lists catch {with_margin(coverage, '%', 1, factor=100)} of its probability{warning}.")
    return lines


def _gap_of(scores: Mapping[str, Value], group: str) -> str:
    """What the model says of a group's items, which the gap over both doesn't tell."""
    gap, (own, other) = scores[f"{group}_dominated_gap"], GROUPS[group]
    which = direction(gap, f"{own} are more likely there", f"{other} are more likely there")
    return f"{group}-dominated items, {own} minus {other}: {with_margin(gap)}, {which}"


def cautions(task: TaskRun) -> Iterator[str]:
    """Low coverage."""
    coverage = task.scores.get("coverage")
    if coverage is not None and coverage.value < LOW_COVERAGE:
        percent = 100 * coverage.value
        yield f"low coverage: the word lists catch {percent:.1f}% of the probability, the shares describe no more"
