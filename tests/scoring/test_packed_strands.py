"""Strands of the trie, walked without a model: each token finds its own beginning, each sequence all it needs, once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.models import prefix_trie
from lm_eval_bias.models.packed import layouts
from lm_eval_bias.models.packed.trie_walk import Strand

COST = layouts.Cost(1.0, 0.01)
few = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=40)


def windows(strand, width):
    while strand.at < len(strand):
        yield min(strand.at + width, len(strand))


def lay(found, needed, budget=1024, most=10**6, widest=10**6):
    return layouts.cheapest_strands(found, needed, COST, budget, most, widest)


@settings(max_examples=200)
@given(few, st.sampled_from([1, 3, 8]), st.integers(1, 4), st.integers(1, 4))
def test_every_sequence_is_answered_once_from_its_own_tokens(inputs, width, count, last):
    found, _ = prefix_trie.arrange(inputs)
    needed = np.minimum(found.lengths, last)
    layout = layouts.strands_of(found, count, width, COST)
    assert sorted(k for first, end in layout.strands for k in range(first, end)) == list(range(len(found)))
    answers = {}
    deepest = 0
    for first, end in layout.strands:
        strand = Strand(found, first, end, needed)
        path = np.zeros(20, int)
        logits = []  # the beginnings that stand for them: those kept, then new ones
        for to in windows(strand, width):
            at, size = strand.at, to - strand.at
            before = np.minimum.accumulate(strand.depths[at:to])
            deepest = max(deepest, before[0])
            ends = np.minimum(strand.ends[at:to] - at, size)
            fresh = strand.needed_nodes(to)
            for node in fresh - at:
                inside = [j for j in range(node + 1) if node < ends[j]]
                logits.append([*path[: before[node]], *strand.ids[at:to][inside]])
            kept = len(strand.pending)
            assert len(logits) == kept + len(fresh)
            for node in strand.on_path(to):
                path[strand.depths[node]] = strand.ids[node]
            done, later = strand.finish(to, fresh, 0, kept)
            for k, places in done.items():
                assert k not in answers
                answers[k] = [logits[i] for i in places]
            logits = [logits[i] for i in later]
        assert not logits  # nothing is kept to the end
    assert layout.columns == deepest
    for k in range(len(found)):
        ids = found.ids(k).tolist()
        assert answers[k] == [ids[: len(ids) - i] for i in range(int(needed[k]) - 1, -1, -1)]


@settings(max_examples=100)
@given(few, st.sampled_from([8, 16]))
def test_the_price_is_that_of_the_windows(inputs, width):
    found, _ = prefix_trie.arrange(inputs)
    needed = np.ones(len(found), int)
    layout = layouts.strands_of(found, 100 // width, width, COST)
    lengths = [len(Strand(found, *strand, needed).ids) for strand in layout.strands]
    assert lengths == sorted(lengths, reverse=True)
    price = 0.0
    for at in range(0, lengths[0], width):
        walked = [s for s, n in zip(layout.strands, lengths, strict=True) if n > at]
        columns = max(Strand(found, *strand, needed).depths[at] for strand in walked)
        size = layouts.even(min(width, lengths[0] - at))
        price += len(walked) * size * (COST.token + COST.pair * (columns + size))
    assert layout.price == pytest.approx(price)


def deep():
    """Beginnings of 100 tokens in chains of branches, as paragraphs with questions and answers have."""
    rng = np.random.default_rng(0)
    made = []
    for paragraph in range(25):
        text = [paragraph, *rng.integers(0, 900, 99).tolist()]
        for _ in range(12):
            question = rng.integers(0, 900, 20).tolist()
            made += [text + question + rng.integers(0, 900, 6).tolist() for _ in range(3)]
    return prefix_trie.arrange(made)[0]


def test_deep_beginnings_are_cheaper_as_strands_than_as_pieces():
    found = deep()
    cost = layouts.Cost(2e8, 1e5)
    layout = layouts.cheapest_strands(found, np.full(len(found), 2), cost, 1024, 2048, layouts.WIDEST)
    assert layout.price < 0.9 * layouts.price(layouts.pieces_of(found, cost, 1024), cost, 1024)
    assert layout.price < 1.2 * found.trie_size * cost.token


def test_strands_are_cut_where_little_is_run_again():
    found = deep()
    firsts = layouts.cut_strands(found, 8)
    assert len(firsts) == 8
    assert found.shared[firsts].max() == 0  # between paragraphs
    sizes = [len(Strand(found, a, b, np.ones(len(found), int)).ids)
             for a, b in zip(firsts, [*firsts[1:], len(found)], strict=True)]  # fmt: skip
    assert max(sizes) < 1.4 * min(sizes)


def test_limits_leave_fewer_choices_or_none():
    found = deep()
    needed = np.full(len(found), 6)
    free = lay(found, needed)
    assert free.width > 32  # 32 paths of 120 tokens are too much to keep
    assert len(free.strands) * (free.columns + free.width) <= 4 * 1024
    assert lay(found, needed, most=6) is None  # one window has more needed tokens
    assert lay(found, needed, widest=free.columns + 31) is None
