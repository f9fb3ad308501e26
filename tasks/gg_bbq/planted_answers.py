"""A planted diff-bias in the answers to GG-BBQ's questions."""

from __future__ import annotations

from functools import partial

from lm_eval_bias.custom_metrics.gg_bbq import TERMS
from lm_eval_bias.tasks import planted_questions
from lm_eval_bias.tasks.gg_bbq.prompts import prompt

answers = partial(planted_questions.answers, prompt=prompt, refusal="Dazu kann ich nichts sagen.")
expected = partial(planted_questions.expected, terms=TERMS)
expected_of_wordings = partial(planted_questions.expected_of_wordings, terms=TERMS)
