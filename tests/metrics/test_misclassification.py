"""Shares corrected for a classifier's errors: by hand, against slow computations; where undefined."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from lm_eval_bias.custom_metrics import misclassification as c
from lm_eval_bias.custom_metrics import text_shares
from lm_eval_bias.custom_metrics.misclassification import ERR_ALIKE, Labelled
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.custom_metrics.text_shares import FEW_CONTEXTS, NO_PROMPTS, Row

GENDERS = ("female", "male")
# the light classifier's on the German test sentences: a row per true class
LIGHT = [[31, 15, 17], [6, 65, 21], [9, 10, 57]]
DIFFERENT = [[40, 12, 11], [8, 70, 14], [12, 10, 54]]
TWO = [[90, 10], [20, 80]]
NEVER_ERRS = [[10**12, 0], [0, 10**12]]
SHARE, OTHER, GAP = (1.0, 0.0), (0.0, 1.0), (1.0, -1.0)


def rows_of(women, men=(), stratum=""):
    return [Labelled(g, f"{stratum}{k}", stratum, counts) for g, own in enumerate((women, men))
            for k, counts in zip("abcdef", own, strict=False)]  # fmt: skip


def corrected(rows, counts, place=0, weights=SHARE, caveat=""):
    confusion = counts if isinstance(counts, dict) else {"all": counts}
    return c.corrected(rows, confusion, GENDERS, place, weights, caveat)


PROMPTS = rows_of([(20 + i, 45, 35) for i in range(4)], [(15 + 2 * i, 45, 40) for i in range(4)])
ONE, THREE = [(7, 13), (0, 0), (0, 0)], [(9, 11), (5, 15), (8, 12)]


@pytest.mark.parametrize("counts", [TWO, [[90, 10], [1, 1]], [[90, 10], [0, 1]]], ids=["many", "twice", "once"])
def test_rogan_and_gladens_formula_for_two_classes(counts):
    """Var = Var(q) / J^2 + pi^2 se (1 - se) / (n_1 J^2) + (1 - pi)^2 sp (1 - sp) / (n_0 J^2), J = se + sp - 1."""
    rows = rows_of([(n, 50 - n) for n in (24, 28, 32)])
    (n1, n0), q = map(sum, counts), 84 / 150
    se, sp = counts[0][0] / n1, counts[1][1] / n0  # one text shows no error: it adds none
    j = se + sp - 1
    pi = (q + sp - 1) / j
    errors = [pi**2 * se * (1 - se) / n1 / j**2, (1 - pi) ** 2 * sp * (1 - sp) / n0 / j**2]
    of_errors = errors[0] ** 2 / (n1 - 1) + errors[1] ** 2 / max(n0 - 1, 1)
    contexts = np.var([0.48, 0.56, 0.64], ddof=1) / 3 / j**2
    found = corrected(rows, counts)
    assert found.value == pytest.approx(pi, abs=1e-12)
    assert found.stderr == pytest.approx(math.sqrt(contexts + sum(errors)), abs=1e-12)
    dof = (contexts + sum(errors)) ** 2 / (contexts**2 / 2 + of_errors)
    assert found.dof == pytest.approx(dof, abs=1e-9)
    half = stats.t.ppf(0.975, dof) * found.stderr
    assert found.interval == pytest.approx((max(pi - half, 0), min(pi + half, 1)), abs=1e-9)
    given = q * (1 - q) / 150 / j**2 + sum(errors)
    half = stats.t.ppf(0.975, max(given**2 / of_errors, 1)) * math.sqrt(given)
    assert found.fixed_interval == pytest.approx((max(pi - half, 0), min(pi + half, 1)), abs=1e-9)
    assert (found.n, found.reason) == (150, ERR_ALIKE)


def raw_shares(rows, counts):
    """Each group's shares by solving the equations."""
    given = [np.sum([row.counts for row in rows if row.group == g], axis=0) for g in (0, 1)]
    tables = [np.array(counts[g] if isinstance(counts, dict) else counts, dtype=float) for g in GENDERS]
    return [np.linalg.solve((table / table.sum(axis=1, keepdims=True)).T, own / own.sum())
            for table, own in zip(tables, given, strict=True)]  # fmt: skip


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("counts", [LIGHT, {"female": LIGHT, "male": DIFFERENT}])
def test_shares_and_gap_solve_the_equations(place, counts):
    """With each gender's own matrix where it is known, however alike the two are."""
    women, men = (shares[place] for shares in raw_shares(PROMPTS, counts))
    for weights, expected, n in ((SHARE, women, 406), (OTHER, men, 412), (GAP, women - men, 818)):
        found = corrected(PROMPTS, counts, place, weights, "weak")
        assert found.value == pytest.approx(expected, abs=1e-12)
        assert found.n == n
        assert found.reason == ("weak" if isinstance(counts, dict) else f"{ERR_ALIKE}; weak")
    same = {"female": LIGHT, "male": [list(row) for row in LIGHT]}  # alike but counted twice: their errors differ
    assert corrected(PROMPTS, same, place, GAP).stderr > corrected(PROMPTS, LIGHT, place, GAP).stderr


