"""Scores as functions of sums over clusters, by hand."""

import numpy as np
import pytest

from lm_eval_bias.custom_metrics.designs import Cells, Clusters, share_of, sums, tabulate


@pytest.fixture
def table():
    # a has 3 items with hits 0 + 1 + 1, b 2 with 1 + 0
    return tabulate(["b", "a", "b", "a", "a"], [[1.0] * 5, [1.0, 0.0, 0.0, 1.0, 1.0]], share_of)


def test_sums_over_clusters(table):
    assert table.names == ["a", "b"]
    assert table.sizes.tolist() == [3.0, 2.0]
    assert table.sizes.dtype == np.float64
    assert table.totals.tolist() == [[3.0, 2.0], [2.0, 1.0]]
    assert table.value == pytest.approx(3 / 5, abs=1e-15)
    assert table.composite is False
    assert tabulate(["a"], [[1.0], [0.0]], share_of, composite=True).composite is True


def test_clusters_are_known_by_their_names_as_text():
    numbers = tabulate([10, 9, 10], [[1.0, 2.0, 4.0]], share_of)
    assert numbers.names == ["10", "9"]
    assert numbers.totals.tolist() == [[5.0], [2.0]]


def test_weights_repeat_and_leave_out_clusters(table):
    weights = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    assert sums(weights, table.totals).tolist() == [[5, 3], [6, 4], [6, 3], [0, 0]]
    assert share_of(weights, table.totals) == pytest.approx([3 / 5, 2 / 3, 1 / 2, np.nan], abs=1e-15, nan_ok=True)
    assert share_of(np.ones((1, 1)), np.array([[0.0, 2.0]]))[0] == np.inf  # no warning, which would be an error here


def test_each_draw_can_have_totals_of_its_own():
    weights = np.array([[1.0, 1.0], [2.0, 1.0]])
    totals = np.array([[[3.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [4.0, 0.0]]])
    assert sums(weights, totals).tolist() == [[5, 3], [6, 2]]
    assert share_of(weights, totals) == pytest.approx([3 / 5, 1 / 3], abs=1e-15)


def test_values_are_of_each_cluster_and_of_each_cell_once():
    assert Clusters(["a", "b"], np.ones(2), np.array([[1.0], [5.0]]), lambda w, t: (w @ t)[:, 0]).value == 6
    assert Cells(["a", "b"], ["t"], np.array([[1.0], [2.0]])).value == 1.5


def test_parts_of_a_mean_are_the_values_themselves():
    values = [1.0, 0.0, 0.0, 1.0, 1.0]
    assert tabulate(["b", "a", "b", "a", "a"], [[1.0] * 5, values], share_of).parts() == pytest.approx(values, abs=1e-6)


def test_parts_of_a_product_of_means_pull_as_weights_do():
    rng = np.random.default_rng(3)
    clusters = rng.integers(0, 7, 60)
    columns = [np.ones(60), rng.random(60), rng.random(60)]

    def product(weights, totals):
        total = sums(weights, totals)
        return total[:, 1] * total[:, 2] / total[:, 0] ** 2

    form = tabulate(clusters, columns, product)
    parts = form.parts()
    assert parts.mean() == pytest.approx(form.value)
    first, second = columns[1].mean(), columns[2].mean()
    by_hand = form.value + second * (columns[1] - first) + first * (columns[2] - second)
    assert parts == pytest.approx(by_hand)


def test_parts_of_a_mean_of_clusters_weigh_small_clusters_more():
    rng = np.random.default_rng(4)
    clusters = np.repeat(["a", "b", "c"], [500, 90, 10])
    values = rng.random(600)  # more kinds of items than are moved at a time

    def mean_of_clusters(weights, totals):
        return (weights * (totals[..., 1] / totals[..., 0])).sum(axis=1) / weights.sum(axis=1)

    form = tabulate(clusters, [np.ones(600), values], mean_of_clusters)
    own = {name: values[clusters == name] for name in "abc"}
    by_hand = [
        form.value + 600 / 3 * (value - own[name].mean()) / len(own[name])
        for name, value in zip(clusters, values, strict=True)
    ]
    assert form.parts() == pytest.approx(by_hand, abs=1e-5)
