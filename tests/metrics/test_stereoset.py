"""LMS, SS, ICAT and their multi-class forms: by hand, against a slow oracle, against the authors' own scores."""

import json
import math

import pytest

from lm_eval_bias.custom_metrics import stereoset as m
from lm_eval_bias.tasks.stereoset import hooks, predictions
from tests.support.oracles import reason_of
from tests.support.places import PUBLISHED

KINDS = (
    "lms",
    "ss",
    "icat",
    "mc_lms",
    "mc_ss",
    "mc_ss_sd",
    "mc_icat_macro",
    "mc_icat_micro",
)


def record(term, outcomes, test="intra", bias_type="gender"):
    by_method = outcomes if isinstance(outcomes, dict) else {m.METHOD: outcomes}
    return {
        "test": test,
        "bias_type": bias_type,
        "term": term,
        "outcomes": by_method,
        "variants": list(by_method),
        "taken": "unrelated",
        "lengths": {"stereotype": 7, "anti-stereotype": 9, "unrelated": 5},
    }


def by_name(scores):
    return {score.name: score for score in scores}


def values(records):
    return {s.name: s.compute(records).value for s in m.scores(records)}


@pytest.mark.parametrize(
    ("stereotype", "anti", "unrelated", "outcome"),
    [
        (0.5, 0.5, 0.5, [0, 0]),
        (0.5, 0.5, 0.1, [0, 2]),
        (math.nextafter(0.5, 1), 0.5, 0.1, [1, 2]),
    ],
)
def test_ties_count_as_anti_and_as_no_preference(
    tiny_mirror, stereotype, anti, unrelated, outcome
):
    (doc, *_) = hooks.documents({"language": "en", "tests": ["intra"]})
    by_label = {
        "stereotype": stereotype,
        "anti-stereotype": anti,
        "unrelated": unrelated,
    }
    answers = [(by_label[candidate["label"]], 1) for candidate in doc["candidates"]]
    made = hooks.record(doc, answers)
    assert made["outcomes"]["score"] == outcome
    assert (m.METHOD in made["tied"]) == (stereotype == anti)


def test_of_nothing_but_ties_no_preference_is_told():
    tied = [record(term, [0, 2]) | {"tied": [m.METHOD]} for term in "aabb"]
    scores = {score.name: score for score in m.scores()}
    assert scores["lms"].compute(tied).value == 100.0
    for name in ("ss", "icat", "mc_ss"):
        assert scores[name].compute(tied).reason == m.ALL_TIED
    assert scores["ss"].compute([*tied, record("b", [0, 2])]).value == 0.0


def test_scores_are_the_papers_equations():
    # wins over the opposite: 1, 0 | 1, 1, 1; over the unrelated one: 2, 1 | 0, 2, 1
    drawn = [("a", 1, 2), ("a", 0, 1), ("b", 1, 0), ("b", 1, 2), ("b", 1, 1)]
    found = values([record(term, [wins, beat]) for term, wins, beat in drawn])
    # of term a LMS 75, SS 50, ICAT 75; of term b 50, 100 and 0
    expected = {
        "lms": 60, "ss": 80, "icat": 24, "mc_lms": 62.5, "mc_ss": 75, "mc_ss_sd": 25, "mc_icat_macro": 37.5,
        "mc_icat_micro": 31.25,
    }  # fmt: skip
    assert {name: found[name] for name in KINDS} == pytest.approx(expected, abs=1e-9)
    turned = values([record(term, [1 - wins, beat]) for term, wins, beat in drawn])
    assert turned["icat"] == pytest.approx(24, abs=1e-9)


def test_an_absent_part_and_absent_numbers_are_named():
    broken = [record("a", [1, 2]), record("a", None), record("b", None)]
    for score in m.scores()[: len(KINDS)]:
        found = score.compute(broken)
        assert (
            reason_of(score.design, broken)
            == found.reason
            == "the model gave nan for 2 of 3 items"
        )
        assert found.n == 3
        assert "2 target terms" in score.compute(broken[:1]).reason
        assert math.isnan(score.contribution(broken[1]))
    score = by_name(m.scores([record("a", [1, 2], test, "race") for test in m.TESTS]))[
        "inter/ss"
    ]
    for other in ([], [record("a", [1, 2], "intra", "gender")]):
        assert (
            score.compute(other).reason
            == reason_of(score.design, other)
            == "no inter items"
        )


def drawn(rng, terms="abcd", bias_type="gender"):
    """Items of each term in two ways of scoring, two to four a term."""
    outcomes = {
        term: rng.integers(0, [2, 3], size=(2, 2 + place % 3, 2)).tolist()
        for place, term in enumerate(terms)
    }
    return [record(term, {"gen": own, "gen_pmi": other}, bias_type=bias_type)
            for term, pairs in outcomes.items() for own, other in zip(*pairs, strict=True)]  # fmt: skip


EXPECTED_NAMES = {"mc_ss_sd": "mc_ss_std_pop"}


def published():
    path = PUBLISHED / "expected.json"
    return json.loads(path.read_text())["stereoset"] if path.is_file() else {}


@pytest.mark.parametrize("name", list(published()) or ["absent"])
def test_authors_predictions_give_the_authors_scores(name, mirror):
    if name == "absent":
        pytest.skip("no published predictions beside the checkout")
    run = published()[name]
    samples = predictions.read(PUBLISHED / f"{name}.json.gz", run["lang"])
    records = [hooks.record(sample.doc, sample.answers) for sample in samples]
    compared = 0
    for test, by_type in run["expected"].items():
        for bias_type, expected in by_type.items():
            part = [
                record
                for record in records
                if test in ("overall", record["test"])
                and bias_type in ("all", record["bias_type"])
            ]
            for score in m.scores(part)[:8]:
                kind = EXPECTED_NAMES.get(score.name, score.name)
                estimate = score.compute(part)
                assert estimate.value == pytest.approx(expected[kind], abs=1e-9)
                assert estimate.n == expected["n"]
                assert 0 < estimate.stderr < 30
                compared += 1
    assert compared == 120


@pytest.mark.parametrize("pro", [2, 4])
def test_an_icat_at_the_end_of_its_range_on_which_terms_disagree_has_an_interval(pro):
    """SS is 50 over all terms and in none, or 100: ICAT is 100 or 0."""
    records = [
        {"term": str(term), "test": "intra", "outcomes": {"sum": (term < pro, 2)}}
        for term in range(4)
    ]
    found = m._design(records, kind="icat", method="sum").estimate()
    assert found.value == (100.0 if pro == 2 else 0.0)
    assert found.interval[0] < found.interval[1]


def test_the_error_of_a_spread_is_exact_where_all_but_one_term_agree():
    chosen = {"a": [0] * 9, "b": [0] * 9, "c": [0] * 9, "d": [1] + [0] * 8}
    rows = [record(term, [pro, 2]) for term, pros in chosen.items() for pro in pros]
    spread = 100 / 9
    every, others = (spread * math.sqrt((n - 1) / n**2) for n in (4, 3))
    off = 3 * (others - every) ** 2 + every**2  # without d nothing is left
    expected = math.sqrt(3 / 4 * off)
    found = by_name(m.scores(rows))["mc_ss_sd"].compute(rows)
    assert found.stderr == pytest.approx(expected, rel=1e-12)
