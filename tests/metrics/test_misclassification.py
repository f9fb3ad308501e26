"""Shares corrected for a classifier's errors: by hand, against slow computations, by simulation; where undefined."""

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import misclassification as c
from lm_eval_bias.custom_metrics import regard as m
from lm_eval_bias.custom_metrics.misclassification import Labelled

# the light classifier's on the German test sentences: a row per true class
LIGHT = [[31, 15, 17], [6, 65, 21], [9, 10, 57]]
SHARE, OTHER, GAP = (1.0, 0.0), (0.0, 1.0), (1.0, -1.0)


def prompts(women, men, contexts=("a", "b", "c", "d")):
    """The same counts in each context, but for what the context's number adds to the first class."""
    return [
        Labelled(g, context, "", (counts[0] + i * (1 + g), *counts[1:]))
        for i, context in enumerate(contexts)
        for g, counts in enumerate((women, men))
    ]


def corrected(rows, counts, place=0, weights=SHARE):
    return c.corrected(rows, counts, m.GENDERS, place, weights)


def test_rogan_and_gladens_formula_for_two_classes():
    # sensitivity 0.9, specificity 0.8: (q + specificity - 1) / (sensitivity + specificity - 1)
    rows = [Labelled(0, k, "", (n, 50 - n)) for k, n in zip("abc", (22, 26, 30), strict=True)]
    q = 78 / 150
    estimate = corrected(rows, {"all": [[90, 10], [20, 80]]})
    assert estimate.value == pytest.approx((q + 0.8 - 1) / (0.9 + 0.8 - 1), abs=1e-12)
    # Var = Var(q) / J^2 + pi^2 se (1 - se) / (n_1 J^2) + (1 - pi)^2 sp (1 - sp) / (n_0 J^2), J = se + sp - 1
    pi, j2 = estimate.value, 0.7**2
    errors = [pi**2 * 0.09 / 100 / j2, (1 - pi) ** 2 * 0.16 / 100 / j2]
    contexts = np.var([22 / 50, 26 / 50, 30 / 50], ddof=1) / 3 / j2
    assert estimate.stderr == pytest.approx(math.sqrt(contexts + sum(errors)), abs=1e-12)
    dof = (contexts + sum(errors)) ** 2 / (contexts**2 / 2 + errors[0] ** 2 / 99 + errors[1] ** 2 / 99)
    assert estimate.dof == pytest.approx(dof, abs=1e-9)
    half = stats.t.ppf(0.975, dof) * estimate.stderr
    assert estimate.interval == pytest.approx((pi - half, pi + half), abs=1e-9)
    given = q * (1 - q) / 150 / j2 + sum(errors)
    dof = given**2 / (errors[0] ** 2 / 99 + errors[1] ** 2 / 99)
    half = stats.t.ppf(0.975, dof) * math.sqrt(given)
    assert estimate.fixed_interval == pytest.approx((pi - half, pi + half), abs=1e-9)
    assert estimate.n == 150


def slow_solution(given, counts):
    table = np.array(counts, dtype=float)
    return np.linalg.solve((table / table.sum(axis=1, keepdims=True)).T, np.array(given) / sum(given))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_shares_and_gap_solve_the_equations(place):
    rows = prompts((20, 45, 35), (15, 45, 40))
    given = [np.sum([row.counts for row in rows if row.group == g], axis=0) for g in (0, 1)]
    women, men = (slow_solution(own, LIGHT)[place] for own in given)
    assert 0 < women < 1
    assert corrected(rows, {"all": LIGHT}, place, SHARE).value == pytest.approx(women, abs=1e-12)
    assert corrected(rows, {"all": LIGHT}, place, OTHER).value == pytest.approx(men, abs=1e-12)
    assert corrected(rows, {"all": LIGHT}, place, GAP).value == pytest.approx(women - men, abs=1e-12)


