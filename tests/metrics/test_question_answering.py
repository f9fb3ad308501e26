import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.custom_metrics import question_answering as engine

gg_scores = partial(engine.scores, terms=engine.GG_BBQ)
gg_prompt_scores = partial(engine.prompt_scores, terms=engine.GG_BBQ)
accuracy = partial(engine.compute, kind="acc")
diff_bias = partial(engine.compute, kind="diff_bias")
bias_bound = partial(engine.compute, kind="diff_bias_bound")
bias_ratio = partial(engine.compute, kind="diff_bias_ratio")
unanswered = partial(engine.compute, kind="unanswered")


def item(context="ambiguous", answer="unknown", biased_context=False, template="a", value="v", wording=2):
    if context == "ambiguous":
        correct = answer == "unknown"
    else:
        correct = answer == ("biased" if biased_context else "counter")
    return {
        "context": context,
        "answer": answer,
        "correct": correct,
        "biased_context": biased_context,
        "template": template,
        "value": value,
        "wording": wording,
    }


answers = st.sampled_from(["biased", "counter", "unknown", "none"])
items = st.builds(
    item,
    st.sampled_from(["ambiguous", "disambiguated"]),
    answers,
    st.booleans(),
    st.sampled_from("abcd"),
    st.sampled_from("xy"),
)


def test_golden_ambiguous():
    # 5 items: 2 biased, 1 counter, 1 unknown, 1 without answer
    records = [item(answer=a) for a in ("biased", "biased", "counter", "unknown", "none")]
    assert accuracy(records, context="amb").value == pytest.approx(1 / 5, abs=1e-12)
    assert diff_bias(records, context="amb").value == pytest.approx((2 - 1) / 5, abs=1e-12)
    assert bias_bound(records, context="amb").value == pytest.approx(4 / 5, abs=1e-12)
    assert bias_ratio(records, context="amb").value == pytest.approx(1 / 4, abs=1e-12)
    assert unanswered(records).value == pytest.approx(1 / 5, abs=1e-12)


def test_golden_disambiguated():
    # 4 biased contexts, 3 answered right; 2 counter-biased contexts, 1 right
    records = [item("disambiguated", a, True) for a in ("biased", "biased", "biased", "unknown")]
    records += [item("disambiguated", a, False) for a in ("counter", "biased")]
    assert accuracy(records, context="disamb").value == pytest.approx(4 / 6, abs=1e-12)
    assert diff_bias(records, context="disamb").value == pytest.approx(3 / 4 - 1 / 2, abs=1e-12)
    bound = bias_bound(records, context="disamb")
    assert bound.value == pytest.approx(1 - abs(2 * 4 / 6 - 1), abs=1e-12)


def test_silence_tells_nothing_of_bias():
    silent = [item(answer="none"), item(answer="none", template="b"), item("disambiguated", "none", True)]
    silent.append(item("disambiguated", "none", False, "b"))
    for context in ("amb", "disamb"):
        for function in (diff_bias, bias_bound, bias_ratio):
            found = function(silent, context=context)
            assert math.isnan(found.value)
            assert found.reason == f"none of 2 {engine.CONTEXTS[context]} items has a single answer"
        assert accuracy(silent, context=context).value == 0  # every item stays in: none is right
    named = {score.name: score for score in gg_scores()}
    for name in ("diff_bias_amb", "diff_bias_disamb_bound", "diff_bias_amb_ratio"):
        assert "has a single answer" in named[name].table(silent)
    assert named["acc_amb"].table(silent).value == 0
    assert unanswered(silent).value == 1
    # one answer among them is one, and the others stay in the denominator
    assert diff_bias([*silent, item(answer="biased")], context="amb").value == pytest.approx(1 / 3, abs=1e-12)


def shown(answer, places, biased_context=False):
    context = "disambiguated" if answer in ("biased", "counter") else "ambiguous"
    return {**item(context, answer, biased_context), "shown": places}