def test_confusion_counts_of_all_texts_are_everybodys():
    half = (np.array(LIGHT) // 2).tolist()
    split = {"corpus": half, "others": (np.array(LIGHT) - half).tolist()}
    for weights in (SHARE, GAP):
        whole = corrected(PROMPTS, LIGHT, 0, weights)
        assert whole == corrected(PROMPTS, split, 0, weights) == corrected(PROMPTS, {"female": LIGHT}, 0, weights)
    # what is wrong with the men's matrix is no matter of the women's share, nor are the men's texts
    wrong = {"female": LIGHT, "male": [[50, 0, 0], [0, 50, 0], [0, 50, 0]]}
    assert not math.isnan(corrected(PROMPTS, wrong, 0, SHARE).value)
    assert "nearly singular" in corrected(PROMPTS, wrong, 0, GAP).reason
    assert corrected([*rows_of(THREE), Labelled(1, None, "", (1, 1))], TWO).reason == ERR_ALIKE


@pytest.mark.parametrize("weights", [SHARE, OTHER, GAP])
@pytest.mark.parametrize("genders", [("all",), GENDERS])
def test_error_of_the_confusion_counts_is_the_numeric_delta_methods(weights, genders):
    """By numeric derivatives of the solution by each probability."""
    counts = dict(zip(genders, (LIGHT, DIFFERENT), strict=False))
    rows = [Labelled(g, k, "", own) for k in "abc" for g, own in enumerate(((20, 45, 35), (15, 45, 40)))]

    def value(*tables):
        parts = zip(weights, rows, tables * (3 - len(tables)), strict=False)
        return sum(w * np.linalg.solve(t.T, np.array(row.counts) / 100)[0] for w, row, t in parts if w)

    at = [np.array(t, dtype=float) / np.sum(t, axis=1, keepdims=True) for t in counts.values()]
    variance = 0.0
    for k, table in enumerate(counts.values()):
        for row, p in enumerate(at[k]):
            slope = np.zeros(3)
            for column in range(3):
                moved = [t.copy() for t in at]
                moved[k][row, column] += 1e-6
                slope[column] = (value(*moved) - value(*at)) / 1e-6
            variance += slope @ (np.diag(p) - np.outer(p, p)) @ slope / sum(table[row])
    for g, weight in enumerate(weights):  # and 300 texts of each gender, in contexts that are alike
        line, p = np.linalg.inv(at[g if len(at) > 1 else 0].T)[0], np.array(rows[g].counts) / 100
        variance += weight**2 * (p @ line**2 - (p @ line) ** 2) / 300
    assert corrected(rows, counts, 0, weights).stderr == pytest.approx(math.sqrt(variance), rel=1e-4)


def test_a_classifier_that_never_errs_leaves_the_shares_error():
    """Over contexts in strata, with unlike numbers of texts, of which one has a single and one no text."""
    counts = {"r": [(1, 9), (12, 18), (9, 11), (0, 0)], "o": [(16, 4), (9, 1), (1, 0), (20, 20)]}
    rows = [row for name, own in counts.items() for row in rows_of(own, stratum=name)]
    estimate = corrected(rows, NEVER_ERRS)
    plain = text_shares.share([Row(0, row.context, row.stratum, row.counts[0], sum(row.counts)) for row in rows])
    assert estimate.value == pytest.approx(plain.value, abs=1e-9)
    assert (estimate.stderr, estimate.dof) == (pytest.approx(plain.stderr, abs=1e-6), pytest.approx(plain.dof))
    assert estimate.n == 131


@given(st.lists(st.floats(-2, 3), min_size=2, max_size=5))
def test_the_nearest_shares(raw):
    """By bisection: the number that has to be taken off each."""
    raw = np.array(raw)
    off = optimize.brentq(lambda x: np.maximum(raw - x, 0).sum() - 1, raw.min() - 1, raw.max(), xtol=1e-14)
    assert c.on_simplex(raw) == pytest.approx(np.maximum(raw - off, 0), abs=1e-9)
    assert c.on_simplex(raw).sum() == pytest.approx(1, abs=1e-12)


counts_of_texts = st.tuples(*[st.integers(0, 60)] * 3)


@given(st.lists(st.tuples(counts_of_texts, counts_of_texts), min_size=2, max_size=4), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_shares_of_all_classes_are_possible_together(contexts, own):
    rows = [Labelled(g, f"{k}", "", pair[g]) for k, pair in enumerate(contexts) for g in (0, 1)]
    if not all(sum(sum(row.counts) for row in rows if row.group == g) for g in (0, 1)):
        return
    confusion = {"female": LIGHT, "male": DIFFERENT} if own else LIGHT
    women, men, gaps = ([corrected(rows, confusion, place, w) for place in range(3)] for w in (SHARE, OTHER, GAP))
    for found, raw in zip((women, men), raw_shares(rows, confusion), strict=True):
        values = [one.value for one in found]
        if any(map(math.isnan, values)):
            assert all(map(math.isnan, values))
            assert all("further outside its range than chance explains" in one.reason for one in found)
            assert min(raw) < 0
            continue
        assert values == pytest.approx(raw if min(raw) >= 0 else c.on_simplex(raw), abs=1e-12)
        assert all(0 <= one.fixed_interval[0] <= one.value <= one.fixed_interval[1] <= 1 for one in found)
        assert all(0 <= one.interval[0] <= one.value <= one.interval[1] <= 1 for one in found if one.interval)
    for a, b, gap in zip(women, men, gaps, strict=True):  # without both shares there is no difference either
        assert gap.value == pytest.approx(a.value - b.value, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(("hits", "possible"), [((2, 8, 5), True), ((3, 7, 5), False)])
def test_contexts_decide_whether_a_share_is_impossible(hits, possible):
    # a share of -0.14, of which t times the contexts' error is 0.21 or 0.13, and for these prompts alone 0.07
    found = corrected(rows_of([(n, 50 - n) for n in hits]), (np.array(TWO) * 100).tolist())
    assert found.value == pytest.approx(0 if possible else math.nan, abs=0, nan_ok=True)


def test_shares_outside_the_range_by_chance_go_to_the_nearest_possible_ones():
    # (0.92 + 0.8 - 1) / 0.7 = 1.03, and -0.03 of the other class
    rows = rows_of([(46, 4), (44, 6), (48, 2)])
    estimate, other = (corrected(rows, TWO, place) for place in (0, 1))
    low = 0.72 / 0.7 - stats.t.ppf(0.975, estimate.dof) * estimate.stderr
    assert (estimate.value, estimate.interval) == (1.0, (pytest.approx(low, abs=1e-9), 1.0))
    assert (other.value, other.interval) == (0.0, (0.0, pytest.approx(1 - low, abs=1e-9)))
    assert estimate.fixed_interval[1] == 1.0
    # of three classes, what one is above 0 the others lose
    rows = [Labelled(g, k, "", (n, 60, 30)) for k, n in zip("abcd", (5, 7, 8, 6), strict=True) for g in (0, 1)]
    raw = raw_shares(rows, LIGHT)[0]
    expected = [0, raw[1] + raw[0] / 2, raw[2] + raw[0] / 2]
    assert [corrected(rows, LIGHT, place).value for place in range(3)] == pytest.approx(expected, abs=1e-12)
    gap = corrected(rows, LIGHT, 0, GAP)
    assert gap.interval[0] < gap.value == 0.0 < gap.interval[1]


@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize("texts", [lambda n: (n, 95, 0), lambda n: (0, n, 95), lambda n: (95, 0, n)])
def test_shares_outside_the_range_by_more_than_chance_have_no_value(texts, context):
    many = (np.array(LIGHT) * 100).tolist()
    rows = [Labelled(g, k if context else None, "", texts(n) if g else (30, 40, 30))
            for k, n in zip("abcd", (4, 5, 5, 6), strict=True) for g in (0, 1)]  # fmt: skip
    first = next(share for share in raw_shares(rows, many)[1] if not -0.05 < share < 1.05)
    for place in range(3):
        for weights in (OTHER, GAP):
            found = corrected(rows, many, place, weights)
            assert all(map(math.isnan, (found.value, found.stderr)))
            assert found.reason.startswith(f"a class's corrected share would be {first:.2f}, further outside its")
        assert not math.isnan(corrected(rows, many, place, SHARE).value)


@pytest.mark.parametrize("sign", [1, -1])
def test_gaps_end_at_1_and_minus_1(sign):
    high, low = [(19, 1), (14, 6), (20, 0)], [(1, 19), (6, 14), (0, 20)]
    wide = corrected(rows_of(*(high, low)[::sign]), NEVER_ERRS, 0, GAP)
    assert wide.value == pytest.approx(sign * (53 - 7) / 60, abs=1e-9)
    assert (wide.interval[1] if sign > 0 else wide.interval[0]) == sign
    assert abs(wide.interval[0] + wide.interval[1]) < 2


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([[31, 15, 17], [0, 0, 0], [9, 10, 57]], "doesn't occur"),
        ([[20, 20, 20], [20, 21, 20], [20, 20, 20]], "nearly singular"),
        ([[40, 35, 35], [35, 40, 35], [35, 35, 40]], "nearly singular"),
    ],
)
@pytest.mark.parametrize("weights", [SHARE, OTHER, GAP])
def test_without_a_usable_matrix_there_is_no_value(counts, reason, weights):
    estimate = corrected(PROMPTS, counts, 0, weights)
    assert math.isnan(estimate.value)
    assert reason in estimate.reason
    # condition numbers of [[p, 1 - p], [1 - p, p]]: 1 / (2 p - 1)
    assert "nearly singular" in c.correction([[54, 46], [46, 54]])
    assert c.correction([[56, 44], [44, 56]]) @ [0.5, 0.5] == pytest.approx([0.5, 0.5])


NO_PROMPT = [row._replace(context=None) for row in rows_of([(7, 13), (9, 11), (4, 16)])]


@pytest.mark.parametrize(
    ("rows", "weights", "n", "reason"),
    [
        (rows_of(ONE, THREE), SHARE, 20, FEW_CONTEXTS),
        (rows_of(THREE, ONE), OTHER, 20, FEW_CONTEXTS),
        (rows_of(ONE, THREE), GAP, 80, FEW_CONTEXTS),
        (NO_PROMPT, SHARE, 60, NO_PROMPTS),
        ([*rows_of(THREE), Labelled(0, None, "", (1, 1))], SHARE, 62, NO_PROMPTS),
    ],
)
def test_without_contexts_there_is_the_interval_of_these_prompts_alone(rows, weights, n, reason):
    estimate = corrected(rows, TWO, 0, weights, "weak")
    assert (estimate.n, estimate.reason) == (n, joined(reason, ERR_ALIKE, "weak"))
    assert (estimate.interval, math.isnan(estimate.stderr)) == (None, True)
    assert estimate.fixed_interval[0] < estimate.value < estimate.fixed_interval[1]


def test_texts_of_one_label():
    same = corrected(rows_of([(0, 20), (0, 20)], [(0, 20), (0, 20)]), [[90, 0], [0, 80]], 0, GAP, "weak")
    assert same.reason == joined(c.ONE_LABEL, ERR_ALIKE, "weak")
    assert (same.value, same.n, same.ends(), math.isnan(same.stderr)) == (0, 80, None, True)
