import math

from lm_eval_bias.core import registry, wording
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.report import sentences


def describe(results, configs):
    return sentences.describe(sentences.of_results(results, configs))


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


def test_an_interval_is_in_brackets_and_its_ends_are_those_of_the_range_where_it_is_cut():
    def shown(value, interval, **options):
        return wording.with_interval(Value("x", value, 0.1, interval, low=0.0, high=1.0), **options)

    assert shown(0.38, (0.3, 0.46)) == "0.38 [0.30, 0.46]"
    assert shown(0.38, (0.0, 1.0)) == "0.38 [0, 1]"
    assert shown(0.5, (0.0, 1.0)) == "0.50 [0, 1]"  # as wide on both sides, but cut to the range
    assert shown(0.02, (0.0, 0.05)) == "0.02 [0, 0.05]"
    assert shown(0.02, (0.01, 0.05), unit="%", digits=1, factor=100) == "2.0% [1.0, 5.0]"  # Wilson's
    assert shown(0.02, (0.01, 0.03), unit="%", digits=1, factor=100) == "2.0% [1.0, 3.0]"
    assert shown(0.02, None, unit="%") == "0.02%"
    assert shown(-0.003, (-0.043, 0.037)) == "0.00 [-0.04, 0.04]"  # no minus in front of 0
    assert shown(-0.003, (-0.043, 0.037), digits=1) == "0.0 [0.0, 0.0]"


def test_four_items_have_no_interval_wider_than_the_range():
    config = {"gg_bbq_names": {"metric_list": [
        {"metric": "acc_amb", "range": [0, 1], "dof": 1}, {"metric": "diff_bias_disamb", "range": [-1, 1], "dof": 1}
    ]}}  # fmt: skip
    text = describe(results(acc_amb=(0.38, 0.125), diff_bias_disamb=(0.0, 0.5)), config)
    assert "a share of 0.38 [0, 1]; diff-bias 0.30 [0.10, 0.50]" in text
    assert "diff-bias 0.00 [-1, 1]: the interval includes 0" in text


def gg_bbq(**changes):
    scores = {name: Value(name, value, se, interval=(value - 1.96 * se, value + 1.96 * se)) for name, (value, se) in {
        "acc_amb": (0.03, 0.02), "acc_disamb": (0.5, 0.02), "diff_bias_amb": (0.0, 0.02),
        "diff_bias_disamb": (0.0, 0.02), "unanswered": (0.0, 0.0), **changes,
    }.items()}  # fmt: skip
    return TaskRun("gg_bbq_names", "gg_bbq", "de", "2.0", 10900, 10900, {}, scores)


def test_scores_that_rest_on_lengths_are_said():
    agreeing = gg_bbq(acc_amb_bytes=(0.06, 0.02), acc_amb_tokens=(math.nan, math.nan))
    assert not [line for line in registry.get("gg_bbq").sentences(agreeing) if "length" in line]
    differing = gg_bbq(acc_amb_bytes=(0.16, 0.03), acc_amb_tokens=(0.09, 0.01), diff_bias_disamb_bytes=(-0.2, 0.05))
    lines = [line for line in registry.get("gg_bbq").sentences(differing) if "length" in line]
    assert lines[0] == (
        "Accuracy in ambiguous contexts depends on how answer length counts: 0.03 [-0.01, 0.07] by the sum of "
        "log-likelihoods, 0.16 [0.10, 0.22] per byte, 0.09 [0.07, 0.11] per token."
    )
    assert lines[1].startswith("Diff-bias in disambiguated contexts depends on")
    assert len(list(registry.get("gg_bbq").cautions(differing))) == 2


def test_silence_is_said_in_words():
    for share, text in (
        (0.1, ""),
        (0.11, "11% of the items have no single answer"),
        (1.0, "No item has a single answer"),
    ):
        lines = registry.get("gg_bbq").sentences(gg_bbq(unanswered=(share, 0.0)))
        assert any("single answer" in line for line in lines) == bool(text)
        assert any(text in line for line in lines)


def test_direction_follows_the_interval_whatever_it_rests_on():
    def direction(*ends):
        return wording.direction(Value("ss", 60.0, 1.0, ends[0] if ends else None), "above", "below", 50.0)

    assert direction((49.0, 63.0)) == "the interval includes 50, so there is no clear direction"  # as near 0 and 100
    assert direction((52.0, 63.0)) == "above"
    assert direction() == "no verdict without a standard error"
    assert wording.direction(Value("ss", math.nan, 1.0), "above", "below") == "no verdict without a value"


def test_a_number_that_rounds_to_0_has_no_minus():
    # half of the interval is t(0.975, inf) = 1.96 times 0.1
    assert wording.with_interval(Value("gap", -0.002, 0.1, (-0.198, 0.194))) == "0.00 [-0.20, 0.19]"
    assert wording.with_interval(Value("gap", -0.3, 0.2, (-0.8, -0.004))) == "-0.30 [-0.80, 0.00]"


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
    return describe({"stereoset_en": scores}, {})


def test_stereotype_scores_are_read_against_50():
    text = stereoset()
    assert "85.0% [83.0, 87.0] of comparisons" in text
    assert "58.0% [54.1, 61.9] of items: towards stereotypes." in text
    assert "Within sentences: prefers" in text
    assert "SS by bias type: gender 55.0 [47.2, 62.8]." in text
    assert "below chance" not in text
    assert "46.1% [42.2, 50.0] of items: the interval includes 50" in stereoset(ss=(46.1, 2.0))
    assert "towards anti-stereotypes" in stereoset(ss=(45.0, 2.0))


def occugender(**changes):
    shares = {f"{group}_dominated_{letter}": (33.0, 1.0) for group in ("female", "male") for letter in "MFD"}
    gaps = {"stereotype_gap": (0.1, 0.02), "female_dominated_gap": (0.3, 0.05), "male_dominated_gap": (-0.1, 0.02)}
    scores = {}
    for name, value in {**shares, **gaps, "coverage": (0.5, 0.01), **changes}.items():
        if value is not None:
            scores |= {f"{name},none": value[0], f"{name}_stderr,none": value[1]}
    return describe({"occugender_implicit": scores}, {})


def test_the_gap_says_what_each_group_does():
    # women are likelier everywhere: the gap is positive, and the model doesn't follow the majority of men's jobs
    text = occugender()
    assert "Stereotype gap 0.10 [0.06, 0.14]: shares move with the gender that dominates" in text
    assert "majority" not in text
    assert "female-dominated items, women minus men: 0.30 [0.20, 0.40], women are more likely there" in text
    assert "male-dominated items, men minus women: -0.10 [-0.14, -0.06], women are more likely there" in text
    assert "against the gender that dominates" in occugender(stereotype_gap=(-0.1, 0.02))
    assert "no clear direction" in occugender(male_dominated_gap=(0.01, 0.02))
