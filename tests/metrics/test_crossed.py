"""Items x templates: layouts by hand, standard errors against loops, resamples one by one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lm_eval_bias.custom_metrics import crossed
from lm_eval_bias.custom_metrics.intervals import wilson
from lm_eval_bias.custom_metrics.score import t_factor
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
    # of the variance, more templates leave the items' part
    assert crossed.crossed_stderr(cells) == pytest.approx(
        (math.sqrt(0.05), 0.0025 / 0.0017, 0.04 / 0.05), abs=1e-9
    )
    two, three = mean_of(cells), mean_of(np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]]))
    assert two.stderr == pytest.approx(math.sqrt(0.05), abs=1e-12)
    assert (two.dof, two.reason) == (1, crossed.FEW_TEMPLATES)
    assert (three.n, three.reason) == (6, "")
    assert (
        three.dof
        == crossed.crossed_stderr(np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]]))[1]
    )


def of_skewed(values, dof):
    """Degrees of freedom of the variance of equal clusters, by SciPy's unbiased excess kurtosis."""
    n = len(values)
    excess = stats.kurtosis(values, bias=False) if n > 7 else 0.0
    return 2 / (2 / dof + max(0.0, float(excess)) / n)


def slow_stderr(table, strata, of_skewed):
    """The variance of the mean and the sum of its squared parts over their degrees of freedom, in plain loops."""
    n, columns = len(table), len(table[0])
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    item = residual = item_spread = residual_spread = 0.0
    template_means = [mean([row[t] for row in table]) for t in range(columns)]
    for label in sorted(set(strata)):
        part = [row for row, own in zip(table, strata, strict=True) if own == label]
        size, weight = len(part), len(part) / n
        rows, by_column = (
            [mean(row) for row in part],
            [mean([row[t] for row in part]) for t in range(columns)],
        )
        all_of_it = mean(rows)
        variance = sum((r - all_of_it) ** 2 for r in rows) / (size - 1)
        squares = sum(
            (part[i][t] - rows[i] - by_column[t] + all_of_it) ** 2
            for i in range(size)
            for t in range(columns)
        )
        item_part = weight**2 * variance / size
        residual_part = (
            weight**2 * squares / ((size - 1) * (columns - 1)) / (size * columns)
        )
        item, residual = item + item_part, residual + residual_part
        item_spread += item_part**2 / of_skewed(rows, size - 1)
        residual_spread += residual_part**2 / ((size - 1) * (columns - 1))
    centre = mean(template_means)
    template = sum((m - centre) ** 2 for m in template_means) / (columns - 1) / columns
    template_spread = template**2 / of_skewed(template_means, columns - 1)
    if item > residual and template > residual:
        both = item_spread + template_spread + residual_spread
        return item + template - residual, both
    if max(item, template) <= residual:
        return residual, residual_spread
    return max(item, template), item_spread if item > template else template_spread


@given(st.integers(0, 10_000), st.integers(2, 9), st.sampled_from([0, 2, 3, 9]), st.integers(2, 9),
       st.sampled_from([0.0, 0.3, 2.0]), st.booleans())  # fmt: skip
@settings(max_examples=100)
def test_errors_are_those_of_loops(seed, first, second, columns, spread, is_skewed):
    rng = np.random.default_rng(seed)
    strata = ["f"] * first + ["m"] * second
    rows = first + second
    cells = spread * (
        rng.normal(size=(rows, 1)) + rng.normal(size=(1, columns))
    ) + rng.normal(size=(rows, columns))
    dof_of = of_skewed if is_skewed else lambda _, dof: dof
    variance, spread_of_it = slow_stderr(cells.tolist(), strata, dof_of)
    stderr, dof, stays = crossed.crossed_stderr(cells, strata, is_skewed)
    assert 0 <= stays <= 1
    assert stderr == pytest.approx(math.sqrt(variance), rel=1e-9)
    assert dof == pytest.approx(variance**2 / spread_of_it, rel=1e-9)
    # the strata's means are the design's: they don't count, nor does the rows' order
    moved = cells + np.where(np.array(strata) == "f", 5.0, -3.0)[:, None]
    assert crossed.crossed_stderr(moved, strata, is_skewed)[0] == pytest.approx(
        stderr, rel=1e-6
    )
    order = rng.permutation(rows)
    shuffled = crossed.crossed_stderr(
        cells[order], [strata[i] for i in order], is_skewed
    )
    assert shuffled == pytest.approx((stderr, dof, stays), rel=1e-9, abs=1e-9)
    if not second:
        alone = crossed.crossed_stderr(cells, (), is_skewed)
        assert alone == (stderr, dof, stays)


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


@pytest.mark.parametrize("hits", [0, 3])
def test_a_share_that_never_varies_has_one_observation_a_template(hits):
    _, found = share(np.full((5, 3), 100.0 * hits / 3))
    low, high = (100 * end for end in wilson(hits, 3))
    assert (found.interval, found.dof, found.reason) == (
        pytest.approx((low, high)),
        2,
        "",
    )
    assert found.stderr == pytest.approx((high - low) / 2 / t_factor(2))


def test_a_share_without_templates_or_values_has_no_interval():
    for cells in (np.full((5, 1), 100.0), np.full((3, 3), math.nan)):
        made, found = share(cells)
        assert found.interval is None
        assert found.reason
    assert reason_of(made.design, []) == "no item prompts"
    assert reason_of(made.design, prompts(cells)).startswith(
        "9 of 9 item prompts have no value"
    )
