"""The runs in results/runs against their schema, and the schema against files that are wrong."""

import json
import math
import re

import jsonschema
import pytest

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import run_discovery, run_file
from tests.support.places import ROOT

FILES = sorted((ROOT / "results" / "runs").glob("*.json"))


def content(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_run_is_valid_keeps_every_digit_and_fits_the_catalogue(path):
    before = content(path)
    run_file.check(before)
    run = run_file.read(path, before)
    assert run_file.as_data(run) == before
    again = json.dumps(run_file.as_data(run), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    assert again == path.read_text(encoding="utf-8")
    for name, task in run.tasks.items():
        entry = catalog.entries()[name.partition(" ")[0]]
        assert (task.benchmark, task.language, task.items) == (entry.benchmark, entry.language, entry.items)
        assert 0 < task.documents <= task.items
        assert set(registry.get(task.benchmark).main) <= set(task.scores)
        for score in task.scores.values():
            assert math.isnan(score.value) or score.low <= score.value <= score.high, (name, score.name)
            assert score.note or not math.isnan(score.value), (name, score.name)
            assert score.interval is None or score.interval[0] <= score.value <= score.interval[1], (name, score.name)


def test_results_is_a_folder_of_runs():
    jsonschema.Draft202012Validator.check_schema(content(ROOT / "results" / "schema.json"))
    runs, problems = run_discovery.read([ROOT / "results"])
    assert not problems
    assert {task for run in runs for task in run.tasks} == {name for path in FILES for name in content(path)["tasks"]}


def coverage(**changes):
    return lambda run: run["tasks"]["occugender_explicit"]["scores"]["coverage"].update(changes)


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (coverage(value=None, note=""), "tasks/occugender_explicit/scores/coverage/note"),
        (lambda run: run["tasks"]["gg_bbq_group_terms"].update(benchmark="alien"), "gg_bbq_group_terms/benchmark"),
        (lambda run: run["tasks"]["gg_bbq_group_terms"]["scores"]["acc_amb"].pop("range"), "scores/acc_amb: 'range'"),
        (lambda run: run.update(tasks={}), "tasks"),
        (lambda run: run.update(modell=run.pop("model")), "the file"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_named(damage, place):
    wrong = content(FILES[-1])
    damage(wrong)
    with pytest.raises(BiasError, match=re.escape(place)):
        run_file.check(wrong)
