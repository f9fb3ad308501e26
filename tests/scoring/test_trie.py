"""Methods of running a trie on a model whose logits tell exactly what a token saw."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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


def in_order(inputs):
    return sorted(map(list, set(map(tuple, inputs))))


@settings(max_examples=60)
@given(few, st.integers(0, 30), st.sampled_from([1, 7, 20, 100]))
def test_each_sequence_is_whole_in_one_row_and_sees_its_own_tokens(
    inputs, shots, budget
):
    sequences = in_order([1] * shots + ids for ids in inputs)
    found = set()
    for part in rows.lay_out(sequences, budget, 1e-4):
        packed = [row for _, row in part]
        sizes = [len(row.tokens) for row in packed]
        assert len(part) == 1 or max(sizes) * len(part) <= budget
        logits = NETWORK.logits(packed, list(map(np.arange, sizes))).split(sizes)
        for (first, row), of_row in zip(part, logits, strict=True):
            for place, path in enumerate(row.paths, first):
                assert place not in found
                found.add(place)
                ids = sequences[place]
                wanted = TABLE[ids, range(len(ids))].cumsum(0)
                assert torch.allclose(of_row[path], wanted)
    assert found == set(range(len(sequences)))


# what all begin with is run once a row
@pytest.mark.parametrize(("shots", "most"), [(0, 1.05), (300, 1.7)])
def test_what_requests_share_is_run_again_once_a_row(shots, most):
    rng = np.random.default_rng(0)
    prompts = [
        [1] * shots + [i % 4, *rng.integers(0, 4, 25).tolist()] for i in range(60)
    ]
    sequences = in_order(prompt + [word] for prompt in prompts for word in range(4))
    parts = list(rows.lay_out(sequences, 2048, 1e-4))
    run = sum(len(row.tokens) for part in parts for _, row in part)
    least = len(rows.PackedRow(sequences).tokens)
    assert least <= run <= most * least


def test_nodes_are_the_distinct_beginnings_in_order():
    # 1, 1 2, 1 2 70000, 1 255, 256, 256 1
    row = rows.PackedRow([[1, 2], [1, 2, 70000], [1, 255], [256, 1]])
    assert row.tokens.tolist() == [1, 2, 70000, 255, 256, 1]
    assert row.depths.tolist() == [0, 1, 2, 1, 0, 1]
    # behind the last that begins with it
    assert row.ends.tolist() == [4, 3, 3, 4, 6, 6]
    paths = [path.tolist() for path in row.paths]
    assert paths == [[0, 1], [0, 1, 2], [0, 3], [4, 5]]
