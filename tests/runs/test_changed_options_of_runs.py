"""Where a run isn't its task, one fact of its data at a time: name, value and words, and nothing where it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias import __version__
from lm_eval_bias.core import catalog, content_hashes, registry
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.data import sources
from lm_eval_bias.runs import settings
from lm_eval_bias.runs.settings import ChangedOption

SEEDS = [0, 1234, 1234, 1234]
GG_BBQ, REGARD = "gg_bbq_group_terms", "regard_de"
READ = {"documents": "0" * 64}
OWN = f"own.json ({'1' * 12})"


def task(name=GG_BBQ, inputs=READ, **metadata):
    entry = catalog.entries()[name]
    version = str(entry.metadata["version"])
    files = {"files": sources.hashes(entry.data)}
    known = {"inputs": {**files, **inputs} if inputs else inputs, **metadata}
    return TaskRun(name, entry.benchmark, "de", version, entry.items, entry.items, known, {})


def of(one, **provenance):
    run = Run("model", Path("run.json"), {"seeds": SEEDS, **provenance}, "", {one.task: one})
    return list(settings.changed_options(run, one))


def test_a_run_of_the_task_as_it_is_departs_in_nothing():
    assert of(task()) == of(task(REGARD)) == of(replace(task(), task=f"{GG_BBQ} (bfloat16)")) == []


def test_a_departure_is_allowed_by_its_name_and_value():
    assert (ChangedOption("wording", "3").exact, ChangedOption("task", "", "why").exact) == ("wording=3", "task")


def test_names_are_those_of_every_departure_and_option_once():
    names = settings.option_names()
    assert len(set(names)) == len(names)
    assert names[: len(settings.NAMES)] == list(settings.NAMES)
    assert {"words", "wording", "repeats", "templates"} <= set(names)
    details = {o for one in registry.by_name().values() for o, role in one.options.items() if role == "detail"}
    assert details
    assert not details & set(names)  # a breakdown adds scores and changes none


def test_choices_depart():
    assert of(task(wording=3)) == [ChangedOption("wording", "3")]
    assert of(task(by_value=True)) == []
    sampled = of(task("gg_bbq_group_terms_gen"), gen_kwargs={"top_p": 0.1})
    assert sampled == [ChangedOption("gen_kwargs", "{'top_p': 0.1}")]


@pytest.mark.parametrize(
    ("metadata", "departs"),
    [
        ({"classifier_used": {"name": "a", "is_default": True}, "classifier": "a"}, False),
        ({"classifier_used": {"name": "a", "is_default": False}}, True),
        ({"classifier_used": {"name": "a", "is_default": False}, "classifier": "a"}, True),
        ({"classifier_used": {"name": "a"}}, False),  # an older file: nobody asked for another
        ({"classifier_used": {"name": "a"}, "classifier": "a"}, True),
        ({"classifier_used": "a"}, False),
    ],
)
def test_another_classifier(metadata, departs):
    assert of(task(REGARD, **metadata)) == ([ChangedOption("classifier", "a")] if departs else [])


def test_tasks_that_are_not_the_packaged_ones():
    own = replace(task(), task="own", version="0.1")
    assert of(own) == [
        ChangedOption("task", "", "not a task of this version: the run used another version, or its own tasks")
    ]
    # a task over a data set of one's own is known by that
    used = replace(task("stereoset_en", dataset_used={"file": "x/own.json", "sha256": "1" * 64}), task="own")
    assert of(used) == [ChangedOption("dataset", OWN, f"its own data set, not the published one: {OWN}")]
    changed = task(inputs={**READ, "changed": ["doc_to_text", "version"]})
    assert of(changed) == [ChangedOption("task", "", "not the packaged task of this name: doc_to_text, version")]
    assert of(task(inputs={**READ, "changed": []})) == []


def test_another_version():
    assert of(replace(task(), version="1.0")) == [ChangedOption("version", "1.0", "task version 1.0, now 2.0")]
    assert of(replace(task(), version="2")) == []


def test_what_is_put_around_prompts():
    said = "the prompts use a chat template, which the papers' prompts don't have"
    template = {"chat_template": "0123456789abcdef"}
    assert of(task(), **template) == [ChangedOption("chat_template", "0123456789ab", said)]
    assert of(task(inputs={**READ, "chat_template": True})) == [ChangedOption("chat_template", "", said)]
    assert of(task(inputs={**READ, "chat_template": False})) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("enable_thinking=False", {"enable_thinking": "False"}),
        ("pretrained=a,enable_thinking=False,dtype=b", {"enable_thinking": "False"}),
        ("pretrained=a,think_end_token=</think>", {"think_end_token": "</think>"}),
        ("chat_template_args=x,enable_thinking=y", {"chat_template_args": "x", "enable_thinking": "y"}),
        ("pretrained=a,no_enable_thinking=False", {}),  # another argument's name
        ("pretrained=enable_thinking", {}),
        (None, {}),
    ],
)
def test_what_a_model_does_with_its_chat_template(arguments, expected):
    found = of(task(), chat_template="x", model_args=arguments)[1:]
    assert {one.name: one.value for one in found} == expected
    assert of(task(), model_args=arguments) == []  # without a template these do nothing


def test_seeds_of_sampled_texts():
    assert of(task(REGARD), seeds=[1, 2]) == [ChangedOption("seeds", "1,2")]
    assert of(task(REGARD), seeds=None) == [ChangedOption("seeds", "None")]
    assert of(task(), seeds=[1, 2]) == []


def test_what_was_read_has_to_be_told():
    (older,) = of(task(inputs={}))
    assert (older.name, older.value) == ("inputs", "")
    assert older.problem == "its file doesn't say which inputs were read and scored: run the task again"
    assert of(task(inputs={"scored": "1" * 64}))[0].name == "samples"
    assert of(task(inputs=None)) == [older]


def test_the_benchmarks_own_files():
    here = content_hashes.of_data_files(registry.get("gg_bbq").folder)

    def departs(digest, version=__version__):
        return of(task(inputs={**READ, "package_content": digest}, distribution=f"lm-eval-bias {version}"))

    assert departs(here) == []
    assert departs("1" * 64) == [
        ChangedOption("package_data", "1" * 12, "the benchmark's own files differ from those here")
    ]
    # of another version of the package they may differ: the task's version tells
    assert departs("1" * 64, "0.0.1") == []
    assert of(task(inputs=READ, distribution=f"lm-eval-bias {__version__}")) == []  # not told


def part(**changes):
    return replace(task(inputs={**READ, "scored": "123456789abcdef"}, **changes), documents=96)


def test_a_part_of_the_items_and_how_it_was_chosen():
    said = "96 of 968 items"
    assert of(part(), limit=96) == [ChangedOption("limit", "96", said)]
    assert of(replace(part(), extra={"limit": 0.1})) == [ChangedOption("limit", "0.1", said)]
    assert of(replace(part(), extra={"limit": 0.1}), limit=96) == [ChangedOption("limit", "96", said)]
    assert of(part()) == [ChangedOption("samples", "123456789abc", said)]
    suite = {"suite": {"name": "quick", "documents": "every third"}}
    assert of(part(**suite)) == [ChangedOption("suite", "quick", said)]
    assert of(part(**suite), limit=9) == [ChangedOption("limit", "9", said)]
    # a suite of whole tasks chose no part
    for whole in ({"name": "standard"}, "quick"):
        assert of(part(suite=whole))[0].name == "samples"
    assert of(task(**suite), limit=5000) == []  # more than there are: all
    unknown = replace(task(inputs={}), documents=96)
    assert of(unknown)[1] == ChangedOption("samples", "", said)
