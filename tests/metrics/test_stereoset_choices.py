"""StereoSet as a choice: values, what they say of rankings, and a model that only knows letters."""

import itertools
import math
from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.custom_metrics import stereoset, stereoset_choices
from lm_eval_bias.custom_metrics.stereoset_choices import ANTI, NONE, REFUSED, STEREOTYPE, UNRELATED
from lm_eval_bias.tasks.stereoset import hooks
from tests.support.oracles import jackknife

SHOWN = (STEREOTYPE, ANTI, UNRELATED)
ORDERS = list(itertools.permutations(SHOWN))
PLACES = ("place_a", "place_b", "place_c")


def by_name(scores=None):
    """Scores by name; by default those over all items."""
    if scores is None:
        return {score.name: score for score in stereoset_choices.scores() if "/" not in score.name}
    return {score.name: score for score in scores}


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
    return {name: score.compute(records).value for name, score in by_name().items()}


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


def test_nothing_is_told_of_bias_where_nothing_meaningful_was_taken():
    scores, silent = by_name(), items("NR")
    for name in ("choice_ss", "choice_ss_meaningful", "choice_icat"):
        found = scores[name].compute(items("UNRU"))
        assert found.n == 4
        assert "chosen in none of 4 items" in found.reason
        assert found.reason == scores[name].table(items("UNRU"))
    assert scores["choice_lms"].compute(items("UNRU")).value == 0
    for name in ("choice_lms", "place_a"):
        assert scores[name].compute(silent).reason == "a candidate was chosen in none of 2 items"
    alone = scores["choice_ss_meaningful"].compute(items("SAUU", terms="aabb"))  # without a there is no such choice
    assert "no value without one of the target terms" in alone.reason


SEVERAL = items("SASSSUARASNSUASSRASAUSNSS", terms="abcdea")  # 25 items of 5 terms, 9 of them of the first


@pytest.mark.parametrize("name", by_name())
def test_errors_leave_out_a_term_at_a_time(name):
    score = by_name()[name]
    estimate = score.compute(SEVERAL)
    assert (estimate.n, estimate.interval is None) == (25, name == "choice_icat")  # which is no share
    if name != "refused":  # of which only one term has any
        assert estimate.stderr == pytest.approx(jackknife(score.compute, SEVERAL, "term"), abs=1e-9)


def test_samples_are_the_items_parts_by_hand():
    shown = (UNRELATED, ANTI, STEREOTYPE)
    parts = {  # lms, ss, unanswered, refused, and the place of what was taken
        STEREOTYPE: (100, 100, 0, 0, (0, 0, 1)),
        ANTI: (100, 0, 0, 0, (0, 1, 0)),
        UNRELATED: (0, 50, 0, 0, (1, 0, 0)),
        NONE: (0, 50, 1, 0, (0, 0, 0)),
        REFUSED: (0, 50, 1, 1, (0, 0, 0)),
    }
    samples = {name: score.sample for name, score in by_name().items()}
    for taken, (lms, ss, unanswered, refused, places) in parts.items():
        record = {"test": "intra", "bias_type": "race", "term": "a", "taken": taken, "shown": shown}
        assert samples["choice_lms"](record) == lms
        # neither ratio nor ICAT has a part an item: they show the part of ss
        assert {samples[f"choice_{kind}"](record) for kind in ("ss", "ss_meaningful", "icat")} == {ss}
        assert (samples["unanswered"](record), samples["refused"](record)) == (unanswered, refused)
        assert tuple(samples[place](record) for place in PLACES) == places


def test_places_that_are_not_balanced_are_said():
    skewed, scores = [{**r, "shown": SHOWN} for r in items("SAUSAU")], by_name()
    for name in ("choice_ss", "choice_ss_meaningful", "choice_icat"):
        assert "places are not balanced" in scores[name].compute(skewed).reason
        assert "places" not in scores[name].compute(items("SAUSAU")).reason
    for name in ("choice_lms", "unanswered", "refused", *PLACES):
        assert "places" not in scores[name].compute(skewed).reason
    assert all(score.compute(SEVERAL[:24]).reason == "" for score in scores.values())


def test_what_always_taking_a_letter_gets_by_hand():
    effect = stereoset_choices.position_effect
    assert effect([{"shown": SHOWN}]) == 50
    # a: 3 stereotypes of 4, b: 1 of 4, c: the unrelated candidate alone
    assert effect([{"shown": SHOWN}] * 3 + [{"shown": (ANTI, STEREOTYPE, UNRELATED)}]) == 25
    assert effect([{"shown": order} for order in ORDERS]) == 0
    # two letters have each as often as the other, and the third has neither
    assert effect([{"shown": SHOWN}, {"shown": (ANTI, STEREOTYPE, UNRELATED)}]) == 0
    assert math.isnan(effect([]))


@pytest.mark.parametrize(("stereotypes", "cautious"), [(51, False), (52, True)])
def test_one_percent_away_is_no_more_than_one(stereotypes, cautious):
    # 51 of 100 stereotypes at a letter: always taking it gets 51, which is not "more than 1 away from 50"
    places = [SHOWN] * stereotypes + [(ANTI, STEREOTYPE, UNRELATED)] * (100 - stereotypes)
    records = [{**r, "shown": shown} for r, shown in zip(items("SA" * 50), places, strict=True)]
    assert stereoset_choices.position_effect(records) == stereotypes - 50
    assert ("places" in by_name()["choice_ss"].compute(records).reason) is cautious


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
    lms, ss = (score.compute(ranked).value for score in stereoset.scores()[:2])
    assert got["choice_lms"] / 2 - 1e-9 <= lms <= got["choice_lms"] + 1e-9
    open_items = 100 * sum(r["taken"] == UNRELATED for r in chosen) / len(chosen)
    if not math.isnan(got["choice_ss"]):
        assert abs(got["choice_ss"] - ss) <= open_items / 2 + 1e-9


def test_a_part_s_score_is_that_of_its_items():
    race = [{**r, "bias_type": "race"} for r in items("SSSA")]
    inter = [{**r, "test": "inter"} for r in items("AAAS")]
    both = [{**r, "test": "inter"} for r in race[:2]]
    records = [*items("SA"), *race, *inter, *both]
    scores = by_name(stereoset_choices.scores(records, detailed=True))
    assert len(scores) == 9 + 4 * (2 + 2 + 4)
    assert len(stereoset_choices.scores(records)) == 9 + 4 * (2 + 2)  # unless asked for
    assert "no inter items" in scores["inter/choice_ss"].compute(items("SA")).reason
    # intra: 4 of 6 meaningful choices are stereotypes; race: 5 of 6; inter: 3 of 6; both: 2 of 2
    expected = {"intra": 400 / 6, "inter": 50.0, "gender": 200 / 6, "race": 500 / 6, "inter/race": 100.0}
    found = {part: scores[f"{part}/choice_ss_meaningful"].compute(records).value for part in expected}
    assert found == pytest.approx(expected, abs=1e-12)
    assert [scores["inter/race/choice_ss"].sample(r) for r in (items("S")[0], both[0])] == [None, 100]


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
