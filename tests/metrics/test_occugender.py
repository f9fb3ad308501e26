"""OccuGender's scores: worked cases, properties, where they have no value and why, and what each says it is."""

import math
from functools import partial

import numpy as np
import pytest

from lm_eval_bias.custom_metrics import occugender
from tests.support.oracles import reason_of

GROUP_OF_2 = ("female", "female", "male", "male", "female", "male")


prompt_record = partial(occugender.prompt_record, "vet", "t", 89.8, "female")
SCORES = {score.name: score for score in occugender.scores()}


def prompts(women, shares=(90.0, 80.0, 20.0, 10.0, 70.0, 30.0), groups=GROUP_OF_2):
    """Prompts with these P~_f, items x templates; men have three quarters of the rest."""
    return [
        {"item": f"i{i}", "template": f"t{t}", "share": shares[i], "group": groups[i], "mass": 0.4 + 0.01 * t,
         "F": f, "M": 0.75 * (1 - f), "D": 0.25 * (1 - f)}
        for i, row in enumerate(women)
        for t, f in enumerate(row)
    ]  # fmt: skip


def test_a_prompts_record_by_hand():
    # probabilities 0.3, 0.15 and 0.05 of a mass of 0.5
    record = prompt_record(
        male=math.log(0.3), female=math.log(0.15), diverse=math.log(0.05)
    )
    assert (record["item"], record["template"], record["share"], record["group"]) == (
        "vet",
        "t",
        89.8,
        "female",
    )
    assert [record[key] for key in ("M", "F", "D", "mass")] == pytest.approx(
        [0.6, 0.3, 0.1, 0.5], abs=1e-12
    )
    none = prompt_record(male=-math.inf, female=-math.inf, diverse=-math.inf)
    assert all(math.isnan(none[gender]) for gender in "MFD")
    assert none["mass"] == 0
    tiny = prompt_record(male=-2000, female=-2000 + math.log(3), diverse=-math.inf)
    assert [tiny[gender] for gender in "MFD"] == pytest.approx([0.25, 0.75, 0])


def test_the_probability_of_words():
    # Eq. 5: two words of two tokens each
    words = [math.log(0.5 * 0.1), math.log(0.2 * 0.3)]
    assert occugender.log_probability(words) == pytest.approx(
        math.log(0.05 + 0.06), abs=1e-12
    )
    assert occugender.log_probability([-1000.0, -1000.0]) == pytest.approx(
        -1000 + math.log(2), abs=1e-9
    )
    assert occugender.log_probability([-math.inf, -1.0]) == -1
    assert all(
        math.isnan(occugender.log_probability(none)) for none in ([], [math.nan, -1.0])
    )


def test_means_by_hand():
    # item means 0.7 and 0.3 of women, template means 0.6 and 0.4: item part 0.08 / 2, template part 0.02 / 2, no rest
    records = prompts([[0.8, 0.6], [0.4, 0.2]], groups=("female", "female"))
    found = SCORES["female_dominated_F"].compute(records)
    assert (found.value, found.stderr) == pytest.approx(
        (50, 100 * math.sqrt(0.05)), abs=1e-12
    )
    # two groups whose items' gaps are 0.5 +- 0.1 and -0.5 +- 0.1 in every template: item part 2 * (2 * 0.02) / 4^2
    records = [{**r, "F": 0.5 + g / 2, "M": 0.5 - g / 2, "D": 0.0}
               for r, g in zip(prompts(np.zeros((4, 3))), np.repeat([0.6, 0.4, 0.4, 0.6], 3), strict=True)]  # fmt: skip
    found = SCORES["stereotype_gap"].compute(records)
    assert (found.value, found.stderr) == pytest.approx(
        (0, math.sqrt(0.005)), abs=1e-12
    )
    # the paper's error: template means 0.6, 0.4 of three items, whose deviation is 0.1 * sqrt(2), over their root
    three = prompts([[0.9, 0.5], [0.5, 0.5], [0.4, 0.2]], groups=("female",) * 3)
    found = SCORES["female_dominated_F_se_paper"].compute(three)
    assert found.value == pytest.approx(
        100 * 0.1 * math.sqrt(2) / math.sqrt(3), abs=1e-12
    )
    assert (found.n, found.reason, math.isnan(found.stderr)) == (6, "", True)
    # the masses: 0.3 + 0.1 of one group's items and 0.9 + 0.7 of the other's; again each item +- 0.1
    records = [
        {**r, "mass": m}
        for r, m in zip(records, np.repeat([0.3, 0.1, 0.9, 0.7], 3), strict=True)
    ]
    found = SCORES["coverage"].compute(records)
    assert (found.value, found.stderr) == pytest.approx(
        (50.0, 100 * math.sqrt(0.005)), abs=1e-10
    )


PARTS = ("items", "templates", "interaction")


def test_variance_shares_by_hand():
    # mean squares 0.16 and 0.04 of two items and two templates: components 0.08 and 0.02
    records = prompts([[0.8, 0.6], [0.4, 0.2]])
    shares = [SCORES[f"variance_{part}"].compute(records).value for part in PARTS]
    assert shares == pytest.approx([0.8, 0.2, 0], abs=1e-12)
    # mean squares 0.09, 0.01 and of the rest 0.01: components 0.04, 0 and 0.01
    records = prompts([[0.8, 0.6], [0.4, 0.4]])
    shares = [SCORES[f"variance_{part}"].compute(records).value for part in PARTS]
    assert shares == pytest.approx([0.8, 0, 0.2], abs=1e-12)
    assert (
        SCORES["variance_items"].compute(prompts(np.eye(3))).value == 0
    )  # no item differs from any other


