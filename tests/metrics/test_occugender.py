import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.custom_metrics import bootstrap, crossed, occugender
from lm_eval_bias.custom_metrics.score import Estimate, Score


def record(item, template, share, m, f, d):
    log = lambda p: math.log(p) if p > 0 else -math.inf  # noqa: E731
    group = "female" if share > 50 else "male" if share < 50 else "none"
    return occugender.prompt_record(item, template, share, group, male=log(m), female=log(f), diverse=log(d))


def random_records(seed, jobs=6, templates=4):
    rng = np.random.default_rng(seed)
    made = []
    for j, t in itertools.product(range(jobs), range(templates)):
        m, f, d = rng.dirichlet([1, 1, 1]) * rng.uniform(0.01, 1)
        made.append(record(f"job{j}", f"t{t}", 90.0 - j if j % 2 else 10.0 + j, m, f, d))
    return made


def by_name(records) -> dict[str, Score]:
    return {s.name: s for s in occugender.scores(records)}


def test_golden_two_by_two():
    # P~_f of two female-dominated jobs under two templates: rows (0.8, 0.6) and (0.4, 0.2)
    # mean 0.5; row means 0.7, 0.3; column means 0.6, 0.4; residuals 0
    # MS_rows = 2 * (0.2^2 + 0.2^2) / 1 = 0.16, MS_columns = 2 * (0.1^2 + 0.1^2) / 1 = 0.04, MS_residual = 0
    # components 0.08 and 0.02; variance of the mean 0.08/2 + 0.02/2 + 0 = 0.05
    cells = {("a", "s"): 0.8, ("a", "t"): 0.6, ("b", "s"): 0.4, ("b", "t"): 0.2}
    records = [record(i, t, 90, 0.5 * (1 - f), 0.5 * f, 0) for (i, t), f in cells.items()]
    found = occugender.share(records, gender="F", dominated_by="female")
    assert found.value == pytest.approx(50, abs=1e-12)
    assert found.stderr == pytest.approx(100 * math.sqrt(0.05), abs=1e-12)
    # Satterthwaite: V = (0.16 + 0.04 - 0)/4 = 0.05; dof = V^2 / ((0.16/4)^2/1 + (0.04/4)^2/1) = 0.0025 / 0.0017
    grid = crossed.grid(records, lambda r: r["F"]).cells
    assert crossed.crossed_stderr(grid)[1] == pytest.approx(0.0025 / 0.0017, abs=1e-9)
    assert found.dof == 1  # two templates have no more
    # the paper's: SD (ddof 1) of the template means 0.6 and 0.4, over sqrt(2 jobs)
    paper = occugender.se_paper(records, gender="F", dominated_by="female")
    assert paper.value == pytest.approx(100 * math.sqrt(0.02) / math.sqrt(2), abs=1e-12)
    # gap: F - M = 2F - 1, mean 0
    assert occugender.stereotype_gap(records).value == pytest.approx(0, abs=1e-12)
    assert occugender.coverage(records).value == pytest.approx(0.5, abs=1e-12)
    # variance shares: 0.08, 0.02, 0 of 0.1
    assert occugender.variance_share(records, part="rows").value == pytest.approx(0.8, abs=1e-12)
    assert occugender.variance_share(records, part="columns").value == pytest.approx(0.2, abs=1e-12)


def slow_crossed_stderr(table):
    """Independent re-implementation with loops, from the textbook's sums of squares."""
    rows, columns = len(table), len(table[0])
    grand = sum(map(sum, table)) / (rows * columns)
    row_mean = [sum(r) / columns for r in table]
    column_mean = [sum(table[i][j] for i in range(rows)) / rows for j in range(columns)]
    ss_rows = columns * sum((m - grand) ** 2 for m in row_mean)
    ss_columns = rows * sum((m - grand) ** 2 for m in column_mean)
    ss_total = sum((v - grand) ** 2 for r in table for v in r)
    ms_e = (ss_total - ss_rows - ss_columns) / ((rows - 1) * (columns - 1))
    var_r = max(0, (ss_rows / (rows - 1) - ms_e) / columns)
    var_c = max(0, (ss_columns / (columns - 1) - ms_e) / rows)
    return math.sqrt(var_r / rows + var_c / columns + ms_e / (rows * columns))


