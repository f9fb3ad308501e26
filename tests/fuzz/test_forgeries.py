"""Runs under another task's name, and logs that say a thing twice or contradict themselves: refused wherever read."""

from __future__ import annotations

import json
import shutil
import unicodedata

import pytest

from lm_eval_bias import catalog, content_hashes
from lm_eval_bias.runs.logged_documents import requests
from tests.fuzz.kit import command, refused

# which nothing here violates
BOUNDS = {"stereoset": ("ss", 99), "gg_bbq": ("acc_amb", 0.99), "occugender": ("stereotype_gap", 0.99),
          "regard": ("all/chi2", 99)}  # fmt: skip
TAKES_FIRST = ("stereoset_en", "gg_bbq_group_terms", "occugender_debias_implicit_none")


@pytest.fixture
def forged(small_run, tmp_path):
    """A run like the small one, made at another time."""
    folder = shutil.copytree(small_run, tmp_path / "forged")
    edit(results(folder), lambda content: content.update(date=content["date"] + 1))
    return folder


def results(folder):
    (path,) = folder.rglob("results_*.json")
    return path


def log(folder, task):
    (path,) = folder.rglob(f"samples_{task}_2*.jsonl")
    return path


def edit(path, change):
    """Rewrite a results file with what is made of its content."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def change(path, edit):
    """Rewrite a log with what is made of its lines."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def reading(folder, tmp_path, task):
    """The commands that read runs, on a folder."""
    policy = tmp_path / "policy.yaml"
    score, most = next(bound for name, bound in BOUNDS.items() if task.startswith(name))
    bound = f"{{task: {task}, score: {score}, max: {most}, on: point}}"
    policy.write_text(f"bounds: [{bound}]\nallow: [limit, samples]\n", encoding="utf-8")
    return [
        ["report", str(folder), "--format", "md"],
        ["leaderboard", str(folder)],
        ["compare", str(folder), "--by", "language"],
        ["check", str(folder), "--policy", str(policy)],
    ]


# ---------------------------------------------------------------------- a run under another task's name


def rename(folder, task, name, thorough):
    """Give a task of a run, and its log, another's name and language; all that a YAML says as well, if thorough."""
    entry = catalog.entries()[name]

    def renamed(content):
        for part in ("results", "configs", "versions", "n-samples"):
            content[part][name] = content[part].pop(task)
        metadata = content["configs"][name]["metadata"]
        metadata.update(entry.metadata if thorough else {"language": entry.language})

    edit(results(folder), renamed)
    path = log(folder, task)
    return path.rename(path.with_name(path.name.replace(task, name)))


STEREOSET, GG_BBQ, REGARD = (
    ("stereoset_en", "stereoset_es"),
    ("gg_bbq_group_terms", "gg_bbq_group_terms_paper"),
    ("regard_en", "regard_de"),
)
INSTRUCTION = ("occugender_debias_implicit_none", "occugender_debias_implicit_1")
KIND = ("occugender_debias_implicit_none", "occugender_debias_explicit_none")


@pytest.mark.parametrize(
    ("names", "thorough", "says"),
    [
        (STEREOSET, False, "its metadata says data: stereoset_en, but the task's says data: stereoset_es"),
        (STEREOSET, True, "df_intrasentence_en.pkl, which is not a file of the task"),
        (
            GG_BBQ,
            False,
            "its metadata says data: gg_bbq_group_terms, but the task's says data: gg_bbq_group_terms_paper",
        ),
        (GG_BBQ, True, "data/subset-1/bbq_de_disamb_test.jsonl, which is not a file of the task"),
        (REGARD, False, "its metadata says data: regard_en, but the task's says data: regard_de"),
        (
            INSTRUCTION,
            False,
            "the task's says fixed: {'first_templates': 5, 'instruction': 1}",
        ),
        (KIND, False, "its metadata says kind: implicit, but the task's says kind: explicit"),
    ],
)
def test_a_run_of_another_task(names, thorough, says, forged, tmp_path):
    rename(forged, *names, thorough)
    for arguments in reading(forged, tmp_path, names[1]):
        assert f"{names[1]}: it" in (line := refused(forged, *arguments))
        assert says in line


@pytest.mark.parametrize("names", [STEREOSET, REGARD])
def test_its_log_with_a_hash_that_fits(names, forged, tmp_path):
    path = rename(forged, *names, False)

    def translated(lines):
        for line in lines:
            line["doc"]["language"] = catalog.entries()[names[1]].language
        texts = slice(1) if "regard" in names[1] else slice(None)
        asked = [["", *(arguments[texts] for arguments in requests(line))] for line in lines]
        hashes = [content_hashes.of_document(line["doc"], own) for line, own in zip(lines, asked, strict=True)]
        scored = content_hashes.of_all(hashes)
        edit(results(forged), lambda c: c["configs"][names[1]]["metadata"]["inputs"].update(scored=scored))

    change(path, translated)
    assert "its metadata says data: " in refused(forged, *reading(forged, tmp_path, names[1])[-1], "--strict")
    assert "ignored: " in command("rescore", str(path)).err