@pytest.mark.parametrize("weights", [SHARE, OTHER, GAP])
@pytest.mark.parametrize("genders", [("all",), m.GENDERS])
def test_error_of_the_confusion_counts_is_the_numeric_delta_methods(weights, genders):
    """By numeric derivatives of the solution by each probability."""
    other = [[45, 12, 6], [5, 80, 7], [20, 20, 36]]
    counts = dict(zip(genders, (LIGHT, other), strict=False))
    assert len(genders) == 1 or not c.err_alike(LIGHT, other)
    rows = [Labelled(g, k, "", own) for k in "abc" for g, own in enumerate(((20, 45, 35), (15, 45, 40)))]

    def value(probabilities):
        tables = [probabilities[g if len(probabilities) > 1 else 0] for g in (0, 1)]
        return sum(w * np.linalg.solve(t.T, np.array(rows[g].counts) / 100)[0]
                   for g, (w, t) in enumerate(zip(weights, tables, strict=True)) if w)  # fmt: skip

    at = [np.array(t, dtype=float) / np.sum(t, axis=1, keepdims=True) for t in counts.values()]
    variance = 0.0
    for k, table in enumerate(counts.values()):
        for row in range(3):
            slope = np.zeros(3)
            for column in range(3):
                moved = [t.copy() for t in at]
                moved[k][row, column] += 1e-6
                slope[column] = (value(moved) - value(at)) / 1e-6
            p = at[k][row]
            variance += slope @ (np.diag(p) - np.outer(p, p)) @ slope / sum(table[row])
    for g, weight in enumerate(weights):  # and 300 texts of each gender, in contexts that are alike
        line, p = np.linalg.inv(at[g if len(at) > 1 else 0].T)[0], np.array(rows[g].counts) / 100
        variance += weight**2 * (p @ line**2 - (p @ line) ** 2) / 300
    assert corrected(rows, counts, 0, weights).stderr == pytest.approx(math.sqrt(variance), rel=1e-4)


def test_a_perfect_classifier_corrects_nothing():
    rows = prompts((20, 45, 35), (15, 45, 40))
    given = [np.sum([row.counts for row in rows if row.group == g], axis=0) for g in (0, 1)]
    estimate = corrected(rows, {"all": [[50, 0, 0], [0, 50, 0], [0, 0, 50]]}, 0, GAP)
    assert estimate.value == pytest.approx(given[0][0] / given[0].sum() - given[1][0] / given[1].sum(), abs=1e-12)


def test_counts_by_gender_are_one_matrix_unless_they_differ():
    half = (np.array(LIGHT) // 2).tolist()
    rest = (np.array(LIGHT) - half).tolist()
    rows = prompts((20, 45, 35), (15, 45, 40))
    split = corrected(rows, {"female": half, "male": rest}, 0, GAP)
    assert split == corrected(rows, {"all": LIGHT}, 0, GAP)
    other = [[45, 12, 6], [5, 80, 7], [20, 20, 36]]
    apart = corrected(rows, {"female": LIGHT, "male": other}, 0, SHARE)
    assert apart.value == pytest.approx(corrected(rows, {"all": LIGHT}, 0, SHARE).value, abs=1e-12)
    men = slow_solution(np.sum([r.counts for r in rows if r.group], axis=0), other)[1]
    assert corrected(rows, {"female": LIGHT, "male": other}, 1, OTHER).value == pytest.approx(men, abs=1e-12)
    # what is wrong with the men's matrix is no matter of the women's share
    assert not math.isnan(
        corrected(rows, {"female": LIGHT, "male": [[50, 0, 0], [0, 50, 0], [0, 50, 0]]}, 0, SHARE).value
    )
    # counts of one gender alone are everybody's
    assert corrected(rows, {"female": LIGHT}, 0, GAP) == corrected(rows, {"all": LIGHT}, 0, GAP)


def test_counts_differ_by_the_sum_of_chi_squares():
    first, second = [[30, 10], [20, 20]], [[22, 18], [14, 26]]
    total = sum(stats.chi2_contingency([a, b], correction=False).statistic for a, b in zip(first, second, strict=True))
    assert c.err_alike(first, second) == (stats.chi2.sf(total, 2) >= 0.05)
    assert c.err_alike([[30, 0], [0, 40]], [[20, 0], [0, 10]])  # neither ever errs
    assert not c.err_alike([[30, 0], [0, 40]], [[20, 0], [10, 0]])


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([[31, 15, 17], [0, 0, 0], [9, 10, 57]], "doesn't occur"),
        ([[20, 20, 20], [20, 21, 20], [20, 20, 20]], "nearly singular"),
        ([[40, 35, 35], [35, 40, 35], [35, 35, 40]], "nearly singular"),
    ],
)
def test_without_a_usable_matrix_there_is_no_value(counts, reason):
    for weights in (SHARE, OTHER, GAP):
        estimate = corrected(prompts((20, 45, 35), (15, 45, 40)), {"all": counts}, 0, weights)
        assert math.isnan(estimate.value)
        assert reason in estimate.reason


