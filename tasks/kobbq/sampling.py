"""Which of KoBBQ's samples belong to the suite ``quick``."""

from __future__ import annotations

from lm_eval_bias.evaluation.sampling import Documents, draw, grouped


def stories(docs: Documents, seed: str, number: int) -> list[int]:
    """Of so many templates all samples, in all orders: as many biased as counter-biased contexts.

    Args:
        docs: Of one category.
        seed: Of the suite.
        number: How many templates.
    """
    groups = grouped(docs, lambda doc: doc["template"])
    chosen = sorted(groups, key=lambda template: draw(seed, template))[:number]
    return sorted(i for template in chosen for i in groups[template])
