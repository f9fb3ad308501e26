"""MBBQ against its files and a scorer written from the definitions."""

import json
import random
from functools import cache

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data.sources import locate
from lm_eval_bias.tasks.mbbq import hooks

BENCHMARK = registry.get("mbbq")
LANGUAGES = ("en", "es", "nl", "tr")


def rows(language, category, end=""):
    lines = (
        locate(f"mbbq_{language}_{category}{end}")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    return [json.loads(line) for line in lines]


@cache
def documents(language, category):
    """The mirror's documents; for tests that have it."""
    return hooks.dataset(language, category)["test"]


def answered(docs, taken):
    """Records of documents whose likeliest option is the one taken."""
    return [
        BENCHMARK.record(doc, [(0.0 if i == choice else -1.0, False) for i in range(3)])
        for doc, choice in zip(docs, taken, strict=True)
    ]


def values(docs, records):
    return {score.name: score.compute(records) for score in BENCHMARK.scores(docs)}


# accuracy and bias of ambiguous items, of others; from the files' columns alone, where the groups are the authors'
PLAIN = {
    ("en", "gender_identity"): (326 / 544, 346 / 544, -8 / 264, -0.0984848484848484),
    ("en", "ses"): (544 / 900, 1051 / 1800, -11 / 900, -0.005555555555555536),
}  # fmt: skip
CONTROL = {
    ("en", "gender_identity"): (167 / 264, 152 / 264, -1 / 264, -0.017451205510907064),
    ("en", "ses"): (532 / 900, 556 / 900, 22 / 900, -0.0022222222222222365),
}  # fmt: skip
# of items whose control item there is
PAIRED = {**PLAIN, ("en", "gender_identity"): (320 / 528, 334 / 528, -8 / 264, -0.0984848484848484)}  # fmt: skip
NAMES = ("acc_amb", "acc_disamb", "diff_bias_amb", "diff_bias_disamb")


@pytest.mark.parametrize(("language", "category"), PLAIN)
def test_scores_are_those_of_the_definitions(language, category, mirror):
    docs = documents(language, category)
    taken = []
    for doc in docs:  # some items stand in a file twice
        texts = doc["context"], doc["question"], *doc["choices"]
        draw, label = random.Random(repr(texts)), doc["label"]
        taken.append(draw.choice([label, label, 0, 1, 2]))
    found, key = values(docs, answered(docs, taken)), (language, category)
    rows = zip(NAMES, PLAIN[key], CONTROL[key], PAIRED[key], strict=True)
    for name, plain, control, paired in rows:
        assert found[name].value == pytest.approx(plain, abs=1e-12)
        assert found[f"control/{name}"].value == pytest.approx(control, abs=1e-12)
        contrast = found[f"contrast/{name}"].value
        assert contrast == pytest.approx(paired - control, abs=1e-12)
    # where items of like lengths in both forms show no contrast nothing is claimed
    reason = found["contrast/acc_disamb"].no_claim_reason
    assert ("items of like lengths" in reason) == (category == "ses")


@pytest.mark.parametrize("language", LANGUAGES)
def test_items_and_control_items_ask_the_same(language, mirror):
    undirected = 0
    for category in hooks.CATEGORIES:
        docs = documents(language, category)
        assert len(docs) == len(rows(language, category)) + len(
            rows(language, category, "_control")
        )
        items = {doc["item"]: doc for doc in docs if not doc["control"]}
        controls = [doc for doc in docs if doc["control"]]
        assert len({doc["item"] for doc in controls}) == len(controls)
        for doc in controls:
            own = items[doc["item"]]
            assert (doc["context_type"], doc["polarity"]) == (
                own["context_type"],
                own["polarity"],
            )
            assert own["directed"] or language == "es"
        undirected += sum(not doc["directed"] for doc in items.values())
    assert undirected == (28 if language == "es" else 16)


def test_items_without_their_control_items_have_no_contrast(tiny_mirror):
    docs = [doc for doc in hooks.dataset("en", "age")["test"] if not doc["control"]]
    found = values(docs, answered(docs, [doc["label"] for doc in docs]))
    assert found["acc_amb"].value == 1.0
    assert found["contrast/acc_amb"].reason == "no item with its control item"


def test_options_stand_as_the_files_have_them_where_that_is_asked_for(mirror):
    released = hooks.dataset("en", "gender_identity", released_order=True)["test"]
    row = rows("en", "gender_identity")[0]
    asked = hooks.prompt(
        next(
            d
            for d in released
            if d["question"] == row["question"] and d["context"] == row["context"]
        )
    )
    places = [asked.index(f": {row[f'ans{i}']}") for i in range(3)]
    assert places == sorted(places)
    assert {tuple(doc["order"]) for doc in released} == {(0, 1, 2)}
    assert len({tuple(d["order"]) for d in documents("en", "gender_identity")}) == 6
    with pytest.raises(BiasError, match="released_order='yes': must be true or false"):
        BENCHMARK.options.check({"released_order": "yes"})
