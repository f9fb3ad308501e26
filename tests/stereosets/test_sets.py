"""A set's file: what is written is read again, other forms of it, and what is refused."""

import json

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset import own_sets, stereoset_items
from tests.support.example_items import DUTCH, ENGLISH


def test_what_is_written_is_read_again(tmp_path):
    path, texts = tmp_path / "set.json", {"context": '\u2028 \x00 \U0001f600 "', "target": "", "term": " "}
    written = own_sets.DataSet("pt-BR", [*DUTCH, DUTCH[2] | texts], {"by": None, "ü": [1.5, {"a": True}]})
    own_sets.write(path, written)
    assert own_sets.read(path) == own_sets.read(path, "pt-BR") == written
    with pytest.raises(BiasError, match="is in language 'pt-BR', not 'de'"):
        own_sets.read(path, "de")


def dev(every):
    """StereoSet's own layout, with the fields of its file that nothing here needs."""
    data = {"intersentence": [], "intrasentence": []}
    for one in every:
        own = {key: one[key] for key in ("id", "target", "bias_type", "context")} | {"sentences": []}
        for c in one["candidates"]:
            more = {"gold_label": c["label"], "labels": [{"label": c["label"], "human_id": "1"}]}
            own["sentences"].append({"id": c["id"], "sentence": c["sentence"], **more})
        data["intersentence" if one["test"] == "inter" else "intrasentence"].append(own)
    return {"version": "1.0", "data": data}


def test_stereosets_own_file(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(dev(ENGLISH)))
    assert own_sets.read(path, "en") == own_sets.DataSet("en", ENGLISH, {})
    with pytest.raises(BiasError, match="doesn't state its language: name it with --language"):
        own_sets.read(path)


def test_the_words_of_stereosets_own_file(mirror):
    wrong = 0
    for one in stereoset_items.read("en", "intra"):
        for candidate in one["candidates"]:
            found = own_sets.word_of(one["context"], candidate["sentence"])
            wrong += found.casefold() != candidate["word"].casefold()
    assert wrong == 12  # of 6,318: four contexts whose blank touches letters or has them behind its full stop


def without(key, value=None):
    """The Dutch set's layout with something else, or nothing, at a place of its second item within sentences."""
    content = {**dev(DUTCH), "language": "nl"}
    place = content["data"]["intrasentence"][1]
    *steps, last = key.split("/")
    for step in steps:
        place = place[int(step)] if step.isdigit() else place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe{}", "not UTF-8"),
        ("[1, 2", "not valid JSON"),
        ('{"a": NaN}', "not JSON compliant"),
        ('{"a": "\\ud800"}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not in StereoSet's form"),
        ('{"data": {"intersentence": {}}, "language": "nl"}', "not a list of items"),
        ('{"data": {"intersentence": []}, "language": "nl"}', "holds no items"),
        ('{"data": {"intersentence": []}, "language": "../x"}', "not a language code"),
        ('{"data": {"intersentence": []}, "provenance": 3}', "'provenance' is not an object"),
        ('{"data": {"intersentence": [7]}, "language": "nl"}', "intersentence item 1: no object"),
        (without("context"), "intrasentence item 2 (a2): no 'context'"),
        (without("context", 5), "'context' is not a text"),
        (without("id", " "), "an empty id"),
        (without("bias_type", "age"), "unknown bias_type 'age'"),
        (without("sentences", [1, 2, 3]), "not a list of candidates"),
        (without("sentences", []), "0 candidates: 3 are needed"),
        (without("sentences/1/sentence"), "candidate 2: no 'sentence'"),
        (without("sentences/1/word", 3), "'word' is not a text"),
        (without("sentences/2/gold_label", "related"), "unknown gold_label 'related'"),
    ],
)
def test_broken_files(tmp_path, content, said):
    path = tmp_path / "set.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BiasError) as caught:
        own_sets.read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_none(tmp_path):
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(BiasError, match="cannot be read"):
            own_sets.read(path)
    (tmp_path / "no folder").write_text("")
    with pytest.raises(BiasError, match="cannot be written"):
        own_sets.write(tmp_path / "no folder" / "set.json", own_sets.DataSet("nl", DUTCH, {}))
