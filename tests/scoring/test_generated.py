"""Texts that are written: sampled with a seed for every part, kept when it is whole."""

import copy

import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM

from lm_eval_bias.core.answers import ENDLESS
from lm_eval_bias.harness import registration
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.scoring.free_answers import without_thoughts
from tests.support import tiny

SAMPLE = {
    "until": [],
    "do_sample": True,
    "temperature": 1.0,
    "top_k": 0,
    "max_gen_toks": 6,
}
GREEDY = {"until": [], "do_sample": False, "max_gen_toks": 6}


def asks(*prompts, repeats=5, options=SAMPLE, doc=None):
    made = [
        Instance("generated_text", doc or {}, (p, dict(options)), 0, ("t", n, 1))
        for n, p in enumerate(prompts)
    ]
    return [request for request in made for _ in range(repeats)]


def counting(kind):
    """A model type that notes how many texts each call of its own method was asked for."""

    class Counting(kind):
        def generate_until(self, requests, disable_tqdm=False):
            if len(self.calls) == self.stops_at:
                raise KeyboardInterrupt
            self.calls.append(len(requests))
            return super().generate_until(requests, disable_tqdm)

    return Counting


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    from lm_eval.models.huggingface import HFLM

    registration.register()
    folder = tiny.gpt2(tmp_path_factory.mktemp("model"))
    return counting(HFLM)(
        pretrained=folder, device="cpu", batch_size=2, dtype="float32"
    )


@pytest.fixture
def model(loaded):
    import torch

    torch.manual_seed(1234)
    loaded.calls, loaded.stops_at, loaded.batch_size_per_gpu = [], None, 2
    yield loaded
    loaded.set_cache_hook(type(loaded.cache_hook)(None))


def test_texts_do_not_depend_on_what_is_asked_beside_them(model):
    alone = model.generated_text(asks("The woman"))
    together = model.generated_text(asks("A man", "The woman"))
    assert model.calls == [2, 2, 1, 2, 2, 1, 2, 2, 1]
    assert together[5:] == alone
    assert len(set(alone)) == 5
    assert model.generated_text(asks("The woman", repeats=4)) == alone[:4]
    model.batch_size_per_gpu, model.calls = 8, []
    other = [
        Instance("generated_text", {}, ("A man", dict(SAMPLE)), 0, ("u", 0, 1))
    ] * 2
    warmer = asks("A vet", repeats=2, options={**SAMPLE, "temperature": 2.0})
    alone = model.generated_text(asks("The woman", repeats=2))
    assert (
        model.generated_text([*asks("The woman", repeats=2), *other, *warmer])[:2]
        == alone
    )
    assert model.calls == [
        2,
        2,
        2,
        2,
    ]  # other tasks and options have batches of their own


def test_a_run_that_was_stopped_goes_on_with_its_texts(model, tmp_path):
    both, path = asks("A man", "The woman"), str(tmp_path / "cache.db")
    whole = model.generated_text(both)
    model.calls, model.stops_at = [], 4
    with pytest.raises(KeyboardInterrupt):
        CachingLM(model, path).generated_text(both)
    again = CachingLM(model, path)  # what is on the disk
    model.calls, model.stops_at = [], None
    assert again.generated_text(both) == whole
    assert model.calls == [2, 1]
    model.calls = []
    assert again.generated_text(both) == whole
    assert model.calls == []
    assert (
        again.generated_text(
            asks("A man", options={**SAMPLE, "temperature": 0.9}, repeats=1)
        )
        != whole[:1]
    )
    assert model.calls == [1]


MARKS = {
    "gpt-oss": ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"],
    "Magistral": ["[THINK]", "[/THINK]"],
    "Qwen, DeepSeek, Granite": ["<think>", "</think>", "<|im_end|>"],
    "none": ["<|im_end|>"],
}


@pytest.mark.parametrize(
    ("family", "text", "answer"),
    [
        (
            "gpt-oss",
            "<|channel|>analysis<|message|>He?<|end|><|start|>assistant<|channel|>final<|message|>Male<|return|>",
            "Male",
        ),
        ("gpt-oss", "<|channel|>analysis<|message|>He?", ENDLESS),
        ("Magistral", "[THINK]He?[/THINK]Male", "Male"),
        ("Magistral", "[THINK]He?", ENDLESS),
        ("Qwen, DeepSeek, Granite", "<think>He?</think>Male<|im_end|>", "Male"),
        ("Qwen, DeepSeek, Granite", "<think>He?", ENDLESS),
        ("none", "Male<|im_end|>", "Male"),
    ],
)
def test_special_tokens_around_thoughts_are_kept(
    model, monkeypatch, family, text, answer
):
    """The harness's own decoding drops them, and thoughts would run into the answer."""
    import torch

    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": MARKS[family]})
    monkeypatch.setattr(model, "tokenizer", tokenizer)
    ids = tokenizer.encode(text, add_special_tokens=False)
    monkeypatch.setattr(
        model,
        "_model_generate",
        lambda context, **_: torch.cat([context, torch.tensor([ids])], dim=1),
    )
    (made,) = model.generated_text(asks("Who?", repeats=1, options=GREEDY))
    assert without_thoughts(made) == answer


def test_backends_that_take_seeds_get_one_a_text():
    class VLLM(ChanceLM):  # by its name
        calls: list = []

        def generate_until(self, requests):
            self.calls.append([request.args[1]["seed"] for request in requests])
            return [
                f"{request.args[0]} {request.args[1]['seed']}" for request in requests
            ]

    texts = VLLM().generated_text(asks("A", "B", repeats=1001))
    assert [len(own) for own in VLLM.calls] == [
        2000,
        2,
    ]  # portions: a kill costs no more than one
    seeds = [seed for own in VLLM.calls for seed in own]
    assert len(set(seeds)) == 2002
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert texts == [
        f"{'A' if i < 1001 else 'B'} {seed}" for i, seed in enumerate(seeds)
    ]
