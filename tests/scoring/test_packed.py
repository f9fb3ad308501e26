"""hf-packed beside hf: the same numbers, however requests look and whatever a model can share."""

import logging

import numpy as np
import pytest
import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM
from lm_eval.models.huggingface import HFLM

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import EXACT
from lm_eval_bias.harness import registration
from lm_eval_bias.models.packed import attention_masks, method_trial, packed_forwards
from lm_eval_bias.models.packed.packed_model import HFPacked
from lm_eval_bias.models.packed.trie_walk import Walk
from lm_eval_bias.scoring import token_likelihoods
from tests.scoring.test_packed_families import FAMILIES, build, requests
from tests.support import tiny


@pytest.fixture(autouse=True)
def _registered():
    registration.register()


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.gpt2_tokenizer()


@pytest.fixture(scope="module", params=["gpt2", "llama"])  # llama's tokenizer adds a start token
def where(request, tmp_path_factory):
    return getattr(tiny, request.param)(tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return tiny.gpt2(tmp_path_factory.mktemp("gpt2"))


def hf(where, **options):
    return HFLM(
        pretrained=where, device="cpu", **{"dtype": "float32", "batch_size": 1, "logits_cache": False} | options
    )


def packed(where, **options):
    return HFPacked(pretrained=where, device="cpu", **{"dtype": "float32"} | options)


def instances(*pairs):
    return [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]


def assert_same(found, wanted, tolerance=1e-4):
    assert len(found) == len(wanted)
    for (score, greedy), (wanted_score, wanted_greedy) in zip(found, wanted, strict=True):
        assert score == pytest.approx(wanted_score, abs=tolerance)
        assert greedy == wanted_greedy


PAIRS = [
    (context, continuation)
    for context in ("The gardener said that", "The gardener said that he", "The gardener ", "", "Die Mutter ist")
    for continuation in (" she", " he was tired", "s and boys", " the old man was very tired of it all", "x")
]


def test_texts_of_all_kinds(where):
    assert_same(packed(where).loglikelihood(instances(*PAIRS)), hf(where).loglikelihood(instances(*PAIRS)))


@pytest.mark.parametrize("options", [{"add_bos_token": True}, {"add_bos_token": False}, {"prefix_token_id": 5}])
def test_start_tokens(where, options):
    pairs = [*PAIRS, ("<s>The", " gardener"), ("<|endoftext|>The", " gardener")] * 2
    assert_same(
        packed(where, **options).loglikelihood(instances(*pairs)), hf(where, **options).loglikelihood(instances(*pairs))
    )


def test_long_requests_are_cut_on_the_left_as_hf_cuts(where, caplog):
    long = "The old gardener was very patient with the children. " * 12
    pairs = [(long, " he"), (long, " she was tired"), (long[3:], " he"), ("The", " he")]
    options = {"max_length": 40}
    with caplog.at_level(logging.WARNING, "lm_eval.bias"):
        found = packed(where, **options).loglikelihood(instances(*pairs))
    assert_same(found, hf(where, **options).loglikelihood(instances(*pairs)))
    assert "3 requests are longer than the model's limit of 40 tokens" in caplog.text


def test_one_token_string_divided_at_two_places(gpt2):
    pairs = [([5, 6], [7, 8, 9]), ([5, 6, 7], [8, 9]), ([5, 6, 7, 8], [9]), ([5, 6, 7], [8, 10])]
    asked = [(None, *pair) for pair in pairs]
    right = hf(gpt2)._loglikelihood_tokens(asked)
    assert_same(packed(gpt2)._loglikelihood_tokens(asked), right)
    stock = HFLM(pretrained=gpt2, device="cpu", dtype="float32", batch_size=1)
    wrong = [score for score, _ in stock._loglikelihood_tokens(asked)]
    assert wrong != pytest.approx([score for score, _ in right], abs=1e-3)  # the harness's bug, while it lasts


def test_our_requests_go_in_one_call(gpt2):
    model = packed(gpt2)
    assert not token_likelihoods.shares_forwards(model)
    calls = []
    inner = model._loglikelihood_tokens
    model._loglikelihood_tokens = lambda asked, *a, **k: calls.append(len(asked)) or inner(asked, *a, **k)
    text = "The old gardener was patient"
    cuts = [i for i, c in enumerate(text) if c == " "]
    getattr(model, EXACT)([Instance(EXACT, {}, (text[:i], text[i:]), 0) for i in cuts])
    assert calls == [len(cuts)]


def test_rolling(where):
    long = "The old gardener was very patient with the children. " * 8
    asked = [Instance("loglikelihood_rolling", {}, (text,), 0) for text in (long, "The", long[4:], long)]
    ours = packed(where, max_length=30)
    found = ours.loglikelihood_rolling(asked)
    wanted = hf(where, max_length=30, batch_size=3).loglikelihood_rolling(asked)
    assert found == pytest.approx(wanted, rel=1e-5)
    assert ours.batch_size == 1


@pytest.mark.parametrize("batch_size", [1, 7, "auto"])
@pytest.mark.parametrize("size", [None, 1, 50, 4000])
def test_batch_sizes_change_nothing(gpt2, batch_size, size):
    found = packed(gpt2, batch_size=batch_size, tokens_per_forward=size).loglikelihood(instances(*PAIRS))
    assert_same(found, hf(gpt2).loglikelihood(instances(*PAIRS)))


def test_same_requests_same_digits(gpt2):
    first, second = packed(gpt2), packed(gpt2)
    assert first.loglikelihood(instances(*PAIRS)) == second.loglikelihood(instances(*PAIRS))


@pytest.mark.parametrize("size", [0, "many", -3])
def test_a_number_of_tokens_that_is_none(gpt2, size):
    with pytest.raises(BiasError, match="tokens_per_forward"):
        packed(gpt2, tokens_per_forward=size)


def test_encoder_decoders_are_refused(tmp_path):
    with pytest.raises(BiasError, match="run this encoder-decoder with --model hf"):
        packed(tiny.t5(tmp_path))


def test_answers_go_into_the_cache_as_they_come(gpt2, tmp_path):
    model = packed(gpt2, tokens_per_forward=40)
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    real, calls = model._method.network.call, []

    def breaks(**inputs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(**inputs)

    model._method.network.call = breaks
    with pytest.raises(KeyboardInterrupt):
        cached.loglikelihood(instances(*PAIRS))
    kept = len(cached.dbdict)
    assert 0 < kept < len(PAIRS)
    model._method.network.call = real
    found = cached.loglikelihood(instances(*PAIRS))
    assert_same(found, hf(gpt2).loglikelihood(instances(*PAIRS)))
    cached.dbdict.close()


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory."), MemoryError()])
@pytest.mark.parametrize("way", [Walk, packed_forwards.Cached, packed_forwards.Plain])
def test_too_little_memory_halves_the_forwards(gpt2, caplog, error, way):
    model = packed(gpt2, tokens_per_forward=512)
    model._method = way(model._network())
    real = model._method.network.call
    sizes = []

    def small(**inputs):
        if inputs["input_ids"].numel() > 60:
            raise error
        sizes.append(inputs["input_ids"].numel())
        return real(**inputs)

    model._method.network.call = small
    with caplog.at_level(logging.WARNING, "lm_eval.bias"):
        found = model._loglikelihood_tokens(requests(40, 200, 20))
    assert_same(found, hf(gpt2)._loglikelihood_tokens(requests(40, 200, 20)))
    assert "out of memory, continuing with 256 tokens" in caplog.text
    assert sizes


def test_no_memory_at_all_is_one_line(gpt2):
    model = packed(gpt2)

    def never(**inputs):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    model._method.network.call = never
    with pytest.raises(BiasError, match="not enough memory for a single sequence"):
        model._loglikelihood_tokens(requests(5, 200, 20))


def test_other_errors_are_not_hidden(gpt2):
    model = packed(gpt2)

    def broken(**inputs):
        raise RuntimeError("index out of range")

    model._method.network.call = broken
    with pytest.raises(RuntimeError, match="index out of range"):
        model._loglikelihood_tokens(requests(5, 200, 20))


def test_a_wrong_mask_is_noticed(gpt2, monkeypatch, caplog):
    def everything(config, style, depths, ends, dtype, before, columns):
        width = depths.shape[1]
        future = torch.ones(width, columns + width).triu(1 + columns).bool()
        return torch.zeros(len(depths), 1, width, columns + width).masked_fill(future, torch.finfo(dtype).min)

    monkeypatch.setattr(attention_masks, "build", everything)
    with caplog.at_level(logging.INFO, "lm_eval.bias"):
        model = packed(gpt2)
    assert model._method.name == "cache"
    assert "walk: differs from plain forward passes by" in caplog.text
    assert_same(model.loglikelihood(instances(*PAIRS)), hf(gpt2).loglikelihood(instances(*PAIRS)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_wrong_mask_is_noticed_in_low_precision(gpt2, monkeypatch, dtype):
    assert packed(gpt2, dtype=dtype)._method.name == "walk"
    real = attention_masks.build
    monkeypatch.setattr(
        attention_masks, "build", lambda c, s, depths, ends, *more: real(c, s, depths, ends * 0 + 999, *more)
    )
    assert packed(gpt2, dtype=dtype)._method.name == "cache"


@pytest.fixture
def local(tokenizer, monkeypatch):
    """A model that sees 600 places back in every other layer, whatever mask it is given."""
    class_, more, _ = FAMILIES["gpt-neo, local layers"]
    more = {**more, "window_size": 600, "max_position_embeddings": 1200}
    monkeypatch.setitem(FAMILIES, "wide", (class_, more, "walk"))
    model = build("wide", tokenizer)
    ours = HFPacked(pretrained=model, tokenizer=tokenizer)
    assert ours._method.name == "walk"  # right for what the window holds
    return ours, HFLM(pretrained=model, tokenizer=tokenizer, logits_cache=False, batch_size=1)


def test_windows_beyond_the_first_trial_are_tried_when_they_matter(local):
    ours, plain = local
    long = requests(10, 200, 900)
    assert max(len(context) for _, context, _ in long) > 600
    found = ours._loglikelihood_tokens(long)
    assert ours._method.name == "cache"
    assert_same(found, plain._loglikelihood_tokens(long), 1e-3)


def test_rows_are_no_wider_than_a_window_that_was_not_tried(local):
    ours, plain = local
    rng = np.random.default_rng(2)
    many = [(None, [7] * 20, rng.integers(1, 200, 6).tolist()) for _ in range(300)]
    wanted = plain._loglikelihood_tokens(many)
    ours._method.widths = (620, 560)
    assert_same(ours._loglikelihood_tokens(many), wanted)
    assert 500 < ours._method.attended <= 600


def test_positions_that_depend_on_the_length(tokenizer):
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=20, bos_token_id=0, eos_token_id=0,
        rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0},
    )  # fmt: skip
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(config).eval()
    assert attention_masks.long_from(config) == 20
    ours = HFPacked(pretrained=model, tokenizer=tokenizer, max_length=80)
    plain = HFLM(pretrained=model, tokenizer=tokenizer, logits_cache=False, batch_size=1, max_length=80)
    asked = requests(30, 200, 50)
    assert_same(ours._loglikelihood_tokens(asked), plain._loglikelihood_tokens(asked))


def test_adapters(gpt2, tmp_path):
    peft = pytest.importorskip("peft")
    base = transformers.AutoModelForCausalLM.from_pretrained(gpt2)
    torch.manual_seed(3)
    lora = peft.get_peft_model(base, peft.LoraConfig(task_type="CAUSAL_LM", r=4, init_lora_weights=False))
    lora.save_pretrained(tmp_path / "lora")
    ours = packed(gpt2, peft=str(tmp_path / "lora"))
    assert ours._method.name == "walk"
    found = ours.loglikelihood(instances(*PAIRS))
    assert_same(found, hf(gpt2, peft=str(tmp_path / "lora")).loglikelihood(instances(*PAIRS)))
    without = hf(gpt2).loglikelihood(instances(*PAIRS))
    assert [score for score, _ in found] != pytest.approx([score for score, _ in without], abs=1e-3)


def test_prompt_tuning(gpt2, tmp_path):
    peft = pytest.importorskip("peft")
    base = transformers.AutoModelForCausalLM.from_pretrained(gpt2)
    torch.manual_seed(3)
    tuned = peft.get_peft_model(base, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=6))
    tuned.save_pretrained(tmp_path / "prompt")
    ours = packed(gpt2, peft=str(tmp_path / "prompt"), max_length=80)
    assert ours._method.name == "rows"
    wanted = hf(gpt2, peft=str(tmp_path / "prompt"), max_length=80).loglikelihood(instances(*PAIRS))
    assert_same(ours.loglikelihood(instances(*PAIRS)), wanted)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_quantised_weights(tokenizer):
    model = torch.ao.quantization.quantize_dynamic(build("llama", tokenizer), {torch.nn.Linear}, dtype=torch.qint8)
    model.config.quantization_config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    ours = HFPacked(pretrained=model, tokenizer=tokenizer)
    plain = HFLM(pretrained=model, tokenizer=tokenizer, logits_cache=False, batch_size=1)
    wanted = [score for score, _ in plain._loglikelihood_tokens(requests())]
    found = [score for score, _ in ours._loglikelihood_tokens(requests())]
    assert found == pytest.approx(wanted, abs=0.5)  # activations are quantised input by input


def test_a_model_that_does_nothing_right_is_left_to_hf(gpt2, monkeypatch, caplog):
    monkeypatch.setattr(method_trial.Trial, "deviations", lambda self, method: [torch.full((3,), 9.0)])
    with caplog.at_level(logging.WARNING, "lm_eval.bias"):
        model = packed(gpt2, batch_size=4)
    assert model._method is None
    assert "the hf backend's own method" in caplog.text
    assert_same(model.loglikelihood(instances(*PAIRS)), hf(gpt2).loglikelihood(instances(*PAIRS)))
    rolling = [Instance("loglikelihood_rolling", {}, ("The old gardener was very patient.",), 0)]
    assert model.loglikelihood_rolling(rolling) == pytest.approx(hf(gpt2).loglikelihood_rolling(rolling))


def test_a_softmax_of_the_users_own_is_left_to_hf(gpt2):
    assert packed(gpt2, softmax_dtype="float64")._method is None
    assert packed(gpt2, softmax_dtype="float32")._method.name == "walk"


def test_what_was_shared_is_said(gpt2, caplog):
    model = packed(gpt2)
    with caplog.at_level(logging.INFO, "lm_eval.bias"):
        model._loglikelihood_tokens([(None, [5, 6, 7], [8]), (None, [5, 6, 7], [9]), (None, [5, 6, 7], [9, 4])])
    assert "hf-packed: 10 tokens requested, 4 run (60% shared)" in caplog.text


def test_no_requests(gpt2):
    assert packed(gpt2)._loglikelihood_tokens([]) == []


def test_scores_of_logits():
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    # log-softmax by hand: 2 - log(1 + e + e²) and -log(e³ + 2)
    found, greedy = packed_forwards.score(logits, np.array([0, 1, 0]), np.array([2, 1, 0]))
    e = np.e
    wanted = [2 - np.log(1 + e + e**2), -np.log(e**3 + 2), -np.log(1 + e + e**2)]
    assert found == pytest.approx(wanted, abs=1e-6)
    assert greedy.tolist() == [True, False, False]
    many = torch.randn(300, 7, generator=torch.Generator().manual_seed(0))
    places, targets = np.arange(300), np.arange(300) % 7
    found, greedy = packed_forwards.score(many.bfloat16(), places, targets)
    logs = many.bfloat16().float().log_softmax(-1)
    assert found == pytest.approx(logs[places, targets].numpy(), abs=1e-6)
    assert greedy.tolist() == (logs.argmax(-1).numpy() == targets).tolist()
