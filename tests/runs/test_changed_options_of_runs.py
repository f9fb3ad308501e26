"""Where a run isn't its task, one fact of its data at a time: name and value, and nothing where it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_bias import __version__
from lm_eval_bias.core import catalog, content_hashes, registry
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.data import sources
from lm_eval_bias.runs import settings

GG_BBQ, REGARD, GENERATED, STEREOSET = "gg_bbq_group_terms", "regard_de", "gg_bbq_group_terms_gen", "stereoset_en"
READ = {"documents": "0" * 64}
HERE = f"lm-eval-bias {__version__}"
SAMPLED = {**READ, "scored": "123456789abcdef"}
DATASET = {"file": "x/own.json", "sha256": "1" * 64}
QUICK = {"name": "quick", "documents": "every third"}


def changed(name=GG_BBQ, metadata=(), inputs=READ, provenance=(), **fields):
    """Names and values of what was changed of a task."""
    entry = catalog.entries()[name]
    known = {"inputs": {"files": sources.hashes(entry.data), **inputs} if inputs else inputs, **dict(metadata)}
    version = str(entry.metadata["version"])
    one = TaskRun(name, entry.benchmark, "de", version, entry.items, entry.items, known, {})
    one = replace(one, **fields)
    run = Run("model", Path("run.json"), {"seeds": [0, 1234, 1234, 1234], **dict(provenance)}, "", {one.task: one})
    return {option.name: option.value for option in settings.changed_options(run, one)}


def classifier(name, **more):
    used = {"name": name, **({"is_default": more.pop("is_default")} if "is_default" in more else {})}
    return {"classifier_used": used, **more}


CASES = [
    ({}, {}),
    ({"task": f"{GG_BBQ} (bfloat16)"}, {}),
    ({"metadata": {"wording": 3}}, {"wording": "3"}),
    ({"metadata": {"by_value": True}}, {}),  # a breakdown adds scores and changes none
    ({"name": GENERATED, "provenance": {"gen_kwargs": {"top_p": 0.1}}}, {"gen_kwargs": "{'top_p': 0.1}"}),
    ({"name": REGARD, "metadata": classifier("a", is_default=True, classifier="a")}, {}),
    ({"name": REGARD, "metadata": classifier("a", is_default=False)}, {"classifier": "a"}),
    ({"name": REGARD, "metadata": classifier("a")}, {}),  # nobody asked for another
    ({"name": REGARD, "metadata": classifier("a", classifier="a")}, {"classifier": "a"}),
    ({"name": REGARD, "metadata": {"classifier_used": "a"}}, {}),
    ({"task": "own", "version": "0.1"}, {"task": ""}),
    ({"name": STEREOSET, "metadata": {"dataset_used": DATASET}, "task": "own"},
     {"dataset": f"own.json ({'1' * 12})"}),
    ({"inputs": {**READ, "changed": ["doc_to_text", "version"]}}, {"task": ""}),
    ({"version": "1.0"}, {"version": "1.0"}),
    ({"provenance": {"chat_template": "0123456789abcdef"}}, {"chat_template": "0123456789ab"}),
    ({"inputs": {**READ, "chat_template": True}}, {"chat_template": ""}),
    ({"inputs": {**READ, "num_fewshot": 2}}, {"num_fewshot": "2"}),
    ({"provenance": {"chat_template": "x", "model_args": "pretrained=a,enable_thinking=False,dtype=b"}},
     {"chat_template": "x", "enable_thinking": "False"}),
    ({"provenance": {"chat_template": "x", "model_args": "chat_template_args=x,think_end_token=</t>"}},
     {"chat_template": "x", "chat_template_args": "x", "think_end_token": "</t>"}),
    ({"provenance": {"chat_template": "x", "model_args": "no_enable_thinking=False"}}, {"chat_template": "x"}),
    ({"provenance": {"model_args": "enable_thinking=False"}}, {}),  # without a template it does nothing
    ({"name": REGARD, "provenance": {"seeds": [1, 2]}}, {"seeds": "1,2"}),
    ({"provenance": {"seeds": [1, 2]}}, {}),
    ({"inputs": {}}, {"inputs": ""}),
    ({"inputs": None}, {"inputs": ""}),
    ({"inputs": {"scored": "1" * 64}}, {"samples": "1" * 12}),
    ({"inputs": {**READ, "package_content": "1" * 64}, "metadata": {"distribution": HERE}},
     {"package_data": "1" * 12}),
    ({"inputs": {**READ, "package_content": "1" * 64}, "metadata": {"distribution": "lm-eval-bias 0.0.1"}}, {}),
    ({"inputs": SAMPLED, "documents": 96, "provenance": {"limit": 96}}, {"limit": "96"}),
    ({"inputs": SAMPLED, "documents": 96, "extra": {"limit": 0.1}}, {"limit": "0.1"}),
    ({"inputs": SAMPLED, "documents": 96, "extra": {"limit": 0.1}, "provenance": {"limit": 96}}, {"limit": "96"}),
    ({"inputs": SAMPLED, "documents": 96}, {"samples": "123456789abc"}),
    ({"inputs": SAMPLED, "documents": 96, "metadata": {"suite": QUICK}}, {"suite": "quick"}),
    ({"inputs": SAMPLED, "documents": 96, "metadata": {"suite": {"name": "standard"}}}, {"samples": "123456789abc"}),
    ({"metadata": {"suite": QUICK}, "provenance": {"limit": 5000}}, {}),  # more than there are: all
    ({"inputs": {}, "documents": 96}, {"inputs": "", "samples": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_what_was_changed(given, expected):
    assert changed(**given) == expected
    assert set(expected) <= set(settings.option_names())


def test_the_benchmarks_own_files():
    here = content_hashes.of_data_files(registry.get("gg_bbq").folder)
    assert changed(inputs={**READ, "package_content": here}, metadata={"distribution": HERE}) == {}
