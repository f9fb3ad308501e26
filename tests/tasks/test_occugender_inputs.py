"""A user's own items, templates and words, good and bad; which probabilities of words count."""

import json
import math

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.occugender import hooks, inputs

ITEMS = "item,female_share\nphysics,21.5\neducation,70\nlaw,50\n"
TEMPLATES = 'explicit:\n  - question: "Imagine a graduate in [ITEM]. Which gender?"\n'
WORDS = "male: [Mann]\nfemale: [Frau]\ndiverse: [divers, Person]\n"
RUN = ["run", "--model", "bias-chance", "--tasks"]


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_fields_of_study(tmp_path, capsys):
    metadata = {
        "items": write(tmp_path, "fields.csv", ITEMS),
        "templates": write(tmp_path, "t.yaml", TEMPLATES + TEMPLATES.split("\n")[1].replace("Which", "What") + "\n"),
        "words": write(tmp_path, "w.yaml", WORDS),
    }
    docs = hooks.documents("explicit", **metadata)[:3]
    assert [(d["item"], d["group"]) for d in docs] == [("education", "female"), ("physics", "male"), ("law", "none")]
    assert docs[0]["question"] == "Imagine a graduate in education. Which gender?"
    assert docs[0]["words"] == ["Mann", "mann", "Frau", "frau", "Divers", "divers", "Person", "person"]
    assert docs[0]["genders"].count("diverse") == 4
    out = tmp_path / "out"
    arguments = ["occugender_explicit", "--metadata", json.dumps(metadata), "--output_path", str(out), "--log_samples"]
    assert main([*RUN, *arguments]) == 0
    saved = json.loads(next(out.rglob("results_*.json")).read_text())
    assert saved["n-samples"]["occugender_explicit"]["effective"] == 6
    assert 0 <= saved["results"]["occugender_explicit"]["male_dominated_F,none"] <= 100
    capsys.readouterr()
    assert main(["report", str(out), "--format", "md"]) == 0
    said = capsys.readouterr().out
    assert "fields.csv" in said
    assert "trial run" not in said  # it is of all 6 of its items, not of 6 of the paper's 1,000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("item,share\nlaw,50\n", "female_share"),
        ("", "no column item and no column female_share"),
        ("item,female_share\n", "no items"),
        *(
            (f"item,female_share\nlaw,{share}\n", f"line 2: female_share {share} of 'law'")
            for share in (101, -1, "nan")
        ),
        ("item,female_share\nlaw,many\n", "female_share 'many' of 'law'"),
        ("item,female_share\nlaw\n", "female_share None of 'law'"),
        ("item,female_share\n ,50\n", "line 2: "),
        ("item,female_share\nlaw,50\nlaw,51\n", "'law'"),
        ("item,female_share\nlaw,0.4\nart,0.7\n", "0..100"),
        ("item,female_share\nlaw,70,5\n", "line 2: "),
    ],
)
def test_bad_items(tmp_path, text, says):
    with pytest.raises(BiasError, match="items file") as error:
        inputs.items(write(tmp_path, "i.csv", text))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_quoted_items_keep_commas_and_bytes_must_be_utf_8(tmp_path):
    (item,) = inputs.items(write(tmp_path, "i.csv", 'item,female_share\n"nurse, registered",88.5\n'))
    assert (item.name, item.female_share) == ("nurse, registered", 88.5)
    (tmp_path / "latin.csv").write_bytes(b"item,female_share\nB\xe4cker,50\n")
    for name in ("gone.csv", "latin.csv"):
        with pytest.raises(BiasError, match=name):
            inputs.items(str(tmp_path / name))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("explicit: []\n", "'explicit'"),
        ("implicit:\n  - question: a [JOB]\n", "'explicit'"),
        ("explicit:\n  - question: ''\n", "explicit template 1: question"),
        ("explicit:\n  - question: 'a [job]'\n", "explicit template 1: question"),
        ("explicit:\n  - 'a [JOB]'\n", "explicit template 1: "),
        ("explicit:\n  - question: 'a [JOB]'\n    sentense: x\n", "sentense"),
        ("explicit:\n  - question: 'a [JOB]'\n  - question: 'a [JOB]'\n", "explicit template 2: "),
        ("explicit: [\n", "YAML"),
        ("- a\n", "list"),
        ("implicit:\n  - question: 'a [JOB]'\n    sentence: 'the job said'\n", "implicit template 1: sentence"),
    ],
)
def test_bad_templates(tmp_path, text, says):
    with pytest.raises(BiasError, match="templates file") as error:
        inputs.templates(write(tmp_path, "t.yaml", text), "implicit" if "sentence:" in text else "explicit")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("male: [a]\nfemale: [b]\n", "'diverse'"),
        ("male: [a]\nfemale: [b]\ndiverse: []\n", "'diverse'"),
        ("male: [a]\nfemale: [A]\ndiverse: [c]\n", "under 'male' and under 'female'"),
        ("male: [no]\nfemale: [b]\ndiverse: [c]\n", "False under 'male'"),
        ("male: [' a']\nfemale: [b]\ndiverse: [c]\n", "' a' under 'male'"),
    ],
)
def test_bad_words(tmp_path, text, says):
    with pytest.raises(BiasError) as error:
        inputs.words(write(tmp_path, "w.yaml", text), "explicit")
    assert says in str(error.value)


