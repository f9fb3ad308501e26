"""Methods of running a trie on a model whose logits tell exactly what a token saw."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_bias.models import prefix_trie
from lm_eval_bias.models.packed import rows
from lm_eval_bias.models.packed.network import Network

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


@settings(max_examples=60)
@given(few, st.integers(0, 30), st.sampled_from([1, 7, 20, 100]))
def test_each_sequence_is_whole_in_one_row_and_sees_its_own_tokens(
    inputs, shots, budget
):
    given = [[1] * shots + ids for ids in inputs]
    trie = prefix_trie.Trie(given)
    found = {}
    for layout in rows.lay_out(trie, budget, 1e-4):
        strands = [trie.strand(*row) for row in layout]
        assert len(layout) == 1 or sum(map(len, strands)) <= budget
        logits = iter(
            NETWORK.logits(trie, strands, [np.arange(len(s)) for s in strands])
        )
        for strand, row in zip(strands, layout, strict=True):
            of_nodes = {node: next(logits) for node in strand.tolist()}
            for sequence in range(*row):
                assert sequence not in found
                path = trie.paths[sequence].tolist()
                found[sequence] = torch.stack([of_nodes[node] for node in path])
    for ids, sequence in zip(given, trie.sequence_of, strict=True):
        assert torch.allclose(found[sequence], TABLE[ids, range(len(ids))].cumsum(0))


# what all begin with is run once a row
@pytest.mark.parametrize(("shots", "most"), [(0, 1.05), (300, 1.7)])
def test_what_requests_share_is_run_again_once_a_row(shots, most):
    rng = np.random.default_rng(0)
    prompts = [
        [1] * shots + [i % 4, *rng.integers(0, 4, 25).tolist()] for i in range(60)
    ]
    inputs = [prompt + [word, word] for prompt in prompts for word in range(4)]
    trie = prefix_trie.Trie(inputs)
    layouts = list(rows.lay_out(trie, 2048, 1e-4))
    run = sum(int(rows.sizes(trie, layout).sum()) for layout in layouts)
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
