"""KoBBQ in a page."""

from __future__ import annotations

from functools import partial

from lm_eval_bias.custom_metrics.kobbq import TERMS
from lm_eval_bias.tasks import question_figures

parts = partial(question_figures.parts, name="kobbq", terms=TERMS)
