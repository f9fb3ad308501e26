"""Suites: which tasks, which items (balanced, fixed), how many requests, and what is refused."""

import functools
import hashlib
import json
from collections import Counter
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest
from lm_eval.tasks import TaskManager

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, files, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.evaluation import preflight
from lm_eval_bias.evaluation import suites as definition
from lm_eval_bias.evaluation.planned import Planned
from simulations import suite_items

# The items of quick, version 5 (4 had a third of EsBBQ's and CaBBQ's, and GG-BBQ's latest release).
# A change here is a change of what every quick run was measured on: a new version.
GOLDEN = {
    "occugender_explicit": "fb1ff6140c44cfcc",
    "occugender_implicit": "6d37533be436db58",
    "gg_bbq_group_terms": "e7541b49e7d4d9ed",
    "gg_bbq_names": "68058ee138fad40f",
    "*_bbq_gender": "8d9bfc1f851aa77f",
    "stereoset_*": "ade1f320e9efd28f",
}


QUICK = definition.load("quick").parts


def golden_of(task):
    return next((GOLDEN[name] for name in GOLDEN if fnmatch(task, name)), None)


def fingerprint(docs):
    """Hash the names of documents: two runs of the same items agree in it, also in two languages."""
    names = sorted(registry.get(doc["benchmark"]).key(doc) for doc in docs)
    content = json.dumps(names, ensure_ascii=False).encode()
    return hashlib.sha256(content).hexdigest()[:16]


@functools.cache
def manager():
    return TaskManager(include_path=str(files.tasks_path()), include_defaults=False)


@functools.cache  # of the released data alone: the tests that use it have the mirror
def documents(task):
    return list(manager().load([task])["tasks"][task].eval_docs)


def chosen(task, suite="quick"):
    docs = documents(task)
    return [docs[i] for i in definition.load(suite).choose(task, docs)]


def test_a_task_has_one_primary_score_which_is_a_main_one():
    for entry in catalog.entries().values():
        if entry.kind == "task" and registry.is_own(entry.definition):
            (name,) = catalog.primary(entry.name, entry.definition)
            assert name in entry.definition.main, entry.name


def test_each_suite_holds_the_one_before():
    for name in definition.NAMES:
        for task, part in definition.load(name).parts.items():
            assert (part.documents == catalog.entries()[task].items) == (
                part.sampling is None
            ), task
    quick, chat, english, standard, full = (
        set(definition.load(name).parts) for name in definition.NAMES
    )
    assert quick < standard < full
    assert english == {
        task for task in standard if catalog.entries()[task].language == "en"
    }
    assert not chat & standard  # and of what full leaves out, one category of KoBBQ
    assert chat - full == {"kobbq_gender_identity_gen"}


@pytest.mark.slow
def test_the_lists_of_items_are_those_that_were_drawn(mirror):
    assert suite_items.written() == suite_items.FILE.read_text(encoding="utf-8")


def test_a_list_of_items_says_nothing_of_other_documents():
    quick = definition.load("quick")
    with pytest.raises(BiasError, match="places of 4229 documents, but there are 3"):
        quick.choose("stereoset_en", [{}] * 3)
    own = SimpleNamespace(
        config=SimpleNamespace(metadata={"dataset": "own.json"}),
        eval_docs=[{}] * 4229,
        benchmark=registry.get("stereoset"),
    )
    run = SimpleNamespace(tasks={"stereoset_en": own}, config=SimpleNamespace())
    with pytest.raises(BiasError, match="--metadata dataset= with --suite quick"):
        definition.choose_items(quick, run)


@pytest.mark.parametrize("items", ["", "0,x", "3,1", "0-2,2", "2-1", "4", "0-4"])
def test_positions_ascend_and_are_there(items):
    assert definition.Sampling("", "0,2-3", 4).places() == [0, 2, 3]
    with pytest.raises(BiasError, match="ascending places below 4"):
        definition.Sampling("", items, 4).places()


