"""Agreement of two forms: published and hand-made cases, slow formulas, and how often the intervals cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import agreement as module
from lm_eval_bias.custom_metrics.agreement import agreement
from lm_eval_bias.custom_metrics.crossed import crossed_stderr

ABC = ("a", "b", "c")


def _items(table, categories=ABC):
    """Outcomes of both sides from a table of counts."""
    pairs = [
        (first, second)
        for row, first in zip(table, categories, strict=True)
        for count, second in zip(row, categories, strict=True)
        for _ in range(count)
    ]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _values(found):
    return {name: estimate.value for name, estimate in found.estimates.items()}


def test_the_paradox_of_high_agreement_and_low_kappa():
    # Gwet (2008), section 1: 118, 5, 2 and 0 of 125 subjects; kappa -0.0234, AC1 0.9408
    first, second = _items([[118, 5], [2, 0]], "ab")
    found = agreement(first, second, [(str(i),) for i in range(125)], "ab")
    values = _values(found)
    assert values["agreement"] == pytest.approx(0.944, abs=1e-12)
    assert values["kappa"] == pytest.approx(-0.0234, abs=5e-5)
    assert values["ac1"] == pytest.approx(0.9408, abs=5e-5)
    # unrelated: 0.984 * 0.96 + 0.016 * 0.04 agree by chance
    by_ac1 = 2 * 0.972 * 0.028
    assert found.by_chance == pytest.approx((0.94528 - by_ac1) / (1 - by_ac1), abs=1e-12)


def test_three_outcomes_by_hand():
    first, second = _items([[4, 1, 0], [1, 2, 0], [0, 1, 1]])
    found = agreement(first, second, [(str(i // 2),) for i in range(10)], ABC)
    rows, columns = np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.4, 0.1])
    mean = (rows + columns) / 2
    for name, chance in (("kappa", rows @ columns), ("ac1", (mean * (1 - mean)).sum() / 2), ("agreement", 0.0)):
        assert _values(found)[name] == pytest.approx((0.7 - chance) / (1 - chance), abs=1e-12)
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    assert _values(found)["kappa"] == pytest.approx(metrics.cohen_kappa_score(first, second), abs=1e-12)


def test_an_outcome_that_does_not_occur_is_a_category_all_the_same():
    first, second = _items([[4, 1], [1, 4]], "ab")
    clusters = [(str(i),) for i in range(10)]
    two, three = (agreement(first, second, clusters, categories) for categories in ("ab", "abc"))
    assert _values(two)["ac1"] == pytest.approx(0.6)
    assert _values(three)["ac1"] == pytest.approx((0.8 - 0.25) / 0.75)
    assert _values(two)["kappa"] == _values(three)["kappa"]


def test_items_without_an_outcome_are_left_out_and_counted():
    first, second = ["a", "a", "b", "none", "b", ""], ["a", "b", "b", "a", "nan", ""]
    found = agreement(first, second, [(str(i),) for i in range(6)], "ab")
    assert found.left_out == 3
    assert {estimate.n for estimate in found.estimates.values()} == {3}
    assert _values(found)["agreement"] == pytest.approx(2 / 3)


def test_standard_errors_are_those_of_leaving_out_one_cluster():
    rng = np.random.default_rng(3)
    first = rng.choice(ABC, 60, p=[0.7, 0.2, 0.1])
    second = np.where(rng.random(60) < 0.6, first, rng.choice(ABC, 60))
    clusters = [str(i % 7) for i in range(60)]
    found = agreement(first, second, [(name,) for name in clusters], ABC)
    for name, estimate in found.estimates.items():
        logs = []
        for left_out in sorted(set(clusters)):
            kept = [i for i in range(60) if clusters[i] != left_out]
            part = agreement(first[kept], second[kept], [(str(i),) for i in kept], ABC)
            logs.append(math.log(1 - _values(part)[name]))
        error = math.sqrt(6 / 7 * sum((x - math.log(1 - estimate.value)) ** 2 for x in logs))
        assert estimate.stderr == pytest.approx((1 - estimate.value) * error, rel=1e-9)
        dof = 60**2 / sum(clusters.count(c) ** 2 for c in set(clusters)) - 1
        factor = math.exp(stats.t.ppf(0.975, dof) * error)
        ends = 1 - (1 - estimate.value) * factor, 1 - (1 - estimate.value) / factor
        assert estimate.interval == pytest.approx((max(ends[0], -1), ends[1]), rel=1e-6)


def test_influences_are_derivatives():
    table = np.array([[40.0, 3, 9], [4, 20, 5], [1, 6, 12]])
    shares, step = table / table.sum(), 1e-6
    influences = module._influences(table)
    for cell in np.ndindex(3, 3):
        moved = (1 - step) * shares
        moved[cell] += step
        for name, influence in influences.items():
            logs = [math.log(1 - module._measures(one[None])[name][0]) for one in (shares, moved)]
            assert influence[cell] == pytest.approx((logs[1] - logs[0]) / step, abs=1e-4)


def test_crossed_items_have_the_crossed_error():
    rng = np.random.default_rng(5)
    clusters = [(f"i{i}", f"t{t}") for i in range(12) for t in range(6)]
    first = rng.choice(ABC, 72)
    second = np.where(rng.random(72) < 0.7, first, rng.choice(ABC, 72))
    found = agreement(first, second, clusters, ABC)
    same = (first == second).astype(float).reshape(12, 6)
    share = same.mean()
    error, dof = crossed_stderr((same - share) / (1 - share))
    estimate = found.estimates["agreement"]
    assert estimate.stderr == pytest.approx((1 - share) * error, rel=1e-9)
    assert estimate.dof == pytest.approx(dof)
    # the same in any order of the items
    order = rng.permutation(72)
    other = agreement(first[order], second[order], [clusters[i] for i in order], ABC)
    assert other.estimates["ac1"].interval == pytest.approx(found.estimates["ac1"].interval)
    # a cell without an outcome has no influence, and the rest stands for all
    missing = agreement(["", *first[1:]], second, clusters, ABC)
    assert missing.left_out == 1
    assert missing.estimates["ac1"].stderr == pytest.approx(found.estimates["ac1"].stderr, rel=0.2)


def test_what_cannot_be_computed_is_nan_with_its_reason():
    clusters = [(str(i // 2),) for i in range(6)]
    nothing = agreement([""] * 6, ["a"] * 6, clusters, "ab")
    assert all(math.isnan(value) for value in _values(nothing).values())
    assert nothing.estimates["ac1"].reason == "no item has an outcome on both sides"
    assert math.isnan(nothing.by_chance)
    assert nothing.left_out == 6
    alike = agreement(["a"] * 6, ["a"] * 6, clusters, "ab")
    assert math.isnan(_values(alike)["kappa"])
    assert _values(alike)["ac1"] == 1.0
    assert alike.estimates["kappa"].reason == "only one outcome occurs on both sides"
    assert alike.estimates["ac1"].interval is None
    assert math.isnan(alike.estimates["ac1"].stderr)
    assert alike.estimates["ac1"].reason == "every item has the same outcome: no standard error"
    assert alike.estimates["ac1"].dof == pytest.approx(2)  # three equal clusters
    assert {estimate.n for estimate in alike.estimates.values()} == {6}
    one = agreement(list("aab"), list("aba"), [("x",)] * 3, "ab")
    assert math.isnan(one.estimates["ac1"].stderr)
    assert "2 clusters" in one.estimates["ac1"].reason
    assert (one.estimates["ac1"].n, one.estimates["ac1"].dof) == (3, 0)
    incomplete = agreement(list("aab"), list("aba"), [("i", "t"), ("j", "t"), ("i", "u")], "ab")
    assert "incomplete" in incomplete.estimates["ac1"].reason
    same = agreement(list("abab"), list("abab"), [(i, t) for i in "ij" for t in "tu"], "ab")
    assert _values(same)["kappa"] == 1.0


def test_without_the_only_cluster_that_disagrees_the_measures_are_1_and_have_no_logarithm():
    found = agreement(list("abab"), list("abaa"), [("x",), ("x",), ("y",), ("y",)], "ab")
    for estimate in found.estimates.values():
        assert math.isnan(estimate.stderr)
        assert estimate.interval is None
        assert estimate.reason == "no standard error: without one of the clusters every item has the same outcome"
    # without x there is one outcome alone, of which kappa has no value
    found = agreement(list("abaa"), list("baaa"), [("x",), ("x",), ("y",), ("z",)], "ab")
    assert "without one of the clusters every item" in found.estimates["ac1"].reason
    assert found.estimates["kappa"].reason == "no standard error: the score has no value without one of the clusters"


def test_an_error_is_given_without_a_caution():
    found = agreement(list("aabbab"), list("abbaab"), [(str(i // 2),) for i in range(6)], "ab")
    assert [(estimate.n, estimate.reason) for estimate in found.estimates.values()] == [(6, "")] * 3


def test_clusters_count_by_their_items_with_two_outcomes():
    # of the clusters' 4, 4 and 4 items 4, 2 and 1 have an outcome: (4 + 2 + 1)^2 / (16 + 4 + 1) - 1
    first, second = [*"aabb", *"ab??", *"a???"], [*"abba", *"abab", *"baab"]
    found = agreement(first, second, [(str(i // 4),) for i in range(12)], "ab")
    assert found.left_out == 5
    for estimate in found.estimates.values():
        assert estimate.dof == pytest.approx(49 / 21 - 1)


def test_an_interval_ends_where_the_measure_does():
    # the sides say the opposite in all items but one: their measures are near -1, with an error as large
    first, second = list("ababababab"), list("bababababb")
    found = agreement(first, second, [(str(i // 4),) for i in range(10)], "ab")
    for name in ("ac1", "kappa"):
        low, high = found.estimates[name].interval
        assert low == -1
        assert -1 < found.estimates[name].value < high < 1


def test_an_outcome_or_a_cluster_too_few_is_an_error():
    pairs = [(i, t) for i in "ij" for t in "tu"]
    for first, second in (("aab", "aabb"), ("aabb", "aab")):
        with pytest.raises(ValueError, match="zip"):
            agreement(list(first), list(second), [("x",), ("x",), ("y",)], "ab")
    # the fifth item would be left out silently: the four others make a whole table
    for clusters in (pairs, [(i,) for i, _ in pairs]):
        with pytest.raises(ValueError, match="argument|shape|length"):
            agreement(list("aabba"), list("abbba"), clusters, "ab")


@pytest.mark.parametrize("missing", [(), (4,), (0, 11, 17)])
@pytest.mark.parametrize("shape", [(6, 3), (2, 9), (9, 2)])
def test_crossed_errors_are_those_of_moved_shares(shape, missing):
    """The influences by moving each cell's share a little; an item without an outcome has none."""
    rng = np.random.default_rng(7)
    first = rng.choice(ABC, 18)
    second = np.where(rng.random(18) < 0.6, first, rng.choice(ABC, 18))
    first[list(missing)] = ""
    clusters = [(f"i{i}", f"t{t}") for i in range(shape[0]) for t in range(shape[1])]
    found = agreement(first, second, clusters, ABC)
    table, step = np.array([[((first == a) & (second == b)).sum() for b in ABC] for a in ABC]) / 18, 1e-6
    for name, estimate in found.estimates.items():
        influence = []
        for a, b in zip(first, second, strict=True):
            ends = []
            for sign in (1, -1):
                moved = table.copy()
                if a:
                    moved[ABC.index(a), ABC.index(b)] += sign * step
                ends.append(module._measures(moved[None])[name][0])
            influence.append((ends[0] - ends[1]) / (2 * step))
        error, dof = crossed_stderr(np.reshape(influence, shape))
        assert estimate.stderr == pytest.approx(error, rel=1e-6)
        assert estimate.dof == pytest.approx(dof, rel=1e-6)
        assert (estimate.n, estimate.reason) == (18 - len(missing), "")
        factor = math.exp(stats.t.ppf(0.975, max(dof, 1)) * error / (1 - estimate.value))
        ends = 1 - (1 - estimate.value) * factor, 1 - (1 - estimate.value) / factor
        assert estimate.interval == pytest.approx((max(ends[0], -1), ends[1]), rel=1e-5)


