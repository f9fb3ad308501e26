"""A gate accepts a run of the task as it is; whatever was changed is named, and has to be allowed by name."""

import json

import pytest
import yaml

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.harness import internals
from lm_eval_bias.runs import measurement
from lm_eval_bias.tasks.stereoset import custom_sets
from tests.support.commands import command
from tests.support.example_items import ENGLISH

OCCUGENDER, GENERATED = "occugender_debias_implicit_none", "gg_bbq_group_terms_gen"
# a bound that every run here meets: what is violated is something else
MET = {
    OCCUGENDER: {"score": "stereotype_gap", "max": 0.99},
    GENERATED: {"score": "acc_amb", "max": 0.99},
    "stereoset_en": {"score": "ss", "max": 99.9},
}
WORDS = "male: [wug]\nfemale: [blick]\ndiverse: [dax]\n"


def made(folder, task, *arguments):
    """A run by the random model."""
    run = [
        "run",
        "--tasks",
        task,
        "--model",
        "bias-chance",
        "--output_path",
        str(folder),
        "--log_samples",
    ]
    assert main([*run, *map(str, arguments)]) == 0
    return folder


def options(**values):
    return ["--metadata", json.dumps(values)]


def gate(folder, task, *allowed):
    """What a policy finds violated in a run: name and reason."""
    path = folder.parent / "policy.yaml"
    allow = [*allowed, "chance_level", "low_coverage"]  # of every run of a random model
    path.write_text(
        yaml.safe_dump(
            {"bounds": [{"task": task, "on": "point", **MET[task]}], "allow": allow}
        )
    )
    done = command("check", str(folder), "--policy", str(path), "--json")
    (run,) = json.loads(done.out)["runs"]
    violated = {
        found["score"]: found["says"]
        for found in run["findings"]
        if not found["passes"]
    }
    assert done.status == bool(violated)
    return violated


def to_allow(text):
    """What a finding says to write into the policy."""
    (exact,) = yaml.safe_load(text.partition("to allow it, add to the policy: ")[2])[
        "allow"
    ]
    return exact


@pytest.mark.parametrize(
    ("task", "arguments", "name", "allowed"),
    [
        (OCCUGENDER, options(words="HERE/words.yaml"), "words", "words=words.yaml ("),
        (GENERATED, ["--gen_kwargs", "top_p=0.1"], "gen_kwargs", None),
        (
            "stereoset_en",
            options(dataset="HERE/own.json"),
            "dataset",
            "dataset=own.json (",
        ),
    ],
)
def test_each_departure_is_named_and_allowed_by_name_alone(
    task, arguments, name, allowed, mirror, tmp_path
):
    (tmp_path / "words.yaml").write_text(WORDS)
    custom_sets.write(tmp_path / "own.json", custom_sets.DataSet("en", ENGLISH))
    run = made(
        tmp_path / "run",
        task,
        *(str(argument).replace("HERE", str(tmp_path)) for argument in arguments),
    )
    violated = gate(run, task)
    assert list(violated) == [name]
    exact = to_allow(violated[name])
    assert exact.startswith(allowed or f"{name}=")
    for text in (name, exact):
        assert gate(run, task, text) == {}
    assert list(gate(run, task, f"{name}=something else")) == [name]
    other = next(known for known in measurement.option_names() if known != name)
    assert list(gate(run, task, other)) == [name]


@pytest.mark.parametrize("changed", ["doc_to_text", "kind"])
def test_a_task_that_took_the_name_of_ours_and_metadata_that_were_overridden(
    changed, tmp_path
):
    own = tasks_path() / "occugender"
    prompt = f"include: {own / 'occugender_implicit.yaml'}\ntask: occugender_implicit\ndoc_to_text: 'A:'\n"
    (tmp_path / "own.yaml").write_text(prompt)
    folder, metadata = (
        (tmp_path, {}) if changed == "doc_to_text" else (own, {"kind": "explicit"})
    )
    manager = internals.task_manager([folder], metadata)
    task = manager.load(["occugender_implicit"])["tasks"]["occugender_implicit"]
    assert task.config.metadata["inputs"]["changed"] == [changed]
