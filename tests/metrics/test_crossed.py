"""Items x templates: layouts by hand, standard errors against loops, resamples one by one."""

import math

import numpy as np
import pytest

from lm_eval_bias.custom_metrics import crossed
from lm_eval_bias.custom_metrics.intervals import wilson
from tests.support.oracles import reason_of


def prompts(cells, items="abcdef"):
    return [
        {
            "item": items[i],
            "template": f"t{t}",
            "v": v,
            "stratum": "first" if i < 2 else "second",
        }
        for i, row in enumerate(cells)
        for t, v in enumerate(row)
    ]


def mean_of(cells):
    records = prompts(cells)
    return crossed.crossed_estimate(records, lambda r: r["v"], "test")


def test_a_grid_has_items_and_templates_in_the_order_of_their_names():
    matrix = crossed.grid(
        prompts([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], items="zy"), lambda r: r["v"]
    )
    assert (matrix.items, matrix.templates) == (["y", "z"], ["t0", "t1", "t2"])
    assert matrix.cells.tolist() == [[4, 5, 6], [1, 2, 3]]
    assert (matrix.strata, matrix.value) == ((), 3.5)


@pytest.mark.parametrize(
    ("rows", "strata"), [(4, ["first", "first", "second", "second"]), (3, ())]
)
def test_an_item_alone_in_its_stratum_makes_one_sample_of_all(rows, strata):
    matrix = crossed.grid(
        prompts(np.zeros((rows, 3))), lambda r: r["v"], stratum=lambda r: r["stratum"]
    )
    assert (matrix.items, matrix.templates, matrix.strata) == (
        list("abcd"[:rows]),
        ["t0", "t1", "t2"],
        strata,
    )


TWICE = [*prompts([[1.0, 2.0], [3.0, 4.0]]), *prompts([[1.0, 2.0], [3.0, 4.0]])[1:3]]
FEW = "a standard error needs at least 2 items and 2 templates, there are {} and {}"


@pytest.mark.parametrize(
    ("records", "value", "reason"),
    [
        (prompts(np.zeros((3, 3))), 0, "nothing varies between the prompts: no standard error"),
        (prompts(np.full((3, 3), 0.7)), 0.7, "nothing varies between the prompts: no standard error"),
        (prompts([[0.0, 1.0, 2.0]]), 1, FEW.format(1, 3)),
        (prompts([[0.0], [1.0], [2.0]]), 1, FEW.format(3, 1)),
        (prompts([[math.nan, 1.0, 2.0], [math.nan, 3.0, 4.0]]), math.nan, "2 of 6 test prompts have no value"),
        (TWICE, math.nan, "2 (item, template) pairs occur more than once"),
        # items (1, 3) and (6,): (2 + 6) / 2, not (1 + 3 + 6) / 3
        (prompts([[1.0, 3.0], [6.0, 0.0]])[:3], 4,
         "the items x templates product is incomplete: 3 of 4 (2 items x 2 templates)"),
        (prompts([[math.nan, 3.0], [6.0, 0.0]])[:3], math.nan, "a test prompt has no value"),
    ],
)  # fmt: skip
def test_where_there_is_no_error_the_reason_is_told(records, value, reason):
    if math.isnan(value):
        assert reason_of(
            crossed.crossed_estimate, records, lambda r: r["v"], "test"
        ).startswith(reason)
        return
    found = crossed.crossed_estimate(records, lambda r: r["v"], "test")
    assert (found.value, found.n) == (pytest.approx(value, nan_ok=True), len(records))
    assert math.isnan(found.stderr)
    assert found.reason.startswith(reason)


def test_two_templates_have_one_degree_of_freedom_at_most_and_say_so():
    # item part 0.08 / 2, template part 0.02 / 2, no rest: V = 0.05, dof = V^2 / (0.04^2 + 0.01^2) = 1.47
    cells = np.array([[0.8, 0.6], [0.4, 0.2]])
    assert crossed.crossed_stderr(cells) == pytest.approx(
        (math.sqrt(0.05), 0.0025 / 0.0017), abs=1e-9
    )
    two, three = mean_of(cells), mean_of(np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]]))
    assert two.stderr == pytest.approx(math.sqrt(0.05), abs=1e-12)
    assert (two.dof, two.reason) == (1, crossed.FEW_TEMPLATES)
    assert (three.n, three.reason) == (6, "")
    assert (
        three.dof
        == crossed.crossed_stderr(np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]]))[1]
    )


@pytest.mark.parametrize(
    ("strata", "columns", "items", "templates", "is_skewed", "stderr", "dof"),
    [
        ("ffmmm", 4, 9, 5, False, 1.619063992479056, 2.68674359495531),
        ("fffffffff", 8, 9, 5, False, 1.1693055113746633, 12.771862903715837),
        ("fffffffff", 8, 9, 5, True, 1.1693055113746633, 3.550112571254787),
        # what is left varies most, then the items, then the templates
        ("fffffffff", 3, 0, 0, False, 0.15970413860968966, 16),
        ("ffffmm", 5, 9, 0, True, 1.2829994565616405, 3.002466124423667),
        ("ffffmm", 5, 0, 9, True, 1.6380620393826903, 4),
    ],
)
def test_errors_are_those_of_loops(
    strata, columns, items, templates, is_skewed, stderr, dof
):
    """Of plain loops over strata, with SciPy's unbiased excess kurtosis of eight means and more."""
    i, t = np.arange(len(strata))[:, None], np.arange(columns)
    cells = items * np.exp(-i) + templates * np.exp(-t) + np.sin(10 * i + 3 * t * t)
    # the strata's means are the design's: they don't count
    cells += np.where(np.array(list(strata)) == "f", 5.0, -3.0)[:, None]
    found = crossed.crossed_stderr(cells, list(strata), is_skewed)
    assert found == pytest.approx((stderr, dof), rel=1e-9)


def share(cells):
    made = crossed.crossed_mean(
        "share",
        value=lambda r: r["v"],
        summary="",
        low=0.0,
        high=100.0,
        neutral=50.0,
        direction="",
        unit="percent",
    )
    return made, made.compute(prompts(cells))


def test_a_share_of_crossed_items_has_wilsons_interval():
    cells = 100 * np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]])
    made, found = share(cells)
    plain = mean_of(cells)
    assert (found.value, found.stderr, found.dof) == (
        plain.value,
        plain.stderr,
        plain.dof,
    )
    p = found.value / 100
    size = p * (1 - p) / (found.stderr / 100) ** 2
    low, high = wilson(p * size, size, found.dof)
    assert found.interval == pytest.approx((100 * low, 100 * high))
    assert made.design(prompts(cells)).value == found.value


def test_a_share_without_templates_or_values_has_no_interval():
    for cells in (np.full((5, 1), 100.0), np.full((3, 3), math.nan)):
        made, found = share(cells)
        assert found.interval is None
        assert found.reason
    assert reason_of(made.design, []) == "no item prompts"
    assert reason_of(made.design, prompts(cells)).startswith(
        "9 of 9 item prompts have no value"
    )
