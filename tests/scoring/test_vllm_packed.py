"""vllm-packed on an engine that caches beginnings as vLLM does, and on what such an engine can get wrong.

The engine here is a table of log-probabilities with a prefix cache in front of it: rows of cached tokens hold garbage.
vLLM itself is asked in ``tests/backends/test_vllm.py``.
"""

from __future__ import annotations

import importlib
import math
import random
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import transformers

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.harness import internals
from lm_eval_bias.harness.internals import loglikelihood_tokens

VOCABULARY, GARBAGE = 50, -0.125


@dataclass
class SamplingParams:
    temperature: float = 1.0
    max_tokens: int = 16
    detokenize: bool = True
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    skip_reading_prefix_cache: bool | None = None


def distribution(prefix):
    """Log-probabilities of the token after some tokens, which all of them matter for."""
    logits = np.random.default_rng([*prefix, 7]).normal(size=VOCABULARY)
    return logits - np.logaddexp.reduce(logits)


def entry(value):
    return SimpleNamespace(logprob=float(value))


class Engine:
    """What ``_model_generate`` reaches: blocks of tokens that were run before are read from the cache."""

    def __init__(self, block=4, caching=True):
        self.window = None
        self.block, self.caching, self.held, self.run, self.spoil = (
            block,
            caching,
            set(),
            0,
            lambda output: output,
        )

    def answer(self, tokens, parameters):
        skips = parameters.skip_reading_prefix_cache
        reads = self.caching and not (
            parameters.prompt_logprobs is not None if skips is None else skips
        )
        blocks = range(self.block, len(tokens), self.block)
        cached = max(
            (n for n in blocks if reads and tuple(tokens[:n]) in self.held), default=0
        )
        self.held.update(
            tuple(tokens[:n]) for n in range(self.block, len(tokens) + 1, self.block)
        )
        self.run += len(tokens) - cached
        rows = None
        if parameters.prompt_logprobs is not None:
            rows = [None]
            for i, token in enumerate(tokens[1:], start=1):
                row = (
                    np.full(VOCABULARY, GARBAGE)
                    if i - 1 < cached
                    else distribution(tokens[:i])
                )
                rows.append({n: entry(row[n]) for n in {token, int(row.argmax())}})
        row = distribution(tokens)
        named = {int(row.argmax()), *(parameters.logprob_token_ids or [])}
        written = SimpleNamespace(logprobs=[{n: entry(row[n]) for n in named}])
        return self.spoil(SimpleNamespace(
            prompt_token_ids=tokens, prompt_logprobs=rows, num_cached_tokens=cached, outputs=[written]
        ))  # fmt: skip


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Makes models of our class, with an engine in place of all that the harness's class loads."""
    names = {
        "vllm": {"LLM": None, "SamplingParams": SamplingParams, "TokensPrompt": dict},
        "vllm.lora": {}, "vllm.lora.request": {"LoRARequest": None},
        "vllm.renderers": {}, "vllm.renderers.hf": {"resolve_chat_template": None},
        "vllm.tokenizers": {"get_tokenizer": None},
        "vllm.platforms": {"current_platform": SimpleNamespace(is_cpu=lambda: True)},
    }  # fmt: skip
    modules = ("lm_eval.models.vllm_causallms", "lm_eval_bias.models.vllm_packed")
    release = tmp_path_factory.mktemp("release") / "vllm-0.32.0.dist-info"
    release.mkdir()
    (release / "METADATA").write_text("Name: vllm\nVersion: 0.32.0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(release.parent)
        for name, content in names.items():
            patch.setitem(sys.modules, name, SimpleNamespace(**content))
        for name in modules:
            patch.delitem(sys.modules, name, raising=False)
        # what registers itself with the stand-ins of vLLM is nothing for later tests
        types = internals.registries()["lm_eval.models"]
        patch.setattr(types, "_objs", {**types._objs})
        kind = importlib.import_module("lm_eval_bias.models.vllm_packed").VLLMPacked
        yield type("Made", (kind, loaded(kind.__bases__[-1])), {})
        for name in modules:
            sys.modules.pop(name, None)


def loaded(kind):
    """The harness's class, whose models are our engine."""

    class Loaded(kind):
        def __init__(
            self,
            engine,
            dtype="torch.float32",
            space=10_000,
            data_parallel_size=1,
            **options,
        ):
            assert options == {"enable_prefix_caching": True, "block_size": 32}
            cache = SimpleNamespace(
                enable_prefix_caching=engine.caching,
                block_size=engine.block,
                num_gpu_blocks=space // engine.block,
            )
            config = SimpleNamespace(
                cache_config=cache,
                scheduler_config=SimpleNamespace(max_num_batched_tokens=500),
            )
            known = SimpleNamespace(
                dtype=dtype,
                get_vocab_size=lambda: VOCABULARY,
                hf_config=transformers.MistralConfig(sliding_window=engine.window),
            )
            self.model = SimpleNamespace(
                llm_engine=SimpleNamespace(vllm_config=config, model_config=known),
                reset_prefix_cache=engine.held.clear,
            )
            self.tokenizer, self.engine, self.kept = range(VOCABULARY), engine, []
            self._max_length, self.data_parallel_size, self.batch_size = (
                64,
                data_parallel_size,
                8,
            )
            self.cache_hook = SimpleNamespace(
                add_partial=lambda *kept: self.kept.append(kept)
            )

        def _model_generate(self, requests, generate=False, sampling_params=None):
            given = sampling_params or [SamplingParams(prompt_logprobs=1)] * len(
                requests
            )
            return [
                self.engine.answer(*one) for one in zip(requests, given, strict=True)
            ]

    return Loaded


def wanted(context, continuation):
    total, greedy = 0.0, True
    for i, token in enumerate(continuation):
        row = distribution([*context, *continuation[:i]])
        total, greedy = total + float(row[token]), greedy and int(row.argmax()) == token
    return total, greedy


def requests_of(seed, number=60):
    """Requests whose contexts and continuations begin alike at all lengths, some of them greedy, some twice."""
    draw = random.Random(seed)
    stems = [[draw.randrange(VOCABULARY) for _ in range(24)] for _ in range(3)]
    found = []
    for _ in range(number):
        context = draw.choice(stems)[: draw.randint(1, 24)]
        continuation = [draw.randrange(4) for _ in range(draw.randint(1, 6))]
        if draw.random() < 0.2:
            continuation = [int(distribution(context).argmax())]
        if (
            draw.random() < 0.2
        ):  # a context that is another request's context and a part of its continuation
            cut = draw.randrange(len(continuation))
            context, continuation = [*context, *continuation[:cut]], continuation[cut:]
        found.append((("c", str(len(found))), list(context), continuation))
    return [*found, *found[:5]]


def asked(model, requests):
    """What a model answers to requests without a key."""
    return loglikelihood_tokens(model, [(None, *pair) for pair in requests])


def answers_to(requests):
    return [
        (pytest.approx(value, abs=1e-9), greedy)
        for value, greedy in (wanted(*pair) for pair in requests)
    ]


@pytest.mark.parametrize(
    ("seed", "block"), [(0, 1), (1, 1), (2, 4), (3, 4), (4, 4), (1, 16)]
)
def test_log_likelihoods_are_the_engines_own_in_any_order_and_cost_the_same_when_asked_again(
    seed, block, make
):
    engine = Engine(block)
    model = make(engine)
    assert not model.why_not
    requests = requests_of(seed)
    tokens, expected = [], answers_to(pair for _, *pair in requests)
    assert any(greedy for _, greedy in expected)
    for order in (
        range(len(requests)),
        random.Random(seed).sample(range(len(requests)), len(requests)),
    ):
        model.kept.clear()
        engine.run = 0
        answers = loglikelihood_tokens(model, [requests[i] for i in order])
        assert answers == [expected[i] for i in order]
        assert [kept[1:] for kept in model.kept] == [
            (requests[i][0], answers[k]) for k, i in enumerate(order)
        ]
        tokens.append(engine.run)
    assert tokens[0] == tokens[1]


def test_rows_that_came_from_the_cache_are_asked_again_without_it(make):
    engine = Engine()
    model = make(engine)
    requests = [(list(range(10)), [n, *range(7)]) for n in (1, 2)]
    model.model.reset_prefix_cache = list
    engine.held = {
        (*context, *rest)[:k] for context, rest in requests for k in range(20)
    }
    assert asked(model, requests) == answers_to(requests)


def spoilt(**changes):
    def spoil(output):
        vars(output).update(changes)
        return output

    return spoil


def other(value, where):
    def spoil(output):
        rows = (
            (output.prompt_logprobs or [])[1:]
            if where == "rows"
            else output.outputs[0].logprobs
        )
        for row in rows:
            for token in row:
                row[token] = entry(value)
        return output

    return spoil


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (spoilt(prompt_token_ids=[1]), "an answer to another prompt"),
        (spoilt(num_cached_tokens=None), "None tokens of a prompt came from the cache"),
        (spoilt(prompt_logprobs=[None, {}]), "rows of log-probabilities for"),
        (other(math.nan, "rows"), "nan in place of a log-probability"),
        (other(-math.inf, "rows"), "-inf in place of a log-probability"),
        (other(0.5, "next tokens"), "0.5 in place of a log-probability"),
        (
            spoilt(outputs=[SimpleNamespace(logprobs=None)]),
            "no log-probability of a token",
        ),
    ],
)
def test_what_an_engine_may_not_answer_ends_the_run(spoil, says, make):
    engine = Engine()
    model = make(engine)
    engine.spoil = spoil
    with pytest.raises(BiasError, match=f"{says}.*--model vllm"):
        asked(
            model,
            [([1, 2, 3], [5]), ([1, 2, 3], [6]), (list(range(9)), list(range(20)))],
        )


