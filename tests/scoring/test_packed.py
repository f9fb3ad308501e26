"""hf-packed beside hf: the same numbers, however requests look and whatever a model can share."""

import logging
import random
from functools import partial

import numpy as np
import pytest
import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM
from lm_eval.models.huggingface import HFLM

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.harness.internals import loglikelihood_tokens
from lm_eval_bias.models.packed import rows
from lm_eval_bias.models.packed.packed_model import HFPacked
from tests.support import tiny

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
TWO = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}
GROUPED = {**SMALL, "num_key_value_heads": 2}
HEADS = {**GROUPED, "head_dim": 8}
CHUNKS = {"attention_chunk_size": 20, "intermediate_size_mlp": 48, "num_local_experts": 2,
          "interleave_moe_layer_step": 2, "no_rope_layers": [1, 1, 1, 0]}  # fmt: skip
LOCAL = {
    "hidden_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 1]],
}
# class, what its configuration has besides, whether its beginnings can be shared
FAMILIES = {
    "llama": ("LlamaConfig", GROUPED, True),
    "mistral, window": ("MistralConfig", {**HEADS, "sliding_window": 100}, True),
    "gemma2, soft-caps, windows": (
        "Gemma2Config",
        {**HEADS, "sliding_window": 100, "query_pre_attn_scalar": 8},
        True,
    ),
    "cohere2, windows": ("Cohere2Config", {**GROUPED, "sliding_window": 100}, True),
    "llama4, chunks": ("Llama4TextConfig", {**HEADS, **CHUNKS}, False),
    "gpt2": ("GPT2Config", GPT, True),
    "opt": ("OPTConfig", {**TWO, "ffn_dim": 48, "word_embed_proj_dim": 32}, True),
    "falcon, alibi": ("FalconConfig", {**TWO, "alibi": True}, False),
    "bloom": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4}, False),
    "gpt-neo, local layers": ("GPTNeoConfig", {**LOCAL, "window_size": 20}, False),
    "mamba": (
        "MambaConfig",
        {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
        False,
    ),
    "xlm, sees what follows": (
        "XLMConfig",
        {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "pad_index": 0},
        False,
    ),
}


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.gpt2_tokenizer()


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return tiny.gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(
    scope="module", params=["gpt2", "llama"]
)  # llama's tokenizer adds a start token
def where(request, tmp_path_factory):
    return getattr(tiny, request.param)(tmp_path_factory.mktemp(request.param))


def hf(where, **options):
    options = {"dtype": "float32", "batch_size": 1, "logits_cache": False} | options
    return HFLM(pretrained=where, device="cpu", **options)


def packed(where, **options):
    return HFPacked(pretrained=where, device="cpu", **{"dtype": "float32"} | options)


def both(model, tokenizer, **options):
    """A model as hf-packed and as hf."""
    plain = HFLM(
        pretrained=model,
        tokenizer=tokenizer,
        logits_cache=False,
        batch_size=1,
        **options,
    )
    return HFPacked(pretrained=model, tokenizer=tokenizer, **options), plain


PAIRS = [
    (context, continuation)
    for context in (
        "The gardener said that",
        "The gardener said that he",
        "The gardener ",
        "",
        "Die Mutter ist",
    )
    for continuation in (
        " she",
        " he was tired",
        "s and boys",
        " the old man was very tired of it all",
        "x",
    )
]
GIVEN = [*PAIRS, ("<s>The", " gardener"), ("<|endoftext|>The", " gardener")]
SENTENCES = "The old gardener was very patient with the children. " * 12
LONG = [
    (SENTENCES, " he"),
    (SENTENCES, " she was tired"),
    (SENTENCES[3:], " he"),
    ("The", " he"),
]


def texts(model, *pairs):
    return model.loglikelihood(
        [
            Instance("loglikelihood", {}, pair, i)
            for i, pair in enumerate(pairs or PAIRS)
        ]
    )


def assert_same(found, wanted, tolerance=1e-4):
    assert [value for value, _ in found] == pytest.approx(
        [value for value, _ in wanted], abs=tolerance, rel=1e-5
    )
    assert [greedy for _, greedy in found] == [greedy for _, greedy in wanted]


def assert_equal(ours, plain, asked, tolerance=1e-4):
    """Hold the answers of two models to requests of ids against one another."""
    assert_same(
        loglikelihood_tokens(ours, asked), loglikelihood_tokens(plain, asked), tolerance
    )


def build(class_, more, tokenizer):
    length = (
        {}
        if "n_positions" in more or "max_seq_len" in more
        else {"max_position_embeddings": 256}
    )
    config = getattr(transformers, class_)(
        vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0, **{**length, **more}
    )
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with (
        torch.no_grad()
    ):  # fresh weights hardly attend: make what is before a token matter
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    return model.eval()


