"""BBQ's scores in words."""

from __future__ import annotations

from lm_eval_bias.custom_metrics.bbq import CATEGORIES

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