def test_crossed_items_without_an_error_say_why():
    for pairs, counts in (([("i", t) for t in "tuv"], "1 and 3"), ([(i, "t") for i in "ijk"], "3 and 1")):
        for estimate in agreement(list("aab"), list("aba"), pairs, "ab").estimates.values():
            assert math.isnan(estimate.stderr)
            assert estimate.reason == f"a standard error needs at least 2 items and 2 templates, there are {counts}"
    # all items alike, with different outcomes: no certainty
    opposite = agreement(list("aaaa"), list("bbbb"), [(i, t) for i in "ij" for t in "tu"], "ab")
    assert _values(opposite) == {"agreement": 0.0, "ac1": -1.0, "kappa": 0.0}
    for estimate in opposite.estimates.values():
        assert math.isnan(estimate.stderr)
        assert (estimate.interval, estimate.reason) == (None, "nothing varied")


def test_exchanging_the_sides_changes_nothing():
    rng = np.random.default_rng(9)
    first, second, clusters = rng.choice(ABC, 40), rng.choice(ABC, 40), [(str(i % 8),) for i in range(40)]
    one, other = agreement(first, second, clusters, ABC), agreement(second, first, clusters, ABC)
    for name in module.MEASURES:
        assert one.estimates[name].interval == pytest.approx(other.estimates[name].interval, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("related", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("shares", [(0.34, 0.33, 0.33), (0.95, 0.03, 0.02)])
def test_ac1_s_interval_covers_with_even_and_skewed_shares(shares, related):
    rng, rounds = np.random.default_rng(1), 300

    def drawn(count, size):
        own = rng.dirichlet(20 * np.array(shares), size=count)
        again = rng.beta(10 * related, 10 * (1 - related), size=count) if related else np.zeros(count)
        for p, copied in zip(own, again, strict=True):
            first = rng.choice(3, size, p=p)
            yield first, np.where(rng.random(size) < copied, first, rng.choice(3, size, p=p))

    many = list(drawn(8000, 100))
    table = np.zeros((3, 3))
    for first, second in many:
        np.add.at(table, (first, second), 1)
    true = module._measures(table[None])["ac1"][0]
    names, covered = [(f"{k}",) for k in range(21) for _ in range(23)], 0
    for _ in range(rounds):
        sides = list(drawn(21, 23))
        first, second = (np.concatenate([side[k] for side in sides]).astype(str) for k in (0, 1))
        interval = agreement(first, second, names, "012").estimates["ac1"].interval
        covered += interval is None or interval[0] <= true <= interval[1]
    assert 0.91 <= covered / rounds <= 0.995


@pytest.mark.slow
@pytest.mark.parametrize(("shares", "related"), [((0.6, 0.35, 0.05), 0.5), ((0.9, 0.07, 0.03), 0.9)])
def test_crossed_intervals_cover(shares, related):
    rng, rounds = np.random.default_rng(6), 200

    def drawn(items, templates):
        spread = rng.normal(0, 1, (items, 1, 3)) + rng.normal(0, 0.5, (1, templates, 3))
        p = np.exp(np.log(shares) + spread)
        p = (p / p.sum(axis=-1, keepdims=True)).cumsum(axis=-1)
        sides = [(p < rng.random((items, templates, 1))).sum(axis=-1).clip(0, 2) for _ in "ab"]
        return sides[0].ravel(), np.where(rng.random((items, templates)) < related, *sides).ravel()

    table = np.zeros((3, 3))
    for _ in range(60):
        np.add.at(table, drawn(200, 200), 1)
    true = {name: values[0] for name, values in module._measures(table[None]).items()}
    clusters = [(f"i{i}", f"t{t}") for i in range(40) for t in range(25)]
    covered = dict.fromkeys(module.MEASURES, 0)
    for _ in range(rounds):
        sides = [side.astype(str) for side in drawn(40, 25)]
        for name, one in agreement(*sides, clusters, "012").estimates.items():
            covered[name] += one.interval[0] <= true[name] <= one.interval[1]
    assert all(0.91 <= count / rounds <= 0.99 for count in covered.values()), covered
