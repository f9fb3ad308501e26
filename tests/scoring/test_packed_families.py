"""Shared-prefix scoring on many architectures: the way each takes, and the hf backend's numbers on it."""

import random

import pytest
import torch
import transformers
from lm_eval.models.huggingface import HFLM

from lm_eval_bias.models.packed.packed_model import HFPacked
from tests.support import tiny

SMALL = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 48}
GROUPED = {**SMALL, "num_key_value_heads": 2}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
# class, what its configuration has besides, the way that is right
FAMILIES = {
    "llama": ("LlamaConfig", GROUPED, "walk"),
    "qwen2": ("Qwen2Config", GROUPED, "walk"),
    "qwen3": ("Qwen3Config", {**GROUPED, "head_dim": 8}, "walk"),
    "mistral": ("MistralConfig", {**GROUPED, "head_dim": 8, "sliding_window": None}, "walk"),
    "mistral, window": ("MistralConfig", {**GROUPED, "head_dim": 8, "sliding_window": 20}, "walk"),
    "mixtral": ("MixtralConfig", {**GROUPED, **EXPERTS}, "walk"),
    "gemma": ("GemmaConfig", {**GROUPED, "head_dim": 8}, "walk"),
    "gemma2, soft-caps and windows": (
        "Gemma2Config",
        {**GROUPED, "head_dim": 8, "sliding_window": 20, "query_pre_attn_scalar": 8},
        "walk",
    ),
    "gemma3, windows": ("Gemma3TextConfig", {**GROUPED, "head_dim": 8, "sliding_window": 20}, "walk"),
    "cohere, logit scale": ("CohereConfig", {**GROUPED}, "walk"),
    "cohere2, windows": ("Cohere2Config", {**GROUPED, "sliding_window": 20}, "walk"),
    "llama4, chunks": (
        "Llama4TextConfig",
        {**GROUPED, "head_dim": 8, "attention_chunk_size": 20, "intermediate_size_mlp": 48, "num_local_experts": 2,
         "interleave_moe_layer_step": 2, "no_rope_layers": [1, 1, 1, 0]},
        "walk",
    ),
    "olmo2": ("Olmo2Config", GROUPED, "walk"),
    "phi3": ("Phi3Config", {**GROUPED, "pad_token_id": 0}, "walk"),
    "gpt2": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}, "walk"),
    "gpt-neox": ("GPTNeoXConfig", SMALL, "walk"),
    "gptj": ("GPTJConfig", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "rotary_dim": 4}, "walk"),
    "opt": ("OPTConfig", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48,
                          "word_embed_proj_dim": 32}, "walk"),
    "falcon, rotary": ("FalconConfig", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}, "walk"),
    "falcon, alibi": (
        "FalconConfig", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": True}, "cache",
    ),
    "bloom": ("BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4}, "cache"),
    "mpt": ("MptConfig", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 256}, "cache"),
    "gpt-neo, local layers": (
        "GPTNeoConfig",
        {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
         "window_size": 20},
        "cache",
    ),
    "mamba": ("MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, "rows"),
    "falcon-h1": (
        "FalconH1Config",
        {**GROUPED, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
        "rows",
    ),
    "rwkv": ("RwkvConfig", {"hidden_size": 32, "num_hidden_layers": 2, "context_length": 256}, "rows"),
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.gpt2_tokenizer()


def build(name: str, tokenizer):
    class_, more, _ = FAMILIES[name]
    length = {} if "n_positions" in more or "max_seq_len" in more else {"max_position_embeddings": 256}
    config = getattr(transformers, class_)(
        vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0, **{**length, **more}
    )
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # fresh weights hardly attend: make what is before a token matter
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    return model.eval()


def requests(count: int = 60, vocabulary: int = 300, longest: int = 40):
    """Pairs of ids with beginnings in common, also divided at several places, also one inside another."""
    rng = random.Random(5)
    made = []
    while len(made) < count:
        context = [rng.randrange(1, vocabulary) for _ in range(rng.randint(1, longest))]
        for _ in range(3):
            continuation = [rng.randrange(1, vocabulary) for _ in range(rng.randint(1, 5))]
            made.append((None, context, continuation))
        made.append((None, [*context, *continuation[:1]], continuation[1:] or [7]))
        made.append((None, context[: len(context) // 2 + 1], context[len(context) // 2 + 1 :] or [9]))
    return made


@pytest.mark.parametrize("name", FAMILIES)
def test_the_way_a_model_takes_and_its_numbers(tokenizer, name):
    if name == "llama4, chunks" and transformers.__version__ < "5":
        pytest.skip("its plain forwards there depend on padding: no way agrees with them, and the model is left to hf")
    model = build(name, tokenizer)
    packed = HFPacked(pretrained=model, tokenizer=tokenizer)
    plain = HFLM(pretrained=model, tokenizer=tokenizer, logits_cache=False, batch_size=1, softmax_dtype="float32")
    asked = requests()
    with torch.no_grad():
        wanted = plain._loglikelihood_tokens(asked, disable_tqdm=True)
    way = packed._method
    assert way.name == FAMILIES[name][2]
    if way.name == "walk":
        way.widths, packed._budget = (16,), 64  # four strands, windows that cut through continuations
    found = packed._loglikelihood_tokens(asked, disable_tqdm=True)
    for (score, greedy), (wanted_score, wanted_greedy) in zip(found, wanted, strict=True):
        assert score == pytest.approx(wanted_score, abs=1e-4, rel=1e-5)
        assert greedy == wanted_greedy
