"""A user's prompts and keywords: what is read, what is refused with line and column, what is only said."""

import contextlib
import csv
import io
import json

import pytest
from hypothesis import strategies as st

from lm_eval_bias import registry
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import sample_logs
from lm_eval_bias.tasks.own_prompts import hooks, keyword_file, prompt_file
from tests.fuzz.kit import damaged, fuzz, mutated, refused, taken

GOOD = "prompt,group,cluster\nThe woman worked as,women,w\nThe man worked as,men,w\n"


def run(folder, file="own.csv", **metadata):
    """Refused in one line, before a model is looked for: there is none of this name."""
    options = json.dumps({"prompts": str(folder / file), "language": "en", **metadata})
    return refused(
        folder, "run", "--tasks", "own_prompts", "--model", "hf", "--model_args", "pretrained=nobody/nothing",
        "--metadata", options,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def no_model(monkeypatch):
    def build(*arguments):
        raise AssertionError("a model is loaded")

    monkeypatch.setattr("lm_eval_bias.harness.running.build_model", build)


BAD = {
    "group,cluster\nwomen,w\n": "line 1: no column prompt; it has ['group', 'cluster']",
    "prompt;group;cluster\na;b;c\n": "separate columns with commas",
    "prompt,group,cluster,Group\na,b,c,d\n": "line 1: two columns are called 'group'",
    "": "line 1: no column prompt and no column group and no column cluster",
    "prompt,group,cluster\n": "line 1: no prompts below the header",
    f"{GOOD} ,women,v\n": "line 4, column prompt: empty",
    f"{GOOD}The woman was,,v\n": "line 4, column group: empty",
    f"{GOOD}The woman was,women,\n": "line 4, column cluster: empty",
    f"{GOOD}The woman was,women\n": "line 4, column cluster: empty",
    f"{GOOD}The woman, she was,women,v\n": "line 4: more fields than columns: quote prompts with a comma",
    f"{GOOD}The man worked as,men,v\n": "line 4, column prompt: the same as in line 3: 'The man worked as'",
    f"{GOOD}The man  was,men,v\n": "line 4, column prompt: a line break, a tab or two spaces in a row",
    f'{GOOD}"The man\nwas",men,v\n': "line 5, column prompt: a line break",
    f"{GOOD}The man was,men,v\n": "line 4, column cluster: 'v' has prompts of 'men' only",
    f"{GOOD}The man was,Men,w\n": "line 4, column group: 'Men' is 'men' above: use one spelling",
    f"{GOOD}The man worked\u00a0as,men,v\n": "line 4, column prompt: ",
    f"{GOOD}The man was,men,W\n": "line 4, column cluster: 'W' is 'w' above: use one spelling",
    f'{GOOD}The man was,"a,b",w\n': "line 4, column group: 'a,b': names are up to 60 characters, without commas",
    f"{GOOD}The man was,{'x' * 61},w\n": "names are up to 60 characters",
    f"{GOOD}The man was,p_holm,w\n": "line 4, column group: 'p_holm' is the name of a score",
    "prompt,group,cluster\nA,women,w\nB,women,w\n": "line 2, column group: all are 'women': nothing to compare with",
    f'{GOOD}"The man was,men,w\n': "line 4: not valid CSV (unexpected end of data)",
    "prompt,group,cluster\n" + "".join(f"P {n},g{n},w\n" for n in range(21)): "line 22, column group: more than 20",
}


@pytest.mark.parametrize("content", BAD)
def test_a_bad_file_is_one_line_with_its_place(content, tmp_path):
    (tmp_path / "own.csv").write_text(content)
    line = run(tmp_path)
    assert f"prompts file {tmp_path / 'own.csv'}" in line
    assert BAD[content] in line


def test_bytes_that_are_no_text_and_files_that_are_none(tmp_path, monkeypatch):
    path = tmp_path / "own.csv"
    path.write_bytes(GOOD.encode() + b"x" * (1 << 16) + b"\n\0,women,v\n")
    assert "line 5: holds a NUL byte: damaged" in run(tmp_path)
    path.write_bytes(GOOD.encode() + b"\xff,women,v\n")
    assert f"byte {len(GOOD)} is not UTF-8: save it as UTF-8" in run(tmp_path)
    assert "No such file" in run(tmp_path, "gone.csv")
    assert "not a file but a folder" in run(tmp_path, ".")
    monkeypatch.setattr(prompt_file, "LARGEST", 10)
    path.write_text(GOOD)
    assert "larger than" in run(tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"language": "english"}, "--metadata language='english': must be a code"),
        ({"language": None}, "name the language of the prompts"),
        ({"prompts": 3}, "--metadata prompts=3: must be the path of a CSV file"),
        ({"prompts": None}, "own_prompts: name a file of prompts"),
        ({"reference": "woman"}, "--metadata reference='woman': no such group. Did you mean women? There are women"),
        ({"classifier": "lihgt"}, "Did you mean light"),
        ({"classifier": "light", "language": "fr"}, "trained on texts in de and en, not in 'fr'"),
        ({"keywords": "gone.yaml"}, "keywords file gone.yaml cannot be read"),
        ({"repeats": 0}, "--metadata repeats=0: must be a whole number of 1 or more"),
        ({"promts": "x"}, "--metadata key 'promts' is unknown to these tasks. Did you mean prompts"),
    ],
)
def test_options_are_refused_before_a_model_is_loaded(options, says, tmp_path):
    (tmp_path / "own.csv").write_text(GOOD)
    assert says in run(tmp_path, **options)


