"""How sequences become pieces: nothing lost, nothing seen that isn't an ancestor, as little as can be run twice."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.models import prefix_trie
from lm_eval_bias.models.packed import layouts, packed_forwards
from lm_eval_bias.models.packed.trie_walk import Strand

few = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=25)


@given(few)
def test_arranged_sequences_are_the_distinct_inputs_in_order(inputs):
    found, of = prefix_trie.arrange(inputs)
    as_lists = [found.ids(k).tolist() for k in range(len(found))]
    assert as_lists == sorted(list(ids) for ids in {tuple(ids) for ids in inputs})
    assert [as_lists[k] for k in of] == inputs
    nodes = {tuple(ids[: i + 1]) for ids in inputs for i in range(len(ids))}
    assert found.trie_size == len(nodes)


def test_ids_of_any_size_keep_their_order():
    found, of = prefix_trie.arrange([[256], [1], [70000], [255, 2], [70000, 0]])
    assert [found.ids(k).tolist() for k in of] == [[256], [1], [70000], [255, 2], [70000, 0]]
    assert [found.ids(k).tolist() for k in range(5)] == [[1], [255, 2], [256], [70000], [70000, 0]]


def test_comparison_in_chunks_is_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    inputs = [rng.integers(0, 2, rng.integers(1, 12)).tolist() for _ in range(200)]
    whole, _ = prefix_trie.arrange(inputs)
    monkeypatch.setattr(prefix_trie, "_CHUNK", 7)
    parts, _ = prefix_trie.arrange(inputs)
    assert whole.shared.tolist() == parts.shared.tolist()


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=9), st.integers(1, 14))
def test_no_other_cuts_run_fewer_tokens(inputs, width):
    found, _ = prefix_trie.arrange(inputs)
    lengths, shared = found.lengths.tolist(), found.shared.tolist()
    n = len(lengths)

    def tokens(start, end):
        return lengths[start] + sum(lengths[k] - shared[k] for k in range(start + 1, end))

    best = None
    for count in range(n):
        for cuts in itertools.combinations(range(1, n), count):
            edges = [0, *cuts, n]
            sizes = [tokens(a, b) for a, b in itertools.pairwise(edges)]
            if all(size <= width or b == a + 1 for size, (a, b) in zip(sizes, itertools.pairwise(edges), strict=True)):
                best = sum(sizes) if best is None else min(best, sum(sizes))
    found_pieces = layouts.cut_pieces(lengths, shared, width)
    assert [size for *_, size in found_pieces] == sorted((size for *_, size in found_pieces), reverse=True)
    pieces = sorted(found_pieces)
    assert [first for first, *_ in pieces] == [0, *(last for _, last, _ in pieces[:-1])]
    assert all(size == tokens(first, last) for first, last, size in pieces)
    assert all(size <= width or last == first + 1 for first, last, size in pieces)
    assert sum(size for *_, size in pieces) == best


@settings(max_examples=60)
@given(few, st.integers(8, 40))
def test_a_token_sees_its_own_beginning_and_nothing_else(inputs, widest):
    found, _ = prefix_trie.arrange(inputs)
    pieces = layouts.pieces_of(found, layouts.Cost(1.0, 0.01), 1024, widest)
    assert sorted(k for first, last, _ in pieces for k in range(first, last)) == list(range(len(found)))
    needed = np.minimum(found.lengths, 2)
    for first, last, size in pieces:
        nodes = Strand(found, first, last, needed)
        assert len(nodes.ids) == size
        for k in range(first, last):
            own = nodes.needed[nodes.bounds[k - first] : nodes.bounds[k - first + 1]]
            seen = [j for j in range(size) if j <= own[-1] < nodes.ends[j]]
            assert nodes.ids[seen].tolist() == found.ids(k).tolist()
            assert nodes.depths[seen].tolist() == list(range(len(seen)))
            assert own.tolist() == seen[-int(needed[k]) :]


@given(few)
def test_every_node_has_its_depth(inputs):
    found, _ = prefix_trie.arrange(inputs)
    wanted = Strand(found, 0, len(found), np.ones(len(found), int)).depths
    assert found.depths(np.arange(found.trie_size)).tolist() == wanted.tolist()


@given(few)
def test_groups_with_a_common_beginning(inputs):
    found, _ = prefix_trie.arrange(inputs)
    lengths, needed = found.lengths.tolist(), [1] * len(found)
    groups = packed_forwards.groups_of(lengths, found.shared.tolist(), needed)
    assert [k for first, last, _ in groups for k in range(first, last)] == list(range(len(found)))
    for first, last, common in groups:
        beginnings = {tuple(found.ids(k)[:common]) for k in range(first, last)}
        assert len(beginnings) == 1
        assert all(lengths[k] > common for k in range(first, last))
        assert last - first > 1 or common == 0


def test_many_requests_share_what_they_can():
    rng = np.random.default_rng(0)
    prompts = [[i, *rng.integers(0, 50_000, 29).tolist()] for i in range(400)]
    inputs = [prompt + [word] for prompt in prompts for word in range(20)]
    found, _ = prefix_trie.arrange(inputs)
    assert found.trie_size == 400 * 50
    pieces = layouts.pieces_of(found, layouts.Cost(2e8, 7e4), 1024)
    assert sum(piece.size for piece in pieces) <= 1.05 * found.trie_size


@pytest.mark.parametrize("budget", [10, 64, 1000])
def test_pieces_respect_a_budget(budget):
    inputs = [[i, *range(3 + i % 20)] for i in range(100)]
    found, _ = prefix_trie.arrange(inputs)
    pieces = layouts.pieces_of(found, layouts.Cost(1.0, 1e-3), budget)
    assert all(piece.size <= max(budget, 23) for piece in pieces)
    one = layouts.pieces_of(found, layouts.Cost(1.0, 0.0), 8192)  # where only tokens cost, as few twice as can be
    assert sum(piece.size for piece in one) == found.trie_size
