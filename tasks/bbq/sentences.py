"""BBQ's scores in words."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.custom_metrics.bbq import CATEGORIES
from lm_eval_bias.report.sentences import LARGE_SHARE
from lm_eval_bias.runs.run_data import TaskRun

_LABELS = {
    "acc": "accuracy",
    "accuracy_amb": "accuracy in ambiguous contexts",
    "accuracy_disamb": "accuracy in disambiguated contexts",
    "s_amb": "bias in ambiguous contexts",
    "s_dis": "bias in disambiguated contexts",
    "amb_bias_score": "bias in ambiguous contexts as the harness has it",
    "disamb_bias_score": "bias in disambiguated contexts as the harness has it",
    "unanswered": "items without an answer",
}


def score_label(score: str) -> str:
    """What people call a score.

    >>> score_label("s_amb"), score_label("Race_x_SES/s_dis")
    ('bias in ambiguous contexts', 'bias in disambiguated contexts, race by socio-economic status')
    >>> score_label("disamb_bias_score_Age")
    'bias in disambiguated contexts as the harness has it, age'
    """
    category = next((c for c in CATEGORIES if score.startswith(f"{c}/") or score.endswith(f"_score_{c}")), "")
    kind = score.removeprefix(f"{category}/").removesuffix(f"_{category}") if category else score
    words = _LABELS.get(kind, kind.replace("_", " ").replace("/", ", "))
    about = category.replace("SES", "socio-economic status").replace("_x_", " by ").replace("_", " ").lower()
    return f"{words}, {about}" if category else words


def cautions(task: TaskRun) -> Iterator[str]:
    """Many texts that name no choice."""
    share = task.scores.get("unanswered")
    if share is not None and share.value > LARGE_SHARE:
        yield (
            f"{100 * share.value:.0f}% of the generated answers name none of the choices, as the harness reads them; "
            "they count as wrong, and as naming nobody"
        )
