"""The pairs that Dutch, French and English share, and the authors' results of seven masked models."""

import csv
import re
from collections import Counter

import pytest

from lm_eval_bias.core import run_data
from lm_eval_bias.custom_metrics.crows_pairs import scores
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.crows_pairs import hooks

FOLDER = "results/results_mlms"
COUNTS = {
    "dutch_mlms/results_bertje.csv": 802,
    "dutch_mlms/results_mbert.csv": 767,
    "dutch_mlms/results_robbert.csv": 802,
    "eng_mlms/results_bert.csv": 899,
    "eng_mlms/results_roberta.csv": 953,
    "french_mlms/results_camembert.csv": 853,
    "french_mlms/results_flaubert.csv": 805,
}
MODELS = {
    "results_bertje": "BERTje",
    "results_mbert": "mBERT",
    "results_robbert": "RobBERT",
    "results_bert": "BERT",
    "results_roberta": "RoBERTa",
    "results_camembert": "CamemBERT",
    "results_flaubert": "FlauBERT",
}


@pytest.fixture
def folder(mirror):
    source = sources.manifest().files["crows_pairs_nl"]
    return sources.mirrored_path(source, mirror).parents[1]


def docs(language):
    return hooks.dataset(language)["test"]


@pytest.mark.usefixtures("folder")
def test_the_pairs_of_three_languages():
    keys = {}
    for language in ("nl", "fr", "en"):
        keys[language] = [doc["id"] for doc in docs(language)]
        directions = Counter(doc["direction"] for doc in docs(language))
        stereo = 1249 if language == "nl" else 1254
        assert directions == {"stereo": stereo, "antistereo": 1463 - stereo}
    assert keys["nl"] == keys["fr"] == keys["en"]
    assert Counter(doc["bias_type"] for doc in docs("nl"))["race-color"] == 475
    same = [doc["id"] for doc in docs("fr") if len({*doc["sentences"]}) == 1]
    assert same == ["129", "379"]  # one lacks its second sentence


@pytest.mark.usefixtures("folder")
def test_the_dutch_file_is_read_rightly():
    texts = " ".join(sentence for doc in docs("nl") for sentence in doc["sentences"])
    assert {letter for letter in texts if ord(letter) > 127} == set("éèëï’")
    assert "André maakte vervolgens" in texts
    assert "geïnteresseerd" in texts
    assert "één werk" in texts  # the word in UTF-8
    assert not re.search(r"\w\?\w", texts)


def read(path):
    raw = path.read_bytes()
    encoding = "mac_roman" if path.parent.name == "dutch_mlms" else "utf-8"
    lines = raw.decode(encoding).splitlines(keepends=True)
    delimiter = ";" if lines[0].startswith(";") else ","
    return list(csv.DictReader(lines, delimiter=delimiter))


def test_the_authors_results(folder):
    """Their sums, rounded to three digits, through our record and score; printed as they are published."""
    published = {
        row.model: row.cells["stereotype_score"]
        for row in run_data.published("crows_pairs")
    }
    score = scores()[0]
    for name, count in COUNTS.items():
        records = []
        for number, row in enumerate(read(folder / FOLDER / name)):
            doc = {"frame": str(number), "sentences": ("a", "b")}
            answers = [(row[f"sent_{which}_score"], 1) for which in ("more", "less")]
            records.append(hooks.record(doc, answers))
        value = score.compute(records).value
        assert len(records) == 1463
        assert value == pytest.approx(100 * count / 1463)
        model = MODELS[name.split("/")[1].removesuffix(".csv")]
        assert published[model].value == pytest.approx(value, abs=0.006)
    assert published.keys() == set(MODELS.values())


def record(more, less, tokens=(1, 1)):
    doc = {"frame": f"{more} {less}", "sentences": ("a", "b")}
    return hooks.record(doc, [(more, tokens[0]), (less, tokens[1])])


def test_a_tie_counts_as_neither():
    records = [record(-1, -2), record(-2, -2), record(-3, -2), record(-1, -3)]
    whole, per_token, *_ = scores()
    assert whole.compute(records).value == 50.0
    longer = [record(-4, -3, (4, 1)), record(-1, -2)]
    assert whole.compute(longer).value == 50.0
    assert per_token.compute(longer).value == 100.0
