"""Texts of users that contradict themselves: genders, languages and labels that can't be true."""

from __future__ import annotations

import codecs
import json

import pytest

from lm_eval_bias.tasks.regard import labelled_texts
from tests.fuzz.test_saved import LABELLED, PREDICTIONS
from tests.support.fuzzing import command, refused

WOMAN, MAN = "Die Frau galt als klug.", "Der Mann galt als klug."
GOOD = {"text": WOMAN, "gender": "f", "regard": 2}


def write(folder, name, content):
    path = folder / name
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    path.write_bytes(raw)
    return str(path)


def lines(*rows):
    return "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)


# ---- what a text tells itself ----

CONTRADICTIONS = {
    "a man called a woman": ([GOOD, {**GOOD, "text": MAN}], "line 2: gender female, but"),
    "a woman called a man": ([{**GOOD, "gender": "m"}], "line 1: gender male, but"),
    "in capitals": ([{**GOOD, "text": WOMAN.upper(), "gender": "m"}, GOOD], "line 1: gender male, but"),
    "in English": ([{"text": "“The woman was known.", "gender": "m", "regard": 1}], "line 1: gender male"),
    "two labels": ([GOOD, {**GOOD, "regard": 0}], "line 2: regard negative, but the same text is positive above", ""),
    "two labels by two people": ([{**GOOD, "annotator": n, "regard": n} for n in (1, 2)], "line 2: regard positive",
                                 "one label, the majority's"),
    "two languages": ([GOOD, GOOD, {**GOOD, "text": "The woman was known."}], "line 3: begins with a subject of "
                      "language 'en', not 'de'", ""),
    "nobody's language": ([GOOD, GOOD, {**GOOD, "text": "The person was known."}], "line 3: begins with", "'en'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_labelled_texts_that_contradict_themselves(name, tmp_path):
    rows, *parts = CONTRADICTIONS[name]
    path = write(tmp_path, "t.jsonl", lines(*rows))
    table = write(tmp_path, "t.csv", "text,gender,regard\n" + "".join(
        f"{row['text']},{row['gender']},{row['regard']}\n" for row in rows))  # fmt: skip
    for form in (("rescore", path),):
        said = refused(tmp_path, *form)
        assert all(part in said for part in (path, *parts)), said
    assert f"{table} line " in refused(tmp_path, "rescore", table)


def test_labelled_texts_that_only_seem_to_contradict_themselves(tmp_path):
    rows = [
        {**GOOD, "text": "Die Frau arbeitete als Mann für alles."},
        {"text": "Ein Mann schlief, die Frau las.", "gender": "f", "regard": 1},
        {"text": "Der Mannschaftsarzt, eine Frau, galt als klug.", "gender": "f", "regard": 1},
        *[{"text": MAN, "gender": "m", "regard": 1}] * 2,
    ]
    (saved,) = labelled_texts.read(tmp_path / write(tmp_path, "t.jsonl", lines(*rows)))
    assert len(saved.docs) == len(rows)
    english = [
        {"text": "The manager worked as a cook.", "gender": "f", "regard": 1},
        {"text": "The man's wife worked as a cook.", "gender": "f", "regard": 1},
        {"text": "The woman worked as a cook.", "gender": "f", "regard": 1},
    ]
    (saved,) = labelled_texts.read(tmp_path / write(tmp_path, "e.jsonl", lines(*english)), "en")
    assert saved.task == "regard_en"


@pytest.mark.parametrize(("language", "text"), [("de", "The woman was known."), ("en", WOMAN)])
def test_texts_in_another_language_than_the_one_named(language, text, tmp_path, tiny_mirror):
    labelled = write(tmp_path, "t.jsonl", lines({**GOOD, "text": text}))
    plain = write(tmp_path, "t.txt", f"{text}\n")
    for form in ("rescore", labelled), ("regard", "classify", plain):
        assert f"not '{language}'" in refused(tmp_path, *form, "--language", language)


def test_texts_in_two_languages_are_not_classified_as_one(tmp_path, tiny_mirror):
    path = write(tmp_path, "t.txt", f"{WOMAN}\n{MAN}\nThe man was known.\n")
    assert "text 3: begins with a subject of language 'en'" in refused(tmp_path, "regard", "classify", path)


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_predictions_for_another_language_by_their_name(ending, tmp_path, tiny_mirror):
    path = write(tmp_path, f"gpt2_d_de{ending}", json.dumps(PREDICTIONS))
    said = refused(tmp_path, "rescore", path, "--language", "en")
    assert f"{path}: predictions for 'de' by its name, not 'en'" in said


def test_an_unknown_language(tmp_path, small_run):
    labelled = write(tmp_path, "t.jsonl", lines(*LABELLED))
    for place in (labelled, str(small_run)):
        assert "--language xx: unknown. Known: ca, de, en" in refused(tmp_path, "rescore", place, "--language", "xx")


# ---- bytes and characters that no text has ----


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("t.csv", f'text,gender,regard\n"{WOMAN},f,1\n{MAN},m,1\n', "truncated or damaged CSV"),
        ("t.csv", f"text,gender,regard\n{WOMAN},f,1\nDie M\u00fcllerin,f,1\n".encode("latin-1"), "is not UTF-8"),
        ("t.jsonl", lines(GOOD, '{"text": "Die Frau \\ud800", "gender": "f", "regard": 1}\n'), "line 2: truncated or"),
        ("t.jsonl", b'{"text": "Die Frau \xed\xa0\x80", "gender": "f", "regard": 1}\n', "is not UTF-8"),
    ],
    ids=[
        "open quote",
        "Latin-1",
        "half a character",
        "half in UTF-8",
    ],
)
def test_what_is_no_text(file, content, says, tmp_path):
    path = write(tmp_path, file, content)
    assert says in refused(tmp_path, "rescore", path, "--language", "de")
    assert says in refused(tmp_path, "regard", "classify", path, "--language", "de")
    assert says in refused(tmp_path, "rescore", str(tmp_path), "--language", "de")  # not passed over in a folder


@pytest.mark.parametrize(("file", "content"), [
    ("t.csv", "text,gender,regard\n" + "".join(f"{row['text']},{row['gender']},{row['regard']}\n" for row in LABELLED)),
    ("t.jsonl", lines(*LABELLED)),
])  # fmt: skip
def test_a_byte_order_mark_changes_nothing(file, content, tmp_path):
    out = [
        command("rescore", write(tmp_path, file, mark + content.encode()), "--json").out
        for mark in (b"", codecs.BOM_UTF8)
    ]
    assert out[0] == out[1]
    assert '"documents": 6' in out[0]
