"""What holds of every score of every benchmark, over random records."""

import math
import re
from functools import cache

import numpy as np
import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.custom_metrics import positions
from tests.support.oracles import jackknife, reason_of
from tests.support.random_records import CASES

# sums over texts, tests of them and the share of different ones: these do depend on how many texts there are
COUNTED = re.compile(r"(^|/)(chi2|n|p|p_permutation|p_holm|distinct)(/|$)")
# gaps within a group, of which the exchange of the groups makes the other one's
WITHIN_GROUP = {
    "female_dominated_gap": "male_dominated_gap",
    "male_dominated_gap": "female_dominated_gap",
}
REMAIN = re.compile(
    r"unanswered|unclear|refused|dropped|coverage|lms|(^|/)n$"
)  # have a value where no answer could be read
# scores that are no mean of what records show in the sample log: ratios, spreads, tests, differences of unlike groups
NO_MEAN = re.compile(
    r"disamb|bound|ratio|contrast|s_amb|amb_bias|/(sd|range)$|mc_ss_sd|icat|meaningful|place_|consistent|^masculine_share$|se_paper|labour|variance|"
    r"in_choice/|/dof$|cramers_v|[a-z]_gap|(caregiving|sexualization|perpetration)/(female|male|gap)"
)

every = pytest.mark.parametrize("name", CASES)


def made(name, seed=0):
    return CASES[name].make(np.random.default_rng(seed))


def scores(name, records):
    """All scores, but the same ones of the items whose texts are equally long (tests/metrics/test_lengths.py)."""
    return {
        score.name: score
        for score in registry.get(name).scores(records)
        if not score.name.startswith(positions.MATCHED)
    }


@cache
def found(name, seed=0):
    records = made(name, seed)
    return {key: score.compute(records) for key, score in scores(name, records).items()}


def near(value, expected, **allowed):
    return value == pytest.approx(
        expected, nan_ok=True, **({"rel": 1e-9, "abs": 1e-9} | allowed)
    )


def check(score, estimate):
    """What any estimate is: in the range with its ends, or nan with a reason; an error is never 0."""
    assert not math.isinf(estimate.value), score.name
    assert not estimate.stderr <= 0, score.name
    if math.isnan(estimate.value):
        assert math.isnan(estimate.stderr), score.name
        assert estimate.reason, score.name
        assert estimate.ends() is None, score.name
        return
    low, high = score.low - 1e-9, max(score.high, score.largest or score.high) + 1e-9
    assert low <= estimate.value <= high, score.name
    for ends in (estimate.interval, estimate.fixed_interval):
        assert (
            ends is None
            or low <= ends[0] <= estimate.value + 1e-9 <= ends[1] + 2e-9 <= high + 2e-9
        ), score.name
    if score.has_stderr and math.isnan(estimate.stderr):
        assert estimate.reason, score.name


def test_every_benchmark_is_here():
    own = {
        name for name in registry.by_name() if registry.is_own(registry.family(name))
    }
    assert own == set(CASES)


@every
def test_scores_are_in_their_range_whatever_is_answered(name):
    for seed in range(4):
        records = made(name, seed)
        for key, score in scores(name, records).items():
            check(score, found(name, seed)[key])


@every
def test_most_scores_have_a_value_and_an_error(name):
    """So that what follows says something."""
    valued = [
        key for key, estimate in found(name).items() if not math.isnan(estimate.value)
    ]
    assert len(valued) > 0.85 * len(found(name))
    short = scores(name, made(name))  # a breakdown by template has one cluster
    uncertain = [key for key in valued if key in short and short[key].has_stderr]
    assert sum(found(name)[key].stderr > 0 for key in uncertain) > 0.8 * len(uncertain)


@every
def test_names_are_unique_and_main_scores_are_headlines(name):
    benchmark, records = registry.get(name), made(name)
    for own in ([], records):
        names = [score.name for score in benchmark.scores(own)]
        assert len(names) == len(set(names))
    listed = scores(name, records)
    assert all(listed[main].headline and listed[main].design for main in benchmark.main)
    for score in listed.values():
        told = [score.summary, score.direction, score.unit, score.source]
        assert "None" not in str(told) and all(told), score.name  # noqa: PT018


@every
def test_nothing_in_is_nan_with_a_reason(name):
    for score in scores(name, made(name)).values():
        estimate = score.compute([])
        check(score, estimate)
        assert math.isnan(estimate.value) or (estimate.value, estimate.n) == (0, 0), (
            score.name
        )
        assert estimate.reason, score.name
        assert score.design is None or reason_of(score.design, []), score.name


