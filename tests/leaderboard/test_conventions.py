"""What makes two runs the same measurement, and where a run departs from its task, on runs made of their data alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog
from lm_eval_bias.runs import settings
from tests.support import boards
from tests.support.boards import WHOLE
from tests.support.toy import run_of as run

GG_BBQ, GEN, REGARD, OCCUGENDER = "gg_bbq_group_terms", "gg_bbq_group_terms_gen", "regard_de", "occugender_explicit"
USUAL = catalog.entries()[REGARD].repeats
DATA = {"file": "here/own.json", "sha256": "0123456789abcdef"}


def task(name=GG_BBQ, inputs=WHOLE, **metadata):
    made = boards.task(name=name, inputs=inputs, metadata=metadata)
    return made if inputs is not None else replace(made, metadata=metadata)


def key(one, **provenance):
    return settings.key(run("model", one, **provenance), one)


def instructed(text):
    return {"system_instruction": hashlib.sha256(text).hexdigest()[:12]}


# ---------------------------------------------------------------------- files and options


@pytest.mark.parametrize(
    ("value", "files", "text"),
    [
        ("here/a.yaml", {"here/a.yaml": "0123456789abcdef"}, "a.yaml (0123456789ab)"),
        ("here/a.yaml", {"b.yaml": "0123456789abcdef"}, "here/a.yaml"),
        ("a.yaml", None, "a.yaml"),
        (["a"], {"a": "1"}, '["a"]'), (3, {3: "1"}, "3"),  # a number or a list is no path
        ({"b": 1, "a": Path("x")}, {}, '{"a": "x", "b": 1}'),
    ],
)  # fmt: skip
def test_an_options_value_as_text_and_a_files_by_its_content(value, files, text):
    one = task(words=value, inputs=None if files is None else {"files": files})
    assert settings.option_text(one, "words") == text
    assert settings.file_hash(one, "words") == (files["here/a.yaml"] if "(" in text else "")
    assert settings.file_hash(one, "templates") == ""


@pytest.mark.parametrize(
    ("one", "provenance", "choices"),
    [
        # only what is chosen and not the default makes another measurement
        (task(), {"seeds": [1], "dtype": "float16", "model_args": "a"}, {}),
        (task(wording=3), {}, {"wording": "3"}),
        (task("own_prompts", language=""), {}, {}),  # as its YAML sets it
        (task("own_prompts", language="de"), {}, {"language": "de"}),
        (task(by_value=True), {}, {}),  # a breakdown adds scores and changes none
        (task(OCCUGENDER, words="x", instruction_position="y"), {}, {"words": "x", "instruction_position": "y"}),
        # the number of samples counts where it is not the usual
        (task(REGARD, repeats=USUAL), {}, {}),
        (task(REGARD, repeats=USUAL - 1), {}, {"repeats": str(USUAL - 1)}),
        (replace(task(REGARD, repeats=USUAL), task="own"), {}, {"repeats": str(USUAL)}),
        # the classifier that was used, not the one that was asked for
        (task(REGARD, classifier="sbert"), {}, {}),
        (task(REGARD, classifier="sbert", classifier_used={"name": "light"}), {}, {"classifier": "light"}),
        (task(REGARD, classifier_used="damaged"), {}, {}),
        (task("stereoset_en", dataset="own.json", dataset_used=DATA), {}, {"dataset": "own.json (0123456789ab)"}),
        # how texts are sampled counts where texts are sampled, and may in tasks that this package doesn't know
        (task(GEN), {"gen_kwargs": {"top_p": 0.1}}, {"gen_kwargs": "{'top_p': 0.1}"}),
        (task(OCCUGENDER), {"gen_kwargs": {"top_p": 0.1}}, {}),
        (replace(task(OCCUGENDER), task="own"), {"gen_kwargs": {"top_p": 1}}, {"gen_kwargs": "{'top_p': 1}"}),
        # examples and system instructions are put before what is asked
        (task(inputs={"num_fewshot": 2}), {}, {"num_fewshot": "2"}),
        (task(inputs={"num_fewshot": 0}), {}, {}),
        (task(), {"system_instruction": "a"}, instructed(b"a")),
        # (also half a character, as a broken terminal gives it)
        (task(), {"system_instruction": "\ud800"}, instructed(b"?")),
    ],
)
def test_what_was_chosen(one, provenance, choices):
    assert settings.choices(run("", one, **provenance), one) == choices


# ---------------------------------------------------------------------- who is ranked with whom


def test_the_same_key_where_the_same_was_measured():
    assert key(task()) == key(task(), dtype="float16") == ("gg_bbq", "2.0", f"documents {'0' * 64}, all items")
    # in whatever order options were given
    assert key(task(OCCUGENDER, words="x", instruction_position="y"))[2:4] == ("instruction_position=y", "words=x")
    assert key(replace(task(), version="1.0"))[1] == "1.0"
    assert key(task(inputs=None))[2] == "documents not recorded, all items"
    part = replace(task(inputs={**WHOLE, "scored": "1" * 64}), documents=96)
    assert key(part)[2] == f"documents {'1' * 64}, 96 of 968 items"  # the hash is that of the part


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


@pytest.mark.parametrize(
    ("version", "current", "same"),
    [
        ("1", 1.0, True), ("1.0", "1", True), ("1.1", 1.0, False), ("2025-11", "2025-12", False), ("1", None, False),
    ],
)  # fmt: skip
def test_versions_however_they_are_written(version, current, same):
    assert settings.same_version(version, current) == same
