"""Regard's two intervals: against slow computations, by simulation, and where there is only one of them."""

import math

import numpy as np
import pytest
from scipy import special, stats

from lm_eval_bias.analysis import rank_intervals
from lm_eval_bias.custom_metrics import context_shares, contingency
from lm_eval_bias.custom_metrics import regard as m
from lm_eval_bias.custom_metrics.context_shares import Row
from lm_eval_bias.tasks.regard import hooks

# texts about women and men that are positive, of how many, by context
RESPECT = {"a": ((30, 40), (20, 40)), "b": ((10, 35), (12, 40)), "c": ((25, 40), (22, 38)), "d": ((33, 40), (35, 40)),
           "e": ((18, 30), (11, 40))}  # fmt: skip
OCCUPATION = {"f": ((2, 40), (1, 40)), "g": ((5, 40), (1, 40)), "h": ((0, 38), (2, 39)), "i": ((3, 40), (3, 40)),
              "j": ((6, 40), (0, 40))}  # fmt: skip


def records(**sets):
    """A prompt about women and one about men per context; every third text has a keyword of caregiving."""
    return [
        {
            "gender": gender,
            "context": f"{name}: {context}",
            "context_set": name,
            "texts": [
                ("positive" if i < hits else "neutral", [name], ["caregiving"] if i % 3 == 0 else [])
                for i in range(total)
            ],
            "repeated": False,
            "drawn": total + len(context),
            "unfinished": hits // 2,
            "wordings": [f"{gender} {context} {i}" for i in range(total)],
            "has_other": False,
            "caveat": "",
        }
        for name, contexts in sets.items()
        for context, counts in contexts.items()
        for gender, (hits, total) in zip(m.GENDERS, counts, strict=True)
    ]


def estimates(own):
    return {score.name: score.compute(own) for score in m.scores(own, detailed=True)}


def slow_jackknife(value_of, strata):
    """Standard error and degrees of freedom by leaving out each context in turn, with plain loops."""
    everything = {name: (1.0, own) for stratum in strata for name, own in stratum.items()}
    whole, parts = value_of(everything.values()), []
    for stratum in strata:
        size, total = len(stratum), 0.0
        for left_out in stratum:
            weights = dict(everything)
            weights |= {name: (size / (size - 1), own) for name, own in stratum.items()}
            del weights[left_out]
            total += (value_of(weights.values()) - whole) ** 2
        texts = [sum(n for _, n in own) for own in stratum.values()]
        effective = sum(texts) ** 2 / sum(n * n for n in texts)
        parts.append((total * (size - 1) / size, max(effective - 1, 1.0)))
    variance = sum(part for part, _ in parts)
    return math.sqrt(variance), variance**2 / sum(part**2 / dof for part, dof in parts)


def share_of(place):
    def value_of(weighted):
        own = [(w, counts[place]) for w, counts in weighted]
        return sum(w * hits for w, (hits, _) in own) / sum(w * n for w, (_, n) in own)

    return value_of


def gap_of(weighted):
    own = list(weighted)
    return share_of(0)(own) - share_of(1)(own)


TWO = tuple(dict(list(contexts.items())[:2]) for contexts in (RESPECT, OCCUPATION))


def slow_interval(strata, stderr):
    """The shares' own intervals, joined as those of parts that are correlated (Zou & Donner 2008)."""
    shares = [estimates(records(**dict(zip(("respect", "occupation"), strata, strict=False))))[name]
              for name in ("all/female/positive", "all/male/positive")]  # fmt: skip
    (a, b), (low, high), (other_low, other_high) = (x.value for x in shares), *(x.ends() for x in shares)
    errors = [x.stderr for x in shares]
    covariance = (errors[0] ** 2 + errors[1] ** 2 - stderr**2) / 2
    rho = max(-1.0, min(1.0, covariance / (errors[0] * errors[1])))
    down, up = [a - low, other_high - b], [high - a, b - other_low]
    return tuple(a - b + sign * math.sqrt(x**2 + y**2 - 2 * rho * x * y) for sign, (x, y) in ((-1, down), (1, up)))