def test_a_weak_matrix_is_still_used():
    # condition number (45 - 27.5) / 100 of the smaller eigenvalue: 5.7
    weak = [[900, 550, 550], [550, 900, 550], [550, 550, 900]]
    assert corrected(prompts((30, 38, 32), (31, 36, 33)), {"all": weak}, 0, GAP).reason == ""


def test_shares_outside_the_range_by_chance_are_set_to_its_end():
    rows = [Labelled(g, k, "", (n, 60, 30)) for k, n in zip("abcd", (5, 7, 8, 6), strict=True) for g in (0, 1)]
    raw = slow_solution(np.sum([r.counts for r in rows if r.group == 0], axis=0), LIGHT)[0]
    assert raw < 0
    share = corrected(rows, {"all": LIGHT}, 0, SHARE)
    assert share.value == 0.0
    assert share.interval[0] == 0.0 < share.interval[1] < 0.2
    gap = corrected(rows, {"all": LIGHT}, 0, GAP)
    assert gap.value == 0.0
    assert gap.interval[0] < 0 < gap.interval[1]


def test_the_interval_of_a_gap_holds_the_difference_of_the_shares():
    """Many texts tell the gap well and the shares badly, whose errors are the same few labelled texts'."""
    counts = (900, 6000, 3000), (300, 6000, 3000)
    rows = [Labelled(g, k, "", (n, neutral + 10 * i, positive))
            for i, k in enumerate("abcd") for g, (n, neutral, positive) in enumerate(counts)]  # fmt: skip
    women, men = (corrected(rows, {"all": LIGHT}, 0, weights) for weights in (SHARE, OTHER))
    assert men.value == 0.0
    gap = corrected(rows, {"all": LIGHT}, 0, GAP)
    raw = [slow_solution(np.sum([r.counts for r in rows if r.group == g], axis=0), LIGHT)[0] for g in (0, 1)]
    assert gap.value == pytest.approx(women.value, abs=1e-12)
    assert gap.value < raw[0] - raw[1]
    assert gap.interval[0] == gap.value


def test_contexts_that_do_not_differ_leave_the_error_of_the_texts():
    rows = [Labelled(g, k, "", (20, 45, 35)) for k in "abcd" for g in (0, 1)]
    gap = corrected(rows, {"all": LIGHT}, 0, GAP)  # whose error of the confusion counts is 0, too
    line = np.linalg.inv((np.array(LIGHT) / np.sum(LIGHT, axis=1, keepdims=True)).T)[0]
    p = np.array([0.2, 0.45, 0.35])
    stderr = math.sqrt(2 * (p @ line**2 - (p @ line) ** 2) / 400)
    assert gap.value == 0
    assert gap.stderr == pytest.approx(stderr, abs=1e-12)
    half = stats.t.ppf(0.975, 6) * stderr  # two groups' variances, three degrees of freedom each
    assert gap.interval == pytest.approx((-half, half), abs=1e-9)


def test_texts_of_one_label_have_no_error():
    rows = [Labelled(g, k, "", (0, 100, 0)) for k in "abcd" for g in (0, 1)]
    gap = corrected(rows, {"all": [[50, 0, 0], [0, 50, 0], [0, 0, 50]]}, 0, GAP)
    assert gap.value == 0
    assert math.isnan(gap.stderr)
    assert gap.ends() is None
    assert "the same label" in gap.reason


def test_shares_outside_the_range_by_more_than_chance_have_no_value():
    many = (np.array(LIGHT) * 100).tolist()
    rows = [Labelled(g, k, "", (n, 95, 0)) for k, n in zip("abcd", (4, 5, 5, 6), strict=True) for g in (0, 1)]
    estimate = corrected(rows, {"all": many}, 2, SHARE)
    assert math.isnan(estimate.value)
    assert "outside its range" in estimate.reason
    above = [Labelled(g, k, "", (0, n, 95)) for k, n in zip("abcd", (4, 5, 5, 6), strict=True) for g in (0, 1)]
    assert "would be 1." in corrected(above, {"all": many}, 2, SHARE).reason
    confusion = {"source": "x", "counts": {"all": many}}
    own = [record(m.GENDERS[r.group], r.context, r.counts, confusion=confusion) for r in rows]
    for gender in (*m.GENDERS, None):  # so that there is no difference either
        assert "outside its range" in m.corrected(own, gender=gender, regard="positive").reason


