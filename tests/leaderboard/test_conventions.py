"""What makes two runs the same measurement, and where a run departs from its task, on runs made of their data alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog
from lm_eval_bias.runs import settings
from tests.support import boards
from tests.support.boards import WHOLE, run

GG_BBQ, GEN, REGARD, OCCUGENDER = "gg_bbq_group_terms", "gg_bbq_group_terms_gen", "regard_de", "occugender_explicit"
USUAL = catalog.entries()[REGARD].repeats
DATA = {"file": "here/own.json", "sha256": "0123456789abcdef"}


def task(name=GG_BBQ, inputs=WHOLE, **metadata):
    made = boards.task(name=name, inputs=inputs, metadata=metadata)
    return made if inputs is not None else replace(made, metadata=metadata)


def key(one, **provenance):
    return settings.key(run("model", one, **provenance), one)


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
        ("XY und X", "XY und X"), ("Köchin", "Köchin"), (3, "3"), (True, "true"), (None, "null"),
        ([1, "a"], '[1, "a"]'), ({"b": 1, "a": Path("x")}, '{"a": "x", "b": 1}'),
    ],
)  # fmt: skip
def test_an_options_value_as_text(value, text):
    assert settings.option_text(task(words=value), "words") == text


@pytest.mark.parametrize(
    ("one", "provenance", "choices"),
    [
        # only what is chosen and not the default makes another measurement
        (task(), {"seeds": [1], "dtype": "float16", "model_args": "a"}, {}),
        (task(wording=3), {}, {"wording": "3"}),
        (task(wording=None), {}, {}),
        (task(remark="of no option"), {}, {}),
        (task(by_value=True), {}, {}),  # a breakdown adds scores and changes none
        (task(OCCUGENDER, words="x", instruction_position="y"), {}, {"words": "x", "instruction_position": "y"}),
        (replace(task(), task=f"{GG_BBQ} (bfloat16)"), {}, {}),
        # the number of samples counts where it is not the usual
        (task(REGARD, repeats=USUAL), {}, {}),
        (task(REGARD, repeats=USUAL - 1), {}, {"repeats": str(USUAL - 1)}),
        (replace(task(REGARD, repeats=USUAL), task="own"), {}, {"repeats": str(USUAL)}),
        # the classifier that was used, not the one that was asked for
        (task(REGARD, classifier="sbert"), {}, {}),
        (task(REGARD, classifier="sbert", classifier_used={"name": "light"}), {}, {"classifier": "light"}),
        (task(REGARD, classifier_used="damaged"), {}, {}),
        (task("stereoset_en", dataset="own.json", dataset_used=DATA), {}, {"dataset": "own.json (0123456789ab)"}),
        (task("stereoset_en", dataset="own.json", dataset_used="damaged"), {}, {}),
        # how texts are sampled counts where texts are sampled, and may in tasks that this package doesn't know
        (task(GEN), {"gen_kwargs": {"top_p": 0.1}}, {"gen_kwargs": "{'top_p': 0.1}"}),
        (task(REGARD), {"gen_kwargs": {"top_p": 0.1}}, {"gen_kwargs": "{'top_p': 0.1}"}),
        (task(OCCUGENDER), {"gen_kwargs": {"top_p": 0.1}}, {}),
        (replace(task(OCCUGENDER), task="own"), {"gen_kwargs": {"top_p": 1}}, {"gen_kwargs": "{'top_p': 1}"}),
        (task(REGARD), {"gen_kwargs": None}, {}),
        # examples and system instructions are put before what is asked
        (task(inputs={"num_fewshot": 2}), {}, {"num_fewshot": "2"}),
        (task(inputs={"num_fewshot": 0}), {}, {}),
        (task(), {"system_instruction": "a"}, {"system_instruction": hashlib.sha256(b"a").hexdigest()[:12]}),
        (task(), {"system_instruction": ""}, {}),
    ],
)
def test_what_was_chosen(one, provenance, choices):
    assert settings.choices(run("", one, **provenance), one) == choices


def test_half_a_character_as_a_broken_terminal_gives_it_is_no_reason_to_stop():
    assert len(settings.choices(run("", task(), system_instruction="\ud800"), task())["system_instruction"]) == 12


def test_an_option_that_its_yaml_sets_is_the_default(monkeypatch):
    entries = catalog.entries()
    own = replace(entries[GG_BBQ], metadata={**entries[GG_BBQ].metadata, "wording": 4})
    monkeypatch.setattr(catalog, "entries", lambda: {**entries, GG_BBQ: own})
    for one, choices in ((task(wording=4), {}), (task(wording=3), {"wording": "3"})):
        assert settings.choices(run("", one), one) == choices


# ---------------------------------------------------------------------- who is ranked with whom


def test_the_same_key_where_the_same_was_measured():
    assert key(task()) == ("gg_bbq", "2.0", f"documents {'0' * 64}, all items")
    assert key(task(wording=3)) == ("gg_bbq", "2.0", "wording=3", f"documents {'0' * 64}, all items")
    # in whatever order options were given
    assert key(task(OCCUGENDER, words="x", instruction_position="y"))[2:4] == ("instruction_position=y", "words=x")
    assert key(replace(task(), version="1.0"))[1] == "1.0"
    assert key(task(), dtype="float16") == key(task())
    assert key(task(inputs=None))[2] == "documents not recorded, all items"
    part = replace(task(inputs={**WHOLE, "scored": "1" * 64}), documents=96)
    assert key(part)[2] == f"documents {'1' * 64}, 96 of 968 items"
    # the hash of what was run is the part's where a part was
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
    assert bool(settings.unknown_part(one)) == (bool(part) and "scored" not in inputs)


def test_conventions_in_words():
    told = {"model": "hf", "chat_template": "0f", "dtype": "float32"}
    for one, provenance, named in (
        (task(OCCUGENDER, words="x", instruction_position="y"), {}, ["words=x", "instruction_position=y"]),
        (task(wording=3), told, ["wording=3", "--model hf", "chat template", "float32"]),
        (task(inputs={"chat_template": True}), {}, [settings.describe(run("", task()), task()), "chat template"]),
    ):
        assert settings.describe(run("", one, **provenance), one).split("; ") == named


@pytest.mark.parametrize(
    ("version", "current", "same"),
    [
        ("1.0", 1.0, True), ("1", 1.0, True), ("1.0", "1", True), ("1.1", 1.0, False), ("2025-11", "2025-11", True),
        ("2025-11", "2025-12", False), ("1", None, False), ("None", None, True), ("one", 1, False),
    ],
)  # fmt: skip
def test_versions_however_they_are_written(version, current, same):
    assert settings.same_version(version, current) == same


def test_another_version_than_the_current_one():
    assert settings.old_version(replace(task(), version="1.5")) == "task version 1.5, now 2.0"
    assert settings.old_version(replace(task(), task=f"{GG_BBQ} (light)", version="1")) == "task version 1, now 2.0"
    # of a task that isn't known no version is the current one
    assert settings.old_version(replace(task(), task="own", version="0.1")) == settings.old_version(task()) == ""
