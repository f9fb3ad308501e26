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
    scores = by_name()
    for taken, reason in (("UNRU", "chosen in none of 4 items"), ("", "no items")):
        for name in ("choice_ss", "choice_ss_meaningful", "choice_icat"):
            estimate = scores[name].compute(items(taken))
            assert math.isnan(estimate.value)
            assert math.isnan(estimate.stderr)
            assert estimate.n == len(taken)
            assert reason in estimate.reason
            assert reason in scores[name].table(items(taken))
    assert scores["choice_lms"].compute(items("UNRU")).value == 0
    assert math.isnan(scores["choice_lms"].compute([]).value)
    for name in PLACES:
        silent = scores[name].compute(items("NR"))
        assert math.isnan(silent.value)
        assert silent.reason == "a candidate was chosen in none of 2 items"
        assert silent.n == 2


SEVERAL = items("SASSSUARASNSUASSRASAUSNSS", terms="abcdea")  # 25 items of 5 terms, 9 of them of the first


@pytest.mark.parametrize("name", [f"choice_{kind}" for kind in stereoset_choices._MAIN] + ["unanswered", *PLACES])
def test_errors_leave_out_a_term_at_a_time(name):
    score = by_name()[name]
    estimate = score.compute(SEVERAL)
    assert estimate.stderr == pytest.approx(jackknife(score.compute, SEVERAL, "term"), abs=1e-9)
    assert estimate.n == 25
    assert (estimate.interval is None) is (name == "choice_icat")  # no share
    alone = by_name()["choice_ss_meaningful"].compute(items("SAUU", terms="aabb"))  # without a there is no such choice
    assert "no value without one of the target terms" in alone.reason


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


def test_what_the_scores_are_is_said():
    percent = {"choice_lms": (100.0, True), "choice_ss": (50.0, None), "choice_ss_meaningful": (50.0, None),
               "choice_icat": (100.0, True)}  # fmt: skip
    shares = {"unanswered": (0.0, False), "refused": (0.0, None), **dict.fromkeys(PLACES, (1 / 3, None))}
    scores = by_name()
    assert list(scores) == [*percent, *shares]
    for names, high, unit in ((percent, 100.0, "percent"), (shares, 1.0, "proportion")):
        for name, (neutral, better) in names.items():
            score = scores[name]
            assert (score.low, score.high, score.unit) == (0.0, high, unit)
            assert (score.neutral, score.higher_is_better) == (neutral, better)


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


@given(st.text("SAUNR", min_size=1, max_size=40))
def test_bounds_and_symmetry(text):
    got, swapped = values(items(text)), values(items(text.translate(str.maketrans("SA", "AS"))))
    twice = values(items(text, terms="abc") * 2)
    for name, score in by_name().items():
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


def test_a_part_s_score_is_that_of_its_items():
    race = [{**r, "bias_type": "race"} for r in items("SSSA")]
    inter = [{**r, "test": "inter"} for r in items("AAAS")]
    both = [{**r, "test": "inter"} for r in race[:2]]
    records = [*items("SA"), *race, *inter, *both]
    scores = by_name(stereoset_choices.scores(records, detailed=True))
    assert len(scores) == 9 + 4 * (2 + 2 + 4)
    assert "no inter items" in scores["inter/choice_ss"].compute(items("SA")).reason
    # intra: 4 of 6 meaningful choices are stereotypes; race: 5 of 6; inter: 3 of 6; both: 2 of 2
    expected = {"intra": 400 / 6, "inter": 50.0, "gender": 200 / 6, "race": 500 / 6, "inter/race": 100.0}
    for part, value in expected.items():
        assert scores[f"{part}/choice_ss_meaningful"].compute(records).value == pytest.approx(value, abs=1e-12)
        assert scores[f"{part}/choice_ss_meaningful"].table(records).value == pytest.approx(value, abs=1e-12)
    assert scores["inter/race/choice_ss"].sample(items("S")[0]) is None
    assert scores["inter/race/choice_ss"].sample(both[0]) == 100
    assert scores["inter/race/choice_ss"].summary.endswith("; test inter; bias_type race")
    # without being asked for, no breakdown of each test
    assert [name for name in by_name(stereoset_choices.scores(records)) if name.count("/") > 1] == []
    per_test = {f"{test}/choice_{kind}" for test in ("intra", "inter") for kind in stereoset_choices._MAIN}
    assert set(by_name(stereoset_choices.scores())) == {*by_name(), *per_test}


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
