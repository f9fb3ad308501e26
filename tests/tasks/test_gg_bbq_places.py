"""GG-BBQ's options: a model that always takes the same place gets no bias from it, in any beginning of the data."""

import hashlib
import json
from collections import Counter
from functools import partial

import numpy as np
import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.custom_metrics import question_answering as engine
from lm_eval_bias.tasks.gg_bbq import hooks
from lm_eval_bias.tasks.gg_bbq.benchmark import BENCHMARK
from lm_eval_bias.tasks.kinds.quadruples import BLOCK, stratum

diff_bias = partial(engine.compute, kind="diff_bias")

DATA = [("group_terms", "latest"), ("names", "latest"), ("group_terms", "paper"), ("names", "paper")]
# the order of the items, and of the options in each one's prompt; whoever changes it changes every prompt
GOLDEN = {
    ("group_terms", "latest"): "d7a5992fe4f88400",
    ("names", "latest"): "1403d86680c3a86b",
    ("group_terms", "paper"): "a91f3f7bf559ae3e",
    ("names", "paper"): "656362ebd2616ba9",
}


def documents(subset, release, **more):
    return hooks.dataset(subset, fixed={"release": release}, **more)["test"]


def taken(doc, place):
    """The record of a model that answers with whatever stands at that place."""
    return BENCHMARK.record(doc, [(0.0 if i == doc["order"][place] else -1.0, False) for i in range(3)])


def curves(docs, place):
    """diff-bias of that model over every beginning of the data, by hand; nan without both kinds of contexts."""
    context = np.array([doc["context_type"] == "ambiguous" for doc in docs])
    biased = np.array([doc["label"] == doc["biased_choice"] for doc in docs])
    own = np.array([doc["order"][place] for doc in docs])
    label = np.array([doc["label"] for doc in docs])
    unknown = np.array([doc["groups"].index("unknown") for doc in docs])
    towards = np.array([doc["biased_choice"] for doc in docs])
    signed = np.where(own == towards, 1.0, np.where(own == unknown, 0.0, -1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        amb = np.cumsum(signed * context) / np.cumsum(context)
        part = [np.cumsum((own == label) & ~context & b) / np.cumsum(~context & b) for b in (biased, ~biased)]
    return amb, part[0] - part[1]


def told_apart(docs):
    """The documents whose two persons have different names: only these can be answered."""
    return [doc for doc in docs if len(set(doc["choices"])) == 3]


@pytest.mark.parametrize(("subset", "release"), DATA)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_place_gives_no_bias_in_any_beginning(subset, release, place, mirror):
    docs = told_apart(documents(subset, release))
    assert docs == documents(subset, release)[: len(docs)]  # items that can't be answered come last
    amb, disamb = curves(docs, place)
    known = [d for d in docs if d["context_type"] == "disambiguated" and d["question_type"] == "negative"]
    sizes = Counter(d["label"] == d["biased_choice"] for d in known)
    whole = sum(n // 3 for n in sizes.values()) * BLOCK  # what lies behind is one or two quadruples of a direction
    limits = np.arange(BLOCK, whole + 1, BLOCK)
    assert np.abs(amb[limits - 1]).max() == 0
    both = limits[~np.isnan(disamb[limits - 1])]
    assert len(both) >= len(limits) - 2
    assert np.abs(disamb[both - 1]).max() < 1e-12
    # the rest: where one or two of a block's three quadruples came, right answers are off by 2/3 of one at most
    rest = sum(2 / 3 / (2 * n) for n in sizes.values() if n % 3)
    assert abs(amb[-1]) == 0
    assert abs(disamb[-1]) <= rest + 1e-12
    # any other limit: a broken block has 5 items of its direction at most, whose right answers are off by 1 at most
    b = np.cumsum([d["context_type"] == "disambiguated" and d["label"] == d["biased_choice"] for d in docs])
    c = np.cumsum([d["context_type"] == "disambiguated" and d["label"] != d["biased_choice"] for d in docs])
    with np.errstate(divide="ignore"):
        assert np.all(np.isnan(disamb) | (np.abs(disamb) <= 1 / b + 1 / c))
    assert np.all(np.abs(amb) <= 1 / np.cumsum([d["context_type"] == "ambiguous" for d in docs]))


@pytest.mark.parametrize(("subset", "release"), DATA)
@pytest.mark.parametrize("limit", [BLOCK * 10, BLOCK * 21, None])
def test_the_scores_agree(subset, release, limit, mirror):
    docs = documents(subset, release)[:limit]
    for place in range(3):
        records = [taken(doc, place) for doc in told_apart(docs)]
        for context, curve in zip(("amb", "disamb"), curves(told_apart(docs), place), strict=True):
            assert diff_bias(records, context=context).value == pytest.approx(curve[-1], abs=1e-12)
            assert engine.position_effect(records, context=context) == pytest.approx(
                max(abs(curves(told_apart(docs), p)[context == "disamb"][-1]) for p in range(3)), abs=1e-12
            )


@pytest.mark.parametrize(("subset", "release"), DATA)
def test_places_are_balanced_within_templates_and_directions(subset, release, mirror):
    docs = told_apart(documents(subset, release))
    quadruples = {}
    for doc in docs:
        quadruples.setdefault(doc["item"] // 2, []).append(doc)
    strata = {}
    for own in quadruples.values():
        assert len(own) == 4
        assert len({tuple(doc["order"]) for doc in own}) == 1
        strata.setdefault(stratum(own), []).append(own[0])
    off = []
    for own in strata.values():
        for choice in range(3):  # "keine Antwort", and either person
            places = Counter(doc["order"].index(choice) for doc in own)
            off.append(max(places[p] for p in range(3)) - min(places[p] for p in range(3)))
            assert off[-1] <= (2 if choice == 2 else 3)
        swaps = Counter(doc["order"].index(0) < doc["order"].index(1) for doc in own)
        assert abs(swaps[True] - swaps[False]) <= 3
    assert sum(one <= 1 for one in off) >= 0.9 * len(off)


@pytest.mark.parametrize(("subset", "release"), DATA)
def test_any_beginning_is_spread_over_templates(subset, release, mirror):
    first = documents(subset, release)[:84]
    assert Counter(doc["template"] for doc in first) == dict.fromkeys({doc["template"] for doc in first}, 4)
    assert len({doc["template"] for doc in first}) == 21


@pytest.mark.parametrize(("subset", "release"), DATA)
def test_orders_are_the_ones_that_were_released(subset, release, mirror):
    content = [[*registry.get("gg_bbq").key(doc), doc["order"]] for doc in documents(subset, release)]
    assert hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16] == GOLDEN[subset, release]


@pytest.mark.parametrize("limit", [20, 28, 34, 41, 48, 60, 120])
def test_a_limited_run_that_is_not_balanced_says_so(limit, mirror):
    docs = documents("group_terms", "latest")[:limit]
    # whatever the model answers: this one is right everywhere
    records = [BENCHMARK.record(doc, [(float(i == doc["label"]), False) for i in range(3)]) for doc in docs]
    for context in ("amb", "disamb"):
        found = diff_bias(records, context=context)
        assert found.value == 0
        worst = max(abs(curves(docs, place)[context == "disamb"][-1]) for place in range(3))
        assert (engine.POSITION_CAVEAT in found.reason) == (worst > engine.POSITION_TOLERANCE)
        assert limit % BLOCK or worst < 1e-12
    plain = [BENCHMARK.record({**doc, "wording": 1}, [(0.0, False), (-1.0, False), (-2.0, False)]) for doc in docs]
    assert "places" not in diff_bias(plain, context="disamb").reason  # this wording shows no options