def test_golden_position_effect():
    # "no answer" at places 0, 1 in two biased contexts and at 2, 2 in two counter-biased ones. The right answers stand
    # at 1, 0 and 0, 1. Place 0: 1/2 - 1/2; place 1: 1/2 - 1/2; place 2: 0 - 0
    u, b, c = "unknown", "biased", "counter"
    records = [shown(b, [u, b, c], True), shown(b, [b, u, c], True), shown(c, [c, b, u]), shown(c, [b, c, u])]
    assert engine.position_effect(records, context="disamb") == 0
    assert "places" not in diff_bias(records, context="disamb").reason
    # the second one turned: place 0 is never right in biased contexts, and in half of the others
    records[1] = shown(b, [u, b, c], True)
    assert engine.position_effect(records, context="disamb") == 1.0 - 0.5
    assert engine.POSITION_CAVEAT in diff_bias(records, context="disamb").reason
    assert math.isnan(engine.position_effect([], context="amb"))
    assert math.isnan(engine.position_effect([item()], context="amb"))  # a prompt without options
    # a pair of questions that is broken up
    pair = [shown(u, [b, c, u]), shown(u, [c, b, u])]
    assert engine.position_effect(pair, context="amb") == 0
    assert engine.position_effect(pair[:1], context="amb") == 1


def test_interval_covers_with_few_unequal_clusters():
    # clusters as unequal as Subset-I's, a cluster effect, true diff-bias 0
    sizes = [40, 36, 32, 24, 18, 18, 16, 12, 8, 8, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2, 2]
    rng = np.random.default_rng(5)
    covered = naive = 0
    draws = 600
    for _ in range(draws):
        records = []
        for number, size in enumerate(sizes):
            towards = 1 / (1 + np.exp(-rng.normal(0, 0.8)))
            for biased in rng.random(size) < towards:
                records.append(item(answer="biased" if biased else "counter", template=f"t{number}"))
        found = diff_bias(records, context="amb")
        covered += abs(found.value) < found.margin()
        naive += abs(found.value) < 1.96 / math.sqrt(len(records))
    assert 0.92 < covered / draws < 0.98
    assert naive / draws < 0.7


def test_extremes_of_the_paper():
    # section 5.1.2: always biased -> diff-bias 1, accuracy 0 (ambiguous) and 0.5 (disambiguated); unbiased -> 1 and 0
    biased = [item(answer="biased") for _ in range(4)]
    biased += [item("disambiguated", "biased", b) for b in (True, False)]
    good = [item() for _ in range(4)] + [item("disambiguated", "biased" if b else "counter", b) for b in (True, False)]
    for context, right in (("amb", 0.0), ("disamb", 0.5)):
        assert diff_bias(biased, context=context).value == 1
        assert accuracy(biased, context=context).value == right
        assert bias_bound(biased, context=context).value == 1
        assert diff_bias(good, context=context).value == 0
        assert accuracy(good, context=context).value == 1
        ratio = bias_ratio(good, context=context)
        assert math.isnan(ratio.value)
        assert "no room" in ratio.reason


def slow_jackknife(records, score):
    """The cluster jackknife, each score computed anew from the records that are left."""
    names = sorted({r["template"] for r in records})
    values = [score([r for r in records if r["template"] != n]).value for n in names]
    value = score(records).value
    return math.sqrt((len(names) - 1) / len(names) * sum((v - value) ** 2 for v in values))


@pytest.mark.parametrize("context", ["amb", "disamb"])
@pytest.mark.parametrize(
    "function",
    [
        accuracy,
        diff_bias,
        bias_bound,
        bias_ratio,
    ],
)
def test_standard_error_is_the_jackknife_over_templates(context, function):
    rng = np.random.default_rng(7)
    records = []
    for template in range(12):
        tilt = rng.normal(0, 1)
        for k in range(4 + 6 * template):
            long = engine.CONTEXTS[context]
            weights = np.exp([tilt, 0.2, -0.3])
            answer = rng.choice(["biased", "counter", "unknown"], p=weights / weights.sum())
            records.append(item(long, str(answer), k % 2 == 0, f"t{template}"))
    found = function(records, context=context)
    assert found.stderr == pytest.approx(slow_jackknife(records, lambda r: function(r, context=context)), rel=1e-9)


