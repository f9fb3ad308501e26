import math

from lm_eval_bias import sentences


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


def test_few_clusters_widen_the_interval():
    # 0.3 with error 0.1 is 3 standard errors from 0; with 2 degrees of freedom 95% reach to 4.30
    config = {"gg_bbq_names": {"metric_list": [{"metric": "diff_bias_amb", "dof": 2.0}]}}
    assert "0.30 ± 0.43: the interval includes 0" in sentences.describe(results(), config)