@pytest.mark.parametrize("strata", [(RESPECT,), (RESPECT, OCCUPATION), TWO])
def test_gap_is_jackknifed_over_contexts_within_sets(strata):
    own = records(**dict(zip(("respect", "occupation"), strata, strict=False)))
    estimate = estimates(own)["all/positive_gap"]
    stderr, dof = slow_jackknife(gap_of, strata)
    assert estimate.value == pytest.approx(gap_of([(1, c) for s in strata for c in s.values()]), abs=1e-12)
    assert estimate.stderr == pytest.approx(stderr, abs=1e-12)
    assert estimate.dof == pytest.approx(dof, abs=1e-9)
    assert estimate.ends() == pytest.approx(slow_interval(strata, stderr), abs=1e-12)
    hits = [sum(counts[g][0] for s in strata for counts in s.values()) for g in (0, 1)]
    totals = [sum(counts[g][1] for s in strata for counts in s.values()) for g in (0, 1)]
    assert estimate.fixed_interval == pytest.approx(contingency.newcombe(hits, totals), abs=1e-12)
    assert estimate.n == sum(totals)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("strata", [(RESPECT,), (OCCUPATION,), (RESPECT, OCCUPATION)])
def test_share_has_wilsons_interval_of_the_effective_number_of_texts(strata, place):
    own = records(**dict(zip(("respect", "occupation"), strata, strict=False)))
    estimate = estimates(own)[f"all/{m.GENDERS[place]}/positive"]
    only = [{name: (counts[place],) for name, counts in s.items()} for s in strata]
    stderr, dof = slow_jackknife(share_of(0), only)
    hits, total = (sum(counts[place][k] for s in strata for counts in s.values()) for k in (0, 1))
    p, t = hits / total, stats.t.ppf(0.975, dof)
    size = min(total, p * (1 - p) / stderr**2)
    centre, half = p + t**2 / (2 * size), t * math.sqrt(p * (1 - p) / size + t**2 / (4 * size**2))
    assert estimate.value == p
    assert estimate.stderr == pytest.approx(stderr, abs=1e-12)
    assert estimate.dof == pytest.approx(dof, abs=1e-9)
    assert estimate.interval == pytest.approx(
        ((centre - half) / (1 + t**2 / size), (centre + half) / (1 + t**2 / size)), abs=1e-9
    )
    given = stats.binomtest(hits, total).proportion_ci(method="wilson")
    assert estimate.fixed_interval == pytest.approx((given.low, given.high), abs=1e-12)
    assert estimate.n == total


def test_equal_contexts_give_the_standard_error_of_a_mean_of_contexts():
    rates = [0.1, 0.3, 0.2, 0.6, 0.4]
    own = records(respect={f"c{i}": ((int(20 * r), 20), (5, 20)) for i, r in enumerate(rates)})
    estimate = estimates(own)["respect/female/positive"]
    assert estimate.stderr == pytest.approx(np.std(rates, ddof=1) / math.sqrt(5), abs=1e-12)
    assert estimate.dof == pytest.approx(4, abs=1e-12)


def test_facets_and_quality_vary_over_contexts_too():
    values = estimates(records(respect=RESPECT, occupation=OCCUPATION))
    for name in ("caregiving/female", "caregiving/gap", "caregiving/male/respect", "dropped", "unfinished"):
        estimate = values[name]
        low, high = estimate.ends()
        assert estimate.stderr > 0
        assert 1 <= estimate.dof < 9
        assert low < estimate.value < high
        assert estimate.fixed_interval[0] < estimate.value < estimate.fixed_interval[1]
    contexts = [("respect", "a", 79), ("respect", "b", 75)]  # drawn: one more than there are texts, per prompt
    dropped = [Row(0, c, s, 2, n + 2) for s, c, n in contexts]
    assert context_shares.share(dropped).value == pytest.approx(4 / 158)
    assert values["dropped"].n == sum(r["drawn"] for r in records(respect=RESPECT, occupation=OCCUPATION))


def test_sets_that_differ_do_not_widen_what_is_about_all_contexts():
    # within each set all contexts are nearly alike: one 90% positive, one 10%
    close = {"respect": {f"r{i}": ((90 + i, 100), (90 - i, 100)) for i in (-1, 0, 1)},
             "occupation": {f"o{i}": ((10 + i, 100), (10 - i, 100)) for i in (-1, 0, 1)}}  # fmt: skip
    assert estimates(records(**close))["all/female/positive"].stderr < 0.01
    pooled = [{**r, "context_set": ""} for r in records(**close)]
    assert estimates(pooled)["all/female/positive"].stderr > 0.1


def test_a_set_of_one_context_is_taken_together_with_the_other():
    mixed = records(respect=RESPECT, occupation={"f": ((2, 40), (1, 40))})
    together = [{**r, "context_set": "one"} for r in mixed]
    assert estimates(mixed)["all/positive_gap"] == estimates(together)["all/positive_gap"]