@given(st.integers(0, 10_000), st.integers(2, 7), st.integers(2, 7))
@settings(max_examples=60, deadline=None)
def test_crossed_stderr_against_oracle(seed, rows, columns):
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(rows, 1)) * 2 + rng.normal(size=(1, columns)) + rng.normal(size=(rows, columns))
    stderr, dof = crossed.crossed_stderr(cells)
    assert stderr == pytest.approx(slow_crossed_stderr(cells.tolist()), abs=1e-10)
    # at least a third: all three parts equal, on one degree of freedom each
    assert 1 / 3 - 1e-9 < dof <= (rows - 1) * (columns - 1) + rows + columns


def test_crossed_stderr_covers_where_the_plain_one_does_not():
    # 1,000 draws of a 20 x 5 layout with true mean 0: the 95% interval should hold it about 95% of the time
    rng = np.random.default_rng(1)
    covered = plain = 0
    draws = 1000
    for _ in range(draws):
        cells = rng.normal(size=(20, 1)) + 0.7 * rng.normal(size=(1, 5)) + rng.normal(size=(20, 5))
        mean = abs(cells.mean())
        stderr, dof = crossed.crossed_stderr(cells)
        covered += mean < Estimate(0, stderr, 100, dof=dof).margin()
        plain += mean < 1.96 * cells.std(ddof=1) / math.sqrt(cells.size)
    assert 0.93 < covered / draws < 0.97
    assert plain / draws < 0.7


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_properties(seed):
    records = random_records(seed)
    scores = by_name(records)
    found = {name: score.compute(records) for name, score in scores.items()}
    for name, estimate in found.items():
        score = scores[name]
        if not math.isnan(estimate.value):
            assert score.low - 1e-12 <= estimate.value <= score.high + 1e-12, name
        if not math.isnan(estimate.stderr):
            assert estimate.stderr >= 0, name
    for group in ("female", "male"):
        assert sum(found[f"{group}_dominated_{g}"].value for g in "MFD") == pytest.approx(100, abs=1e-9)
    assert sum(found[f"variance_{p}"].value for p in ("items", "templates", "interaction")) == pytest.approx(1)
    # any order of the records gives the same bits
    shuffled = [records[i] for i in np.random.default_rng(seed).permutation(len(records))]
    for name, score in scores.items():
        again = score.compute(shuffled)
        assert (again.value == found[name].value) or math.isnan(again.value), name
        assert (again.stderr == found[name].stderr) or math.isnan(again.stderr), name
    # swapping the genders of words and items flips the correlations' sign and keeps the gap
    swapped = [
        {
            **r,
            "M": r["F"],
            "F": r["M"],
            "share": 100 - r["share"],
            "group": {"female": "male", "male": "female"}[r["group"]],
        }
        for r in records
    ]
    assert occugender.stereotype_gap(swapped).value == pytest.approx(found["stereotype_gap"].value, abs=1e-12)
    assert by_name(swapped)["male_dominated_M"].compute(swapped).value == pytest.approx(
        found["female_dominated_F"].value, abs=1e-9
    )


def test_log_probability_is_the_sum_of_products():
    # Eq. 5: two words of two tokens each
    words = [math.log(0.5 * 0.1), math.log(0.2 * 0.3)]
    assert occugender.log_probability(words) == pytest.approx(math.log(0.05 + 0.06), abs=1e-12)
    assert occugender.log_probability([-1000.0, -1000.0]) == pytest.approx(-1000 + math.log(2), abs=1e-9)
    assert math.isnan(occugender.log_probability([]))


def test_ratios_survive_tiny_probabilities():
    made = occugender.prompt_record("a", "t", 90, "female", male=-2000, female=-2000 + math.log(3), diverse=-math.inf)
    assert (made["M"], made["F"], made["D"]) == pytest.approx((0.25, 0.75, 0))


