"""The scores of StereoSet as a choice in sentences, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lm_eval_bias.custom_metrics.stereoset_choices import CHANCE, PLACES
from lm_eval_bias.report import numbers
from lm_eval_bias.report.sentences import LARGE_SHARE, sentence, with_margin
from lm_eval_bias.runs.run_data import TaskRun, Value
from lm_eval_bias.tasks.stereoset.sentences import TESTS, side

LARGE_PLACE = 0.5  # share of a letter from which on the candidates play the smaller part


def _near_chance(lms: Value) -> bool:
    return not (lms.interval[0] if lms.interval is not None else lms.value) > CHANCE


def _unanswered(task: TaskRun) -> str:
    """How many items have no answer, and how many of them are refused, if it is many."""
    share, refused = task.scores["unanswered"], task.scores["refused"]
    if not share.value > LARGE_SHARE:
        return ""
    return (
        f"{100 * share.value:.0f}% of the items are unanswered ({100 * refused.value:.0f}% refused): they count as not "
        "meaningful in choice_lms and choice_icat, and pull choice_ss towards 50. A model that reasons before it "
        "answers may need --gen_kwargs max_gen_toks=4096"
    )


def _letter(task: TaskRun) -> str:
    """Whether the model mostly takes the same letter."""
    shares = {name: task.scores[f"place_{name}"] for name in PLACES if f"place_{name}" in task.scores}
    letter, share = max(shares.items(), key=lambda pair: pair[1].value, default=("", None))
    if share is None or math.isnan(share.value) or share.value <= LARGE_PLACE:
        return ""
    return (
        f"{100 * share.value:.0f}% of the choices are the letter {letter.upper()} (33% if letters played no part): the "
        "model goes by the letter more than by the candidate, which pulls choice_ss towards 50 and choice_lms towards "
        "66.7"
    )


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Meaningful choices, and stereotypes among them, by test; then what to beware of.

    Raises:
        KeyError: A score is missing.
    """
    lines, low = [], []
    for prefix, name in TESTS.items():
        if f"{prefix}choice_ss" not in task.scores:
            continue
        lms, ss, taken = (task.scores[f"{prefix}choice_{kind}"] for kind in ("lms", "ss", "ss_meaningful"))
        lines.append(
            f"{name}: chooses a meaningful candidate in {with_margin(lms, '%', 1)} of items (chance 66.7), of these "
            f"the stereotype in {with_margin(taken, '%', 1)}; choice_ss {with_margin(ss, '', 1)}: {side(ss)}."
        )
        low += [name] if _near_chance(lms) else []
    if low:
        lines.append(
            "A choice_lms this low is near or below chance (66.7), so the choices say little about stereotypes "
            f"({', '.join(low)})."
        )
    return lines + [sentence(text) for text in (_unanswered(task), _letter(task)) if text]


def cautions(task: TaskRun) -> Iterator[str]:
    """Many items without an answer, always the same letter, and choices at chance."""
    if {"unanswered", "refused"} <= set(task.scores):
        yield from filter(None, (_unanswered(task), _letter(task)))
    lms = task.scores.get("choice_lms")
    if lms is not None and _near_chance(lms):
        yield (
            f"choice_lms {numbers.cell(lms)} is near or below chance (66.7): the model hardly tells sense from "
            "nonsense here, and a choice_ss near 50 says little"
        )
