"""Every benchmark and variant appears in every command: nothing vanishes from a list, a page, a table or a suite."""

import json

import pytest
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.models.chance import ChanceLM
from tests.support.made_mirror import make_tiny_mirror
from tests.support.run_scores import (
    assert_rescored_equals,
    logs_of,
    numbers,
    rescored,
    results_of,
    run,
)

WITH_TASKS = {entry.benchmark for entry in catalog.entries().values()}
# those that need a file of the user's are run by tests of their own
ALONE = [
    name
    for name, benchmark in registry.by_name().items()
    if "required" not in benchmark.options.roles.values() and name in WITH_TASKS
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


def test_plain_harness_writes_strict_json_and_is_rescored_to_the_last_digit(
    runs, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    make_tiny_mirror(tmp_path / "mirror", monkeypatch)
    tracker = EvaluationTracker(output_path=str(tmp_path / "out"))
    results = simple_evaluate(
        ChanceLM(seed=1),
        tasks=list(map(task_of, ALONE)),
        task_manager=TaskManager(
            include_path=str(tasks_path()),
            include_defaults=False,
            metadata={"repeats": 2},
        ),
        evaluation_tracker=tracker,
        limit=80,
        bootstrap_iters=0,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task, logged in samples.items():
        tracker.save_results_samples(task_name=task, samples=logged)
    logs_of(tmp_path)
    found = numbers(results_of(tmp_path))
    assert_rescored_equals(rescored(capsys, tmp_path), found, least=4)
    ours = numbers(results_of(runs[0]))
    assert {task: list(scores) for task, scores in found.items()} == {
        task: list(scores) for task, scores in ours.items()
    }


def test_in_compare(runs, said):
    compared = {
        entry["task"]
        for entry in json.loads(said("compare", *runs, "--format", "json"))
    }
    assert compared == set(map(task_of, ALONE))


@pytest.mark.parametrize("form", ["csv", "html"])
def test_in_the_report_and_on_the_leaderboard(runs, said, form, tmp_path):
    for command in (["report", runs[0]], ["leaderboard", *runs]):
        said(*command, "--format", form, "-o", tmp_path / "out")
        text = (tmp_path / "out").read_text(encoding="utf-8")
        text = text.replace(r"\allowbreak{}", "").replace("\\", "")
        for name in ALONE:
            assert task_of(name) in text, name
            if command[0] == "report" and form == "html":
                assert registry.family(name).title in text
