"""EsBBQ's and CaBBQ's scores in sentences, and what to beware of."""

from __future__ import annotations

from functools import partial

from lm_eval_bias.custom_metrics.es_bbq import TERMS
from lm_eval_bias.tasks import question_sentences

score_label = partial(question_sentences.score_label, terms=TERMS)
sentences = partial(question_sentences.sentences, terms=TERMS, unknown="that it is unknown")
cautions = partial(question_sentences.cautions, terms=TERMS)