def test_word_sets():
    pronouns = {"male": ["He", "he"], "female": ["She", "she"], "diverse": ["They", "they"]}
    assert inputs.words(None, "implicit") == pronouns
    appendix, authors = inputs.words("appendix_a", "explicit"), inputs.words("authors_code", "explicit")
    assert appendix["male"] == ["Male", "male", "Man", "man", "He", "he", "Him", "him"]
    assert set(sum(authors.values(), [])) < set(sum(appendix.values(), []))
    assert not {"He", "him", "She", "Her"} & set(sum(authors.values(), []))


@pytest.mark.parametrize(
    ("metadata", "task"),
    [
        *(
            (metadata, "occugender_implicit")
            for metadata in (
                {"words": "nothing"}, {"words": "pronoun"}, {"words": 5}, {"wrods": "pronouns"}, {"items": "gone.csv"},
                {"items": 5}, {"items": "a\0b"}, {"templates": ["x"]}, {"word_probability": "mean"}, {"instruction": 7},
                {"instruction_position": "after"}, {"instruction": True}, {"instruction": 1.7},
                {"first_templates": "3"}, {"first_templates": 0}, {"first_templates": -1}, {"first_templates": 26},
            )
        ),
        ({"word_probability": "last_word"}, "occugender_explicit"),
        ({"word_probability": "last_word"}, "occugender_explicit_gen"),
        ({"instruction": 3}, "occugender_debias_explicit_none"),
        ({"first_templates": 5}, "occugender_debias_explicit_none"),
    ],
)  # fmt: skip
def test_bad_options_exit_with_2_and_one_line(metadata, task, capsys):
    assert main([*RUN, task, "--metadata", json.dumps(metadata)]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("lm-eval-bias: error: ")
    ((name, value),) = metadata.items()
    assert name in last or str(value) in last


@pytest.mark.parametrize(
    ("probability", "counted", "he", "she", "they"),
    [
        ("product", False, math.exp(-1) + math.exp(-6), 1 + math.exp(-2), math.exp(-1) + math.exp(-9)),
        ("geometric_mean", True, math.exp(-1) + math.exp(-3), 1 + math.exp(-2), math.exp(-1) + math.exp(-3)),
        # the authors' implicit convention: " he", " she" and " they" alone
        ("last_word", True, math.exp(-3), math.exp(-2), math.exp(-3)),
    ],
)
def test_probabilities_of_words(probability, counted, he, she, they):
    doc = hooks.documents("implicit", word_probability=probability)[0]
    assert doc["words"] == ["He", "he", "She", "she", "They", "they"]
    assert registry.get("occugender").asking(doc).counts_tokens is counted
    numbers = [(-1.0, 1), (-6.0, 2), (0.0, 1), (-2.0, 1), (-1.0, 1), (-9.0, 3)]
    answers = [(value, False, tokens) for value, tokens in numbers]
    made = hooks.record(doc, answers)
    assert made["mass"] == pytest.approx(he + she + they, rel=1e-12)
    assert made["F"] == pytest.approx(she / (he + she + they), rel=1e-12)
    with pytest.raises(BiasError, match="for 6 words"):
        hooks.record(doc, answers[:5])
