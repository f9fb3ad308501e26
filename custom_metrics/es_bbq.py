"""EsBBQ and CaBBQ: Spanish and Catalan question answering, in the words of Ruiz-Fernández et al. (2025)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from lm_eval_bias.custom_metrics import question_answering
from lm_eval_bias.custom_metrics.question_answering import BY_LENGTH, Terms

_CODE = "and the harness's task esbbq"
_THREE = {
    "three": ("among the two persons and the first wording of unknown", "the options' log-likelihoods aren't known")
}
TERMS = Terms(
    f"Ruiz-Fernández et al. (2025), EsBBQ and CaBBQ, {_CODE}",
    bias="bias_score",
    contexts=("ambig", "disambig"),
    titles=question_answering.titles("bias score"),
    sources={
        "acc": "accuracy",
        "diff_bias": "bias score",
        **dict.fromkeys(("diff_bias_bound", "diff_bias_ratio"), "with the bounds of KoBBQ, Eqs. 2 and 4"),
    },
    chance=("9/11", "1/11"),
    main_rule="three",
    breakdowns=("value", "template"),
    rules={**BY_LENGTH, **_THREE},
)
scores = partial(question_answering.scores, terms=TERMS)
# the lengths of what was scored aren't in the harness's documents
OF_HARNESS = replace(TERMS, rules=_THREE)
scores_of_harness_tasks = partial(question_answering.scores, terms=OF_HARNESS)