@every
def test_what_the_model_did_not_answer_is_no_score(name):
    records = [*map(CASES[name].silence, made(name))]
    for key, score in scores(name, made(name)).items():
        estimate = score.compute(records)
        check(score, estimate)
        if not REMAIN.search(key):
            assert math.isnan(estimate.value), key
            assert score.design is None or reason_of(score.design, records), key


@every
def test_one_record_and_one_cluster_have_no_error(name):
    whole = made(name)
    first = [
        r
        for r in whole
        if all(r[field] == whole[0][field] for field in CASES[name].clusters)
    ]
    for records in (whole[:1], first):
        for score in scores(name, whole).values():
            estimate = score.compute(records)
            check(score, estimate)
            assert math.isnan(estimate.stderr), score.name


@every
def test_records_that_are_all_alike_have_no_certainty(name):
    records = made(name)
    alike = [{**r, **{k: v for k, v in records[0].items() if k not in (*CASES[name].clusters, "item")}}
             for r in records]  # fmt: skip
    for score in scores(name, records).values():
        check(score, score.compute(alike))


@every
def test_order_does_not_matter(name):
    records = made(name)
    for key, score in scores(name, records).items():
        estimate, again = found(name)[key], score.compute(records[::-1])
        if key.endswith("likelihood_diff"):  # is summed as the harness does it
            assert again.stderr == pytest.approx(estimate.stderr, nan_ok=True), key
        else:
            assert repr(again.stderr) == repr(estimate.stderr), key
            assert repr(again.value) == repr(estimate.value), key
        assert (again.n, again.reason) == (estimate.n, estimate.reason), key


# of one kind of cluster each, in one stratum
OF_A_PART = re.compile(r"^(age|gender|race|intra|inter|Age|SES)/|_(Age|SES)$")
CLUSTERED = [
    "gg_bbq",
    "es_bbq",
    "mbbq",
    "crows_pairs_parallel",
    "stereoset",
    "stereoset_choices",
    "eurogest_choices",
]


@pytest.mark.parametrize("name", CLUSTERED)
def test_errors_leave_out_a_cluster_at_a_time(name):
    records, (field,) = made(name), CASES[name].clusters
    compared = 0
    for key, score in scores(name, records).items():
        estimate = found(name)[key]
        if estimate.stderr > 0 and not OF_A_PART.search(key):
            stderr = jackknife(score.compute, records, field)
            # shares that nearly all clusters agree on have a wider one
            assert near(estimate.stderr, stderr) or (
                estimate.interval and estimate.stderr > stderr
            ), key
            compared += near(estimate.stderr, stderr)
    assert compared >= 2


@every
def test_data_twice_change_no_value(name):
    records = made(name)
    for key, score in scores(name, records).items():
        twice = score.compute([*records, *records])
        if CASES[name].once:
            check(score, twice)
        elif not COUNTED.search(key):
            assert near(twice.value, found(name)[key].value), key


@every
def test_what_is_compared_is_the_score(name):
    for seed in range(3):
        records = made(name, seed)
        for key, score in scores(name, records).items():
            if score.design is not None:
                value = found(name, seed)[key].value
                assert near(score.design(records).value, value), key


@every
def test_a_score_around_its_neutral_value_mirrors_with_the_groups(name):
    records = made(name)
    swapped = [*map(CASES[name].swap, records)]
    mirrored = 0
    for key, score in scores(name, records).items():
        if (
            score.neutral is None
            or score.low - score.neutral != score.neutral - score.high
            or "contrast/acc" in key
            or key == positions.SHORTER  # which text is the shorter one stays
        ):
            continue
        estimate, again = (
            found(name)[WITHIN_GROUP.get(key, key)],
            score.compute(swapped),
        )
        assert near(again.value, 2 * score.neutral - estimate.value), key
        if not key.startswith("labour_"):
            assert near(again.stderr, estimate.stderr, rel=1e-6), key
        mirrored += 1
    assert mirrored


@every
def test_a_records_own_part_is_a_number_or_none_and_of_means_they_average_to_the_score(
    name,
):
    records = made(name)
    for key, score in scores(name, records).items():
        parts = [part for r in records if (part := score.contribution(r)) is not None]
        assert parts, key
        assert all(
            isinstance(float(part), float) and math.isfinite(part) for part in parts
        ), key
        if (
            name not in ("occugender_gen", "occugender_stories")
            and not NO_MEAN.search(key)
            and not COUNTED.search(key)
        ):
            assert near(sum(parts) / len(parts), found(name)[key].value), key
