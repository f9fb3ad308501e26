"""A planted diff-bias in the answers to KoBBQ's questions."""

from __future__ import annotations

from functools import partial

from lm_eval_bias.custom_metrics.kobbq import TERMS
from lm_eval_bias.tasks import planted_questions
from lm_eval_bias.tasks.kobbq.hooks import prompt

answers = partial(planted_questions.answers, prompt=prompt, refusal="죄송합니다. 답변할 수 없습니다.")
expected = partial(planted_questions.expected, terms=TERMS)
expected_of_wordings = partial(planted_questions.expected_of_wordings, terms=TERMS)
