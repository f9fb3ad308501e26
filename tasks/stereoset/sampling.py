"""Which of StereoSet's items belong to the suite ``quick``."""

from __future__ import annotations

from lm_eval_bias.evaluation.sampling import Documents, draw, grouped


def terms_and_tests(docs: Documents, seed: str, number: int) -> list[int]:
    """As many items about every target term within sentences as between them, the same ones in every language.

    Bias types keep the shares that they have among the terms.

    Args:
        docs: StereoSet's.
        seed: Of the suite.
        number: How many a term and test; all where there are fewer.
    """
    strata = grouped(docs, lambda doc: (doc["term"], doc["test"]))
    return sorted(
        i for group in strata.values() for i in sorted(group, key=lambda i: draw(seed, docs[i]["id"]))[:number]
    )
