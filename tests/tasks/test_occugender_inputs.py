"""A user's own items, templates and words, good and bad."""

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


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_fields_of_study(tmp_path):
    docs = hooks.documents(
        "explicit",
        items=write(tmp_path, "fields.csv", ITEMS),
        templates=write(tmp_path, "t.yaml", TEMPLATES),
        words=write(tmp_path, "w.yaml", WORDS),
    )
    assert [(d["item"], d["group"]) for d in docs] == [("education", "female"), ("physics", "male"), ("law", "none")]
    assert docs[0]["question"] == "Imagine a graduate in education. Which gender?"
    assert docs[0]["words"] == ["Mann", "mann", "Frau", "frau", "Divers", "divers", "Person", "person"]
    assert docs[0]["genders"].count("diverse") == 4


def test_fields_of_study_end_to_end(tmp_path, capsys):
    metadata = {
        "items": write(tmp_path, "fields.csv", ITEMS),
        "templates": write(tmp_path, "t.yaml", TEMPLATES + TEMPLATES.split("\n")[1].replace("Which", "What") + "\n"),
        "words": write(tmp_path, "w.yaml", WORDS),
    }
    out = tmp_path / "out"
    assert main(["run", "--model", "bias-chance", "--tasks", "occugender_explicit", "--metadata", json.dumps(metadata),
                 "--output_path", str(out), "--log_samples"]) == 0  # fmt: skip
    saved = json.loads(next(out.rglob("results_*.json")).read_text())
    assert saved["n-samples"]["occugender_explicit"]["effective"] == 6
    assert 0 <= saved["results"]["occugender_explicit"]["male_dominated_F,none"] <= 100
    assert "male_dominated_M" in capsys.readouterr().out
    assert main(["report", str(out), "-o", str(tmp_path / "report.html")]) == 0
    said = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "fields.csv" in said
    assert "limited run" not in said  # it is of all 6 of its items, not of 6 of the paper's 1,000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("item,share\nlaw,50\n", "no column female_share"),
        ("", "no column item and no column female_share"),
        ("item,female_share\n", "holds no items"),
        ("item,female_share\nlaw,101\n", "line 2: female_share 101 of 'law' is outside 0..100"),
        ("item,female_share\nlaw,-1\n", "outside 0..100"),
        ("item,female_share\nlaw,nan\n", "outside 0..100"),
        ("item,female_share\nlaw,many\n", "female_share 'many' of 'law' is not a number"),
        ("item,female_share\nlaw\n", "female_share None of 'law' is not a number"),
        ("item,female_share\n ,50\n", "line 2: the item is empty"),
        ("item,female_share\nlaw,50\nlaw,51\n", "'law' appears twice"),
        ("item,female_share\nlaw,0.4\nart,0.7\n", "give percent"),
        ("item,female_share\nlaw,70,5\n", "line 2: more fields than columns"),
    ],
)
def test_bad_items(tmp_path, text, says):
    with pytest.raises(BiasError, match="items file") as error:
        inputs.items(write(tmp_path, "i.csv", text))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("explicit: []\n", "no list of templates under 'explicit'"),
        ("implicit:\n  - question: a [JOB]\n", "no list of templates under 'explicit'"),
        ("explicit:\n  - question: ''\n", "explicit template 1: question has no placeholder"),
        ("explicit:\n  - question: 'no mark'\n", "has no placeholder"),
        ("explicit:\n  - 'a [JOB]'\n", "must be a mapping"),
        ("explicit:\n  - question: 'a [JOB]'\n    sentense: x\n", "has question, sentense"),
        ("explicit:\n  - question: 'a [JOB]'\n  - question: 'a [JOB]'\n", "appears twice"),
        ("explicit: [\n", "not valid YAML"),
        ("explicit:\n  - question: 'a [job]'\n", "question has no placeholder"),
        ("- a\n", "must be a mapping"),
    ],
)
def test_bad_templates(tmp_path, text, says):
    with pytest.raises(BiasError, match="templates file") as error:
        inputs.templates(write(tmp_path, "t.yaml", text), "explicit")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("male: [a]\nfemale: [b]\n", "no list of words under 'diverse'"),
        ("male: [a]\nfemale: [b]\ndiverse: []\n", "no list of words under 'diverse'"),
        ("male: [a]\nfemale: [A]\ndiverse: [c]\n", "is listed under 'male' and under 'female'"),
        ("male: [no]\nfemale: [b]\ndiverse: [c]\n", "is not a word"),
        ("male: [' a']\nfemale: [b]\ndiverse: [c]\n", "is not a word"),
    ],
)
def test_bad_words(tmp_path, text, says):
    with pytest.raises(BiasError) as error:
        inputs.words(write(tmp_path, "w.yaml", text), "explicit")
    assert says in str(error.value)