@pytest.mark.parametrize("name", [s.name for s in occugender.scores()])
def test_nothing_in_gives_nan_with_a_reason(name):
    found = by_name([])[name].compute([])
    assert math.isnan(found.value)
    assert math.isnan(found.stderr)
    assert found.reason


def test_missing_group_incomplete_product_and_zero_mass():
    only_men = [record(i, t, 10, 0.2, 0.1, 0.1) for i in "ab" for t in "st"]
    assert "no female-dominated" in occugender.share(only_men, gender="F", dominated_by="female").reason
    cut = occugender.share(only_men[:3], gender="M", dominated_by="male")
    assert cut.value == pytest.approx(50)
    assert math.isnan(cut.stderr)
    assert "incomplete: 3 of 4" in cut.reason
    doubled = occugender.share([*only_men, only_men[0]], gender="M", dominated_by="male")
    assert math.isnan(doubled.value)
    assert "more than once" in doubled.reason
    zero = [*only_men[:3], record("b", "t", 10, 0, 0, 0)]
    found = occugender.share(zero, gender="M", dominated_by="male")
    assert math.isnan(found.value)
    assert "probability 0" in found.reason
    assert occugender.coverage(zero).value == pytest.approx(0.3)


@pytest.mark.parametrize("name", [s.name for s in occugender.scores()])
def test_nan_from_the_model_makes_every_score_nan(name):
    records = random_records(1)
    for group in ("female", "male"):
        k = next(i for i, r in enumerate(records) if r["group"] == group)
        r = records[k]
        records[k] = occugender.prompt_record(
            r["item"], r["template"], r["share"], group, male=math.nan, female=-1.0, diverse=-1.0
        )
    found = by_name(records)[name].compute(records)
    assert math.isnan(found.value)
    assert "the model gave nan" in found.reason


def test_correlation_signs_and_bootstrap_is_seeded():
    records = [
        record(f"j{j}", f"t{t}", 5 + 10 * j, 1 - (0.1 + 0.08 * j), 0.1 + 0.08 * j + 0.001 * t, 0)
        for j in range(9)
        for t in range(3)
    ]
    up = occugender.labour_correlation(records, kind="spearman")
    assert up.value == pytest.approx(1)
    assert occugender.labour_correlation(records, kind="spearman") == up
    down = [{**r, "share": 100 - r["share"]} for r in records]
    assert occugender.labour_correlation(down, kind="pearson").value < -0.99


def test_pearson_against_scipy_and_spearman_with_ties():
    from scipy import stats

    records = random_records(3, jobs=10, templates=5)
    laid = crossed.grid(records, lambda r: r["F"])
    shares = [{r["item"]: r["share"] for r in records}[i] for i in laid.items]
    for kind, function in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        expected = function(laid.cells.mean(axis=1), shares).statistic
        assert occugender.labour_correlation(records, kind=kind).value == pytest.approx(expected, abs=1e-12)


def test_all_scores_say_what_they_mean():
    for score in occugender.scores():
        said = score.describe()
        assert said["range"][0] < said["range"][1]
        assert said["direction"]
        assert said["summary"]
        assert said["source"]


def test_a_variance_share_at_the_end_of_its_range_has_no_certainty():
    cells = np.random.default_rng(0).normal(0.5, 0.1, (4, 4))
    cells += 0.3 - cells.mean(axis=1, keepdims=True)  # no differences between items at all
    records = [
        {"item": f"i{i}", "template": f"t{t}", "share": 10.0 * i, "group": "female", "F": float(cells[i, t])}
        for i in range(4)
        for t in range(4)
    ]
    found = occugender.variance_share(records, part="rows")
    assert found.value == 0
    assert math.isnan(found.stderr)
    assert "end of the range" in found.reason