def test_without_a_file_the_task_says_what_it_needs(tmp_path):
    assert "name a file of prompts: --metadata '{" in refused(
        tmp_path, "run", "--tasks", "own_prompts", "--model", "bias-chance"
    )


def test_a_language_is_no_option_of_tasks_beside_it(tmp_path):
    (tmp_path / "own.csv").write_text(GOOD)
    options = json.dumps({"prompts": str(tmp_path / "own.csv"), "language": "en"})
    line = refused(
        tmp_path, "run", "--tasks", "own_prompts,regard_de", "--model", "bias-chance", "--metadata", options
    )  # fmt: skip
    assert "--metadata language: regard_de has its own 'language'" in line


def test_what_is_read_and_what_is_only_said(tmp_path, caplog):
    path = tmp_path / "own.csv"
    rows = [
        ("Die Frau, sie", "Frauen", "a", "x"), ("Der Mann, er", "Männer", "a", ""), ("Die Leute", "alle", "a", ""),
        ("Die Frau arbeitete als", "Frauen", "b", ""), ("Der Mann arbeitete als", "Männer", "b", ""),
        ("Ein Mann arbeitete als", "Männer", "b", ""),
    ]  # fmt: skip
    out = io.StringIO(newline="")
    csv.writer(out).writerows([(" Prompt", "GROUP", "cluster", "note"), *rows])
    path.write_bytes(b"\xef\xbb\xbf" + out.getvalue().encode())  # as spreadsheets write it
    docs = hooks.documents(prompts=str(path), language="fr", reference="Männer")
    assert [(doc["prompt"], doc["group"], doc["cluster"]) for doc in docs] == [row[:3] for row in rows]
    comparison = docs[0]["comparison"]
    assert (comparison["groups"], comparison["reference"]) == (["Frauen", "Männer", "alle"], "Männer")
    assert comparison["remarks"] == [
        "1 of 2 clusters lack a group ('b')",
        "1 of 2 clusters have more prompts of one group than of another ('b')",
        "prompts of 1 of 2 clusters share less than half of their words ('a'): more than the group may make the "
        "difference",
        "no keywords: there are none for 'fr', name a file with --metadata keywords",
    ]
    assert all(remark in caplog.text for remark in comparison["remarks"])
    assert "no regard: classifiers are for de and en" in caplog.text
    assert hooks._documents({"prompts": str(path), "language": "de"})[0]["comparison"]["reference"] == "Frauen"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@fuzz(60, rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=6))
def test_rows_that_are_taken_are_as_they_were_written(tmp_path, rows):
    def written(listed):
        out = io.StringIO(newline="")
        csv.writer(out).writerows([prompt_file.COLUMNS, *listed])
        (tmp_path / "own.csv").write_bytes(out.getvalue().encode())
        return str(tmp_path / "own.csv")

    first = taken(prompt_file.read, written(rows))
    if first is not None:
        again = prompt_file.read(written([(p.text, p.group, p.cluster) for p in first]))
        assert [(p.text, p.group, p.cluster) for p in again] == [(p.text, p.group, p.cluster) for p in first]


@fuzz(60, content=damaged(GOOD.encode()))
def test_damaged_prompts(tmp_path, content):
    (tmp_path / "own.csv").write_bytes(content)
    taken(prompt_file.read, str(tmp_path / "own.csv"))


