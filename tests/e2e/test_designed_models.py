"""Models that answer a share of the items by a habit: a bias is said where there is one, and only there."""

import pytest

from simulations import mixtures

# biases by position and length, and diagnostic; the others fair, stereotyped, perfect or unable
HABITS = ("A or first", "shortest", "longest", "cautious 88/96", "cautious 93/97")


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["gg_bbq_group_terms", "crows_pairs_en", "stereoset_en_gen"]
)
def test_what_is_said_of_mixtures(task, mirror):
    found = mixtures.told(task, seed=1, only=HABITS)
    biased = [one for one in found if one.truth == mixtures.BIASED]
    others = [one for one in found if one.truth != mixtures.BIASED]
    assert len(biased) >= 6
    assert len(others) >= 20
    # an interval misses in one of twenty
    assert sum(one.wrong == "said" for one in others) <= 0.05 * len(others)
    assert [one for one in others if one.wrong == "near"] == []
    # only what can't be distinguished from length bias is not said
    no_claim_reason = [one for one in biased if one.wrong == "not said"]
    assert len(no_claim_reason) <= 2
    assert all("length bias" in one.reason for one in no_claim_reason)
