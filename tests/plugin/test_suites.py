"""Suites: which tasks, which items (balanced, fixed), how many requests, and what is refused."""

import functools
import json
from collections import Counter
from types import SimpleNamespace

import pytest

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, files
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.question_answering import compute
from lm_eval_bias.evaluation import suites as definition
from lm_eval_bias.tasks.es_bbq import hooks as es_bbq
from lm_eval_bias.tasks.gg_bbq import hooks as gg_bbq
from lm_eval_bias.tasks.gg_bbq.benchmark import BENCHMARK as GG_BBQ
from lm_eval_bias.tasks.kinds import quadruples
from lm_eval_bias.tasks.kinds.quadruples import ORDERS
from lm_eval_bias.tasks.kobbq import benchmark as kobbq_categories
from lm_eval_bias.tasks.kobbq import hooks as kobbq
from lm_eval_bias.tasks.mbbq import hooks as mbbq
from lm_eval_bias.tasks.occugender import hooks as occugender
from lm_eval_bias.tasks.stereoset import hooks as stereoset
from lm_eval_bias.tasks.stereoset import stereoset_items

# The items of quick, version 4 (3 was without MBBQ).
# A change here is a change of what every quick run was measured on: a new version.
GOLDEN = {
    "occugender_explicit": "b36c5e87b9e50128",
    "occugender_implicit": "1e3322b8487dd4d5",
    "gg_bbq_group_terms": "b4e4c0388583e018",
    "gg_bbq_names": "b4227c4144fd56f8",
    "stereoset_*": "ade1f320e9efd28f",
}


@functools.cache  # of the released data alone: the tests that use it have the mirror
def documents(task):
    if task.startswith("occugender"):
        return occugender.documents(task.removeprefix("occugender_"))
    if task.startswith("gg_bbq"):
        return gg_bbq.dataset(task.removeprefix("gg_bbq_"))["test"]
    if task.startswith(("es_bbq", "ca_bbq")):
        return es_bbq.dataset(task[:2], task[7:])["test"]
    if task.startswith("kobbq"):
        return kobbq.dataset(task.removeprefix("kobbq_"))["test"]
    if task.startswith("mbbq"):
        return mbbq.dataset(*task.removeprefix("mbbq_").split("_", 1))["test"]
    return stereoset.documents({"language": task.removeprefix("stereoset_"), "tests": ["inter", "intra"]})


def chosen(task):
    docs = documents(task)
    return [docs[i] for i in definition.load("quick").choose(task, docs)]


def test_each_suite_holds_the_one_before():
    tasks = {n: e for n, e in catalog.entries().items() if e.kind == "task"}
    for name in definition.NAMES:
        for task, part in definition.load(name).parts.items():
            assert (part.documents == tasks[task].items) == (part.sampling is None), task
    quick, chat, english, standard, full = (set(definition.load(name).parts) for name in definition.NAMES)
    assert quick < standard < full
    assert english == {task for task in standard if catalog.entries()[task].language == "en"}
    assert "mbbq_en_gender_identity" in english  # question answering
    assert not chat & standard  # and of what full leaves out, one category of KoBBQ
    assert chat - full == {"kobbq_gender_identity_gen"}


def test_full_leaves_out_nothing_but_parts_of_tasks_that_it_has():
    tasks = {n for n, e in catalog.entries().items() if e.kind == "task" and e.path}  # those of the harness it has not
    languages = stereoset_items.LANGUAGES
    halves = {f"stereoset_{language}_{test}" for language in languages for test in stereoset_items.TESTS}
    categories = {f"kobbq_{category}{form}" for category in kobbq_categories.SAMPLES for form in ("", "_gen")}
    assert tasks - set(definition.load("full").parts) == {*halves, *categories, "own_prompts"} - {
        "kobbq_gender_identity"
    }


