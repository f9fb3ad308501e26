"""Methods of running a trie on a model whose logits tell exactly what a token saw."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache, PretrainedConfig

from lm_eval_bias.models import prefix_trie
from lm_eval_bias.models.packed import packed_forwards
from lm_eval_bias.models.packed.packed_forwards import ForwardOutput, Network
from lm_eval_bias.models.packed.trie_walk import Walk

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


MODEL = SimpleNamespace(config=PretrainedConfig(), get_output_embeddings=lambda: None)
NETWORK = Network(MODEL, sees, torch.device("cpu"), torch.float64, 1e-4, 8)


def walk(*widths, widest=8192):
    method = Walk(NETWORK)
    method.widths, method.widest = widths, widest
    return method


@settings(max_examples=30, deadline=None)
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
    sequences, _ = prefix_trie.arrange([[1] * shots + ids for ids in inputs])
    needed = np.minimum(sequences.lengths, last)
    wanted = []
    for k, count in enumerate(needed):
        sums = TABLE[sequences.ids(k).tolist(), range(sequences.lengths[k])].cumsum(0)
        wanted.extend(sums[-count:])
    answered = []
    for output in walk(width).outputs(sequences, needed, budget, most):
        for slot, row in zip(output.slots.tolist(), output.rows.tolist(), strict=True):
            answered.append(slot)
            assert torch.allclose(output.states[row], wanted[slot])
    assert sorted(answered) == list(range(len(wanted)))


# 300 tokens are more than a forward takes
@pytest.mark.parametrize("shots", [0, 300])
def test_shared_tokens_run_once(shots):
    rng = np.random.default_rng(0)
    prompts = [
        [1] * shots + [i % 4, *rng.integers(0, 4, 25).tolist()] for i in range(60)
    ]
    sequences, _ = prefix_trie.arrange(
        [prompt + [word, word] for prompt in prompts for word in range(4)]
    )
    needed = np.full(len(sequences), 2)
    run = sum(
        output.tokens for output in walk(16).outputs(sequences, needed, 128, NO_LIMIT)
    )
    assert sequences.trie_size <= run <= 1.05 * sequences.trie_size


@given(
    st.one_of(
        few,
        st.lists(
            st.lists(st.sampled_from([1, 255, 256, 70000]), min_size=1, max_size=3),
            min_size=1,
        ),
    )
)
def test_arranged_sequences_are_the_distinct_inputs_in_order(inputs):
    found, of = prefix_trie.arrange(inputs)
    as_lists = [found.ids(k).tolist() for k in range(len(found))]
    assert as_lists == sorted(list(ids) for ids in {tuple(ids) for ids in inputs})
    assert [as_lists[k] for k in of] == inputs
    nodes = sorted({tuple(ids[: i + 1]) for ids in inputs for i in range(len(ids))})
    assert found.trie_size == len(nodes)
    assert found.depths(np.arange(len(nodes))).tolist() == [
        len(node) - 1 for node in nodes
    ]


@pytest.mark.parametrize("projects", [True, False])
def test_scores_in_parts_of_a_vocabulary_are_those_of_all_logits(projects, monkeypatch):
    monkeypatch.setattr(packed_forwards, "_COLUMNS", 7)
    draw = torch.Generator().manual_seed(2)
    head = torch.nn.Linear(5, 30)
    states = torch.randn(12, 5, generator=draw)
    with torch.no_grad():
        head.bias[7:14] = -torch.inf  # a part of the vocabulary that can't come
        head.weight[20], head.bias[20] = head.weight[3], head.bias[3]  # equally likely
        logits = head(states)
    places, targets = np.repeat(np.arange(12), 30), np.tile(np.arange(30), 12)
    outputs = [
        ForwardOutput(at, at % 6, states[at], 6, head)
        if projects
        else ForwardOutput(at, at % 6, logits[at], 6)
        for at in (np.arange(6), np.arange(6, 12))
    ]
    joined = list(packed_forwards.collected(outputs))
    assert len(joined) == (1 if projects else 2)
    if not projects:
        joined = [ForwardOutput(places, places, logits, 12)]
    found, greedy = joined[0].score(places, targets)
    wanted = logits.log_softmax(-1)[places, targets]
    assert np.allclose(found, wanted.numpy(), atol=1e-5)
    assert greedy.tolist() == (logits.argmax(-1)[places].numpy() == targets).tolist()
