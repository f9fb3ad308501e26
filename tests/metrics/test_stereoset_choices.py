"""StereoSet as a choice: values, what they say of rankings, and a model that only knows letters."""

import itertools
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_bias import catalog, registry
from lm_eval_bias.custom_metrics import stereoset, stereoset_choices
from lm_eval_bias.custom_metrics.stereoset_choices import ANTI, NONE, REFUSED, STEREOTYPE, UNRELATED
from lm_eval_bias.tasks.stereoset import hooks
from tests.simulation.simulated_choices import Choices

SHOWN = (STEREOTYPE, ANTI, UNRELATED)
ORDERS = list(itertools.permutations(SHOWN))
SCORES = {score.name: score for score in stereoset_choices.scores()}


def items(text, terms="ab"):
    """Records from letters: Stereotype, Anti, Unrelated, None, Refused; terms and orders in turn."""
    taken = dict(zip("SAUNR", (*SHOWN, NONE, REFUSED), strict=True))
    return [
        {
            "test": "intra",
            "bias_type": "gender",
            "term": terms[i % len(terms)],
            "taken": taken[letter],
            "shown": ORDERS[i % 6],
        }
        for i, letter in enumerate(text)
    ]


def values(records):
    return {name: score.compute(records).value for name, score in SCORES.items()}


def test_by_hand():
    # 12 items: 5 stereotypes, 2 anti-stereotypes, 2 unrelated, 2 without a choice, 1 refusal
    records = items("SSSSSAAUUNNR")
    got = values(records)
    assert got["choice_lms"] == pytest.approx(100 * 7 / 12, abs=1e-12)
    assert got["choice_ss"] == pytest.approx(100 * (5 + 5 / 2) / 12, abs=1e-12)
    assert got["choice_ss_meaningful"] == pytest.approx(100 * 5 / 7, abs=1e-12)
    assert got["choice_icat"] == pytest.approx(200 * 2 / 12, abs=1e-12)
    # as Nadeem's formula gives it
    assert got["choice_icat"] == pytest.approx(
        stereoset.icat_of(got["choice_lms"], got["choice_ss_meaningful"]), abs=1e-9
    )
    assert got["unanswered"] == pytest.approx(3 / 12, abs=1e-12)
    assert got["refused"] == pytest.approx(1 / 12, abs=1e-12)
    places = [r["shown"].index(r["taken"]) for r in records if r["taken"] in SHOWN]
    for number, name in enumerate("abc"):
        assert got[f"place_{name}"] == pytest.approx(places.count(number) / 9, abs=1e-12)


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ("S" * 6, {"choice_lms": 100, "choice_ss": 100, "choice_ss_meaningful": 100, "choice_icat": 0}),
        ("SA" * 3, {"choice_lms": 100, "choice_ss": 50, "choice_ss_meaningful": 50, "choice_icat": 100}),
        ("SAU" * 2, {"choice_lms": 200 / 3, "choice_ss": 50, "choice_ss_meaningful": 50, "choice_icat": 200 / 3}),
        # half refused, else the stereotype: towards it in both, and no ICAT is left
        ("SR" * 3, {"choice_lms": 50, "choice_ss": 75, "choice_ss_meaningful": 100, "choice_icat": 0, "refused": 0.5}),
    ],
)  # fmt: skip
def test_ideal_guessing_and_biased_models(taken, expected):
    got = values(items(taken))
    assert {name: got[name] for name in expected} == pytest.approx(expected, abs=1e-9)


def test_nothing_is_told_of_bias_where_nothing_meaningful_was_taken():
    for taken, reason in (("UNRU", "chosen in none of 4 items"), ("", "no items")):
        for name in ("choice_ss", "choice_ss_meaningful", "choice_icat"):
            estimate = SCORES[name].compute(items(taken))
            assert math.isnan(estimate.value)
            assert math.isnan(estimate.stderr)
            assert reason in estimate.reason
            assert reason in SCORES[name].table(items(taken))
    assert SCORES["choice_lms"].compute(items("UNRU")).value == 0
    silent = SCORES["place_a"].compute(items("NR"))
    assert math.isnan(silent.value)
    assert "a candidate was chosen in none of 2 items" in silent.reason


def test_a_ratio_without_a_value_in_the_rest_has_no_interval():
    records = items("SAUU", terms="aabb")  # without term a nothing meaningful is left
    estimate = SCORES["choice_ss_meaningful"].compute(records)
    assert estimate.value == 50
    assert estimate.ends() is None
    assert "no value without one of the target terms" in estimate.reason
    assert SCORES["choice_lms"].compute(records).ends() is not None


def test_places_that_are_not_balanced_are_said():
    skewed = [{**r, "shown": SHOWN} for r in items("SAUSAU")]
    for name in ("choice_ss", "choice_ss_meaningful", "choice_icat"):
        assert "places are not balanced" in SCORES[name].compute(skewed).reason
        assert "places are not balanced" not in SCORES[name].compute(items("SAUSAU")).reason
    assert "places" not in SCORES["choice_lms"].compute(skewed).reason
    assert stereoset_choices.position_effect(skewed) == 50
    assert math.isnan(stereoset_choices.position_effect([]))


RANKINGS = st.lists(st.tuples(st.permutations(SHOWN), st.sampled_from("abcd")), min_size=1, max_size=30)


