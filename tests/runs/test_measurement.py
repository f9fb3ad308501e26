"""What makes two runs the same measurement, and where a run isn't its task, on runs made of their data alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias import __version__
from lm_eval_bias.core import catalog, content_hashes, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.run_record import SEEDS
from lm_eval_bias.data import sources
from lm_eval_bias.runs import measurement
from tests.support import boards
from tests.support.boards import WHOLE
from tests.support.toy import run_of as run

GG_BBQ, GENERATED, REGARD = "gg_bbq_group_terms", "gg_bbq_group_terms_gen", "regard_de"
OCCUGENDER, STEREOSET = "occugender_explicit", "stereoset_en"
COMPARED = {"clusters": 9}
USUAL = catalog.entries()[REGARD].repeats


def task(name=GG_BBQ, inputs=WHOLE, **metadata):
    made = boards.task(name=name, inputs=inputs, metadata=metadata)
    return made if inputs is not None else replace(made, metadata=metadata)


def made(one, **facts):
    """The task of a run of which this is said."""
    facts = {"seeds": SEEDS, **facts}
    return run("model", one, **facts).tasks[one.task]


def key(one, **facts):
    return measurement.rank_group(made(one, **facts))


def instructed(text):
    return {"system_instruction": hashlib.sha256(text).hexdigest()[:12]}


@pytest.mark.parametrize(
    ("value", "files", "text"),
    [
        ("here/a.yaml", {"here/a.yaml": "0123456789abcdef"}, "a.yaml (0123456789ab)"),
        ("here/a.yaml", {"b.yaml": "0123456789abcdef"}, "here/a.yaml"),
        ("Xü.yaml", None, "Xü.yaml"),
        ({"b": 1, "a": Path("x")}, {}, '{"a": "x", "b": 1}'),
        ('Say "they"', {}, r'Say \"they\"'),
        ("ab" * 40, {}, "ab" * 40),
        ("ab" * 41, {}, f"{'ab' * 30}... ({hashlib.sha256(b'ab' * 41).hexdigest()[:12]})"),
    ],
)  # fmt: skip
def test_an_options_value_as_text_and_a_files_by_its_content(value, files, text):
    one = task(words=value, inputs=None if files is None else {"files": files})
    assert one.option_text("words") == text
    assert one.file_hash("words") == (
        (files or {}).get(value, "") if isinstance(value, str) else ""
    )
    assert one.file_hash("templates") == ""


@pytest.mark.parametrize(
    ("one", "provenance", "choices"),
    [
        # only what is chosen and not the default makes another measurement
        (task(), {"seeds": [1], "dtype": "float16", "model_args": "a"}, {}),
        (
            task("custom_prompts", language="", comparison=COMPARED),
            {},
            {},
        ),  # as its YAML sets it
        (
            task(OCCUGENDER, words="x", instruction_position="y"),
            {},
            {"words": "x", "instruction_position": "y"},
        ),
        # the number of samples counts where it is not the usual
        (task(REGARD, repeats=USUAL), {}, {}),
        (task(REGARD, repeats=USUAL - 1), {}, {"repeats": str(USUAL - 1)}),
        (replace(task(REGARD, repeats=USUAL), task="own"), {}, {"repeats": str(USUAL)}),
        # the classifier and data set that were used, not those that were asked for
        (task(STEREOSET, dataset="own.json"), {}, {}),
        (
            task(REGARD, classifier="sbert", classifier_used={"name": "light"}),
            {},
            {"classifier": "light"},
        ),
        # how texts are sampled counts where texts are sampled, and may in tasks that this package doesn't know
        (task(OCCUGENDER), {"gen_kwargs": {"top_p": 0.1}}, {}),
        (
            replace(task(OCCUGENDER), task="own"),
            {"gen_kwargs": {"top_p": 1}},
            {"gen_kwargs": '{"top_p": 1}'},
        ),
        # examples and system instructions are put before what is asked
        (task(inputs={"num_fewshot": 0}), {}, {}),
        (task(), {"system_instruction": "a"}, instructed(b"a")),
        # (also half a character, as a broken terminal gives it)
        (task(), {"system_instruction": "\ud800"}, instructed(b"?")),
    ],
)
def test_what_was_chosen(one, provenance, choices):
    assert measurement.choices(made(one, **provenance)) == choices


def test_the_same_key_where_the_same_was_measured():
    assert (
        key(task())
        == key(task(), dtype="float16")
        == ("gg_bbq", "version 3.0", f"inputs {'0' * 64}", "items none")
    )
    # in whatever order options were given
    assert key(task(OCCUGENDER, words="x", instruction_position="y"))[1:3] == (
        "instruction_position=y",
        "words=x",
    )
    assert key(replace(task(), version="1.0"))[1] == "version 1.0"
    assert key(task(inputs=None))[2:] == ("inputs not recorded", "items none")
    part = replace(task(inputs={**WHOLE, "scored": "1" * 64}), documents=96)
    # the hash is that of the part
    assert key(part)[2:] == (f"inputs {'1' * 64}", "items 96 of 968 items")


@pytest.mark.parametrize(
    ("inputs", "documents", "items", "part"),
    [
        ({}, 968, 968, ""),
        ({}, 96, 968, "96 of 968 items"),
        ({}, 96, 0, ""),  # nobody knows of how many
        ({"documents": "a"}, 96, 968, ""),  # a data set of one's own
        ({"scored": "b"}, 1096, 0, "1,096 items, not all"),
    ],
)
def test_the_part_that_was_run(inputs, documents, items, part):
    one = replace(task(inputs=inputs), documents=documents, items=items)
    assert measurement.items_run(one) == part
    assert bool(measurement.unknown_part(one)) == (
        bool(part) and "scored" not in inputs
    )


READ = {"documents": "0" * 64}
HERE = f"lm-eval-bias {__version__}"
SAMPLED = {**READ, "scored": "123456789abcdef"}
DATASET = {"file": "x/own.json", "sha256": "1" * 64}
QUICK = {"name": "quick", "documents": "every third"}


def changed(name=GG_BBQ, metadata=(), inputs=READ, provenance=(), **fields):
    """What was changed of a task."""
    entry = catalog.entries()[name]
    known = {
        "inputs": {"files": sources.hashes(entry.data), **inputs} if inputs else inputs,
        **dict(metadata),
    }
    version = str(entry.metadata["version"])
    one = TaskRun(
        name, entry.definition, "de", version, entry.items, entry.items, known, {}
    )
    one = replace(one, **fields)
    return list(measurement.changed_options(made(one, **dict(provenance))))


def classifier(name, **more):
    used = {
        "name": name,
        **({"is_default": more.pop("is_default")} if "is_default" in more else {}),
    }
    return {"classifier_used": used, **more}


IN_WORDS = {
    "task",
    "version",
    "chat_template",
    "inputs",
    "package_data",
    "dataset",
    *measurement.PART,
}
CASES = [
    ({}, {}),
    ({"name": GENERATED, "provenance": {"gen_kwargs": {"top_p": 0.1}}}, {"gen_kwargs": '{"top_p": 0.1}'}),
    ({"name": REGARD, "metadata": classifier("a", is_default=True, classifier="a")}, {}),
    ({"name": REGARD, "metadata": classifier("a", is_default=False)}, {"classifier": "a"}),
    ({"name": REGARD, "metadata": classifier("a")}, {}),  # nobody asked for another
    ({"name": REGARD, "metadata": classifier("a", classifier="a")}, {"classifier": "a"}),
    ({"task": "own", "version": "0.1"}, {"task": ""}),
    ({"name": STEREOSET, "metadata": {"dataset_used": DATASET}, "task": "own"},
     {"dataset": f"own.json ({'1' * 12})"}),
    ({"inputs": {**READ, "changed": ["doc_to_text", "version"]}}, {"task": ""}),
    ({"provenance": {"chat_template": "0123456789abcdef"}}, {"chat_template": "0123456789ab"}),
    ({"inputs": {**READ, "chat_template": True}}, {"chat_template": ""}),
    ({"provenance": {"chat_template": "x", "model_args": "pretrained=a,enable_thinking=False,dtype=b"}},
     {"chat_template": "x", "enable_thinking": "False"}),
    ({"provenance": {"model_args": "enable_thinking=False"}}, {}),  # without a template it does nothing
    ({"name": REGARD, "provenance": {"seeds": [1, 2, 3, 4]}}, {"seeds": "1,2,3,4"}),
    ({"inputs": {}}, {"inputs": ""}),
    ({"inputs": {"scored": "1" * 64}}, {"samples": "1" * 12}),
    ({"inputs": {**READ, "package_content": "1" * 64}, "metadata": {"distribution": HERE}},
     {"package_data": "1" * 12}),
    ({"inputs": {**READ, "package_content": "1" * 64}, "metadata": {"distribution": "lm-eval-bias 0.0.1"}}, {}),
    ({"inputs": SAMPLED, "documents": 96, "provenance": {"limit": 96}}, {"limit": "96"}),
    ({"inputs": SAMPLED, "documents": 96}, {"samples": "123456789abc"}),
    ({"inputs": SAMPLED, "documents": 96, "metadata": {"suite": QUICK}}, {"suite": "quick"}),
    ({"metadata": {"suite": QUICK}, "provenance": {"limit": 5000}}, {}),  # more than there are: all
    ({"inputs": {}, "documents": 96}, {"inputs": "", "samples": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_what_was_changed(given, expected):
    found = changed(**given)
    assert {option.name: option.value for option in found} == expected
    assert {option.name for option in found if option.problem} == set(
        expected
    ) & IN_WORDS
    assert set(expected) <= set(measurement.option_names())


def test_the_benchmarks_own_files():
    here = content_hashes.of_data_files(folder_of(registry.get("gg_bbq")))
    assert (
        changed(
            inputs={**READ, "package_content": here}, metadata={"distribution": HERE}
        )
        == []
    )
