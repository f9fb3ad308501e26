"""Which of OccuGender's prompts belong to the suite ``quick``."""

from __future__ import annotations

from lm_eval_bias.evaluation.sampling import Documents, draw


def templates(docs: Documents, seed: str, number: int) -> list[int]:
    """Every occupation with some of the templates: a complete product, which crossed standard errors need.

    Args:
        docs: OccuGender's.
        seed: Of the suite.
        number: How many templates; all where there are fewer.
    """
    names = {doc["template"] for doc in docs}
    sample = set(sorted(names, key=lambda template: draw(seed, template))[:number])
    return [i for i, doc in enumerate(docs) if doc["template"] in sample]