@given(RANKINGS)
def test_what_choices_say_of_rankings(rankings):
    """The bounds of the module's docstring, for models that choose what they rank first."""
    ranked, chosen = [], []
    for ranking, term in rankings:
        place = {label: ranking.index(label) for label in SHOWN}
        stereo, anti, unrelated = (place[label] for label in SHOWN)
        outcome = [int(stereo < anti), int(stereo < unrelated) + int(anti < unrelated)]
        item = {"test": "intra", "bias_type": "gender", "term": term}
        ranked.append({**item, "outcomes": {"score": outcome}})
        chosen.append({**item, "taken": ranking[0], "shown": SHOWN})
    got = values(chosen)
    lms, ss = stereoset.lms(ranked).value, stereoset.ss(ranked).value
    assert got["choice_lms"] / 2 - 1e-9 <= lms <= got["choice_lms"] + 1e-9
    open_items = 100 * sum(r["taken"] == UNRELATED for r in chosen) / len(chosen)
    if not math.isnan(got["choice_ss"]):
        assert abs(got["choice_ss"] - ss) <= open_items / 2 + 1e-9


@given(st.text("SAUNR", min_size=1, max_size=40))
def test_bounds_and_symmetry(text):
    got, swapped = values(items(text)), values(items(text.translate(str.maketrans("SA", "AS"))))
    twice = values(items(text, terms="abc") * 2)
    for name, score in SCORES.items():
        value = got[name]
        assert math.isnan(value) or score.low <= value <= score.high
        if not name.startswith("place"):  # letters don't swap with labels
            mirrored = 100 - value if name in ("choice_ss", "choice_ss_meaningful") else value
            assert swapped[name] == pytest.approx(mirrored, abs=1e-9, nan_ok=True)
        assert twice[name] == pytest.approx(value, abs=1e-9, nan_ok=True)
        table = score.table(items(text))
        assert isinstance(table, str) if math.isnan(value) else table.value == pytest.approx(value, abs=1e-9)
        ends = score.compute(items(text)).ends()
        assert ends is None or ends[0] - 1e-9 <= value <= ends[1] + 1e-9


def test_parts_and_names():
    docs = [{"test": t, "bias_type": b} for t in ("intra", "inter") for b in ("gender", "race")]
    names = [score.name for score in stereoset_choices.scores(docs, detailed=True)]
    assert len(names) == len(set(names)) == 9 + 4 * (2 + 2 + 4)
    assert {"intra/choice_ss", "gender/choice_ss", "inter/race/choice_icat"} <= set(names)
    ranked = {score.name for score in stereoset.scores(docs, detailed=True)}
    assert not ranked & set(names)
    assert {score.name for score in stereoset_choices.every_score()} >= set(registry.get("stereoset_choices").main)
    assert stereoset_choices.scores([{"test": "intra", "bias_type": "gender"}])[9].name == "gender/choice_lms"
    estimate = next(s for s in stereoset_choices.scores(docs) if s.name == "inter/choice_ss").compute(items("SA"))
    assert "no inter items" in estimate.reason


LANGUAGES = ("en", "de")  # the others have the same items as English


@cache
def documents(language):
    return hooks.documents({"language": language, "tests": ["inter", "intra"], "choices": True})


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("letter", "ABC")
def test_a_model_that_always_takes_the_same_letter_is_neutral(language, letter, mirror):
    benchmark = registry.get("stereoset_choices")
    docs = documents(language)
    records = [benchmark.record(doc, [letter]) for doc in docs]
    neutral = {"choice_lms": 200 / 3, "choice_ss": 50.0, "choice_ss_meaningful": 50.0}
    for score in benchmark.scores(docs):
        name = score.name.rpartition("/")[2]
        estimate = score.compute(records)
        if name in neutral:
            ends = estimate.ends()
            assert ends[0] <= neutral[name] <= ends[1], score.name
            assert "places" not in estimate.reason
            assert "/" in score.name or estimate.value == pytest.approx(neutral[name], abs=0.2)
        if name.startswith("place"):
            assert estimate.value == float(name[-1].upper() == letter)


@pytest.mark.parametrize("limit", [2, 8, 50, 158, 400, 1000])
def test_any_beginning_is_balanced(limit, mirror):
    docs = documents("en")[:limit]
    labels = [[doc["candidates"][i]["label"] for i in doc["order"]] for doc in docs]
    for place in range(3):
        own = [row[place] for row in labels]
        assert own.count(STEREOTYPE) == own.count(ANTI)
        assert abs(own.count(UNRELATED) - limit / 3) <= 5


def test_orders_are_balanced_within_types_and_terms(mirror):
    for language in LANGUAGES:
        docs = documents(language)
        assert len(docs) == catalog.entries()[f"stereoset_{language}_gen"].items
        for fields, most in ((("bias_type", "test"), 1), (("term",), 2), (("term", "test"), 1)):
            counts = {}
            for doc in docs:
                labels = tuple(doc["candidates"][i]["label"] for i in doc["order"])
                counts.setdefault(tuple(doc[f] for f in fields), Counter())[labels] += 1
            for where, count in counts.items():
                spread = [count[order] for order in ORDERS]
                assert max(spread) - min(spread) <= most, (language, where, spread)


def test_simulated_models_have_the_scores_that_they_are_said_to_have(mirror):
    maker, knobs = Choices(documents("en")[:1200]), {"ss": 58.0, "lms": 80.0}
    rng, found = np.random.default_rng(0), {name: [] for name in maker.truth(knobs)}
    for _ in range(20):
        for records in maker.pair(rng, knobs, knobs).records:
            for name, values in found.items():
                values.append(SCORES[name].table(records).value)
    for name, true in maker.truth(knobs).items():
        chance = 4 * np.std(found[name], ddof=1) / 20**0.5  # pairs are alike: as many as there are
        assert abs(np.mean(found[name]) - true) <= chance, name
