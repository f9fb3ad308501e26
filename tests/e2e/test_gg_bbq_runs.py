"""GG-BBQ from the command line: answers by length from one set of requests, releases that are never mixed."""

import json
import math

from lm_eval_bias.cli.main import main
from tests.support import tiny
from tests.support.run_scores import results_of


def run(folder, tasks, *more, model="bias-chance"):
    arguments = ["run", "--tasks", tasks, "--model", model, "--output_path", str(folder), "--log_samples", *more]
    assert main(arguments) == 0
    return results_of(folder)


def lengths(folder, task):
    """Of what was kept of each answer: with a number of tokens three, without two."""
    lines = next(folder.rglob(f"samples_{task}_2*.jsonl")).read_text().splitlines()
    return {len(answer) for line in lines for answer in json.loads(line)["filtered_resps"]}


def test_tokens_come_with_the_log_likelihoods_of_this_task_alone(tmp_path, tiny_mirror, said):
    gpt2 = tiny.gpt2(tmp_path / "gpt2", positions=1024)
    arguments = ["--model_args", f"pretrained={gpt2}", "--device", "cpu", "--limit", "16"]
    results = run(tmp_path / "out", "gg_bbq_names_paper,gg_bbq_names_prompts", *arguments, model="hf")
    assert lengths(tmp_path, "gg_bbq_names_paper") == {3}
    assert lengths(tmp_path, "gg_bbq_names_prompts") == {2}
    scores = results["results"]["gg_bbq_names_paper"]
    by_length = {name: scores[name] for name in scores if "_bytes," in name or "_tokens," in name}
    assert len(by_length) == 8
    assert not any(map(math.isnan, by_length.values()))
    entries = {entry["task"]: entry for entry in json.loads(said("rescore", tmp_path / "out", "--json"))}
    again = entries["gg_bbq_names_paper"]["scores"]
    assert {name: again[name.partition(",")[0]]["value"] for name in by_length} == by_length
    assert entries["gg_bbq_names_paper"]["release_used"] == "the paper's, 3a95eefe1091"


def test_releases_are_not_compared_with_one_another(tmp_path, tiny_mirror, said):
    names = ("gg_bbq_names", "gg_bbq_names_paper")
    results = run(tmp_path / names[0], names[0])
    run(tmp_path / names[1], names[1])
    scores = {entry["metric"]: entry for entry in results["configs"][names[0]]["metric_list"]}
    assert "this model type doesn't count them" in scores["acc_amb_tokens"]["note"]
    assert "note" not in scores["acc_amb_bytes"]
    said("compare", *(tmp_path / name for name in names), status=2)
    boards = json.loads(said("leaderboard", tmp_path, "--format", "json"))["boards"]
    assert sorted(board["task"] for board in boards) == list(names)
