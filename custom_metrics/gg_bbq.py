"""GG-BBQ: accuracy and diff-bias of German question answering, in the words of Satheesh et al. (2025)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lm_eval_bias.custom_metrics import question_answering
from lm_eval_bias.custom_metrics.question_answering import QuestionRecord, Terms
from lm_eval_bias.custom_metrics.score import Record, Score

TERMS = Terms("Satheesh et al. (2025), GG-BBQ", by_template=True)
scores = partial(question_answering.scores, terms=TERMS)


def prompt_scores(records: Sequence[Record] = (), detailed: bool = False) -> list[Score[QuestionRecord]]:
    """The scores of all prompt wordings, without a further breakdown."""
    return question_answering.prompt_scores(records, terms=TERMS)