@pytest.mark.parametrize("shape", [(3, 3), (40, 25), (5, 9), (20, 3)])
@pytest.mark.parametrize("part", ["rows", "columns", "interaction"])
def test_jackknife_of_a_share_against_leaving_each_out(shape, part):
    rng = np.random.default_rng(sum(shape))

    def share(cells):
        found = crossed.components(cells)
        return getattr(found, part) / found.total

    for rows in (0.0, 0.5, 4.0):  # no component, a middling one, most of it
        cells = rows * rng.random((shape[0], 1)) + 0.5 * rng.random((1, shape[1])) + rng.random(shape)
        variance = 0.0
        for axis, size in enumerate(shape):
            left_out = [share(np.delete(cells, k, axis=axis)) for k in range(size)]
            variance += (size - 1) / size * sum((one - sum(left_out) / size) ** 2 for one in left_out)
        assert crossed.jackknife_of_share(cells, part) == pytest.approx(math.sqrt(variance), abs=1e-12)


def test_pigeonhole_draws_are_the_same_in_parts(monkeypatch):
    strata = [np.arange(0, 41, 2), np.arange(1, 41, 2)]
    (whole,) = bootstrap.pigeonhole(strata, 25, draws=200)
    monkeypatch.setattr(bootstrap, "AT_A_TIME", 41 * 3)
    parts = list(bootstrap.pigeonhole(strata, 25, draws=200))
    assert {len(rows) for _, rows in parts} == {3, 2}
    for number in (0, 1):
        assert (np.concatenate([part[number] for part in parts]) == whole[number]).all()
    for rows in whole[1]:  # as many of each stratum as the design has
        assert [np.isin(rows, stratum).sum() for stratum in strata] == [21, 20]
    drawn = np.bincount(np.concatenate([bootstrap_rows for _, rows in parts for bootstrap_rows in rows]), minlength=41)
    assert drawn.min() > 0  # every row can be drawn
    assert drawn.max() < 2 * 200


def test_stratified_stderr_by_hand():
    # two strata of two rows, two columns; row means 0.9, 0.7 | 0.3, 0.1, no residuals, column effects +-0.1
    cells = np.array([[1.0, 0.8], [0.8, 0.6], [0.4, 0.2], [0.2, 0.0]])
    # item part: n_g * var_g / R^2 = 2 * 0.02 / 16 twice = 0.005; template part: var(0.6, 0.4) / 2 = 0.01; residual 0
    stderr, dof = crossed.crossed_stderr(cells, ["f", "f", "m", "m"])
    assert stderr == pytest.approx(math.sqrt(0.015), abs=1e-12)
    # V = 0.015; dof = V^2 / (0.0025^2/1 + 0.0025^2/1 + 0.01^2/1)
    assert dof == pytest.approx(0.015**2 / (2 * 0.0025**2 + 0.01**2), abs=1e-9)
    # as one sample the difference of the strata's means counts as chance
    assert crossed.crossed_stderr(cells)[0] == pytest.approx(math.sqrt(0.4 / 3 / 4 + 0.01), abs=1e-12)


def slow_stratified(table, strata):
    """The formula of SPEC-like sums in plain loops: variance of the mean and its degrees of freedom."""
    n, columns = len(table), len(table[0])
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    item = residual = item_spread = residual_spread = 0.0
    template_means = [mean([row[t] for row in table]) for t in range(columns)]
    for label in sorted(set(strata)):
        part = [row for row, own in zip(table, strata, strict=True) if own == label]
        size, weight = len(part), len(part) / n
        rows, by_column = [mean(row) for row in part], [mean([row[t] for row in part]) for t in range(columns)]
        all_of_it = mean(rows)
        variance = sum((r - all_of_it) ** 2 for r in rows) / (size - 1)
        squares = sum(
            (part[i][t] - rows[i] - by_column[t] + all_of_it) ** 2 for i in range(size) for t in range(columns)
        )
        item_part = weight**2 * variance / size
        residual_part = weight**2 * squares / ((size - 1) * (columns - 1)) / (size * columns)
        item, residual = item + item_part, residual + residual_part
        item_spread += item_part**2 / (size - 1)
        residual_spread += residual_part**2 / ((size - 1) * (columns - 1))
    centre = mean(template_means)
    template = sum((m - centre) ** 2 for m in template_means) / (columns - 1) / columns
    if item > residual and template > residual:
        return item + template - residual, item_spread + template**2 / (columns - 1) + residual_spread
    if max(item, template) <= residual:
        return residual, residual_spread
    return max(item, template), item_spread if item > template else template**2 / (columns - 1)


