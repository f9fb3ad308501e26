"""The runs in results/runs against their schema, and the schema against files that are wrong."""

import copy
import json
import math

import jsonschema
import pytest

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import run_discovery, run_file
from tests.support.places import ROOT

SCHEMA = json.loads((ROOT / "results" / "schema.json").read_text(encoding="utf-8"))
FILES = sorted((ROOT / "results" / "runs").glob("*.json"))


def content(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def good():
    return copy.deepcopy(content(FILES[-1]))


def test_there_are_runs():
    assert len(FILES) >= 3


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for name in FILES:
        assert {task["benchmark"] for task in content(name)["tasks"].values()} <= set(registry.by_name())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_run_is_valid_and_keeps_every_digit(path):
    before = content(path)
    run_file.check(before)
    run = run_file.read(path, before)
    assert run_file.as_data(run) == before
    again = json.dumps(run_file.as_data(run), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    assert again == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_run_fits_the_catalogue(path):
    for name, task in run_file.read(path, content(path)).tasks.items():
        entry = catalog.entries()[name.partition(" ")[0]]
        assert (task.benchmark, task.language, task.items) == (entry.benchmark, entry.language, entry.items)
        assert 0 < task.documents <= task.items
        assert set(registry.get(task.benchmark).main) <= set(task.scores)
        for score in task.scores.values():
            assert math.isnan(score.value) or score.low <= score.value <= score.high, (name, score.name)
            assert score.note or not math.isnan(score.value), (name, score.name)
            if score.interval is not None:
                assert score.interval[0] <= score.value <= score.interval[1], (name, score.name)


def test_results_is_a_folder_of_runs():
    runs, problems = run_discovery.read([ROOT / "results"])
    assert not problems
    assert {task for run in runs for task in run.tasks} == {name for path in FILES for name in content(path)["tasks"]}


def wrong_nan(run):
    run["tasks"]["occugender_explicit"]["scores"]["coverage"].update(value=None, note="")


def wrong_interval(run):
    run["tasks"]["occugender_explicit"]["scores"]["coverage"]["interval"] = [0.1]


def wrong_stderr(run):
    run["tasks"]["occugender_explicit"]["scores"]["coverage"]["stderr"] = -1


def wrong_benchmark(run):
    run["tasks"]["gg_bbq_group_terms"]["benchmark"] = "alien_pairs"


def without_range(run):
    del run["tasks"]["gg_bbq_group_terms"]["scores"]["acc_amb"]["range"]


def without_tasks(run):
    run["tasks"] = {}


def without_seeds(run):
    del run["provenance"]["seeds"]


def misspelt(run):
    run["modell"] = run.pop("model")


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (wrong_nan, "tasks/occugender_explicit/scores/coverage/note"),
        (wrong_interval, "tasks/occugender_explicit/scores/coverage/interval"),
        (wrong_stderr, "tasks/occugender_explicit/scores/coverage/stderr"),
        (wrong_benchmark, "tasks/gg_bbq_group_terms/benchmark"),
        (without_range, "tasks/gg_bbq_group_terms/scores/acc_amb: 'range'"),
        (without_tasks, "tasks"),
        (without_seeds, "provenance: 'seeds'"),
        (misspelt, "the file"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_named(good, damage, place):
    run_file.check(good)
    damage(good)
    with pytest.raises(BiasError, match="not a valid run file") as caught:
        run_file.check(good)
    assert place in str(caught.value)
