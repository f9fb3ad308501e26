"""EuroGEST as a question: who said it, a man, a woman, or can't it be told?"""

from __future__ import annotations

from typing import Any

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.tasks.eurogest import hooks
from lm_eval_bias.tasks.shared import bbq_records
from lm_eval_bias.tasks.shared.pair_choices import LETTERS


def _question(language: str) -> Data:
    """Read the question and its options in a language."""
    return packaged_yaml(__package__, "data/question.yaml")[language]


def dataset(language: str, **metadata: Any) -> Data:
    """Make the neutral sentences' documents by split; each stereotype takes all orders of the options in turn."""
    made = hooks.dataset(language=language, **metadata)["test"]
    neutral = [doc for doc in made if doc["form"] == "neutral"]
    orders = bbq_records.orders(doc["stereotype"] for doc in neutral)
    docs = []
    for doc, order in zip(neutral, orders, strict=True):
        fields = {
            name: doc[name]
            for name in ("language", "id", "stereotype", "group", "said")
        }
        more = {
            "benchmark": "eurogest_choices",
            "sentence": f"{doc['stereotype']}: {doc['english']}",
            "choices": _question(language)["options"],
            "letters": LETTERS,
            "order": order,
            "biased_choice": 0 if doc["group"] == "male" else 1,
        }
        docs.append(fields | more)
    return {"test": docs}


def prompt(doc: Facts) -> str:
    """Write the question."""
    text: str = _question(doc["language"])["prompt"]
    options = bbq_records.options(doc)
    return text.format(sentence=doc["said"], options=options)
