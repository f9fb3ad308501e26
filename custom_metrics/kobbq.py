"""KoBBQ: accuracy and diff-bias of Korean question answering, in the words of Jin et al. (2024)."""

from __future__ import annotations

from functools import partial

from lm_eval_bias.custom_metrics import question_answering
from lm_eval_bias.custom_metrics.question_answering import Terms

TERMS = Terms(
    "Jin et al. (2024), KoBBQ",
    titles={**question_answering.titles("diff-bias"), "diff_bias_bound": "Max|diff-bias|"},
    sources={**question_answering.EQUATIONS, "acc": "accuracy"},
    breakdowns=("category", "template"),
    rules={},  # letters are equally long
    in_choice=True,
)
scores = partial(question_answering.scores, terms=TERMS)
prompt_scores = partial(question_answering.prompt_scores, terms=TERMS)
