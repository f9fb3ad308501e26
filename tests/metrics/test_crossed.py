"""Layouts of items x templates and the means over them, by hand."""

import math

import numpy as np
import pytest

from lm_eval_bias.custom_metrics import crossed


def prompts(cells, items="abcdef"):
    return [
        {"item": items[i], "template": f"t{t}", "v": v, "stratum": "first" if i < 2 else "second"}
        for i, row in enumerate(cells)
        for t, v in enumerate(row)
    ]


def mean_of(cells):
    records = prompts(cells)
    return crossed.crossed_mean(records, lambda r: r["v"], "test")


def test_a_grid_has_items_and_templates_in_the_order_of_their_names():
    matrix = crossed.grid(prompts([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], items="zy"), lambda r: r["v"])
    assert (matrix.items, matrix.templates) == (["y", "z"], ["t0", "t1", "t2"])
    assert matrix.cells.tolist() == [[4, 5, 6], [1, 2, 3]]
    assert matrix.strata == ()


def test_a_stratum_of_two_items_is_one():
    matrix = crossed.grid(prompts(np.zeros((4, 3))), lambda r: r["v"], stratum=lambda r: r["stratum"])
    assert matrix.strata == ["first", "first", "second", "second"]
    assert (matrix.items, matrix.templates) == (list("abcd"), ["t0", "t1", "t2"])


def test_pairs_that_occur_again_are_counted():
    records = prompts([[1.0, 2.0], [3.0, 4.0]])
    twice = [*records, *records[1:3]]  # two of the four pairs
    assert crossed.grid(twice, lambda r: r["v"]) == "2 (item, template) pairs occur more than once"
    again = crossed.crossed_mean(twice, lambda r: r["v"], "test")
    assert math.isnan(again.value)
    assert again.n == 6


def test_an_incomplete_product_has_the_mean_of_the_items_means():
    # items (1, 3) and (6,): (2 + 6) / 2, not (1 + 3 + 6) / 3
    records = prompts([[1.0, 3.0], [6.0, 0.0]])[:3]
    found = crossed.crossed_mean(records, lambda r: r["v"], "test")
    assert (found.value, found.n) == (4.0, 3)
    assert math.isnan(found.stderr)
    assert "incomplete: 3 of 4 (2 items x 2 templates)" in found.reason
    records[0]["v"] = math.nan
    found = crossed.crossed_mean(records, lambda r: r["v"], "test")
    assert math.isnan(found.value)
    assert "no value" in found.reason


def test_prompts_without_a_value_are_counted():
    found = mean_of([[math.nan, 1.0, 2.0], [math.nan, 3.0, 4.0]])
    assert math.isnan(found.value)
    assert found.reason.startswith("2 of 6 test prompts have no value")
    assert found.n == 6


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1)])
def test_one_item_or_one_template_has_no_standard_error(shape):
    cells = np.arange(math.prod(shape), dtype=float).reshape(shape)
    assert all(map(math.isnan, crossed.crossed_stderr(cells)))
    found = mean_of(cells)
    assert found.value == cells.mean()
    assert math.isnan(found.stderr)
    assert f"needs at least 2 items and 2 templates, there are {shape[0]} and {shape[1]}" in found.reason


def test_a_mean_says_how_many_prompts_it_has_and_when_nothing_is_amiss():
    found = mean_of([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]])
    assert (found.n, found.reason) == (6, "")
    assert found.stderr > 0


def test_no_variation_at_0_is_no_certainty_either():
    found = mean_of(np.zeros((3, 3)))
    assert found.value == 0
    assert math.isnan(found.stderr)
    assert "nothing varies" in found.reason


@pytest.mark.parametrize("unit", [1e-30, 1e-6, 1e6])
def test_the_unit_of_the_values_decides_nothing(unit):
    cells = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]])
    one, other = mean_of(cells), mean_of(cells * unit)
    assert other.stderr == pytest.approx(one.stderr * unit, rel=1e-9, abs=0)
    assert other.dof == pytest.approx(one.dof, rel=1e-9)


def test_items_that_vary_no_more_than_the_residuals_leave_the_templates_evidence():
    # row effects +-1, column effects +-2, residuals +-1: item part 1^2, template part 2^2, residual part 1^2
    # variance 1 + 4 - 1; of the two factors templates alone stand out: two of them, one degree of freedom
    stderr, dof = crossed.crossed_stderr(np.array([[4.0, -2.0], [0.0, -2.0]]))
    assert stderr == pytest.approx(2.0, abs=1e-12)
    assert dof == pytest.approx(1.0, abs=1e-12)


def test_a_share_that_rests_on_one_item_has_no_standard_error():
    # without the first item nothing varies, and a share of no variance is no number
    assert math.isnan(crossed.jackknife_of_share(np.array([[1.0, 0.0, 0.0], [0, 0, 0], [0, 0, 0]]), "rows"))