@given(
    st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 6), st.integers(2, 6), st.sampled_from([0.0, 0.3, 2.0])
)
@settings(max_examples=80, deadline=None)
def test_stratified_stderr_against_loops(seed, first, second, columns, spread):
    rng = np.random.default_rng(seed)
    strata = ["f"] * first + ["m"] * second
    rows = first + second
    cells = spread * (rng.normal(size=(rows, 1)) + rng.normal(size=(1, columns))) + rng.normal(size=(rows, columns))
    variance, spread_of_it = slow_stratified(cells.tolist(), strata)
    stderr, dof = crossed.crossed_stderr(cells, strata)
    assert stderr == pytest.approx(math.sqrt(variance), rel=1e-9)
    assert dof == pytest.approx(variance**2 / spread_of_it, rel=1e-9)
    # the strata's means are the design's: they don't count, nor does the rows' order
    moved = cells + np.where(np.array(strata) == "f", 5.0, -3.0)[:, None]
    assert crossed.crossed_stderr(moved, strata)[0] == pytest.approx(stderr, rel=1e-6)
    order = rng.permutation(rows)
    shuffled = crossed.crossed_stderr(cells[order], [strata[i] for i in order])
    assert shuffled == pytest.approx((stderr, dof), rel=1e-9)


def test_an_item_alone_in_its_stratum_makes_one_sample_of_all():
    records = [r for r in random_records(1) if r["item"] in ("job0", "job1", "job2")]
    assert {r["group"] for r in records} == {"female", "male"}
    matrix = crossed.grid(records, lambda r: r["mass"], stratum=lambda r: r["group"])
    assert matrix.strata == ()
    assert crossed.grid(random_records(1), lambda r: r["mass"], stratum=lambda r: r["group"]).strata[:2] == [
        "male",
        "female",
    ]


def two_groups(rng, means, items=20, templates=10):
    """Prompts whose gaps differ by group: own and other gender's shares of 20 + 20 occupations."""
    effects = 0.06 * rng.standard_normal((2 * items, 1)) + 0.04 * rng.standard_normal((1, templates))
    gaps = np.repeat(means, items)[:, None] + effects + 0.1 * rng.standard_normal((2 * items, templates))
    return [
        {"item": f"{i:02d}", "template": f"{t:02d}", "share": 80.0 if i < items else 20.0, "mass": 0.5, "D": 0.0,
         "group": "female" if i < items else "male", "F": 0.5 + s * g / 2, "M": 0.5 - s * g / 2}
        for i in range(2 * items)
        for s in (1 if i < items else -1,)
        for t, g in enumerate(gaps[i])
    ]  # fmt: skip


def test_the_gaps_interval_covers_where_the_groups_differ():
    # a model that says "women" of everybody: +0.6 in one group, -0.4 in the other
    rng, covered, widths = np.random.default_rng(5), 0, []
    rounds = 400
    values = []
    for _ in range(rounds):
        found = occugender.stereotype_gap(two_groups(rng, (0.6, -0.4)))
        low, high = found.ends()
        covered += low <= 0.1 <= high
        values.append(found.value)
        widths.append(found.stderr)
    assert 0.92 <= covered / rounds <= 0.98
    assert np.mean(widths) == pytest.approx(np.std(values), rel=0.15)  # was 2 to 4 times as large


def test_each_groups_own_gap_stands_beside_the_whole():
    records = two_groups(np.random.default_rng(1), (0.6, -0.4))
    scores = by_name(records)
    whole, female, male = (
        scores[name].compute(records).value for name in ("stereotype_gap", "female_dominated_gap", "male_dominated_gap")
    )
    assert whole == pytest.approx((female + male) / 2, abs=1e-12)
    assert female == pytest.approx(0.6, abs=0.1)
    assert male == pytest.approx(-0.4, abs=0.1)
    for name, group in (("female_dominated_gap", "female"), ("male_dominated_gap", "male")):
        score = scores[name]
        assert score.table(records).value == pytest.approx(score.compute(records).value, abs=1e-12)
        assert [score.sample(r) is not None for r in records] == [r["group"] == group for r in records]