WOMEN, THREE = ("female",) * 3, [[0.9, 0.5, 0.4], [0.5, 0.2, 0.6], [0.4, 0.2, 0.1]]
NAN = [[math.nan, 0.7], [0.8, 0.5], [0.2, 0.3]]


@pytest.mark.parametrize(
    ("name", "records", "reason", "n"),
    [
        ("stereotype_gap", [], "no gender-dominated prompts", 0),
        (
            "female_dominated_gap",
            prompts([[0.5]], groups=("male",)),
            "no female-dominated",
            1,
        ),
        (
            "female_dominated_F_se_paper",
            prompts([[0.5, 0.5]], groups=("male",)),
            "no female-dominated prompts",
            2,
        ),
        (
            "female_dominated_F_se_paper",
            prompts(THREE, groups=WOMEN)[:8],
            "the items x templates product is inc",
            8,
        ),
        (
            "female_dominated_F_se_paper",
            prompts([[0.5]] * 3, groups=WOMEN),
            "only one template",
            3,
        ),
        (
            "female_dominated_F_se_paper",
            prompts(NAN, groups=WOMEN),
            "1 of 6 female-dominated prompts have no value",
            6,
        ),
        (
            "variance_items",
            prompts(THREE)[:8],
            "the items x templates product is incomplete: 8 of 9",
            8,
        ),
        (
            "variance_items",
            prompts([[0.5, 0.5], [0.5, 0.5]]),
            "no variance between prompts",
            4,
        ),
        (
            "labour_pearson",
            prompts(THREE)[:8],
            "the items x templates product is incomplete: 8 of 9",
            8,
        ),
        (
            "labour_pearson",
            prompts(THREE[:2]),
            "a correlation needs at least 3 items, there are 2",
            6,
        ),
        (
            "labour_pearson",
            prompts(THREE, shares=(60.0,) * 3),
            "all items have the same value",
            9,
        ),
        ("labour_pearson", prompts(NAN), "1 of 6 prompts have no value", 6),
    ],
)
def test_scores_say_what_they_lack(name, records, reason, n):
    found = SCORES[name].compute(records)
    assert math.isnan(found.value)
    assert math.isnan(found.stderr)
    assert (found.n, found.reason[: len(reason)]) == (n, reason)
    assert not name.startswith("labour") or reason_of(
        SCORES[name].design, records
    ).startswith(reason)


def correlation(records, kind="pearson"):
    return SCORES[f"labour_{kind}"].compute(records)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_correlation_is_no_certainty(sign):
    records = prompts(
        0.5
        + sign * np.array([[0.4], [0.3], [-0.3], [-0.4], [0.2], [-0.2]])
        + np.zeros((1, 3))
    )
    found = correlation(records)
    assert found.value == pytest.approx(sign, abs=1e-12)
    assert (math.isnan(found.stderr), found.ends()) == (True, None)
    assert found.reason == "nothing varies between the prompts: no standard error"
    for row in np.random.default_rng(0).uniform(
        1, 99, (50, 6)
    ):  # of some the formula as it stands goes beyond 1
        value = correlation(
            prompts([[0.5 + sign * (v / 100 - 0.5)] for v in row], shares=row.tolist())
        ).value
        assert value == pytest.approx(sign, abs=1e-12)
        assert abs(value) <= 1
    # differences of exactly one in either are differences
    ones = prompts([[1.0, 1.0], [0.5, 0.5], [0.0, 0.0]], shares=(51.0, 50.5, 50.0))
    assert correlation(ones).value == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "value", "stderr", "dof", "ends", "first"),
    [
        ("pearson", 0.6956094070007619, 0.16231096188812716, 3.426342665704473,
         (-0.07503516405632142, 0.9460408229191928),
         [1.0760714473256776, 0.9623497313480865, 0.520926063464691, -1.1685375419997137]),
        ("spearman", 0.6, 0.10974670121342504, 2.9584044469921125, (0.1420892554433897, 0.8463763155926171),
         [1.5432949059039376, 1.5432949059039376, 1.5432949059039376, -2.4654936576342674]),
    ],
)  # fmt: skip
def test_a_correlations_error_is_that_of_leaving_out_items_and_templates(
    kind, value, stderr, dof, ends, first
):
    """By SciPy's correlation without each item, template and both: pseudo-values of Fisher's z, and their error."""
    rest = np.random.default_rng(7).standard_normal((6, 4))
    cells = np.linspace(0.8, 0.2, 6)[[2, 0, 4, 3, 1, 5], None] + 0.1 * rest
    found = correlation(prompts(cells), kind)
    pseudo = SCORES[f"labour_{kind}"].design(prompts(cells)).cells
    assert pseudo[0] == pytest.approx(first, rel=1e-9)
    assert (found.value, found.stderr) == pytest.approx((value, stderr), rel=1e-9)
    assert (found.n, found.dof) == (24, pytest.approx(dof, rel=1e-9))
    assert found.interval == pytest.approx(ends, rel=1e-9)
