"""What makes two runs the same measurement, and where a run departs from its task, on runs made of their data alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.runs import settings

GG_BBQ, REGARD, OCCUGENDER = "gg_bbq_group_terms", "regard_de", "occugender_explicit"
WHOLE = {"documents": "0" * 64}


def task(name=GG_BBQ, inputs=WHOLE, **metadata):
    entry = catalog.entries()[name]
    known = {"inputs": inputs, **metadata} if inputs is not None else metadata
    version = str(entry.metadata["version"])
    return TaskRun(name, entry.benchmark, "de", version, entry.items, entry.items, known, {})


def run(one, **provenance):
    return Run("model", Path("run.json"), provenance, "", {one.task: one})


def choices(one, **provenance):
    return settings.choices(run(one, **provenance), one)


def key(one, **provenance):
    return settings.key(run(one, **provenance), one)


# ---------------------------------------------------------------------- files and options


def test_a_file_is_known_by_its_content_where_it_was_read():
    read = task(words="here/a.yaml", inputs={"files": {"here/a.yaml": "0123456789abcdef"}})
    assert settings.file_hash(read, "words") == "0123456789abcdef"
    assert settings.option_text(read, "words") == "a.yaml (0123456789ab)"
    assert settings.file_hash(read, "templates") == ""
    for unread in (task(words="a.yaml"), task(words="a.yaml", inputs=None), task(words="a.yaml", inputs={"files": {}})):
        assert settings.file_hash(unread, "words") == ""
        assert settings.option_text(unread, "words") == "a.yaml"
    # a number or a list is no path
    assert settings.file_hash(task(words=["a"], inputs={"files": {"a": "1"}}), "words") == ""
    assert settings.file_hash(task(words=3, inputs={"files": {3: "1"}}), "words") == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Frau", "Frau"), ("XY und X", "XY und X"), ("Köchin", "Köchin"), (3, "3"), (True, "true"), (None, "null"),
        ([1, "a"], '[1, "a"]'),
        ({"b": 1, "a": Path("x")}, '{"a": "x", "b": 1}'),
    ],
)  # fmt: skip
def test_an_options_value_as_text(value, text):
    assert settings.option_text(task(words=value), "words") == text


def test_only_what_is_chosen_and_not_the_default_makes_another_measurement():
    assert choices(task(), seeds=[1], dtype="float16", model_args="a") == {}
    assert choices(task(wording=3)) == {"wording": "3"}
    assert choices(task(wording=None)) == {}
    assert choices(task(remark="of no option")) == {}
    # the breakdown adds scores and changes none
    assert choices(task(by_value=True)) == {}
    both = choices(task(OCCUGENDER, words="pronouns", instruction_position="question"))
    assert both == {"words": "pronouns", "instruction_position": "question"}


def test_an_option_that_its_yaml_sets_is_the_default(monkeypatch):
    entries = catalog.entries()
    own = replace(entries[GG_BBQ], metadata={**entries[GG_BBQ].metadata, "wording": 4})
    monkeypatch.setattr(catalog, "entries", lambda: {**entries, GG_BBQ: own})
    assert choices(task(wording=4)) == {}
    assert choices(task(wording=3)) == {"wording": "3"}
    assert choices(replace(task(wording=4), task=f"{GG_BBQ} (bfloat16)")) == {}


def test_the_number_of_samples_counts_where_it_is_not_the_usual():
    usual = catalog.entries()[REGARD].repeats
    assert choices(task(REGARD, repeats=usual)) == {}
    assert choices(task(REGARD, repeats=usual - 1)) == {"repeats": str(usual - 1)}
    assert choices(replace(task(REGARD, repeats=usual), task="own")) == {"repeats": str(usual)}


def test_the_classifier_that_was_used_not_the_one_that_was_asked_for():
    assert choices(task(REGARD, classifier="sbert")) == {}
    used = task(REGARD, classifier="sbert", classifier_used={"name": "light"})
    assert choices(used) == {"classifier": "light"}
    assert choices(task(REGARD, classifier_used="damaged")) == {}


def test_a_data_set_of_ones_own_is_known_by_its_content():
    used = {"file": "here/own.json", "sha256": "0123456789abcdef"}
    own = task("stereoset_en", dataset="here/own.json", dataset_used=used)
    assert choices(own) == {"dataset": "own.json (0123456789ab)"}
    assert choices(task("stereoset_en", dataset="own.json", dataset_used="damaged")) == {}


def test_how_texts_are_sampled_counts_where_texts_are_sampled():
    sampling = {"gen_kwargs": {"top_p": 0.1}}
    assert choices(task("gg_bbq_group_terms_gen"), **sampling) == {"gen_kwargs": "{'top_p': 0.1}"}
    assert choices(task(REGARD), **sampling) == {"gen_kwargs": "{'top_p': 0.1}"}
    assert choices(task(OCCUGENDER), **sampling) == {}
    # of a task that this package doesn't know it may count
    assert choices(replace(task(OCCUGENDER), task="own"), **sampling) == {"gen_kwargs": "{'top_p': 0.1}"}
    assert choices(task(REGARD), gen_kwargs=None) == {}


def test_examples_and_system_instructions_are_put_before_what_is_asked():
    assert choices(task(inputs={"num_fewshot": 2})) == {"num_fewshot": "2"}
    assert choices(task(inputs={"num_fewshot": 0})) == {}
    digest = hashlib.sha256("Antworte höflich".encode()).hexdigest()
    assert choices(task(), system_instruction="Antworte höflich") == {"system_instruction": digest[:12]}
    assert choices(task(), system_instruction="") == {}
    # half a character, as a broken terminal gives it, is no reason to stop
    assert len(choices(task(), system_instruction="\ud800")["system_instruction"]) == 12


def test_a_remark_in_the_name_changes_nothing():
    assert choices(replace(task(), task=f"{GG_BBQ} (bfloat16)")) == {}


# ---------------------------------------------------------------------- who is ranked with whom


def test_the_same_key_where_the_same_was_measured():
    assert key(task()) == ("gg_bbq", "2.0", f"documents {'0' * 64}, all items")
    assert key(task(wording=3)) == ("gg_bbq", "2.0", "wording=3", f"documents {'0' * 64}, all items")
    # in whatever order options were given
    one = key(task(OCCUGENDER, words="x", instruction_position="y"))
    assert one[2:4] == ("instruction_position=y", "words=x")
    assert key(replace(task(), version="1.0"))[1] == "1.0"
    assert key(task(), dtype="float16") == key(task())
    assert key(task(inputs=None))[2] == "documents not recorded, all items"
    part = replace(task(inputs={**WHOLE, "scored": "1" * 64}), documents=96)
    assert key(part)[2] == f"documents {'1' * 64}, 96 of 968 items"


def test_the_hash_of_what_was_run_is_the_parts_where_a_part_was():
    assert settings.asked(task(inputs={"documents": "a", "scored": "b"})) == "b"
    assert settings.asked(task(inputs={"documents": "a"})) == "a"
    assert settings.asked(task(inputs={})) == settings.UNRECORDED


@pytest.mark.parametrize(
    ("inputs", "documents", "items", "part"),
    [
        ({}, 968, 968, ""),
        ({}, 96, 968, "96 of 968 items"),
        ({}, 1000, 968, "1,000 of 968 items"),
        ({}, 96, 0, ""),  # nobody knows of how many
        ({"documents": "a", "scored": "b"}, 96, 968, "96 of 968 items"),
        ({"scored": "b"}, 1096, 0, "1,096 items, not all"),
    ],
)
def test_the_part_that_was_run(inputs, documents, items, part):
    one = replace(task(inputs=inputs), documents=documents, items=items)
    assert settings.part(one) == part
    unknown = bool(part) and "scored" not in inputs
    assert settings.unknown_part(one) == (f"{part}, and its file doesn't say which" if unknown else "")


# ---------------------------------------------------------------------- in words


def described(one, **provenance):
    return settings.describe(run(one, **provenance), one)


def test_conventions_in_words():
    assert described(task()) == "the task's defaults"
    assert described(task(OCCUGENDER, words="x", instruction_position="y")).split("; ") == [
        "words=x", "instruction_position=y",
    ]  # fmt: skip
    told = {"model": "hf", "chat_template": "0f", "dtype": "float32"}
    assert described(task(wording=3), **told) == "wording=3; --model hf; chat template; float32"
    assert described(task(), **told) == "the task's defaults; --model hf; chat template; float32"
    assert described(task(inputs={"chat_template": True})) == "the task's defaults; chat template"
    assert described(task(), dtype="float32") == "the task's defaults; float32"


def test_another_version_than_the_current_one():
    assert settings.old_version(replace(task(), version="1.5")) == "task version 1.5, now 2.0"
    assert settings.old_version(replace(task(), task=f"{GG_BBQ} (light)", version="1")) == "task version 1, now 2.0"
    # of a task that isn't known no version is the current one
    assert settings.old_version(replace(task(), task="own", version="0.1")) == settings.old_version(task()) == ""


@pytest.mark.parametrize(
    ("version", "current", "same"),
    [
        ("1.0", 1.0, True), ("1", 1.0, True), ("1.0", "1", True), ("1.1", 1.0, False), ("2025-11", "2025-11", True),
        ("2025-11", "2025-12", False), ("1", None, False), ("None", None, True), ("one", 1, False),
    ],
)  # fmt: skip
def test_versions_however_they_are_written(version, current, same):
    assert settings.same_version(version, current) == same
