"""GG-BBQ from the command line: answers by length from one set of requests, releases that are never mixed."""

import json

import pytest

from lm_eval_bias.cli.main import main
from tests.support import tiny


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return tiny.gpt2(tmp_path_factory.mktemp("gpt2"), positions=1024)


def run(folder, tasks, *more, model="bias-chance"):
    arguments = ["run", "--tasks", tasks, "--model", model, "--output_path", str(folder), "--log_samples"]
    assert main([*arguments, *more]) == 0
    results = json.loads(next(folder.rglob("results_*.json")).read_text())
    samples = {
        task: [json.loads(line) for line in next(folder.rglob(f"samples_{task}_2*.jsonl")).read_text().splitlines()]
        for task in results["results"]
        if task in results["configs"]
    }
    return results, samples


def test_tokens_come_with_the_log_likelihoods_of_this_task_alone(tmp_path, tiny_mirror, gpt2, capsys):
    arguments = ["--model_args", f"pretrained={gpt2}", "--device", "cpu", "--limit", "16"]
    results, samples = run(tmp_path, "gg_bbq_names_paper,occugender_explicit", *arguments, model="hf")
    for sample in samples["gg_bbq_names_paper"]:
        assert [len(answer) for answer in sample["filtered_resps"]] == [3, 3, 3]
        assert len(sample["arguments"]) == 3  # one request a choice
    assert {len(answer) for sample in samples["occugender_explicit"] for answer in sample["filtered_resps"]} == {2}
    scores = results["results"]["gg_bbq_names_paper"]
    by_length = {name for name in scores if "_bytes," in name or "_tokens," in name}
    assert len(by_length) == 8
    assert not [name for name in by_length if scores[name] != scores[name]]  # noqa: PLR0124 (nan)
    capsys.readouterr()
    assert main(["rescore", str(tmp_path), "--json"]) == 0
    entries = {entry["task"]: entry for entry in json.loads(capsys.readouterr().out)}
    again = entries["gg_bbq_names_paper"]["scores"]
    assert all(again[name.partition(",")[0]]["value"] == scores[name] for name in by_length)
    assert entries["gg_bbq_names_paper"]["release_used"] == "the paper's, 3a95eefe1091"


def test_a_model_without_tokens_says_so(tmp_path, tiny_mirror):
    results, samples = run(tmp_path, "gg_bbq_names,gg_bbq_names_gen")
    assert {len(answer) for sample in samples["gg_bbq_names"] for answer in sample["filtered_resps"]} == {2}
    scores = {entry["metric"]: entry for entry in results["configs"]["gg_bbq_names"]["metric_list"]}
    assert "this model type doesn't count them" in scores["acc_amb_tokens"]["note"]
    assert "note" not in scores["acc_amb_bytes"]
    written = {entry["metric"] for entry in results["configs"]["gg_bbq_names_gen"]["metric_list"]}
    assert not [name for name in written if name.endswith(("_bytes", "_tokens"))]


def test_releases_are_not_compared_with_one_another(tmp_path, tiny_mirror, capsys):
    for name in ("gg_bbq_names", "gg_bbq_names_paper"):
        results, _ = run(tmp_path / name, name)
        assert results["configs"][name]["metadata"]["release_used"].startswith(("the latest", "the paper's"))
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "gg_bbq_names"), str(tmp_path / "gg_bbq_names_paper")]) == 2
    assert "the runs have no task in common" in capsys.readouterr().err
    assert main(["leaderboard", str(tmp_path), "--format", "json"]) == 0
    boards = json.loads(capsys.readouterr().out)["boards"]
    assert sorted(board["task"] for board in boards) == ["gg_bbq_names", "gg_bbq_names_paper"]
    assert main(["run", "--tasks", "gg_bbq_names", "--model", "bias-chance", "--metadata", '{"release": "paper"}']) == 2
    assert "release" in capsys.readouterr().err