@pytest.mark.parametrize(
    ("engine", "changes", "says"),
    [
        (Engine(caching=False), {}, "doesn't use its prefix cache"),
        (Engine(), {"data_parallel_size": 2}, "data_parallel_size=2"),
        (Engine(), {"space": 900}, "memory for 900 tokens"),
    ],
)
def test_an_engine_that_cannot_share_is_asked_as_vllm_does(engine, changes, says, make):
    model = make(engine, **changes)
    assert says in model.why_not
    requests = [([1, 2, 3], [5]), ([1, 2, 3], [6, 7])]
    assert asked(model, requests) == answers_to(requests)


def test_an_engine_that_gives_others_with_its_cache_is_found_out_at_load(make):
    engine = Engine()
    engine.spoil = lambda output: (
        other(-3.0, "rows")(output) if output.num_cached_tokens else output
    )
    assert "a trial differs by" in make(engine).why_not
    engine.spoil = lambda output: (
        other(-3.0, "next tokens")(output) if output.prompt_logprobs is None else output
    )
    assert "a trial differs by" in make(engine).why_not


def test_windows_are_tried_once_requests_reach_beyond_them(make):
    engine = Engine()
    engine.window = 40
    model = make(engine)
    assert model.why_not == ""
    engine.spoil = lambda output: (
        other(-3.0, "next tokens")(output)
        if output.prompt_logprobs is None and len(output.prompt_token_ids) > 40
        else output
    )
    short = [([1, 2, 3], [5]), ([1, 2, 3], [6, 7])]
    assert asked(model, short) == answers_to(short)
    assert model.why_not == ""
    asked(model, [([i % 11 for i in range(50)], [1])])
    assert "a trial differs by" in model.why_not


def test_requests_that_do_not_fit_are_cut_on_the_left_or_refused(make):
    model = make(Engine())
    context, continuation = [i % 11 for i in range(100)], [1, 2, 3]
    assert asked(model, [(context, continuation)]) == answers_to(
        [(context[-60:], continuation)]
    )
    for pair in (([1], list(range(40)) * 2), ([], [1]), ([1], [])):
        with pytest.raises(
            BiasError,
            match="context and .* continuation tokens; each needs at least one",
        ):
            asked(model, [pair])