# ------------------------------------------------------------------------------------------------------------ keywords

KEYWORDS = {"facets": {"work": ["boss", {"keyword": "earn", "match": ["earn", "pay"], "except": ["learn"]}]}}


def written(folder, content):
    (folder / "words.yaml").write_text(json.dumps(content))  # which is YAML
    return str(folder / "words.yaml")


def test_keywords_of_a_file_are_found_by_its_rules(tmp_path):
    entries = keyword_file.read(written(tmp_path, KEYWORDS))
    for text, facets in (
        ("She was the Boss.", ["work"]),
        ("She wore an embossed coat.", []),  # a plain word is a whole word
        ("She earned much.", ["work"]),
        ("She learned much.", []),
    ):
        assert keyword_file.facets(text, entries) == facets
    assert keyword_file.facets("She was a nurse.", "en") == ["caregiving"]
    assert keyword_file.facets("She was a nurse.", "") == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "must map facets to lists of words under 'facets'"),
        ({"facets": {"work": []}}, "facet 'work': must be a name with a list of words"),
        ({"facets": {"work": [3]}}, "facet 'work', entry 1: must be a word"),
        ({"facets": {"work": [{"match": []}]}}, "entry 1, match: must be a list of texts"),
        ({"facets": {"work": [{"match": ["a"], "exept": ["b"]}]}}, "unknown field 'exept'. Did you mean except"),
        ({"facets": {"work": [{"match": ["a"], "whole": "yes"}]}}, "entry 1, whole: must be true or false"),
        ({"facets": {"work": [{"match": ["Boss"]}]}}, "texts are searched in lower case"),
        ({"facets": {"positive": ["good"]}}, "facet 'positive' is the name of another score"),
        ({"facets": {"a/b": ["good"]}}, "without commas and slashes"),
    ],
)
def test_bad_keywords_are_one_line_with_their_place(content, says, tmp_path):
    (tmp_path / "own.csv").write_text(GOOD)
    line = run(tmp_path, keywords=written(tmp_path, content))
    assert f"keywords file {tmp_path / 'words.yaml'}" in line
    assert says in line


@fuzz(60, content=mutated(KEYWORDS))
def test_changed_keywords(tmp_path, content):
    (tmp_path / "words.yaml").write_text(json.dumps(content))
    entries = taken(keyword_file.read, str(tmp_path / "words.yaml"))
    if entries is not None:
        keyword_file.facets("The boss earned pay.", entries)


# ---------------------------------------------------------------------------------------------------------- saved texts

SAVED = {
    "benchmark": "own_prompts", "language": "en", "prompt": "The woman was", "group": "women", "cluster": "w",
    "comparison": {"groups": ["women", "men"], "reference": "women", "facets": ["work"], "clusters": 1, "remarks": []},
    "keywords": {"work": [{"keyword": "boss", "match": ["boss"], "whole": True}]}, "has_other": False,
    "classifier": {"name": "light", "detail": "", "labels": ["negative"], "warning": ""}, "unlabelled": "",
}  # fmt: skip
ANSWERS = [[["The woman was the boss.", "positive", "1.0"], ["The woman was", "dropped: nothing after the prompt"]]]


@fuzz(80, doc=mutated(SAVED), answers=mutated(ANSWERS))
def test_changed_logs_are_scored_or_are_damage_that_rescore_names(tmp_path, doc, answers):
    benchmark = registry.get("own_prompts")
    with contextlib.suppress(*sample_logs.DAMAGE):
        other = {**SAVED, "group": "men", "prompt": "The man was"}
        records = [benchmark.record(doc, answers), benchmark.record(other, ANSWERS)]
        for score in benchmark.scores(records, detailed=True):
            score.compute(records)
        benchmark.provenance([doc])


def test_a_text_without_label_says_how_to_get_one():
    with pytest.raises(BiasError, match="label the texts with --classifier"):
        hooks.record(SAVED, [[["The woman was the boss.", ""]]])
    with pytest.raises(BiasError, match="regard 'good': must be one of negative, neutral, positive"):
        hooks.record(SAVED, [[["The woman was the boss.", "good"]]])
    own = hooks.record(SAVED, ANSWERS)
    assert own["texts"] == [("positive", ["work"], 2)]
    assert (own["drawn"], own["unfinished"], own["wordings"]) == (2, 0, ["The woman was the boss."])
