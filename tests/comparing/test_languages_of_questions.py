"""Languages of EsBBQ and CaBBQ: parallel items are paired, others are independent samples."""

import json

import pytest

from lm_eval_bias.cli.main import main

RUN = ["run", "--model", "bias-dial", "--model_args", "strength=0.2", "--log_samples"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from tests.support.places import find_mirror

    data = find_mirror()
    if data is None:
        pytest.skip("no mirror of the upstream data (set LM_EVAL_BIAS_DATA)")
    folder = tmp_path_factory.mktemp("languages")
    tasks = "es_bbq_religion,ca_bbq_religion,es_bbq_physical_appearance,ca_bbq_physical_appearance"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_BIAS_DATA", str(data))
        patch.setenv("LM_EVAL_BIAS_CACHE", str(tmp_path_factory.mktemp("cache")))
        assert main([*RUN, "--tasks", tasks, "--limit", "192", "--output_path", str(folder)]) == 0
    return folder


def compared(run, capsys, *more):
    capsys.readouterr()
    assert main(["compare", str(run), "--by", "language", "--format", "json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def scores_of(run):
    (path,) = run.rglob("results_*.json")
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def test_parallel_items_are_paired_and_others_are_independent(run, capsys, mirror):
    rows = compared(run, capsys, "--base", "es")
    kinds = {(row["what"], row["other"]): row["paired"] for row in rows}
    assert kinds == {
        ("*_bbq_religion", "language ca"): True,
        ("*_bbq_physical_appearance", "language ca"): False,
    }


def test_the_same_benchmarks_scores_keep_their_names(run, capsys, mirror):
    names = {row["score"] for row in compared(run, capsys, "--base", "es") if row["other"] == "language ca"}
    assert names == {f"{kind}_{context}_three" for kind in ("acc", "diff_bias") for context in ("amb", "disamb")}
    older = compared(run, capsys, "--base", "es", "--scores", "bias_score_disambig")
    assert {row["score"] for row in older} == {"diff_bias_disamb"}