def test_texts_without_prompts_have_the_first_interval_alone():
    rows = [Labelled(g, None, "", (20, 45, 35)) for _ in range(4) for g in (0, 1)]
    for weights in (SHARE, GAP):
        estimate = corrected(rows, {"all": LIGHT}, 0, weights)
        assert math.isnan(estimate.stderr)
        assert estimate.interval is None
        assert "only for these texts" in estimate.reason
        assert estimate.fixed_interval[0] < estimate.value < estimate.fixed_interval[1]


def record(gender, context, counts, **more):
    texts = [(label, ["respect"], []) for label, n in zip(m.REGARDS, counts, strict=True) for _ in range(n)]
    return {"gender": gender, "texts": texts, "repeated": False, "drawn": len(texts), "unfinished": 0, "wordings": [],
            "has_other": False, "caveat": "", "context": context, "context_set": "respect", **more}  # fmt: skip


def test_scores_are_those_of_the_records():
    confusion = {"source": "x", "counts": {"all": LIGHT}}
    rows = prompts((20, 45, 35), (15, 45, 40))
    own = [record(m.GENDERS[r.group], r.context, r.counts, confusion=confusion) for r in rows]
    rows = [r._replace(stratum="respect") for r in rows]
    scores = {score.name: score for score in m.scores(own)}
    for place, regard in ((0, "negative"), (2, "positive")):
        weights = {f"all/female/{regard}_corrected": SHARE, f"all/male/{regard}_corrected": OTHER,
                   f"all/{regard}_gap_corrected": GAP}  # fmt: skip
        for name, weight in weights.items():
            estimate = scores[name].compute(own)
            assert estimate == corrected(rows, {"all": LIGHT}, place, weight)
            assert scores[name].low <= estimate.interval[0] < estimate.value < estimate.interval[1] <= scores[name].high
            assert "corrected" in scores[name].summary
            assert scores[name].table is None
    unknown = [{k: v for k, v in r.items() if k != "confusion"} for r in own]
    assert "--regard_labels" in scores["all/negative_gap_corrected"].compute(unknown).reason
    assert (
        "about men" in scores["all/negative_gap_corrected"].compute([r for r in own if r["gender"] == "female"]).reason
    )


@pytest.mark.parametrize("contexts", [5, 10])
def test_intervals_cover_in_93_to_97_percent(contexts):
    """Contexts' true shares vary, labels err as the light classifier's, and its errors are known from 231 sentences."""
    rng, rounds = np.random.default_rng(5), 800
    truth = np.array([[141, 64, 48], [44, 248, 77], [44, 54, 205]], dtype=float)  # the same classifier, 925 sentences
    truth /= truth.sum(axis=1, keepdims=True)
    base, shift = np.array([0.24, 0.55, 0.21]), 0.1
    covered = {"share": 0, "gap": 0, "raw": 0}
    for _ in range(rounds):
        rows = []
        for context in range(contexts):
            around = rng.dirichlet(30 * base)
            for g in (0, 1):
                own = rng.dirichlet(150 * around + 1e-3)
                own = (1 - shift) * own + shift * np.array([0, 0, 1.0]) if g == 0 else own
                rows.append(Labelled(g, f"{context}", "", tuple(rng.multinomial(100, own @ truth).tolist())))
        counts = [rng.multinomial(n, p).tolist() for n, p in zip((63, 92, 76), truth, strict=True)]
        women = (1 - shift) * base[2] + shift
        share, gap = corrected(rows, {"all": counts}, 2, SHARE), corrected(rows, {"all": counts}, 2, GAP)
        covered["share"] += share.interval[0] <= women <= share.interval[1]
        covered["gap"] += gap.interval[0] <= women - base[2] <= gap.interval[1]
        called = np.sum([r.counts for r in rows if r.group == 0], axis=0)
        covered["raw"] += abs(called[2] / called.sum() - women) < 1.96 * math.sqrt(0.25 / called.sum())
    assert 0.93 <= covered["gap"] / rounds <= 0.975, covered
    assert 0.93 <= covered["share"] / rounds <= 0.98, covered
    assert covered["raw"] / rounds < 0.8, covered
