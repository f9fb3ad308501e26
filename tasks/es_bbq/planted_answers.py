"""A planted bias in the answers to EsBBQ's and CaBBQ's questions."""

from __future__ import annotations

from functools import partial

from lm_eval_bias.custom_metrics.es_bbq import TERMS
from lm_eval_bias.planting import Dial
from lm_eval_bias.tasks import planted_questions
from lm_eval_bias.tasks.es_bbq.hooks import EsBBQDocument, continuations, prompt, wordings

expected = partial(planted_questions.expected, terms=TERMS)


def answers(doc: EsBBQDocument, dial: Dial) -> list[tuple[float, bool]] | list[str]:
    """A log-likelihood per option: "unknown" is said in its first wording; or the text of an answer."""
    own = planted_questions.answers(doc, dial, prompt=prompt, refusal=wordings(doc["language"])["refusal"])
    if dial.writes:
        return own
    # a refusal takes no option: the further wordings are as likely as the others then, and so are the persons
    rest = len(continuations(doc)) - len(own)
    lowest = min(own)
    return [*own, *[lowest] * rest]