def test_suites_take_the_items_that_they_say(mirror):
    """No place of an option gains by that (tests/tasks/test_positions.py), and templates and terms weigh alike."""
    for suite in ("quick", "quick-chat"):
        parts = definition.load(suite).parts
        docs = {name: chosen(name, suite) for name in parts}
        sizes = {name: len(own) for name, own in docs.items()}
        assert sizes == {name: part.documents for name, part in parts.items()}
        for name, own in docs.items():
            plain = name.removesuffix("_gen") if "eurogest" not in name else name
            if suite == "quick-chat" and "stereoset" not in name and plain in QUICK:
                assert fingerprint(own) == fingerprint(chosen(plain)), name
            elif suite == "quick" and (golden := golden_of(name)):
                assert fingerprint(own) == golden, name
    assert sum(part.requests for part in parts.values()) == 2188
    for name, each in (("stereoset_en_gen", 2), ("stereoset_de_gen", 2)):
        cells = Counter((doc["term"], doc["test"]) for doc in docs[name])
        assert (len(cells), set(cells.values())) == (79 * 2, {each})
    stereotypes = Counter(doc["stereotype"] for doc in docs["eurogest_de_gen"])
    orders = Counter(tuple(doc["order"]) for doc in docs["eurogest_de_gen"])
    assert ({*stereotypes.values()}, {*orders.values()}) == ({12}, {32})


def fitted(config, name, language=None):
    """A suite that a run was fitted to, as ``prepare`` does it."""
    run = Planned(config, catalog.entries())
    suite = definition.chosen(run, name, language)
    preflight.check(preflight.MODEL_TYPE, run)
    return definition.fitted(suite, run)


def test_tasks_that_flags_or_models_do_not_fit_are_left_out_and_named():
    def config(model="bias-chance", apply_chat_template=None, **model_args):
        plain = dict.fromkeys(("limit", "samples", "system_instruction", "num_fewshot"))
        plain |= {"tasks": [], "metadata": {}, "model_args": model_args}
        return SimpleNamespace(
            model=model, apply_chat_template=apply_chat_template, **plain
        )

    templates = config(apply_chat_template=True)
    found = fitted(templates, "quick")
    # questions about plain sentences pass it over
    parts = definition.load("quick").parts
    assert (found.left_out, templates.tasks) == ({}, list(parts))
    chat = config("local-chat-completions", base_url="x")
    with pytest.raises(BiasError, match="run --suite quick-chat"):
        fitted(chat, "quick")
    assert fitted(chat, "quick-chat").left_out == {}
    assert chat.metadata == {"repeats": 1}


LEAST = {
    24: "gg_bbq_group_terms,es_bbq_age",
    64: "mbbq_tr_age_gen",
    48: "kobbq_gender_identity",
    158: "stereoset_en,stereoset_en_gen",
}


@pytest.mark.parametrize("least", LEAST)
def test_the_smallest_useful_limit_gives_intervals_and_balance(
    least, mirror, tmp_path, capsys, caplog
):
    arguments = ["run", "--tasks", LEAST[least], "--model", "bias-chance"]
    saved = ["--log_samples", "--output_path", str(tmp_path / "run")]
    assert main([*arguments, "--limit", str(least), *saved]) == 0
    assert "too small" not in caplog.text
    (run,) = leb.load(tmp_path / "run")
    assert set(run.tasks) == set(LEAST[least].split(","))
    for name, task in run.tasks.items():
        assert catalog.packaged()[name].smallest == least
        for score in leb.benchmarks()[task.benchmark].main:
            assert task.scores[score].interval, (name, score)
        docs = [
            json.loads(line)["doc"] for line in task.samples.read_text().splitlines()
        ]
        cells = Counter(
            (doc.get("context_type"), doc.get("control"), *doc.get("order", ()))
            for doc in docs
        )
        assert name.endswith("_gen") or len(set(cells.values())) == 1, name
        assert (
            len(
                set(
                    Counter(doc.get("term") or doc["template"] for doc in docs).values()
                )
            )
            == 1
        ), name
    if least == 48:
        for limit, warnings in (("47", 1), ("0.08", 1)):  # a share of 600 items is 48
            assert main([*arguments, "--limit", limit]) == 0
            assert caplog.text.count("too small") == warnings


def test_a_suite_in_some_languages(said, tmp_path):
    german = ("gg_bbq_group_terms", "gg_bbq_names", "stereoset_de", "eurogest_de")
    plain = SimpleNamespace(
        model="bias-chance", tasks=[], metadata={}, model_args={},
        **dict.fromkeys(("limit", "samples", "system_instruction", "num_fewshot", "apply_chat_template")),
    )  # fmt: skip
    chosen = fitted(plain, "quick", "de")
    assert tuple(plain.tasks) == german
    assert "Only the tasks in: de." in definition.describe(chosen)
    with pytest.raises(BiasError, match="no task in 'xx', only in ca, de, en"):
        fitted(plain, "quick", "de,xx")
