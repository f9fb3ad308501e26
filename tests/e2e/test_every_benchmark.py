"""Every benchmark and variant appears in every command: nothing vanishes from a list, a page, a table or a suite."""

import json

import pytest

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import harness_tasks
from lm_eval_bias.evaluation import suites
from tests.support.made_mirror import make_tiny_mirror
from tests.support.run_scores import run

# those that need a file of the user's, and those that the harness runs, are run by tests of their own
ALONE = [
    name
    for name, benchmark in registry.by_name().items()
    if "required" not in benchmark.options.roles.values()
    and not harness_tasks(benchmark)
]


def task_of(name):
    """Its first task."""
    return next(
        entry.name
        for entry in catalog.entries().values()
        if entry.kind == "task" and entry.benchmark == name
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of a task of every benchmark and variant by the random model."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("LM_EVAL_BIAS_CACHE", str(folder / "cache"))
        make_tiny_mirror(folder / "mirror", patch)
        for seed in (1, 2):
            more = [
                "--model_args",
                f"seed={seed}",
                "--limit",
                "80",
                "--metadata",
                '{"repeats": 2}',
            ]
            run(folder / str(seed), ",".join(map(task_of, ALONE)), *more)
    return folder / "1", folder / "2"


def test_in_the_lists(said):
    everything, full = said("ls", "--all"), suites.load("full")
    listed = {entry["name"] for entry in json.loads(said("ls", "--json"))}
    for name in registry.by_name():
        assert f"Scores of {name}\n" in everything
        assert task_of(name) in listed
        own = {
            entry.name
            for entry in catalog.entries().values()
            if entry.benchmark == name
        }
        assert bool(own & set(full.parts)) is (name in ALONE)
        assert name in ALONE or name in full.leaves_out


def test_in_rescore_and_compare(runs, said):
    rescored = {
        entry["benchmark"] for entry in json.loads(said("rescore", runs[0], "--json"))
    }
    assert rescored == set(ALONE)
    compared = {
        entry["what"]
        for entry in json.loads(said("compare", *runs, "--format", "json"))
    }
    assert compared == set(map(task_of, ALONE))


@pytest.mark.parametrize("form", ["md", "csv", "json", "latex", "html"])
def test_in_the_report_and_on_the_leaderboard(runs, said, form, tmp_path):
    for command in (["report", runs[0]], ["leaderboard", *runs])[
        : 1 if form == "latex" else 2
    ]:
        said(*command, "--format", form, "-o", tmp_path / "out")
        text = (tmp_path / "out").read_text(encoding="utf-8").replace("\\", "")
        for name in ALONE:
            assert task_of(name) in text, name
            if command[0] == "report" and form in ("md", "html"):
                assert registry.family(name).title in text


def test_in_check(runs, said, tmp_path):
    policy, bounds = (
        tmp_path / "policy.yaml",
        [{"task": task_of(n), "score": registry.get(n).main[0]} for n in ALONE],
    )
    for bound in bounds:
        policy.write_text(json.dumps({"bounds": [{**bound, "min": 1e9}]}))
        said(
            "check", runs[0], "--policy", policy, status=2
        )  # it knows the score's range
    policy.write_text(
        json.dumps(
            {
                "bounds": [
                    {**bound, "max_distance_from_neutral": 1e-9} for bound in bounds
                ]
            }
        )
    )
    found = json.loads(said("check", runs[0], "--policy", policy, "--json", status=1))
    assert {finding["task"] for finding in found["runs"][0]["findings"]} >= set(
        map(task_of, ALONE)
    )
