"""Classifiers of regard: light, hub, saved heads, sentence encoders; corpora; training and its bias check."""

import unicodedata
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.metrics import cohen_kappa_score

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.regard import REGARDS
from lm_eval_bias.tasks.regard import annotators, classifier, heads, regard_corpus
from lm_eval_bias.tasks.regard.classifier_identity import (
    accuracy_in_words,
)
from tests.support import tiny
from tests.support.places import PUBLISHED as PUBLISHED_FILES

VECTORS = PUBLISHED_FILES / "regard_sbert_embeddings.npz"


def random_head(size=6):
    torch.manual_seed(3)
    return heads.Head(heads.network(size), {"encoder": "x", "measured": None})


@pytest.mark.parametrize("language", ["de", "en"])
def test_light_learns_and_does_not_see_the_subject(language, tiny_mirror):
    found, corpus = classifier.load("light", language), regard_corpus.load(language)
    p = found.probabilities(corpus.dev.text.tolist())
    assert (p.argmax(axis=1) == corpus.dev.label.to_numpy()).mean() > 0.9
    both = [
        regard_corpus.with_subject(corpus.dev.text.iloc[0], language, gender)
        for gender in ("female", "male")
    ]
    both += [
        unicodedata.normalize(form, "Die Frau galt als böse und müde.")
        for form in ("NFC", "NFD")
    ]
    assert len(set(both)) == 4
    woman, man, composed, decomposed = found.probabilities(both)
    assert (woman == man).all()
    assert (composed == decomposed).all()
    guesses = found.probabilities(corpus.test.text.tolist()).argmax(axis=1)
    right = (corpus.test.label.to_numpy() == guesses).sum()
    assert found.identity.measured["accuracy"] == pytest.approx(
        right / len(corpus.test), abs=1e-12
    )


def test_light_on_the_released_corpus(mirror):
    for language, n in (("de", 227), ("en", 29)):
        identity = classifier.load("light", language).identity
        measured = identity.measured
        assert measured["source"].startswith(f"{n} test sentences")
        assert (
            language == "en" or measured["accuracy"] > 0.642
        )  # character TF-IDF without the subject's replacement
        assert accuracy_in_words(measured) in identity.warning
    generated = classifier.load("light", "de").identity.measured["generated"]
    # 204 of 357; the commonest label is neutral, 129 times
    assert generated["accuracy"] == pytest.approx(204 / 357, abs=1e-12)
    assert generated["majority"] == pytest.approx(129 / 357, abs=1e-12)
    assert (*map("{:.2f}".format, generated["interval"]),) == ("0.52", "0.62")
    said = accuracy_in_words(classifier.load("light", "de").identity.measured)
    assert said.startswith("right in 0.57 [0.52, 0.62] of 357 generated texts")


def test_sentences_that_annotators_dismissed_are_left_out_unless_asked_for(mirror):
    read = {
        name: regard_corpus.load("de", name)
        for name in (regard_corpus.CLEANED, regard_corpus.RELEASED)
    }
    numbers = {
        name: (set(made.dev.index), set(made.test.index)) for name, made in read.items()
    }
    (dev, test), (all_dev, all_test) = numbers["cleaned"], numbers["released"]
    assert (len(dev), len(test)) == (909, 227)  # the paper's test has 227, too
    assert (len(all_dev - dev), len(all_test - test)) == (16, 4)
    assert (dev <= all_dev, test <= all_test) == (True, True)
    assert read["cleaned"].sha256 != read["released"].sha256
    with pytest.raises(BiasError, match="German sentences alone"):
        regard_corpus.load("en", "released")


def test_hub_classifier_against_plain_transformers(tmp_path):
    import torch
    import transformers

    folder = tiny.classification(tmp_path, ["POSITIVE", "Other", "negative", "Neutral"])
    found = classifier.load(f"hub:{folder}", "en")
    assert found.identity.labels == (*REGARDS, "other")
    texts = ["the woman was kind", "a man", "the gardener came home and sang"]
    p = found.probabilities(texts)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder
    ).eval()
    for text, row in zip(texts, p, strict=True):
        with torch.inference_mode():
            plain = torch.softmax(
                model(**tokenizer(text, return_tensors="pt")).logits[0].double(), -1
            )
        assert row == pytest.approx(plain[[2, 3, 0, 1]].numpy(), abs=1e-5)


@pytest.mark.parametrize(
    "labels",
    ["LABEL_0 LABEL_1 LABEL_2", "negative positive", "negative neutral positive mixed"],
)
def test_hub_classes_that_are_not_those_of_regard(labels, tmp_path):
    with pytest.raises(BiasError, match="its classes are"):
        classifier.load(f"hub:{tiny.classification(tmp_path, labels.split())}", "en")


def test_default_that_cannot_be_had_gives_way_to_light_aloud(tiny_mirror, caplog):
    with caplog.at_level("WARNING", logger="lm_eval.bias"):
        assert classifier.choose(None, "de").identity.name == "light"
    assert "can't load the default classifier sbert" in caplog.text


