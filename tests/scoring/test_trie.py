"""Methods of running a trie on a model whose logits tell exactly what a token saw."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache, PretrainedConfig

from lm_eval_bias.models import prefix_trie
from lm_eval_bias.models.packed.packed_forwards import ForwardOutput, Network
from lm_eval_bias.models.packed.trie_walk import Walk, lay_out

NO_LIMIT = 1 << 30
few = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=25
)
TABLE = torch.rand(
    4, 400, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64
)  # of token and position


def sees(
    input_ids,
    position_ids=None,
    attention_mask=None,
    past_key_values=None,
    use_cache=False,
):
    """Answer with the sum over all that each token sees, itself included, of what stands in the table for it."""
    width = input_ids.shape[1]
    cache = (
        past_key_values
        if past_key_values is not None or not use_cache
        else DynamicCache()
    )
    before = 0 if cache is None else cache.get_seq_length()
    positions = (
        before + torch.arange(width)[None] if position_ids is None else position_ids
    )
    seen = TABLE[input_ids, positions][:, None]
    if cache is not None:
        seen, _ = cache.update(seen, seen, 0)
    causal = torch.ones(width, before + width).tril(before).bool()[None]
    visible = (
        attention_mask[:, 0] == 0
        if attention_mask is not None and attention_mask.dim() == 4
        else causal
    )
    return SimpleNamespace(logits=visible.double() @ seen[:, 0], past_key_values=cache)


MODEL = SimpleNamespace(
    config=PretrainedConfig(), get_output_embeddings=lambda: None, forward=sees
)
NETWORK = Network(MODEL, sees, torch.device("cpu"), torch.float64, 1e-4, 8)


def walk(*widths, widest=8192):
    method = Walk(NETWORK)
    method.widths, method.widest = widths, widest
    return method


@settings(max_examples=30)
@pytest.mark.parametrize("width", [1, 3, 512])
@given(
    few,
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from([1, 7, 20, 100]),
    st.sampled_from([1, 5, NO_LIMIT]),
)
def test_each_needed_token_is_answered_once_from_its_own_beginning(
    width, inputs, shots, last, budget, most
):
    given = [[1] * shots + ids for ids in inputs]
    counts = [min(len(ids), last) for ids in given]
    trie = prefix_trie.Trie(given)
    needed = trie.tails(counts)
    wanted = []
    for ids, count in zip(given, counts, strict=True):
        wanted.extend(TABLE[ids, range(len(ids))].cumsum(0)[-count:])
    answered = {}
    method = walk(width)
    layout = lay_out(trie, needed, method, budget, most)
    for output in method.outputs(trie, needed, layout):
        for node, states in zip(output.nodes.tolist(), output.logits, strict=True):
            assert node not in answered
            answered[node] = states
    assert answered.keys() == set(needed.tolist())
    for node, sums in zip(needed.tolist(), wanted, strict=True):
        assert torch.allclose(answered[node], sums)


# 300 tokens are more than a forward takes
@pytest.mark.parametrize("shots", [0, 300])
def test_shared_tokens_run_once(shots):
    rng = np.random.default_rng(0)
    prompts = [
        [1] * shots + [i % 4, *rng.integers(0, 4, 25).tolist()] for i in range(60)
    ]
    inputs = [prompt + [word, word] for prompt in prompts for word in range(4)]
    trie = prefix_trie.Trie(inputs)
    needed = trie.tails([2] * len(inputs))
    method = walk(16)
    layout = lay_out(trie, needed, method, 128, NO_LIMIT)
    run = sum(output.tokens for output in method.outputs(trie, needed, layout))
    assert len(trie) <= run <= 1.05 * len(trie)


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
