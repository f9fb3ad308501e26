"""A benchmark from another distribution is known to every command and comes through the built-in ones' door."""

import json

from lm_eval_bias.core import registry
from tests.support.commands import command
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


def test_a_main_score_without_a_design_is_left_out_of_a_comparison(
    package, said, tmp_path
):
    """By name, and so is an ability's neutral value told."""
    package(
        more="""
real = AgeStereotypes.scores
AgeStereotypes.main = ("old_share", "bare")


def scores(self, docs=()):
    first, *others = real(self, docs)
    design = first.design
    described = {"favours": None, "direction": "", "neutral": None, "chance": 50.0}
    bare = dataclasses.replace(first, name="bare", design=None, statistic=lambda r: design(r).estimate(), **described)
    return [first, bare, *others]


AgeStereotypes.scores = scores
"""
    )
    paths = [tmp_path / name for name in ("a", "b")]
    for seed, path in enumerate(paths):
        model = ["--model", "bias-chance", "--model_args", f"seed={seed}"]
        output = ["--output_path", path, "--log_samples"]
        said("run", "--tasks", "age_pairs", *model, *output)
    compared = said("compare", *paths)
    assert "old_share" in compared
    assert "bare: without a design no score can be compared item by item" in " ".join(
        compared.split()
    )
    assert "; ;" not in said("ls", "age_pairs")
    found = command("compare", *map(str, paths), "--scores", "bare")
    assert found.status == 2
    assert "bare can't be compared item by item: choose another score" in found.err
