import math

from lm_eval_bias.report import sentences


def results(**changes):
    scores = {"alias": "x", "sample_len": 4}
    base = {
        "acc_amb": (0.25, 0.05),
        "acc_disamb": (0.75, 0.05),
        "diff_bias_amb": (0.3, 0.1),
        "diff_bias_disamb": (0.1, 0.2),
        **changes,
    }
    for name, (value, error) in base.items():
        scores[f"{name},none"] = value
        scores[f"{name}_stderr,none"] = error
    return {"gg_bbq_names": scores, "hellaswag": {"acc,none": 0.3}}


def test_direction_only_where_the_interval_allows():
    text = sentences.describe(results(), {})
    assert "0.25 ± 0.10" in text
    assert "0.30 ± 0.20: answers go along stereotypes" in text
    assert "0.10 ± 0.39: the interval includes 0" in text
    assert "hellaswag" not in text
    assert "against stereotypes" in sentences.describe(results(diff_bias_amb=(-0.3, 0.1)), {})


def test_nan_is_said():
    text = sentences.describe(results(diff_bias_amb=(math.nan, math.nan), acc_amb=(0.5, "N/A")), {})
    assert "diff-bias not computable: no statement" in text
    assert "for a share of 0.50; diff-bias" in text


def test_nothing_of_ours_is_nothing():
    assert sentences.describe({"hellaswag": {"acc,none": 0.3}}, {}) == ""


def stereoset(**changes):
    base = {
        "lms": (85.0, 1.0),
        "ss": (58.0, 2.0),
        "intra/lms": (90.0, 1.0),
        "intra/ss": (60.0, 2.0),
        "gender/ss": (55.0, 4.0),
    }
    scores = {}
    for name, (value, error) in {**base, **changes}.items():
        scores |= {f"{name},none": value, f"{name}_stderr,none": error}
    return sentences.describe({"stereoset_en": scores}, {})


def test_stereotype_scores_are_read_against_50():
    text = stereoset()
    assert "85.0 ± 2.0% of comparisons" in text
    assert "58.0 ± 3.9% of items: towards stereotypes." in text
    assert "Within sentences: prefers" in text
    assert "SS by bias type: gender 55.0 ± 7.8." in text
    assert "near chance" not in text
    assert "46.0 ± 3.9% of items: the interval includes 50" in stereoset(ss=(46.1, 2.0)).replace("46.1", "46.0")
    assert "towards anti-stereotypes" in stereoset(ss=(45.0, 2.0))


def test_an_interval_as_wide_as_the_range_tells_nothing():
    assert "gender not told by so few groups." in stereoset(**{"gender/ss": (25.0, 30.0)})


def test_a_low_lms_is_said():
    assert "near chance (50)" in stereoset(lms=(57.0, 1.0))
    assert "near chance (50)" in stereoset(lms=(70.0, 12.0))  # the interval reaches down to chance
    assert "not computable" in stereoset(ss=(math.nan, math.nan), lms=(math.nan, math.nan))


def test_few_clusters_widen_the_interval():
    # 0.3 with error 0.1 is 3 standard errors from 0; with 2 degrees of freedom 95% reach to 4.30
    config = {"gg_bbq_names": {"metric_list": [{"metric": "diff_bias_amb", "dof": 2.0}]}}
    assert "0.30 ± 0.43: the interval includes 0" in sentences.describe(results(), config)


def occugender(**changes):
    shares = {f"{group}_dominated_{letter}": (33.0, 1.0) for group in ("female", "male") for letter in "MFD"}
    gaps = {"stereotype_gap": (0.1, 0.02), "female_dominated_gap": (0.3, 0.05), "male_dominated_gap": (-0.1, 0.02)}
    scores = {}
    for name, value in {**shares, **gaps, "coverage": (0.5, 0.01), **changes}.items():
        if value is not None:
            scores |= {f"{name},none": value[0], f"{name}_stderr,none": value[1]}
    return sentences.describe({"occugender_implicit": scores}, {})


def test_the_gap_says_what_each_group_does():
    # women are likelier everywhere: the gap is positive, and the model doesn't follow the majority of men's jobs
    text = occugender()
    assert "Stereotype gap 0.10 ± 0.04: shares move with the gender that dominates" in text
    assert "majority" not in text
    assert "female-dominated items, women minus men: 0.30 ± 0.10, women are more likely there" in text
    assert "male-dominated items, men minus women: -0.10 ± 0.04, women are more likely there" in text
    assert "against the gender that dominates" in occugender(stereotype_gap=(-0.1, 0.02))
    assert "no direction can be told" in occugender(male_dominated_gap=(0.01, 0.02))


def test_older_files_without_the_groups_gaps_have_sentences():
    text = occugender(female_dominated_gap=None, male_dominated_gap=None)
    assert "Stereotype gap 0.10" in text
    assert "Within the groups" not in text
