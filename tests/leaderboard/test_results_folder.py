"""The folder results: runs that are sound, and every published cell once, under a score that exists."""

import json
import math

import jsonschema
import pytest

from lm_eval_bias.core import catalog, registry, run_data
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, TESTS, VARIANTS
from lm_eval_bias.runs import answer_files, harness_results, run_discovery
from tests.support.places import ROOT

FILES = sorted((ROOT / "results" / "runs").rglob("*.json"))


def content(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_run_is_valid_and_fits_the_catalogue(path):
    run = harness_results.read(path, content(path))
    for name, task in run.tasks.items():
        entry = catalog.entries()[name]
        assert (task.benchmark, task.language, task.items) == (
            entry.benchmark,
            entry.language,
            entry.items,
        )
        assert 0 < task.documents <= task.items
        assert set(registry.get(task.benchmark).main) <= set(task.scores)
        for score in task.scores.values():
            assert math.isnan(score.value) or score.low <= score.value <= score.high, (
                name,
                score.name,
            )
            assert score.note or not math.isnan(score.value), (name, score.name)
            assert (
                score.interval is None
                or score.interval[0] - 1e-12 <= score.value <= score.interval[1] + 1e-12
            ), (name, score.name)


def test_results_is_a_folder_of_runs():
    runs, problems = run_discovery.read([ROOT / "results"])
    assert not problems
    assert {task for run in runs for task in run.tasks} == {
        name for path in FILES for name in content(path)["results"]
    }


@pytest.mark.parametrize("name", ["smollm2-135m-instruct", "gemma-3-270m"])
def test_saved_answers_give_the_shipped_scores(name):
    """Of every score of a quick run, whose errors and intervals ``simulations.recount`` recounts in its own way."""
    ((run,), _) = run_discovery.read([ROOT / "results" / "runs" / f"{name}-quick"])
    for task in run.tasks.values():
        records = [saved.record for saved in answer_files.of_task(task)]
        found = run_data.values_of(task.definition.scores(records), records)
        for score, told in task.scores.items():
            own = found[score]
            numbers = [
                (one.value, one.stderr, one.dof, *(one.interval or ()))
                for one in (own, told)
            ]
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, nan_ok=True)


def test_the_data_of_a_board_follow_their_schema(said):
    path = ROOT / "docs" / "reference" / "leaderboard.schema.json"
    text = said("leaderboard", ROOT / "results" / "runs", "--format", "json")
    jsonschema.validate(json.loads(text), content(path))


TYPES = [
    {"test": test, "bias_type": kind, "variants": VARIANTS}
    for test in TESTS
    for kind in BIAS_TYPES
]


def test_tasks_and_scores_exist_and_values_are_in_range():
    for task, rows in registry.published().items():
        entry = catalog.entries()[task]
        assert entry.kind == "task"
        documents = TYPES if entry.benchmark.startswith("stereoset") else []
        known = {
            score.name: score
            for score in registry.get(entry.benchmark).scores(documents)
        }
        for made in rows:
            assert made.task == task
            for name, cell in made.cells.items():
                assert (
                    known[name].low <= cell.value <= known[name].high
                    or cell.printed == "<.01"
                ), (task, name)
        assert len({r.model for r in rows}) == len(rows), task
