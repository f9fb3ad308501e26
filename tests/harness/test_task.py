"""The task class: its scores are its metrics, by the harness's own hooks."""

import json

import datasets
import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.harness import internals
from lm_eval_bias.harness.task import BiasTask


def built(folder, **more):
    (folder / "own.yaml").write_text(
        f"include: {tasks_path() / 'occugender' / 'occugender_implicit.yaml'}\ntask: own_implicit\n"
        + "".join(f"{key}: {json.dumps(value)}\n" for key, value in more.items())
    )
    return internals.task_manager([folder], {}).load(["own_implicit"])["tasks"][
        "own_implicit"
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metric_list", [{"metric": "acc"}]),
        ("metric_list", [{"metric": "stereotype_gap"}]),
        ("process_results", "{{answer}}"),
        ("dataset_path", "my/data"),
        ("dataset_name", "de"),
    ],
)
def test_a_key_that_nothing_reads_is_refused_in_one_line(key, value, tmp_path):
    with pytest.raises(BiasError, match=f"own_implicit: its YAML has a {key}"):
        built(tmp_path, **{key: value})


def test_metadata_of_ones_own_are_put_over_those_of_the_included_file(tmp_path):
    """In a YAML and in a group's entry; the harness has them in place of the included ones."""
    plain = built(tmp_path).config.metadata
    task = built(tmp_path, metadata={"version": 2.5})
    assert task.VERSION == 2.5
    assert task.config.metadata == {**plain, "version": 2.5}
    (tmp_path / "group.yaml").write_text(
        "group: mine\ntask: [{task: own_implicit, metadata: {version: 3.5}}]\n"
    )
    manager = internals.task_manager([tmp_path], {"words": "pronouns"})
    (task,) = manager.load(["mine"])["tasks"].values()
    metadata = task.config.metadata
    assert (metadata["version"], metadata["words"]) == (3.5, "pronouns")
    assert metadata["benchmark"] == "occugender"


def test_without_a_benchmark_the_task_is_named(tmp_path):
    with pytest.raises(BiasError, match="own_implicit: its YAML's metadata name no"):
        BiasTask({"task": "own_implicit", "metadata": {"version": 2.0}})


def test_several_filters_are_refused_since_a_score_has_one_value(tmp_path):
    filters = [
        {"name": name, "filter": [{"function": "take_first"}]}
        for name in ("none", "other")
    ]
    assert "stereotype_gap" in built(tmp_path, filter_list=filters[:1]).aggregation()
    with pytest.raises(
        BiasError, match="own_implicit: its YAML's filter_list names 2 filters"
    ):
        built(tmp_path, filter_list=filters)


def test_the_main_scores_have_an_aggregation_and_a_direction(tmp_path):
    task = built(tmp_path, metric_list=[])
    names = set(task.benchmark.main)
    errors = {f"{name}_stderr" for name in names}
    assert set(task.aggregation()) == names | errors
    assert set(task.higher_is_better()) == names < {score.name for score in task.scores}
    assert [entry["metric"] for entry in task.config.metric_list] == [
        score.name for score in task.scores
    ]


def test_prediction_only_takes_the_place_of_all_metrics(tmp_path):
    task = built(tmp_path)
    task.override_metric("bypass")
    assert set(task.aggregation()) == set(task.higher_is_better()) == {"bypass"}
    assert task.process_results(task.eval_docs[0], []) == {"bypass": 999}


def test_examples_are_refused_in_a_yaml_and_passed_over_as_a_flag(tmp_path):
    assert built(tmp_path).config.num_fewshot == 0
    with pytest.raises(BiasError, match="own_implicit: its YAML's num_fewshot is 2"):
        built(tmp_path, num_fewshot=2)


def test_its_data_read_like_those_of_any_task(tmp_path):
    task = built(tmp_path)
    rows = task.dataset["test"]
    assert isinstance(rows, datasets.Dataset)
    assert rows.num_rows == len(task.eval_docs)
    assert set(rows.features) == set(task.eval_docs[0])
    assert list(rows.select([1, 3])) == [task.eval_docs[1], task.eval_docs[3]]
    assert isinstance(task.test_docs(), list)
