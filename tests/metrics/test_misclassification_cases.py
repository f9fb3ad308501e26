"""Corrected shares at the edges: few labelled texts, ends of the range, strata, contexts of one group, caveats."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import misclassification as c
from lm_eval_bias.custom_metrics.context_shares import FEW_CONTEXTS, NO_PROMPTS
from lm_eval_bias.custom_metrics.misclassification import Labelled

GROUPS = ("female", "male")
SHARE, OTHER, GAP = (1.0, 0.0), (0.0, 1.0), (1.0, -1.0)
NEVER_ERRS = [[10**12, 0], [0, 10**12]]


def corrected(rows, counts, weights=SHARE, place=0, caveat=""):
    return c.corrected(rows, {"all": counts}, GROUPS, place, weights, caveat)


def rows_of(women, men=(), stratum=""):
    return [Labelled(g, f"{stratum}{k}", stratum, counts) for g, own in enumerate((women, men))
            for k, counts in zip("abcdef", own, strict=False)]  # fmt: skip


def test_groups_err_alike_by_the_sum_over_classes():
    # 80 (30 * 18 - 10 * 22)^2 / (40 * 40 * 52 * 28) = 3.52, under 3.84 with one degree of freedom; two: 7.03 > 5.99
    first, second = [30, 10], [22, 18]
    assert c.err_alike([first], [second])
    assert not c.err_alike([first, first], [second, second])
    assert not c.err_alike([first, [0, 40], first], [second, [0, 9], second])  # classes without errors are no evidence
    # 4.53 alone is too much for one degree of freedom, with a class that is alike in both it isn't for two
    assert not c.err_alike([[31, 9]], [[22, 18]])
    assert c.err_alike([[31, 9], [20, 20]], [[22, 18], [20, 20]])
    # a class that one group's texts don't have is no evidence either
    assert c.err_alike([[30, 10], [0, 0]], [[28, 12], [5, 35]])
    assert not c.err_alike([[30, 10], [0, 0]], [[10, 30], [5, 35]])


def test_errors_of_classes_that_were_seen_twice_or_once():
    """Var of the share: pi^2 se (1 - se) / n_1 / J^2 + (1 - pi)^2 sp (1 - sp) / n_0 / J^2, J = se + sp - 1."""
    rows = rows_of([(24, 26), (28, 22), (32, 18)])
    twice = corrected(rows, [[90, 10], [1, 1]])
    q, j = 84 / 150, 0.9 + 0.5 - 1
    pi = (q + 0.5 - 1) / j
    parts = [pi**2 * 0.09 / 100 / j**2, (1 - pi) ** 2 * 0.25 / 2 / j**2, np.var([0.48, 0.56, 0.64], ddof=1) / 3 / j**2]
    assert twice.stderr == pytest.approx(math.sqrt(sum(parts)), abs=1e-12)
    dof = sum(parts) ** 2 / sum(part**2 / n for part, n in zip(parts, (99, 1, 2), strict=True))
    assert twice.dof == pytest.approx(dof, abs=1e-9)
    # one text shows no error: it adds none
    once = corrected(rows, [[90, 10], [0, 1]])
    pi = q / 0.9
    parts = [pi**2 * 0.09 / 100 / 0.81, np.var([0.48, 0.56, 0.64], ddof=1) / 3 / 0.81]
    assert once.stderr == pytest.approx(math.sqrt(sum(parts)), abs=1e-12)
    assert once.dof == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 99 + parts[1] ** 2 / 2), abs=1e-9)


def test_contexts_vary_within_their_strata():
    strata = {"r": [0.1, 0.3, 0.2], "o": [0.8, 0.9, 0.6, 0.5]}
    rows = [row for name, shares in strata.items()
            for row in rows_of([(round(20 * p), 20 - round(20 * p)) for p in shares], stratum=name)]  # fmt: skip
    estimate = corrected(rows, NEVER_ERRS)
    sizes = {name: len(shares) / 7 for name, shares in strata.items()}
    parts = [sizes[name] ** 2 * np.var(shares, ddof=1) / len(shares) for name, shares in strata.items()]
    assert estimate.value == pytest.approx(np.mean([p for shares in strata.values() for p in shares]), abs=1e-9)
    assert estimate.stderr == pytest.approx(math.sqrt(sum(parts)), abs=1e-6)
    assert estimate.dof == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 3), rel=1e-6)
    assert estimate.n == 140


@pytest.mark.parametrize("weights", [SHARE, OTHER, GAP])
def test_a_group_with_texts_in_one_context_has_the_interval_of_these_prompts_alone(weights):
    one = [(7, 13), (0, 0), (0, 0)]
    rows = rows_of(*((one, [(9, 11), (5, 15), (8, 12)]) if weights is not OTHER else ([(9, 11), (5, 15)], one)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = corrected(rows, [[90, 10], [20, 80]], weights, caveat="weak")
    assert estimate.reason == f"{FEW_CONTEXTS}; weak"
    assert estimate.interval is None
    assert math.isnan(estimate.stderr)
    assert estimate.fixed_interval[0] < estimate.value < estimate.fixed_interval[1]
    assert estimate.n == {SHARE: 20, OTHER: 20, GAP: 80}[weights]


def test_caveats_follow_the_reason():
    rows = rows_of([(7, 13), (9, 11), (4, 16)])
    assert corrected(rows, [[90, 10], [20, 80]], caveat="weak").reason == "weak"
    unprompted = [row._replace(context=None) for row in rows]
    assert corrected(unprompted, [[90, 10], [20, 80]], caveat="weak").reason == f"{NO_PROMPTS}; weak"
    same = corrected(rows_of([(0, 20), (0, 20)]), [[90, 0], [0, 80]], caveat="weak")
    assert same.reason == f"{c.ONE_LABEL}; weak"
    assert same.n == 40
    assert math.isnan(same.stderr)


def test_one_text_without_a_prompt_leaves_no_interval_for_prompts_like_these():
    rows = [*rows_of([(7, 13), (9, 11), (4, 16)]), Labelled(0, None, "", (1, 1))]
    assert corrected(rows, [[90, 10], [20, 80]]).reason == NO_PROMPTS
    men = [Labelled(1, None, "", (1, 1))]  # who have no part in the women's share
    assert corrected([*rows[:-1], *men], [[90, 10], [20, 80]]).reason == ""


def test_shares_above_1_by_chance_are_set_to_1():
    # raw share (0.92 + 0.8 - 1) / 0.7 = 1.03
    rows = rows_of([(46, 4), (44, 6), (48, 2)])
    estimate = corrected(rows, [[90, 10], [20, 80]])
    assert estimate.value == 1.0
    low, high = estimate.interval
    assert high == 1.0
    t, raw = stats.t.ppf(0.975, estimate.dof), 0.72 / 0.7
    assert low == pytest.approx(raw - t * estimate.stderr, abs=1e-9)
    assert estimate.fixed_interval[1] == 1.0 > estimate.fixed_interval[0] > 0.9


@pytest.mark.parametrize("sign", [1, -1])
def test_gaps_end_at_1_and_minus_1(sign):
    high, low = [(19, 1), (14, 6), (20, 0)], [(1, 19), (6, 14), (0, 20)]
    wide = corrected(rows_of(*(high, low)[::sign]), NEVER_ERRS, GAP)
    assert wide.value == pytest.approx(sign * (53 - 7) / 60, abs=1e-9)
    assert (wide.interval[1] if sign > 0 else wide.interval[0]) == sign
    assert abs(wide.interval[0] + wide.interval[1]) < 2
    # raw shares of 1.13 and -0.14, a gap of 1.27, are set to 1 and 0; known from so many texts they are no chance
    classifier = [[90, 10], [20, 80]]
    edge = [(99, 1), (100, 0), (98, 2)], [(9, 91), (11, 89), (10, 90)]
    few = corrected(rows_of(*edge[::sign]), [[9, 1], [2, 8]], GAP)
    assert few.value == sign
    assert sign in few.interval
    many = (np.array(classifier) * 1000).tolist()
    beyond = corrected(rows_of(*edge[::sign]), many, GAP)
    assert math.isnan(beyond.value)
    assert beyond.reason.startswith(
        f"the corrected value would be {sign * (0.99 - 0.1) / 0.7:.2f}, further outside its range"
    )


def test_a_class_never_seen_has_no_correction():
    assert "doesn't occur" in c.correction([[5, 5], [0, 0]])
    # condition numbers of [[p, 1 - p], [1 - p, p]]: 1 / (2 p - 1)
    assert "nearly singular" in c.correction([[54, 46], [46, 54]])
    assert c.correction([[56, 44], [44, 56]]) @ [0.5, 0.5] == pytest.approx([0.5, 0.5])
