"""A user's own items, templates and words, good and bad; which probabilities of words count."""

import math
from functools import partial

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.occugender import hooks, inputs

ITEMS = "item,female_share\nphysics,21.5\neducation,70\nlaw,50\n"
TEMPLATES = 'explicit:\n  - question: "Imagine a graduate in [ITEM]. Which gender?"\n'
WORDS = "male: [Mann]\nfemale: [Frau]\ndiverse: [divers, Person]\n"


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_fields_of_study(tmp_path):
    metadata = {
        "items": write(tmp_path, "fields.csv", ITEMS),
        "templates": write(tmp_path, "t.yaml", TEMPLATES),
        "words": write(tmp_path, "w.yaml", WORDS),
    }
    docs = hooks.documents("explicit", **metadata)
    found = [(doc["item"], doc["group"]) for doc in docs]
    assert found == [("education", "female"), ("physics", "male"), ("law", "none")]
    assert docs[0]["question"] == "Imagine a graduate in education. Which gender?"
    words = "Mann mann Frau frau Divers divers Person person"
    assert docs[0]["words"] == words.split()
    assert docs[0]["genders"] == ["male"] * 2 + ["female"] * 2 + ["diverse"] * 4


def test_quoted_items_keep_commas_and_bytes_must_be_utf_8(tmp_path):
    (item,) = inputs.items(
        write(tmp_path, "i.csv", 'item,female_share\n"nurse, registered",88.5\n')
    )
    assert (item.name, item.female_share) == ("nurse, registered", 88.5)
    (tmp_path / "latin.csv").write_bytes(b"item,female_share\nB\xe4cker,50\n")
    for name in ("gone.csv", "latin.csv"):
        with pytest.raises(BiasError, match=name):
            inputs.items(str(tmp_path / name))


def test_an_instruction_of_ones_own_stands_where_the_papers_do(tmp_path):
    text = "Be fair to everyone."
    asked = "Q: Picture a skincare specialist."
    for given in (text, write(tmp_path, "fair.TXT", f"\ufeff {text}\r\n")):
        before = hooks.documents("explicit", instruction=given)[0]
        assert hooks.prompt(before).startswith(f"{text}\n{asked}")
        behind = hooks.documents(
            "explicit", instruction=given, instruction_position="question"
        )[0]
        assert hooks.prompt(behind).startswith(f"Q: {text} {asked[3:]}")
    assert hooks.documents("explicit", instruction="3") == hooks.documents(
        "explicit", instruction=3
    )


items_file = inputs.items
templates_file, sentences_file = (
    partial(inputs.templates, kind=kind) for kind in ("explicit", "implicit")
)
words_file = partial(inputs.words, kind="explicit")


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (items_file, "item,share\nlaw,50\n", "female_share"),
        (items_file, "item,female_share\n", "no rows"),
        (items_file, "item,female_share\nlaw,101\n", "line 2: female_share: '101'"),
        (items_file, "item,female_share\nlaw,50\nlaw,51\n", "'law'"),
        (items_file, "item,female_share\nlaw,0.4\nart,0.7\n", "0..100"),
        (items_file, "item,female_share\nlaw,70,5\n", "line 2: "),
        (
            templates_file,
            "implicit:\n  - {question: 'a [JOB]', sentence: 'a [JOB]'}\n",
            "'explicit'",
        ),
        (inputs.instruction, "Be fair.\nBe kind.\n", "must be one line"),
        (inputs.instruction, " \n", "must be one line"),
        (
            templates_file,
            "explicit:\n  - question: 'a [job]'\n",
            "explicit: 0: question: 'a [job]' has no placeholder",
        ),
        (
            templates_file,
            "explicit:\n  - question: 'a [JOB]'\n    sentense: x\n",
            "sentense",
        ),
        (templates_file, "explicit: [\n", "YAML"),
        (
            sentences_file,
            "implicit:\n  - question: a [JOB]\n    sentence: a job\n",
            "implicit: 0: sentence: 'a job'",
        ),
        (words_file, "male: [a]\nfemale: [b]\ndiverse: []\n", "diverse: [] must be"),
        (
            words_file,
            "male: [a]\nfemale: [A]\ndiverse: [c]\n",
            "under 'male' and under 'female'",
        ),
        (
            words_file,
            "male: [no]\nfemale: [b]\ndiverse: [c]\n",
            "male: 0: False is not a word",
        ),
    ],
)
def test_bad_files_are_one_line_with_their_place(tmp_path, read, text, says):
    with pytest.raises(BiasError, match="mine.txt") as error:
        read(write(tmp_path, "mine.txt", text))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


HE, SHE, THEY = (
    math.exp(-1) + math.exp(-6),
    1 + math.exp(-2),
    math.exp(-1) + math.exp(-9),
)


@pytest.mark.parametrize(
    ("probability", "counted", "he", "she", "they"),
    [
        ("product", False, HE, SHE, THEY),
        (
            "geometric_mean",
            True,
            math.exp(-1) + math.exp(-3),
            SHE,
            math.exp(-1) + math.exp(-3),
        ),
        # the authors' implicit convention: " he", " she" and " they" alone
        ("last_word", True, math.exp(-3), math.exp(-2), math.exp(-3)),
    ],
)
def test_probabilities_of_words(probability, counted, he, she, they):
    doc = hooks.documents("implicit", word_probability=probability)[0]
    assert doc["words"] == ["He", "he", "She", "she", "They", "they"]
    assert registry.get("occugender").asking(doc).counts_tokens is counted
    logs, lengths = (-1.0, -6.0, 0.0, -2.0, -1.0, -9.0), (1, 2, 1, 1, 1, 3)
    answers = [(log, False, length) for log, length in zip(logs, lengths, strict=True)]
    made = hooks.record(doc, answers)
    assert (made["mass"], made["F"]) == pytest.approx(
        (he + she + they, she / (he + she + they)), rel=1e-12
    )