def test_quick_takes_the_items_that_it_says_of_occupations_every_one(mirror):
    for task, part in definition.load("quick").parts.items():
        assert len(chosen(task)) == part.documents, task
    for kind in ("explicit", "implicit"):
        docs = chosen(f"occugender_{kind}")
        pairs = {(doc["item"], doc["template"]) for doc in docs}
        assert (len(pairs), len(docs)) == (320, 320)
        assert [len(set(names)) for names in zip(*pairs, strict=True)] == [40, 8]
        assert definition.fingerprint(docs) == GOLDEN[f"occugender_{kind}"]


@pytest.mark.parametrize("subset", ["group_terms", "names"])
def test_quick_takes_whole_quadruples_balanced_over_contexts_questions_and_templates(subset, mirror):
    docs = chosen(f"gg_bbq_{subset}")
    everything = documents(f"gg_bbq_{subset}")
    cells = Counter((doc["context_type"], doc["question_type"]) for doc in docs)
    assert len(cells) == 4
    assert len(set(cells.values())) == 1
    quadruples = Counter((doc["template"], doc["item"] // 2) for doc in docs)
    assert set(quadruples.values()) == {4}
    of_template = Counter(template for template, _ in quadruples)
    there = Counter(template for template, _ in {(doc["template"], doc["item"] // 2) for doc in everything})
    assert of_template == {template: min(6, count) for template, count in there.items()}
    assert len(of_template) == 21
    directions = Counter(
        (doc["template"], doc["label"] == doc["biased_choice"])
        for doc in docs
        if doc["context_type"] == "disambiguated" and doc["question_type"] == "negative"
    )
    both = {template for template, biased in directions if (template, not biased) in directions}
    assert all(directions[template, True] == directions[template, False] for template in both)
    assert len(both) == (19 if subset == "group_terms" else 0)
    assert definition.fingerprint(docs) == GOLDEN[f"gg_bbq_{subset}"]


@pytest.mark.parametrize("subset", ["group_terms", "names"])
def test_quick_gives_no_bias_to_a_model_that_takes_one_place(subset, mirror):
    docs = chosen(f"gg_bbq_{subset}")
    for place in range(3):
        records = [GG_BBQ.record(d, [(float(d["order"][place] == i), False) for i in range(3)]) for d in docs]
        for context in ("amb", "disamb"):
            assert compute(records, kind="diff_bias", context=context).value == pytest.approx(0, abs=1e-12)
    assert len(set(Counter(tuple(doc["order"]) for doc in docs).values())) == 1  # all six orders equally often
    biased = {d["item"]: d["label"] == d["biased_choice"] for d in docs if d["context_type"] == "disambiguated"}
    strata = {}
    for doc in docs[::4]:
        strata.setdefault((doc["template"], biased[doc["item"]]), []).append(doc["order"].index(2))
    for places in strata.values():
        counts = [places.count(place) for place in range(3)]
        assert max(counts) - min(counts) <= (1 if len(places) != 3 else 2)


@pytest.mark.parametrize("language", stereoset_items.LANGUAGES)
def test_quick_takes_as_many_items_of_every_term_and_test_and_the_same_in_every_language(language, mirror):
    docs = chosen(f"stereoset_{language}")
    cells = Counter((doc["term"], doc["test"]) for doc in docs)
    assert len(cells) == 79 * 2
    assert set(cells.values()) == {3}
    terms = {doc["term"]: doc["bias_type"] for doc in docs}
    types = Counter((doc["bias_type"], doc["test"]) for doc in docs)
    assert types == {(kind, test): 3 * n for kind, n in Counter(terms.values()).items() for test in ("intra", "inter")}
    assert definition.fingerprint(docs) == GOLDEN["stereoset_*"]


def test_quick_chat_takes_the_items_of_quick_and_pairs_of_stereosets(mirror):
    from lm_eval.tasks import TaskManager

    suite = definition.load("quick-chat")
    assert sum(part.requests for part in suite.parts.values()) == 1668
    tasks = TaskManager(include_path=str(files.tasks_path()), include_defaults=False).load(list(suite.parts))["tasks"]
    docs = {name: [task.eval_docs[i] for i in suite.choose(name, task.eval_docs)] for name, task in tasks.items()}
    assert {name: len(own) for name, own in docs.items()} == {n: part.documents for n, part in suite.parts.items()}
    (stereoset,) = (name for name in docs if name.startswith("stereoset"))
    for name in docs.keys() - {stereoset}:
        assert definition.fingerprint(docs[name]) == definition.fingerprint(chosen(name.removesuffix("_gen")))
    cells = Counter((doc["term"], doc["test"]) for doc in docs[stereoset])
    assert (len(cells), set(cells.values())) == (79 * 2, {2})
    for place in range(3):  # whoever always takes it prefers no side
        taken = Counter(doc["candidates"][doc["order"][place]]["label"] for doc in docs[stereoset])
        assert taken["stereotype"] == taken["anti-stereotype"]


def test_choice_does_not_depend_on_the_order_of_the_documents():
    docs = occugender.documents("implicit")
    suite = definition.load("quick")
    backwards = docs[::-1]
    one = {id(docs[i]) for i in suite.choose("occugender_implicit", docs)}
    assert one == {id(backwards[i]) for i in suite.choose("occugender_implicit", backwards)}


def quadruple(template, number, order, biased):
    return [
        {
            "template": template,
            "item": 2 * number + j,
            "context_type": context,
            "label": 0,
            "biased_choice": 0 if biased else 1,
            "order": list(order),
        }
        for j in (0, 1)
        for context in ("ambiguous", "disambiguated")
    ]


def places_of(docs, indices):
    return Counter(docs[i]["order"].index(2) for i in indices)


def test_orders_of_a_direction_make_up_for_one_another():
    orders = [order for pair in ORDERS for order in pair]
    # a small template shows "keine Antwort" at the first place alone: a larger one leaves that place to it
    docs = [doc for n in range(2) for doc in quadruple("small", n, orders[0], True)]
    docs += [doc for n in range(2, 14) for doc in quadruple("large", n, orders[n % 6], True)]
    picks = quadruples.chosen(docs, "s", 6)
    assert sorted(places_of(docs, picks).values()) == [8, 12, 12]  # 3, 3 and 2 quadruples
    assert Counter(docs[i]["template"] for i in picks) == {"small": 8, "large": 24}
    full = [doc for n, order in enumerate(orders * 2) for doc in quadruple("t", n, order, True)]
    six = quadruples.chosen(full, "s", 6)
    assert Counter(tuple(full[i]["order"]) for i in six) == {tuple(order): 4 for order in orders}
    few = [doc for n, order in enumerate(orders[:2]) for doc in quadruple("t", n, order, True)]
    assert len(quadruples.chosen(few, "s", 6)) == len(few)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--suite", "quik"], "Did you mean quick?"),
        (["--suite", "quick", "--tasks", "occugender"], "--tasks with --suite quick"),
        (["--suite", "quick", "--limit", "5"], "--limit with --suite quick"),
        (["--suite", "quick", "--samples", '{"occugender_explicit": [1]}'], "--samples with --suite quick"),
        (["--suite", "quick", "--config", "FILE"], "--limit with --suite quick"),
    ],
)
def test_what_would_change_the_items_is_refused(arguments, names, tmp_path, capsys):
    config = tmp_path / "run.yaml"
    config.write_text("limit: 5\nmodel: bias-chance\n")
    assert main(["run", "--model", "bias-chance", *(a.replace("FILE", str(config)) for a in arguments)]) == 2
    assert names in capsys.readouterr().err.strip().splitlines()[-1]


def test_ls_says_items_requests_and_the_smallest_useful_limit(capsys):
    assert main(["ls", "--suites"]) == 0
    assert "6,474" in capsys.readouterr().out
    assert main(["ls", "--suites", "--json"]) == 0
    assert [suite["name"] for suite in json.loads(capsys.readouterr().out)] == list(definition.NAMES)
    assert main(["ls", "occugender", "--json"]) == 0
    found = {one["name"]: one["smallest_limit"] for one in json.loads(capsys.readouterr().out)}
    assert (found["occugender"], found["occugender_explicit"]) == (None, 80)
    assert main(["ls", "occugender"]) == 0
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("occugender_explicit "))
    assert "80" in row


def test_tasks_that_flags_or_models_do_not_fit_are_left_out_and_named():
    def config(**changes):
        plain = dict.fromkeys(("limit", "samples", "apply_chat_template", "system_instruction", "num_fewshot"))
        return SimpleNamespace(
            **{**plain, "model": "bias-chance", "model_args": {}, "tasks": [], "metadata": {}} | changes
        )

    templates = config(apply_chat_template=True)
    found = definition.apply(templates, "quick", catalog.entries())
    assert set(found.left_out) == {f"stereoset_{language}" for language in stereoset_items.LANGUAGES}
    assert templates.tasks == [task for task in definition.load("quick").parts if not task.startswith("stereoset")]
    chat = config(model="local-chat-completions", model_args={"model": "x"})
    with pytest.raises(BiasError, match="run --suite quick-chat"):
        definition.apply(chat, "quick", catalog.entries())
    assert definition.apply(chat, "quick-chat", catalog.entries()).left_out == {}
    assert chat.metadata == {"repeats": 1}


def test_requests_of_the_released_data_are_as_many_as_the_suites_say(mirror):
    from lm_eval.tasks import TaskManager

    suites = [definition.load(name) for name in ("quick", "full")]
    # one task of each kind and length: the others differ in their data alone
    some = ["occugender_explicit", "occugender_debias_implicit_3", "gg_bbq_group_terms", "gg_bbq_group_terms_prompts"]
    some += ["gg_bbq_group_terms_gen", "stereoset_de", "stereoset_de_inter_variants"]
    manager = TaskManager(include_path=str(files.tasks_path()), include_defaults=False)
    tasks = manager.load(some)["tasks"]
    checked = 0
    for suite in suites:
        for name in set(some) & set(suite.parts):
            indices, part = suite.choose(name, tasks[name].eval_docs), suite.parts[name]
            tasks[name].build_all_requests(samples=indices)
            requests = len(tasks[name].instances) * tasks[name].config.repeats
            documents = len(tasks[name].eval_docs if indices is None else indices)
            assert (documents, requests) == (part.documents, part.requests), (suite.name, name)
            checked += 1
    assert checked == 10


LEAST = {
    24: "gg_bbq_group_terms,es_bbq_age",
    64: "mbbq_en_gender_identity,mbbq_tr_age_gen",
    48: "kobbq_gender_identity",
    79: "stereoset_fr_inter_variants",
    80: "occugender_implicit,occugender_debias_explicit_3",
    120: "gg_bbq_group_terms_prompts",
    158: "stereoset_en,stereoset_en_gen",
}


@pytest.mark.parametrize("least", LEAST)
def test_the_smallest_useful_limit_gives_intervals_and_balance(least, mirror, tmp_path, capsys, caplog):
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
        docs = [json.loads(line)["doc"] for line in task.samples.read_text().splitlines()]
        cells = Counter((doc.get("context_type"), doc.get("control"), *doc.get("order", ())) for doc in docs)
        assert name.endswith("_gen") or len(set(cells.values())) == 1, name
        assert len(set(Counter(doc.get("term") or doc["template"] for doc in docs).values())) == 1, name
    if least == 48:
        assert main([*arguments, "--limit", "47"]) == 0
        assert "--limit 47 is too small" in caplog.text
        assert main([*arguments, "--limit", "0.08"]) == 0  # of 600
        assert caplog.text.count("too small") == 1