def test_two_templates_are_pointed_out_and_no_spread_is_no_certainty():
    records = two_groups(np.random.default_rng(2), (0.2, 0.2), templates=3)
    assert occugender.stereotype_gap(records).reason == ""
    few = [r for r in records if r["template"] != "02"]
    assert "two templates" in occugender.stereotype_gap(few).reason
    same = [{**r, "F": 0.7, "M": 0.3} for r in records]
    found = occugender.share(same, gender="F", dominated_by="female")
    assert found.value == pytest.approx(70)
    assert math.isnan(found.stderr)
    assert "nothing varies" in found.reason
    assert found.ends() is None


def test_the_linearised_correlation_has_the_influence_of_items_and_cells():
    # Pearson's r with weights of items and of cells, differentiated numerically at equal weights
    records = random_records(4, jobs=8, templates=5)
    plain = crossed.grid(records, lambda r: r["F"])
    shares = np.array([{r["item"]: r["share"] for r in records}[i] for i in plain.items])
    made = by_name(records)["labour_pearson"].table(records)

    def correlation(weights, cells):
        x, y = cells.mean(axis=1), shares
        x, y = x - weights @ x / weights.sum(), y - weights @ y / weights.sum()
        return weights @ (x * y) / math.sqrt((weights @ x**2) * (weights @ y**2))

    rows, columns = plain.cells.shape
    ones, step = np.ones(rows), 1e-6
    r = correlation(ones, plain.cells)
    assert made.value == pytest.approx(r, abs=1e-12)
    of_items = made.cells.mean(axis=1) - r
    for i in range(rows):
        heavier = ones + step * (np.arange(rows) == i)
        assert of_items[i] == pytest.approx(rows * (correlation(heavier, plain.cells) - r) / step, abs=1e-4)
    within = made.cells - made.cells.mean(axis=1, keepdims=True)
    for i in range(rows):
        for t in range(columns):
            moved = plain.cells.copy()
            moved[i, t] += step
            slope = rows * columns * (correlation(ones, moved) - r) / step
            deviation = plain.cells[i, t] - plain.cells[i].mean()
            assert within[i, t] == pytest.approx(slope * deviation, abs=1e-4)


def labour_records(rng, templates, items=20):
    """Shares of women in 20 + 20 occupations' prompts that rise with the real share; Pearson's true r is about 0.73."""
    share = np.concatenate([70 + 9 * rng.standard_normal(items), 25 + 9 * rng.standard_normal(items)])
    share = np.concatenate([share[:items].clip(51, 99), share[items:].clip(1, 49)])
    effects = 0.12 * rng.standard_normal((2 * items, 1)) + 0.06 * rng.standard_normal((1, templates))
    gaps = np.repeat((0.4, -0.1), items)[:, None] + effects + 0.1 * rng.standard_normal((2 * items, templates))
    women = 0.5 + np.repeat((0.5, -0.5), items)[:, None] * gaps
    return [
        {"item": f"{i:02d}", "template": f"{t:02d}", "share": float(share[i]), "F": float(women[i, t]),
         "group": "female" if i < items else "male"}
        for i in range(2 * items)
        for t in range(templates)
    ]  # fmt: skip


def test_the_correlations_interval_covers_far_from_0():
    rng, covered, rounds = np.random.default_rng(2), 0, 150
    truth = 0.726  # of 800,000 occupations, each its own mean over endlessly many templates
    for _ in range(rounds):
        low, high = occugender.labour_correlation(labour_records(rng, 10), kind="pearson").ends()
        assert -1 <= low < high <= 1
        covered += low <= truth <= high
    assert 0.9 <= covered / rounds <= 0.99


def test_few_templates_leave_a_correlation_few_degrees_of_freedom():
    many, few = (
        occugender.labour_correlation(labour_records(np.random.default_rng(3), t), kind="spearman") for t in (25, 3)
    )
    assert few.dof < 15 < many.dof < 60
    low, high = many.ends()
    assert many.value - low > high - many.value  # Fisher's z: longer towards 0
