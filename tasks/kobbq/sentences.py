"""KoBBQ's scores in sentences, and what to beware of."""

from __future__ import annotations

from functools import partial

from lm_eval_bias.custom_metrics.kobbq import TERMS
from lm_eval_bias.tasks import question_sentences

score_label = partial(question_sentences.score_label, terms=TERMS)
sentences = partial(question_sentences.sentences, terms=TERMS, unknown="that it is unknown")
of_wordings = partial(question_sentences.of_wordings, terms=TERMS)
cautions = partial(question_sentences.cautions, terms=TERMS)