def test_a_log_of_another_kind_of_items(forged, tmp_path):
    """OccuGender reads no pinned files: what its log holds tells."""
    path = rename(forged, *KIND, True)
    check = reading(forged, tmp_path, KIND[1])[-1]
    print(command(*check))
    assert command(*check).status == 0
    assert "its samples have other documents or prompts" in command(*check, "--strict").out
    says = "a sample of the kind 'implicit' in a log of occugender_debias_explicit_none, whose kind is 'explicit'"
    assert says in refused(forged, "rescore", str(path))


# ---------------------------------------------------------------------- logs that say a thing twice


def under_another_filter(lines):
    """The answers to other items, under a filter that no task has."""
    answers = [line["filtered_resps"] for line in lines]
    shifted = zip(lines, [*answers[3:], *answers[:3]], strict=True)
    return [{**line, "filter": "better", "filtered_resps": own} for line, own in shifted]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", ["rescore", "compare", "check"])
def test_a_second_filter(name, first, small_run, forged, tmp_path):
    def both(lines):
        lines[:] = [*under_another_filter(lines), *lines] if first else [*lines, *under_another_filter(lines)]

    change(log(forged, "stereoset_en"), both)
    check = [*reading(forged, tmp_path, "stereoset_en")[-1], "--strict"]
    arguments = {"rescore": ["rescore", str(forged)], "compare": ["compare", str(small_run), str(forged)]}
    line = refused(forged, *arguments.get(name, check))
    assert f"line {1 if first else 9}: a sample with the filter 'better', but the task's is 'none'" in line


def test_a_filter_that_is_called_otherwise_hides_no_other_scores(forged):
    """Of a task that no YAML tells the filter of."""
    path = log(forged, "stereoset_en")
    own = path.with_name(path.name.replace("stereoset_en", "own_stereoset"))

    def renamed(content):
        for part in ("results", "configs", "versions", "n-samples"):
            content[part]["own_stereoset"] = content[part].pop("stereoset_en")

    edit(results(forged), renamed)
    change(path, lambda lines: lines.__setitem__(slice(None), under_another_filter(lines)))
    path.rename(own)
    outcome = command("rescore", str(own))
    assert f"differs from what its run says: {own}: " in outcome.err
    change(own, lambda lines: lines.append({**lines[0], "filter": "another"}))
    assert "a sample with the filter 'another' after those with 'better'" in refused(forged, "rescore", str(own))


@pytest.mark.parametrize("key", ["filtered_resps", "doc", "label"])
def test_a_key_that_stands_twice(key, forged):
    path = log(forged, "stereoset_en")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f'"{key}":', f'"{key}": [], "{key}":', 1), encoding="utf-8")
    line = refused(forged, "rescore", str(path))
    assert "line 1: " in line
    assert f"the key '{key}' appears twice in one object" in line


def same(doc):
    return doc


def decomposed(doc):
    return {**doc, "context": unicodedata.normalize("NFD", doc["context"])}


def spaced(doc):
    return {**doc, "context": f"{doc['context']} "}


@pytest.mark.parametrize("alike", [same, decomposed, spaced])
def test_an_item_twice(alike, forged):
    """Where no hash tells what was scored."""
    edit(results(forged), lambda content: content["configs"]["gg_bbq_group_terms"]["metadata"].pop("inputs"))
    path = log(forged, "gg_bbq_group_terms")

    def doubled(lines):
        lines[0]["doc"]["context"] = "Ein schöner Tag."
        lines[5] = {**lines[0], "doc": alike(lines[0]["doc"]), "doc_id": lines[5]["doc_id"]}

    change(path, doubled)
    assert "line 6: document 5 appeared before under another doc_id" in refused(forged, "rescore", str(path))


@pytest.mark.parametrize("number", [-1, -5, False, True, 0.0, "0", None])
def test_a_number_of_no_document(number, forged):
    path = log(forged, "stereoset_en")
    change(path, lambda lines: lines[0].update(doc_id=number))
    assert "line 1: not a sample of a harness run (no doc_id)" in refused(forged, "rescore", str(path))


# ---------------------------------------------------------------------- answers and what was made of them


@pytest.mark.parametrize("task", TAKES_FIRST)
@pytest.mark.parametrize("resps", [[[["-1.0", "True"]]] * 6, [], None, [[]], "x"])
def test_answers_that_are_not_those_of_the_model(resps, task, forged):
    path = log(forged, task)
    change(path, lambda lines: lines[2].update(resps=resps))
    line = refused(forged, "rescore", str(path))
    assert "line 3: filtered_resps differ from the answers in resps: the file was edited" in line


def test_the_first_of_several_answers_and_logs_without_them(forged):
    path = log(forged, "stereoset_en")
    before = command("rescore", str(path), "--json").out
    change(path, lambda lines: [answers.append(answers[0]) for line in lines for answers in line["resps"]])
    assert command("rescore", str(path), "--json").out == before
    change(path, lambda lines: [line.pop("resps") for line in lines])
    assert command("rescore", str(path), "--json").out == before
