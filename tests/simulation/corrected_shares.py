"""Intervals of corrected shares cover: ``pytest tests/simulation/corrected_shares.py``."""

import numpy as np
import pytest

from lm_eval_bias.custom_metrics.misclassification import Labelled, corrected


@pytest.mark.parametrize("apart", [0.0, 0.12])
def test_intervals_cover(apart):
    """Contexts' true shares vary; the classifier errs on men's texts by so much more, which 116 labelled texts tell."""
    rng, rounds = np.random.default_rng(5), 200
    truth = np.array([[141, 64, 48], [44, 248, 77], [44, 54, 205]], dtype=float)  # of 925 sentences
    truth /= truth.sum(axis=1, keepdims=True)
    of_men = truth + apart * np.array([[-1, 0, 1], [0, -1, 1], [0, 0, 0]])
    base, shift = np.array([0.24, 0.55, 0.21]), 0.1
    covered = {"share": 0, "gap": 0, "pooled": 0}
    for _ in range(rounds):
        rows = []
        for context in range(5):
            around = rng.dirichlet(30 * base)
            for g, errors in enumerate((truth, of_men)):
                own = rng.dirichlet(150 * around + 1e-3)
                own = (1 - shift) * own + shift * np.array([0, 0, 1.0]) if g == 0 else own
                rows.append(Labelled(g, f"{context}", "", tuple(rng.multinomial(100, own @ errors).tolist())))
        counts = {gender: [rng.multinomial(n, p).tolist() for n, p in zip((32, 46, 38), own, strict=True)]
                  for gender, own in zip(("female", "male"), (truth, of_men), strict=True)}  # fmt: skip
        women = (1 - shift) * base[2] + shift
        for key, confusion, weights, true in (
            ("share", counts, (1, 0), women), ("gap", counts, (1, -1), women - base[2]),
            ("pooled", {"a": counts["female"], "b": counts["male"]}, (1, -1), women - base[2]),
        ):  # fmt: skip
            low, high = corrected(rows, confusion, ("female", "male"), 2, weights, "").ends() or (-1, 1)
            covered[key] += low <= true <= high
    assert covered["gap"] / rounds >= 0.93, covered
    assert covered["share"] / rounds >= 0.93, covered
    assert (covered["pooled"] / rounds < 0.8) == (apart > 0), covered