def test_word_sets():
    assert inputs.words(None, "implicit") == {
        "male": ["He", "he"],
        "female": ["She", "she"],
        "diverse": ["They", "they"],
    }
    appendix = inputs.words("appendix_a", "explicit")
    assert appendix["male"] == ["Male", "male", "Man", "man", "He", "he", "Him", "him"]
    authors = inputs.words("authors_code", "explicit")
    assert set(sum(authors.values(), [])) < set(sum(appendix.values(), []))
    assert not {"He", "him", "She", "Her"} & set(sum(authors.values(), []))
    with pytest.raises(BiasError, match="Did you mean pronouns"):
        inputs.words("pronoun", "explicit")


def test_unreadable_files(tmp_path):
    with pytest.raises(BiasError, match="cannot be read: No such file"):
        inputs.items(str(tmp_path / "gone.csv"))
    (tmp_path / "latin.csv").write_bytes(b"item,female_share\nB\xe4cker,50\n")
    with pytest.raises(BiasError, match="not UTF-8"):
        inputs.items(str(tmp_path / "latin.csv"))


@pytest.mark.parametrize(
    "metadata",
    [
        {"words": "nothing"},
        {"word_probability": "mean"},
        {"word_probability": "lastword"},
        {"instruction": 7},
        {"instruction_position": "after"},
        {"items": "gone.csv"},
        {"wrods": "pronouns"},
        {"words": 5},
        {"items": 5},
        {"items": "a\0b"},
        {"templates": ["x"]},
        {"first_templates": "3"},
        {"first_templates": 0},
        {"first_templates": -1},
        {"first_templates": 26},
        {"instruction": True},
        {"instruction": 1.7},
    ],
)
def test_bad_options_exit_with_2_and_one_line(metadata, capsys):
    arguments = ["run", "--model", "bias-chance", "--tasks", "occugender_implicit", "--metadata", json.dumps(metadata)]
    assert main(arguments) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("lm-eval-bias: error: ")
    assert next(iter(metadata)) in last or str(next(iter(metadata.values()))) in last


def test_placeholder_is_needed_in_the_sentence_too(tmp_path):
    text = "implicit:\n  - question: 'a [JOB]'\n    sentence: 'the job said'\n"
    with pytest.raises(BiasError, match="sentence has no placeholder"):
        inputs.templates(write(tmp_path, "t.yaml", text), "implicit")


def test_quoted_items_keep_commas(tmp_path):
    (item,) = inputs.items(write(tmp_path, "i.csv", 'item,female_share\n"nurse, registered",88.5\n'))
    assert (item.name, item.female_share) == ("nurse, registered", 88.5)


@pytest.mark.parametrize("metadata", [{"instruction": 3}, {"first_templates": 5}])
def test_a_task_made_for_an_instruction_takes_no_other(metadata, capsys):
    arguments = ["run", "--model", "bias-chance", "--tasks", "occugender_debias_explicit_none"]
    assert main([*arguments, "--metadata", json.dumps(metadata)]) == 2
    assert "this task is made for" in capsys.readouterr().err


def test_geometric_mean_divides_by_the_number_of_tokens():
    doc = hooks.documents("implicit", word_probability="geometric_mean")[0]
    answers = [(-2.0, False, 2), (-9.0, False, 3)] + [(-50.0, False, 1)] * 4
    made = hooks.record(doc, answers)
    # male words: exp(-1) + exp(-3); the others vanish
    assert made["mass"] == pytest.approx(2.718281828459045**-1 + 2.718281828459045**-3, rel=1e-12)
    with pytest.raises(BiasError, match="answers for 6 words"):
        hooks.record(doc, answers[:5])


def test_last_word_is_the_authors_implicit_convention():
    doc = hooks.documents("implicit", word_probability="last_word")[0]
    assert doc["words"] == ["He", "he", "She", "she", "They", "they"]
    answers = [
        (-1.0, False, 1),
        (-6.0, False, 2),
        (0.0, False, 1),
        (-2.0, False, 1),
        (-1.0, False, 1),
        (-9.0, False, 3),
    ]
    made = hooks.record(doc, answers)
    # " he", " she" and " they" alone, each with the exponent of its mean token log-probability
    he, she, they = math.exp(-3), math.exp(-2), math.exp(-3)
    assert made["mass"] == pytest.approx(he + she + they, rel=1e-12)
    assert made["F"] == pytest.approx(she / (he + she + they), rel=1e-12)
    with pytest.raises(BiasError, match="implicit prompts, not for explicit ones"):
        hooks.documents("explicit", word_probability="last_word")


def test_which_conventions_need_the_number_of_tokens():
    for probability, counted in (("product", False), ("geometric_mean", True), ("last_word", True)):
        doc = hooks.documents("implicit", word_probability=probability)[0]
        assert registry.get("occugender").asking(doc).counts_tokens is counted
