"""A benchmark from another distribution is known to every command and comes through the built-in ones' door."""

import json

from lm_eval_bias.core import registry
from tests.support.places import ROOT


def test_built_in_ones_come_the_same_way():
    folders = {path.parent.name for path in (ROOT / "tasks").glob("*/benchmark.py")}
    assert {benchmark.name for benchmark in registry.benchmarks()} == folders


def test_a_planted_bias_comes_back(installed, said, tmp_path):
    arguments = [
        "--tasks",
        "age_pairs,age_ratings",
        "--model",
        "bias-dial",
        "--model_args",
        "strength=1",
    ]
    said("run", *arguments, "--output_path", tmp_path, "--log_samples")
    for entry in json.loads(said("rescore", tmp_path, "--json")):
        assert entry["scores"]["old_share"]["value"] == 100


def test_written_answers_are_rescored(package, said, tmp_path):
    """The guide's way, ``custom`` with a function: what it read stays, or is read again where it says so."""
    arguments = ["--model", "bias-dial", "--model_args", "strength=0.5"]
    package()
    arguments += ["--log_samples", "--output_path", tmp_path / "run"]
    said("run", "--tasks", "age_pairs_gen,age_pairs", *arguments)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "bounds: [{task: age_pairs_gen, score: old_share, max: 99, on: point}]\n"
    )
    said("check", tmp_path / "run", "--policy", policy, "--strict")
    before = said("rescore", tmp_path / "run")
    assert "age_pairs_gen" in before
    read = "return [_person(texts[0]) for texts in resps]\n"
    other = 'return ["young" for texts in resps]\n'
    for more, is_kept in (("", True), ("\nread_answers.reads_again = True\n", False)):
        package("documents.py", read, f"{other}\n{more}")
        assert (said("rescore", tmp_path / "run") == before) == is_kept
    # the gate judges what was read then, which stands beside the log
    said("check", tmp_path / "run", "--policy", policy, "--strict")
