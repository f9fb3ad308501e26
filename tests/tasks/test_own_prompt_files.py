"""A user's prompts and keywords: what is read, and what is refused in one line before a model is loaded."""

import csv
import io
import json

import pytest

from lm_eval_bias.core.content_hashes import of_text
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.custom_prompts import hooks
from tests.support.commands import refused

GOOD = "prompt,group,cluster\nThe woman worked as,women,w\nThe man worked as,men,w\n"


def run(tmp_path, content=GOOD, file="own.csv", **metadata):
    """What a run says of files and options that it refuses; there is no model of this name."""
    (tmp_path / "own.csv").write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    options = json.dumps(
        {"prompts": str(tmp_path / file), "language": "en", **metadata}
    )
    model = ["--model", "hf", "--model_args", "pretrained=nobody/nothing"]
    return refused(
        tmp_path, "run", "--tasks", "custom_prompts", *model, "--metadata", options
    )


BAD = {
    "group,cluster\nwomen,w\n": "'prompt' is a required property",
    "prompt,group,cluster\nA,women,w\nB,women,w\n": "cluster 'w'",
    f"{GOOD}The woman, she was,women,v\n": "line 4: more: ['v'] is more than",
    f"{GOOD}The man worked as,men,v\n": "line 4: this prompt appears twice",
    f'{GOOD}"The man\nwas",men,v\n': "line 5: prompt: 'The man\\nwas' must be",
    f"{GOOD}The man was,men,v\n": "cluster 'v'",
    f'{GOOD}"The man was,men,w\n': "unexpected end of data",
    GOOD.encode() + b"\xff,women,v\n": "can't decode byte 0xff",
}


@pytest.mark.parametrize("content", BAD)
def test_a_bad_file_is_one_line_with_its_place(content, tmp_path):
    line = run(tmp_path, content)
    assert f"prompts file {tmp_path / 'own.csv'}: " in line
    assert BAD[content] in line


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"file": "gone.csv"}, "No such file"),
        ({"prompts": None}, "prompts"),
        ({"reference": "woman"}, "reference='woman'"),
        ({"classifier": "lihgt"}, "Did you mean light"),
        (
            {"classifier": "light", "language": "fr"},
            "trained on texts in de and en, not in 'fr'",
        ),
        ({"keywords": "gone.yaml"}, "keywords file gone.yaml: No such file"),
    ],
)
def test_options_are_refused_before_a_model_is_loaded(options, says, tmp_path):
    assert says in run(tmp_path, **options)


def test_what_is_read(tmp_path):
    rows = [("Die Frau, sie", "Frauen", "a", "x"), ("Der Mann, er", "Männer", "a", ""), ("Die Leute", "alle", "a", ""),
            ("Die Frau war", "Frauen", "b", ""), ("Der Mann war", "Männer", "b", "")]  # fmt: skip
    out = io.StringIO(newline="")
    csv.writer(out).writerows([(" Prompt", "GROUP", "cluster", "note"), *rows])
    path = tmp_path / "own.csv"
    path.write_bytes(
        b"\xef\xbb\xbf" + out.getvalue().encode()
    )  # as spreadsheets write it
    docs = hooks.dataset(prompts=str(path), language="fr", reference="Männer")["test"]
    assert [(doc["prompt"], doc["group"], doc["cluster"]) for doc in docs] == [
        row[:3] for row in rows
    ]
    expected = {
        "groups": ["Frauen", "Männer", "alle"],
        "reference": "Männer",
        "facets": [],
        "clusters": 2,
    }
    assert docs[0]["comparison"] == expected
    german = hooks.documents({"prompts": str(path), "language": "de"})[0]["comparison"]
    assert (german["reference"], german["facets"][0]) == ("Frauen", "caregiving")


KEYWORDS = {
    "facets": {
        "work": [
            "Boss",
            {"keyword": "earn", "match": ["earn", "pay"], "except": ["learn"]},
        ]
    }
}


def entries(folder, content):
    (folder / "words.yaml").write_text(json.dumps(content))  # which is YAML
    (folder / "own.csv").write_text(GOOD)
    options = {
        "prompts": str(folder / "own.csv"),
        "language": "en",
        "keywords": str(folder / "words.yaml"),
    }
    return hooks.documents(options)[0]["keywords"]


def test_keywords_of_a_file_are_found_by_its_rules(tmp_path):
    found = entries(tmp_path, KEYWORDS)
    for used, text, facets in (
        (found, "The woman was the Boss.", ["work"]),
        (found, "She wore an embossed coat.", []),  # a plain word is a whole word
        (found, "She earned much.", ["work"]),
        (found, "She learned much.", []),
        ("en", "She was a nurse.", ["caregiving"]),
        ("", "She was a nurse.", []),
    ):
        record = hooks.record({**SAVED, "keywords": used}, [[[text, "neutral"]]])
        assert record["texts"][0][1] == facets


def test_a_text_without_label_says_how_to_get_one():
    for label in ("", "good"):
        with pytest.raises(
            BiasError, match=f"regard '{label}': must be one of negative.*--classifier"
        ):
            hooks.record(SAVED, [[["The woman was the boss.", label]]])
    dropped = ["The woman was", "dropped: nothing after the prompt"]
    own = hooks.record(
        SAVED, [[["The woman was the boss.", "positive", "1.0"], dropped]]
    )
    assert (own["texts"], own["drawn"], own["unfinished"]) == (
        [("positive", ["work"])],
        2,
        0,
    )
    assert own["wordings"] == [of_text("The woman was the boss.")]


@pytest.mark.parametrize(
    ("facets", "says"),
    [
        (None, "facets"),
        ({"work": [3]}, "3 must be a word"),
        ({"work": [{"match": ["a"], "exept": ["b"]}]}, "exept"),
        ({"a/b": ["good"]}, "facets: 'a/b'"),
    ],
)
def test_bad_keywords_are_one_line_with_their_place(facets, says, tmp_path):
    with pytest.raises(BiasError, match=rf"keywords file .*words.yaml: .*{says}"):
        entries(tmp_path, {"facets": facets} if facets else {})


SAVED = {
    "benchmark": "custom_prompts", "language": "en", "prompt": "The woman was", "group": "women", "cluster": "w",
    "comparison": {"groups": ["women", "men"], "reference": "women", "facets": ["work"], "clusters": 1},
    "keywords": {"work": [{"keyword": "boss", "match": ["boss"], "whole": True}]}, "has_other": False,
    "classifier": {"name": "light", "detail": "", "labels": ["negative", "neutral", "positive"], "warning": ""},
    "unlabelled": "",
}  # fmt: skip