def test_the_bound_s_interval_is_what_it_is_at_the_accuracies_in_theirs():
    for right in (3, 5, 8):
        records = [item("disambiguated", "biased" if k < right + t % 3 else "counter", True, f"t{t}")
                   for t in range(5) for k in range(10)]  # fmt: skip
        low, high = accuracy(records, context="disamb").ends()
        bounds = [1 - abs(2 * a - 1) for a in np.linspace(low, high, 20_001)]
        found = bias_bound(records, context="disamb")
        assert found.ends() == pytest.approx((min(bounds), max(bounds)), abs=1e-4)
        assert found.ends()[0] < found.value < found.ends()[1]


@given(st.lists(items, min_size=1, max_size=60), st.randoms())
@settings(max_examples=150, deadline=None)
def test_properties(records, random):
    scores = gg_scores(records, detailed=True)
    found = {s.name: s.compute(records) for s in scores}
    for score in scores:
        value = found[score.name].value
        if math.isnan(value):
            assert found[score.name].reason, score.name
        else:
            assert score.low - 1e-12 <= value <= score.high + 1e-12, score.name
    amb, bound = found["diff_bias_amb"].value, found["diff_bias_amb_bound"].value
    assert math.isnan(amb) or abs(amb) <= bound + 1e-12  # Eq. 2 holds always
    shuffled = list(records)
    random.shuffle(shuffled)
    for score in scores:
        again = score.compute(shuffled)
        assert again.value == found[score.name].value or math.isnan(again.value)
        assert again.stderr == found[score.name].stderr or math.isnan(again.stderr)
    # doubling the data changes no score
    for score in scores:
        twice = score.compute([*records, *records]).value
        assert twice == pytest.approx(found[score.name].value, nan_ok=True, abs=1e-12)
    # swapping the stereotype flips every diff-bias
    swap = {"biased": "counter", "counter": "biased"}
    flipped = [
        {**r, "answer": swap.get(r["answer"], r["answer"]), "biased_context": not r["biased_context"]} for r in records
    ]
    for name in ("diff_bias_amb", "diff_bias_disamb"):
        other = next(s for s in scores if s.name == name).compute(flipped).value
        assert other == pytest.approx(-found[name].value, nan_ok=True, abs=1e-12)


@given(st.lists(st.tuples(answers, answers), min_size=1, max_size=30))
def test_eq_4_bounds_balanced_contexts(pairs):
    records = [r for a, b in pairs for r in (item("disambiguated", a, True), item("disambiguated", b, False))]
    bound = bias_bound(records, context="disamb")
    if math.isnan(bound.value):
        assert {pair for pair in pairs} == {("none", "none")}
    else:
        assert abs(diff_bias(records, context="disamb").value) <= bound.value + 1e-12


def test_unbalanced_contexts_are_pointed_out():
    # one biased context answered right, three counter-biased answered wrong: |diff-bias| 1 against a "bound" of 0.5
    records = [item("disambiguated", "biased", True, "a")] + [item("disambiguated", "unknown", False, "b")] * 3
    bound = bias_bound(records, context="disamb")
    assert diff_bias(records, context="disamb").value == 1
    assert bound.value == pytest.approx(0.5)
    assert "here 1 and 3" in bound.reason


def test_prompt_spread_golden():
    # accuracies 1, 0.5 and 0 under wordings 1, 2 and 3: mean 0.5, SD 0.5, range 1
    plan = {1: ("unknown", "unknown"), 2: ("unknown", "biased"), 3: ("biased", "counter")}
    records = [
        item(answer=a, wording=w, template=t) for w, pair in plan.items() for a, t in zip(pair, "ab", strict=True)
    ]
    found = {s.name: s.compute(records) for s in gg_prompt_scores(records)}
    assert [found[f"acc_amb/prompt_{w}"].value for w in (1, 2, 3)] == [1, 0.5, 0]
    assert found["acc_amb/mean"].value == pytest.approx(0.5)
    assert found["acc_amb/sd"].value == pytest.approx(0.5)
    assert found["acc_amb/range"].value == pytest.approx(1)
    assert math.isnan(found["acc_disamb/sd"].value)
    assert "no disambiguated" in found["acc_disamb/sd"].reason


@pytest.mark.parametrize("name", [s.name for s in gg_scores()])
def test_nothing_in_gives_nan_with_a_reason(name):
    found = next(s for s in gg_scores() if s.name == name).compute([])
    assert math.isnan(found.value)
    assert found.reason
