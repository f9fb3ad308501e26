"""Sampled texts: a seed for every part, kept when it is whole, whatever is asked beside it."""

import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM

from lm_eval_bias.harness import internals, registration
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.scoring import sampled_texts, token_likelihoods
from tests.support import tiny

SAMPLE = {"until": [], "do_sample": True, "temperature": 1.0, "top_k": 0, "max_gen_toks": 6}
GREEDY = {"until": [], "do_sample": False, "max_gen_toks": 6}


@pytest.fixture(autouse=True)
def _registered():
    registration.register()


def asks(*prompts, repeats=5, options=SAMPLE):
    made = [Instance("generated_text", {}, (prompt, dict(options)), 0, ("t", n, 1)) for n, prompt in enumerate(prompts)]
    return [request for request in made for _ in range(repeats)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from lm_eval.models.huggingface import HFLM

    folder = tiny.gpt2(tmp_path_factory.mktemp("model"))
    return HFLM(pretrained=folder, device="cpu", batch_size=2, dtype="float32")


@pytest.fixture
def calls(model, monkeypatch):
    """How many texts each call of the backend's own method was asked for."""
    import torch
    from lm_eval.models.huggingface import HFLM

    torch.manual_seed(1234)
    made = []
    write = HFLM.generate_until

    def counted(self, requests, disable_tqdm=False):
        made.append(len(requests))
        return write(self, requests, disable_tqdm)

    monkeypatch.setattr(HFLM, "generate_until", counted)
    yield made
    model.set_cache_hook(type(model.cache_hook)(None))


def test_texts_do_not_depend_on_what_is_asked_beside_them(model, calls):
    alone = model.generated_text(asks("The woman"))
    together = model.generated_text(asks("A man", "The woman"))
    assert calls == [2, 2, 1, 2, 2, 1, 2, 2, 1]
    assert together[5:] == alone
    assert len(set(alone)) == 5
    assert model.generated_text(asks("The woman", repeats=4)) == alone[:4]


def test_random_numbers_go_on_where_they_were(model, calls):
    import torch

    before = torch.get_rng_state()
    model.generated_text(asks("The woman"))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(7)
    other = model.generated_text(asks("The woman"))
    assert other != model.generated_text(asks("The woman", options={**SAMPLE, "seed": 1234}))
    torch.manual_seed(1234)
    assert model.generated_text(asks("The woman")) != other


def test_a_run_that_was_stopped_goes_on_with_its_texts(model, calls, tmp_path, monkeypatch):
    whole = model.generated_text(asks("A man", "The woman"))
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    write, calls[:] = model.generate_until, []

    def stops(requests, disable_tqdm=False):
        if len(calls) == 4:
            raise KeyboardInterrupt
        return write(requests, disable_tqdm)

    model.generate_until = stops
    with pytest.raises(KeyboardInterrupt):
        cached.generated_text(asks("A man", "The woman"))
    del model.generate_until
    again = CachingLM(model, str(tmp_path / "cache.db"))  # what is on the disk
    calls[:] = []
    assert again.generated_text(asks("A man", "The woman")) == whole
    assert calls == [2, 1]
    calls[:] = []
    assert again.generated_text(asks("A man", "The woman")) == whole
    assert calls == []
    assert again.generated_text(asks("A man", options={**SAMPLE, "temperature": 0.9}, repeats=1)) != whole[:1]
    assert calls == [1]


def test_half_a_part_is_drawn_again_as_a_whole(model, calls, tmp_path):
    from lm_eval.api.model import hash_args

    cached = CachingLM(model, str(tmp_path / "cache.db"))
    whole = cached.generated_text(asks("The woman"))
    part = sampled_texts.parts(asks("The woman"), 2, 1234)[0]
    del cached.dbdict[hash_args("generated_text", part.key(1))]
    calls[:] = []
    assert cached.generated_text(asks("The woman")) == whole
    assert calls == [2]


def test_few_samples_of_many_prompts_share_a_batch(model, calls, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "batch_size_per_gpu", 5)
    prompts = ["The woman", "A man", "My friend", "The nurse", "A vet"]
    whole = model.generated_text(asks(*prompts, repeats=2))
    assert calls == [4, 4, 2]
    assert len(set(whole)) == 10
    calls[:] = []
    # the whole batches of another limit are the same ones, the cut one isn't
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    assert cached.generated_text(asks(*prompts[:3], repeats=2))[:4] == whole[:4]
    assert calls == [4, 2]
    assert cached.generated_text(asks(*prompts, repeats=2)) == whole
    assert calls == [4, 2, 4, 2]
    # one of a batch's texts is lost: all of it are drawn again, to the same
    (first, _) = sampled_texts.batches(
        sampled_texts.parts(asks(*prompts[:3], repeats=2), 5, 1234), asks(*prompts[:3], repeats=2), 5
    )
    del cached.dbdict[internals.request_key("generated_text", first[1].key(1))]
    calls[:] = []
    assert cached.generated_text(asks(*prompts, repeats=2)) == whole
    assert calls == [4]


def test_thoughts_that_the_prompt_opens_are_part_of_the_text(model, calls):
    """Else thoughts without an end would be read as an answer."""
    from lm_eval_bias.core.answers import ENDLESS
    from lm_eval_bias.scoring.free_answers import WithoutThoughtsFilter

    for options in (SAMPLE, GREEDY):
        texts = model.generated_text(asks("The woman <think>\n", repeats=1, options=options))
        assert all(text.startswith("<think>") for text in texts)
        assert WithoutThoughtsFilter().apply([texts], [{}]) == [[ENDLESS]]


def test_tasks_and_options_do_not_share_a_batch(model, calls, monkeypatch):
    monkeypatch.setattr(model, "batch_size_per_gpu", 8)
    other = [Instance("generated_text", {}, ("A man", dict(SAMPLE)), 0, ("u", 0, 1))] * 2
    warmer = asks("A vet", repeats=2, options={**SAMPLE, "temperature": 2.0})
    alone = model.generated_text(asks("The woman", repeats=2))
    assert model.generated_text([*asks("The woman", repeats=2), *other, *warmer])[:2] == alone
    assert calls == [2, 2, 2, 2]


def test_greedy_texts_are_the_harness_own_and_kept(model, calls, tmp_path):
    plain = model.generate_until(asks("A man", "The woman", repeats=1, options=GREEDY))
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    mixed = [*asks("A man", repeats=1), *asks("A man", "The woman", repeats=1, options=GREEDY)]
    assert cached.generated_text(mixed)[1:] == plain
    calls[:] = []
    assert cached.generate_until(mixed[1:]) == plain  # under the harness's own key
    assert cached.generated_text(mixed)[1:] == plain
    assert calls == []


def test_the_largest_batch_is_looked_for_once(model, calls, monkeypatch):
    looked = []
    monkeypatch.setattr(model, "batch_size_per_gpu", "auto")
    monkeypatch.setattr(type(model), "_detect_batch_size", lambda self: looked.append(1) or 3)
    assert len(set(model.generated_text(asks("A man", "The woman")))) == 10
    assert len(looked) == 1
    assert calls == [5, 5]


def test_backends_that_take_seeds_get_one_a_text(monkeypatch):
    class VLLM(ChanceLM):  # by its name
        calls: list = []

        def generate_until(self, requests):
            self.calls.append([request.args[1]["seed"] for request in requests])
            return [f"{request.args[0]} {request.args[1]['seed']}" for request in requests]

    monkeypatch.setattr(token_likelihoods, "_PORTION", 4)
    texts = VLLM().generated_text(asks("A", "B", repeats=3))
    assert [len(own) for own in VLLM.calls] == [4, 2]  # portions: a kill costs no more than one
    seeds = [seed for own in VLLM.calls for seed in own]
    assert len(set(seeds)) == 6
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert texts == [f"{'AAABBB'[i]} {seed}" for i, seed in enumerate(seeds)]


def test_chance_draws_by_seed():
    few, many = (ChanceLM().generated_text(asks("A", "B", repeats=n)) for n in (3, 40))
    assert few == [*many[:3], *many[40:43]]
    assert len(set(many)) > 1
