"""Methods of running a trie on a model whose logits tell exactly what a token saw."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.models import prefix_trie
from lm_eval_bias.models.packed import rows
from lm_eval_bias.models.packed.packed_forwards import ForwardOutput, Network

NO_LIMIT = 1 << 30
few = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=25
)
TABLE = torch.rand(
    4, 400, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64
)  # of token and position


def sees(input_ids, position_ids, attention_mask, use_cache):
    """Answer with the sum over all that each token sees, itself included, of what stands in the table for it."""
    seen = TABLE[input_ids, position_ids]
    return SimpleNamespace(logits=(attention_mask[:, 0] == 0).double() @ seen)


MODEL = SimpleNamespace(get_output_embeddings=lambda: None)
NETWORK = Network(MODEL, sees, torch.device("cpu"), torch.float64, 1e-4, 8)


def outputs(trie, counts, budget, most):
    needed = np.zeros(len(trie), bool)
    needed[trie.tails(counts)] = True
    layout = rows.lay_out(trie, needed, budget, most, NETWORK.attention_cost)
    for nodes, places in rows.forwards(trie, needed, layout, budget, most):
        yield NETWORK.run(trie, nodes, places)


@settings(max_examples=60)
@given(
    few,
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from([1, 7, 20, 100]),
    st.sampled_from([1, 5, NO_LIMIT]),
)
def test_each_needed_token_is_answered_once_from_its_own_beginning(
    inputs, shots, last, budget, most
):
    given = [[1] * shots + ids for ids in inputs]
    counts = [min(len(ids), last) for ids in given]
    trie = prefix_trie.Trie(given)
    wanted = []
    for ids, count in zip(given, counts, strict=True):
        wanted.extend(TABLE[ids, range(len(ids))].cumsum(0)[-count:])
    answered = {}
    for output in outputs(trie, counts, budget, most):
        for node, states in zip(output.nodes.tolist(), output.logits, strict=True):
            assert node not in answered
            answered[node] = states
    tails = trie.tails(counts).tolist()
    assert answered.keys() == set(tails)
    for node, sums in zip(tails, wanted, strict=True):
        assert torch.allclose(answered[node], sums)


# what all begin with is run once a row
@pytest.mark.parametrize(("shots", "most"), [(0, 1.05), (300, 1.7)])
def test_what_requests_share_is_run_again_once_a_row(shots, most):
    rng = np.random.default_rng(0)
    prompts = [
        [1] * shots + [i % 4, *rng.integers(0, 4, 25).tolist()] for i in range(60)
    ]
    inputs = [prompt + [word, word] for prompt in prompts for word in range(4)]
    trie = prefix_trie.Trie(inputs)
    run = sum(out.tokens for out in outputs(trie, [2] * len(inputs), 2048, NO_LIMIT))
    assert len(trie) <= run <= most * len(trie)


@given(
    st.one_of(
        few,
        st.lists(
            st.lists(st.sampled_from([1, 255, 256, 70000]), min_size=1, max_size=3),
            min_size=1,
        ),
    )
)
def test_nodes_are_the_distinct_beginnings_in_order(inputs):
    trie = prefix_trie.Trie(inputs)
    nodes = sorted({tuple(ids[: i + 1]) for ids in inputs for i in range(len(ids))})
    assert trie.tokens.tolist() == [node[-1] for node in nodes]
    assert trie.depths.tolist() == [len(node) - 1 for node in nodes]
    for number, (node, end) in enumerate(zip(nodes, trie.ends.tolist(), strict=True)):
        below = [other[: len(node)] == node for other in nodes]
        assert below == [number <= other < end for other in range(len(nodes))]
    for ids, k in zip(inputs, trie.sequence_of, strict=True):
        of_ids = trie.paths[k].tolist()
        assert of_ids == [nodes.index(tuple(ids[: i + 1])) for i in range(len(ids))]
        strand = trie.strand(k, k + 1).tolist()
        assert strand == of_ids
    counts = [len(ids) // 2 + 1 for ids in inputs]
    tails = [ids[-count:] for ids, count in zip(inputs, counts, strict=True)]
    assert trie.tokens[trie.tails(counts)].tolist() == sum(tails, [])


def test_scores_of_logits():
    draw = torch.Generator().manual_seed(2)
    logits = torch.randn(12, 30, generator=draw)
    logits[:, 7:14] = -torch.inf  # a part of the vocabulary that can't come
    logits[:, 20] = logits[:, 3]  # equally likely
    places, targets = np.repeat(np.arange(12), 30), np.tile(np.arange(30), 12)
    found, greedy = ForwardOutput(np.arange(12), logits, 12).score(places, targets)
    wanted = logits.log_softmax(-1)[places, targets]
    assert np.allclose(found, wanted.numpy(), atol=1e-5)
    assert greedy.tolist() == (logits.argmax(-1)[places].numpy() == targets).tolist()
    # a window in which no token is predicted
    nothing = ForwardOutput(np.arange(0), logits[:0], 5)
    assert [part.size for part in nothing.score(places[:0], targets[:0])] == [0, 0]
