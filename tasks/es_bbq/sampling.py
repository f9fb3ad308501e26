"""Which of EsBBQ's and CaBBQ's items belong to the suite ``quick``."""

from __future__ import annotations

from lm_eval_bias.evaluation.sampling import Documents, draw, grouped


def cells(docs: Documents, seed: str, number: int) -> list[int]:
    """Of every template as many items of each kind of context, direction and question; the same in both languages.

    Args:
        docs: Of one category.
        seed: Of the suite.
        number: How many of each.
    """
    groups = grouped(docs, lambda doc: (doc["template"], doc["context_type"], doc["question_type"], doc["polarity"]))
    return sorted(i for own in groups.values() for i in sorted(own, key=lambda i: draw(seed, docs[i]["item"]))[:number])