def test_contexts_without_texts_are_no_clusters():
    own = records(respect=RESPECT)
    empty = records(respect={"z": ((0, 0), (0, 0))})
    for name in ("all/positive_gap", "all/male/positive", "caregiving/gap"):
        assert estimates([*own, *empty])[name] == estimates(own)[name]


@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_where_no_context_differs_the_error_is_wilsons_and_not_0(rate):
    same = {f"c{i}": ((int(20 * rate), 20), (int(20 * rate), 20)) for i in range(5)}
    values = estimates(records(respect=same))
    share, gap = values["all/female/positive"], values["all/positive_gap"]
    t = stats.t.ppf(0.975, 4)
    expected = contingency.wilson(100 * rate, 100, t)
    assert share.interval == pytest.approx(expected, abs=1e-9)
    assert share.stderr == pytest.approx((expected[1] - expected[0]) / 2 / t, abs=1e-9)
    difference = contingency.newcombe((100 * rate, 100 * rate), (100, 100), (t, t))
    assert gap.value == 0
    assert gap.interval == pytest.approx(difference, abs=1e-9)
    assert gap.stderr == pytest.approx((difference[1] - difference[0]) / 2 / t, abs=1e-9)
    assert share.stderr > 0.01
    assert gap.stderr > 0.01


def test_newcombes_interval_takes_each_genders_own_texts():
    # the men's texts lie unequally in the contexts: 10 to 50, worth 150^2 / 5500 equal contexts
    same = {f"c{i}": ((10, 20), (3 * i, 10 * i)) for i in range(1, 6)}
    gap = estimates(records(respect=same))["all/positive_gap"]
    t = [stats.t.ppf(0.975, dof) for dof in (4, 150**2 / 5500 - 1)]
    assert gap.value == pytest.approx(0.2)
    assert gap.interval == pytest.approx(contingency.newcombe((50, 45), (100, 150), t), abs=1e-9)


def test_the_same_difference_in_every_context_is_no_certainty():
    shifted = {f"c{i}": ((4 + 2 * i + 2, 20), (4 + 2 * i, 20)) for i in range(5)}
    gap = estimates(records(respect=shifted))["all/positive_gap"]
    assert gap.value == pytest.approx(0.1)
    low, high = gap.interval
    assert low < 0 < 0.1 < high
    assert gap.stderr > 0.01


@pytest.mark.parametrize("name", ["all/positive_gap", "all/female/positive", "caregiving/gap"])
def test_one_context_has_the_interval_of_these_prompts_alone(name):
    estimate = estimates(records(respect={"a": ((30, 40), (20, 40))}))[name]
    assert math.isnan(estimate.stderr)
    assert estimate.ends() is None
    assert "needs texts from at least 2 contexts" in estimate.reason
    assert estimate.fixed_interval[0] < estimate.value < estimate.fixed_interval[1]


def test_a_gap_whose_texts_about_men_come_from_one_context_has_no_error():
    own = records(respect={"a": ((30, 40), (20, 40)), "b": ((5, 40), (0, 0)), "c": ((7, 40), (0, 0))})
    values = estimates(own)
    assert math.isnan(values["all/positive_gap"].stderr)
    assert "2 contexts" in values["all/positive_gap"].reason
    assert values["all/female/positive"].stderr > 0


def test_labelled_texts_have_an_interval_for_these_texts_alone_and_say_so():
    own = [{k: v for k, v in r.items() if k not in ("context", "context_set")} for r in records(respect=RESPECT)]
    values = estimates(own)
    for name in ("all/positive_gap", "all/female/positive", "caregiving/gap", "dropped"):
        estimate = values[name]
        assert math.isnan(estimate.stderr), name
        assert estimate.ends() is None
        assert "only for these texts" in estimate.reason
        assert estimate.fixed_interval[0] < estimate.value < estimate.fixed_interval[1]


def test_one_text_without_a_prompt_leaves_the_first_interval_alone():
    own = [*records(respect=RESPECT), *records(respect={"z": ((1, 2), (1, 2))})]
    del own[-1]["context"]
    for name in ("all/positive_gap", "all/male/positive"):
        assert estimates(own)[name].ends() is None
        assert "only for these texts" in estimates(own)[name].reason


def test_the_test_speaks_of_these_prompts_alone():
    values = estimates(records(respect=RESPECT, occupation=OCCUPATION))
    v = values["all/cramers_v"]
    assert v.ends() is None
    assert v.fixed_interval[0] <= v.value <= v.fixed_interval[1]
    for score in m.scores():
        if score.name in ("all/chi2", "all/cramers_v"):
            assert "these prompts" in score.summary
            assert not score.has_stderr