def requests(count=60, vocabulary=300, longest=40):
    """Pairs of ids with beginnings in common, also divided at several places, also one inside another."""
    rng = random.Random(5)
    made = []
    while len(made) < count:
        context = [rng.randrange(1, vocabulary) for _ in range(rng.randint(1, longest))]
        for _ in range(3):
            continuation = [
                rng.randrange(1, vocabulary) for _ in range(rng.randint(1, 5))
            ]
            made.append((None, context, continuation))
        made.append((None, [*context, *continuation[:1]], continuation[1:] or [7]))
        made.append(
            (
                None,
                context[: len(context) // 2 + 1],
                context[len(context) // 2 + 1 :] or [9],
            )
        )
    return made


@pytest.mark.parametrize("name", FAMILIES)
def test_the_way_a_family_takes_and_its_numbers(tokenizer, name):
    class_, more, shares = FAMILIES[name]
    ours, plain = both(
        build(class_, more, tokenizer),
        tokenizer,
        softmax_dtype="float32",
        tokens_per_forward=64,
    )
    asked = requests(30)
    with torch.no_grad():
        wanted = loglikelihood_tokens(plain, asked)
    assert (ours.network is not None) is shares
    assert_same(loglikelihood_tokens(ours, asked), wanted)


@pytest.mark.parametrize(
    ("options", "pairs"),
    [
        ({}, GIVEN),
        ({"add_bos_token": True}, GIVEN),
        ({"add_bos_token": False}, GIVEN),
        ({"prefix_token_id": 5}, GIVEN),
        ({"max_length": 40}, LONG),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_texts_of_all_kinds_start_tokens_and_what_is_cut_on_the_left(
    where, options, pairs, caplog
):
    with caplog.at_level(logging.WARNING, "lm_eval.bias"):
        found = texts(packed(where, **options), *pairs)
    assert_same(found, texts(hf(where, **options), *pairs))
    assert ("3 requests" in caplog.text) is (pairs is LONG)


@pytest.mark.parametrize(
    ("batch_size", "size"), [(1, None), (7, 1), ("auto", 50), (1, 4000)]
)
def test_batch_sizes_change_nothing_and_the_same_requests_get_the_same_digits(
    gpt2, batch_size, size
):
    asked = PAIRS[::3]
    found = texts(packed(gpt2, batch_size=batch_size, tokens_per_forward=size), *asked)
    assert_same(found, texts(hf(gpt2), *asked))
    assert found == texts(
        packed(gpt2, batch_size=batch_size, tokens_per_forward=size), *asked
    )


def test_answers_go_into_the_cache_as_they_come(gpt2, tmp_path):
    model = packed(gpt2, tokens_per_forward=40)
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    network, calls = model.network, []
    real = network.call

    def breaks(**inputs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(**inputs)

    network.call = breaks
    with pytest.raises(KeyboardInterrupt):
        texts(cached)
    assert 0 < len(cached.dbdict) < len(PAIRS)
    assert_same(texts(cached), texts(hf(gpt2)))
    cached.dbdict.close()


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory.")]
)
def test_too_little_memory_halves_the_forwards_and_other_errors_are_raised(
    gpt2, caplog, error
):
    model = packed(gpt2, tokens_per_forward=512)
    real, limit, raised = model.network.call, 60, error

    def small(**inputs):
        if inputs["input_ids"].numel() > limit:
            raise raised
        return real(**inputs)

    model.network.call = small
    asked = requests(40, 200, 20)
    with caplog.at_level(logging.WARNING, "lm_eval.bias"):
        assert_equal(model, hf(gpt2), asked)
    assert "out of memory, continuing with 256 tokens" in caplog.text
    limit = 0
    with pytest.raises(BiasError, match="not enough memory"):
        loglikelihood_tokens(model, asked[:5])
    raised = RuntimeError("index out of range")
    with pytest.raises(RuntimeError, match="index out of range"):
        loglikelihood_tokens(model, asked[:5])


def sees_siblings(layout_of, packed):
    ids, depths, visible = layout_of(packed)
    return ids, depths, np.tril(visible | True)


def one_too_deep(layout_of, packed):
    ids, depths, visible = layout_of(packed)
    return ids, depths + (depths == 20), visible


@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [
        ("float32", sees_siblings),
        ("bfloat16", sees_siblings),
        ("float32", one_too_deep),
    ],
)
def test_a_wrong_mask_is_noticed(gpt2, monkeypatch, caplog, dtype, wrong):
    assert packed(gpt2, dtype=dtype).network is not None
    monkeypatch.setattr(rows, "layout_of", partial(wrong, rows.layout_of))
    with caplog.at_level(logging.INFO, "lm_eval.bias"):
        model = packed(gpt2, dtype=dtype)
    assert model.network is None
    assert (
        "rows of shared beginnings differ from plain forward passes by" in caplog.text
    )


@pytest.fixture(scope="module")
def local(tokenizer):
    """A model that sees 600 places back in every other layer, whatever mask it is given."""
    return build(
        "GPTNeoConfig",
        {**LOCAL, "window_size": 600, "max_position_embeddings": 1200},
        tokenizer,
    )


def test_sequences_beyond_a_window_are_left_to_hf(local, tokenizer):
    ours, plain = both(local, tokenizer)
    assert ours.network is not None  # right for what the window holds
    long = requests(5, 200, 900)
    assert max(len(context) for _, context, _ in long) > 600
    assert_equal(ours, plain, long, 1e-3)