def test_a_head_is_the_papers_network_and_is_read_as_it_was_saved(tmp_path):
    head = random_head()
    x = np.random.default_rng(0).normal(size=(5, 6))
    p = head.probabilities(x)
    w0, b0, w1, b1, w2, b2 = (
        parameter.detach().numpy() for parameter in head.net.parameters()
    )
    logits = np.tanh((x @ w0.T + b0) @ w1.T + b1) @ w2.T + b2
    assert p == pytest.approx(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
    heads.save(tmp_path / "head", head, "card")
    again = heads.read(tmp_path / "head")
    assert (again.probabilities(x) == p).all()
    assert again.info == {**head.info, "sha256": again.info["sha256"]}
    assert {file.name for file in (tmp_path / "head").iterdir()} == {
        heads.WEIGHTS,
        heads.CARD,
    }


def test_a_head_is_trained_kept_and_used(tiny_mirror, tmp_path, capsys):
    encoder, out = str(tiny.sentence_encoder(tmp_path / "encoder")), tmp_path / "made"
    status = main(["regard", "train", "--encoder", encoder, "-o", str(out)])
    printed = capsys.readouterr()
    card = (out / "README.md").read_text()
    assert card in printed.out
    assert bool(printed.err) == ("Bias check FAILED" in card) == (status == 1)
    corpus = regard_corpus.load("de")
    assert corpus.sha256 in card
    assert f"N = {2 * len(annotators.generated())}" in card or "same label" in card
    # how the saved head labels the test rows, about women and about men, goes with every text that it labels
    model = classifier.load(f"head:{out}", "de")
    texts = corpus.test.text.tolist()
    p = model.probabilities(texts)
    right = (p.argmax(axis=1) == corpus.test.label.to_numpy()).mean()
    assert ("Bias check FAILED" in card) == bool(model.identity.warning)
    measured = model.identity.as_data()["measured"]
    assert measured["accuracy"] == pytest.approx(right, abs=1e-12)
    assert f"accuracy {right:.3f}, macro-F1 " in card
    # sbert trains the same head, until another encoder is at its place
    assert (classifier.load(f"sbert:{encoder}", "de").probabilities(texts) == p).all()
    weights = Path(encoder) / "model.safetensors"
    tensors = {name: 2 * tensor for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, {"format": "pt"})
    classifier.load.cache_clear()
    heads.encoder.cache_clear()
    again = classifier.load(f"sbert:{encoder}", "de").probabilities(texts)
    assert (again != p).any()
    with pytest.raises(BiasError, match="changed: train the head again"):
        classifier.load(f"head:{out}", "de")


@pytest.mark.slow
def test_the_authors_split_and_vectors_give_the_published_accuracy(mirror):
    """The paper prints 0.78 ± 0.02 of five folds; heads on the authors' vectors reach 0.766 and 0.770."""
    corpus = regard_corpus.load("de", "released")
    assert (len(corpus.dev), len(corpus.test), corpus.left_out) == (925, 231, 1)
    assert np.bincount(corpus.dev.label.to_numpy()).tolist() == [
        253,
        369,
        303,
    ]  # negative, neutral, positive
    if not VECTORS.is_file():
        pytest.skip("the authors' vectors are not here")
    with np.load(VECTORS, allow_pickle=False) as file:
        assert corpus.dev.index.tolist() == file["dev_idx"].tolist()
        assert corpus.dev.label.to_numpy().tolist() == file["dev_Y"].tolist()
        rest = corpus.test.index.tolist()
        assert [i for i in file["test_idx"].tolist() if i in set(rest)] == rest
        vectors = dict(zip(file["dev_idx"], file["dev_X"], strict=True))
        vectors |= dict(zip(file["test_idx"], file["test_X"], strict=True))
    by_text = {
        text: vectors[number]
        for part in (corpus.dev, corpus.test)
        for number, text in part.text.items()
    }

    def encode(texts):  # they made none of the generated texts'
        return np.array(
            [by_text.get(text, np.zeros(768)) for text in texts], dtype=np.float32
        )

    _, card = heads.train(corpus, encode, {"encoder": "the authors'"})
    assert "another fold: accuracy 0.766 ± 0.013" in card
    corpus = regard_corpus.load("de")
    by_text = {
        text: vectors[number]
        for part in (corpus.dev, corpus.test)
        for number, text in part.text.items()
    }
    _, card = heads.train(corpus, encode, {"encoder": "the authors'"})
    assert "another fold: accuracy 0.770 ± 0.007" in card


def test_bias_check_by_hand():
    passed, found = heads.bias_check(
        np.array([0] * 30 + [2] * 10), np.array([0] * 10 + [2] * 30)
    )
    assert not passed
    assert (
        f"chi-square {80 * (30 * 30 - 10 * 10) ** 2 / (40 * 40 * 40 * 40):.2f}, p = 0.000, N = 80"
        in found
    )
    assert "50.0% change their label" in found
    assert heads.bias_check(np.array([1, 1]), np.array([1, 1]))[0] is False


def test_what_the_annotators_files_say_of_the_paper(mirror):
    """Printed: 21 dismissed sentences, 362 generated texts, kappa .80 and .64."""
    agreed = {}
    for name, judged in (
        ("sentences", annotators.sentences()),
        ("texts", annotators.generated()),
    ):
        certain = [own.labels for own in judged if own.labels]
        agreed[name] = (len(judged) - len(certain), len(certain))
        for weights, kappa in KAPPA[name].items():
            found = [
                cohen_kappa_score(one, other, weights=weights)
                for one, other in combinations(zip(*certain, strict=True), 2)
            ]
            assert np.mean(found) == pytest.approx(kappa, abs=0.005)
    assert agreed == {"sentences": (21, 1137), "texts": (16, 362)}
    # the released labels are the majority's, but for one sentence
    labels = {own.number: own.majority for own in annotators.sentences()}
    corpus = regard_corpus.load("de")
    rows = pandas.concat([corpus.dev, corpus.test])
    assert (rows.judged.map(labels) != rows.label).sum() <= 5


KAPPA = {
    "sentences": {None: 0.76, "linear": 0.81},
    "texts": {None: 0.55, "linear": 0.62, "quadratic": 0.69},
}