def test_record_knows_the_context_and_its_set():
    doc = {"gender": "female", "language": "de", "set": "respect", "context": "galt als", "prompt": "Die Frau galt als",
           "has_other": False, "classifier": {"name": "x", "detail": "", "labels": [], "warning": ""}}  # fmt: skip
    record = hooks.record(doc, [[["Die Frau galt als klug.", "positive"]]])
    assert (record["context"], record["context_set"]) == ("respect: galt als", "respect")
    assert "confusion" not in record
    known = {"source": "20 texts", "counts": {"all": [[5, 1, 0], [1, 6, 1], [0, 1, 5]]}}
    doc["classifier"]["confusion"] = known
    assert hooks.record(doc, [[["Die Frau galt als klug.", "positive"]]])["confusion"] == known
    with pytest.raises(ValueError, match="4 rows of 4"):
        hooks.record({**doc, "has_other": True}, [[["Die Frau galt als klug.", "other"]]])


# ------------------------------------------------------------------ by simulation: contexts vary, shared and own


def drawn(rng, contexts, sets=1, mean=0.0, shift=0.0, apart=0.0, texts=100):
    """Contexts' rates from a probit model: effects of the context, and of context and gender."""
    names = [f"{c % sets}" for c in range(contexts)]
    base = (
        mean + apart * (np.arange(contexts) % sets - (sets - 1) / 2) + math.hypot(0.5, 0.2) * rng.normal(size=contexts)
    )
    rates = special.ndtr(base[:, None] + np.array([shift, 0.0]) + 0.15 * rng.normal(size=(contexts, 2)))
    hits = rng.binomial(texts, rates)
    return [Row(g, f"{c}", names[c], int(hits[c, g]), texts) for c in range(contexts) for g in (0, 1)]


def truth(mean, shift, sets=1, apart=0.0):
    spread = math.sqrt(1 + 0.5**2 + 0.2**2 + 0.15**2)
    centres = [mean + shift + apart * (s - (sets - 1) / 2) for s in range(sets)]
    return float(np.mean(special.ndtr(np.array(centres) / spread)))


@pytest.mark.parametrize(
    "design",
    [
        {"contexts": 5},
        {"contexts": 5, "shift": 0.3},
        {"contexts": 10},
        {"contexts": 10, "sets": 2, "apart": 2.0, "shift": 0.2},
        {"contexts": 5, "mean": -1.0},
    ],
)
def test_intervals_for_prompts_like_these_cover_in_93_to_97_percent(design):
    rng, rounds = np.random.default_rng(11), 1000
    spans = {key: design[key] for key in ("sets", "apart") if key in design}
    mean, shift = design.get("mean", 0.0), design.get("shift", 0.0)
    women, men = truth(mean, shift, **spans), truth(mean, 0.0, **spans)
    covered = {"gap": 0, "share": 0, "given": 0}
    for _ in range(rounds):
        rows = drawn(rng, **design)
        gap, share = context_shares.difference(rows), context_shares.share(rows[::2])
        covered["gap"] += gap.ends()[0] <= women - men <= gap.ends()[1]
        covered["share"] += share.ends()[0] <= women <= share.ends()[1]
        covered["given"] += share.fixed_interval[0] <= women <= share.fixed_interval[1]
    # three standard errors of 1,000 rounds are 2 points; two sets that are taken as one would cover in 100%
    assert 0.93 <= covered["gap"] / rounds <= 0.975, covered
    assert 0.93 <= covered["share"] / rounds <= 0.98, covered
    assert covered["given"] / rounds < 0.7, covered  # which isn't what it is for


def test_models_with_equal_expected_gaps_are_rarely_ranked():
    rng, rounds = np.random.default_rng(3), 400
    settled = {"like these": 0, "as given": 0}
    for _ in range(rounds):
        gaps = [context_shares.difference(drawn(rng, 10)) for _ in range(2)]
        points = {
            "like these": [rank_intervals.Point(g.value, g.stderr, g.dof) for g in gaps],
            "as given": [rank_intervals.Point(g.value, np.ptp(g.fixed_interval) / 3.92) for g in gaps],
        }
        for key, pair in points.items():
            first, second = rank_intervals.intervals(pair, None, True)
            settled[key] += first != second
    assert settled["like these"] / rounds <= 0.07
    assert settled["as given"] / rounds > 0.1  # what ranks did that took the prompts as given
