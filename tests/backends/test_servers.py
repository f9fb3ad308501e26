"""Runs with OpenAI-compatible servers that fail: one clear line, nothing wrong kept, and the next run goes on."""

import gc
import json
import math
import re

import pytest

from lm_eval_bias import registration
from lm_eval_bias.cli.main import main
from lm_eval_bias.scoring import token_likelihoods
from tests import servers, tiny
from tests.e2e.test_runs import numbers, results_of

pytest.importorskip("tenacity", reason="needs lm-eval[api]")

PAIRS = [([1, 2, 3 + n], [4, 5 + n % 3]) for n in range(24)]  # six batches of four


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny.gpt2_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def server():
    made = servers.Server()
    yield made
    made.close()


mended = server  # another one, which no request of an earlier run can still reach


class Kept(dict):
    """In place of the file of --use_cache."""

    def commit(self):
        self.written = len(self)


@pytest.fixture
def client(server, tokenizer):
    """One of the harness's clients of the server, with a cache; more model arguments may be given."""
    from lm_eval.api.model import CacheHook
    from lm_eval.api.registry import get_model

    registration.register()

    def make(model="local-completions", **more):
        path = "chat/completions" if "chat" in model else "completions"
        given = {"model": "tiny", "base_url": f"{server.url}/{path}", "timeout": 1, "max_retries": 1, "batch_size": 4}
        if "chat" not in model:
            given |= {"tokenizer": str(tokenizer), "tokenizer_backend": "huggingface"}
        made = get_model(model)(**given | more)
        made.set_cache_hook(CacheHook(None))
        made.cache_hook.dbdict = Kept()
        return made

    return make


def changed(**values):
    """A fault: other values in the last answer of a reply."""

    def spoil(found):
        found["choices"][-1].update(values)
        return found

    return spoil


def in_lists(change):
    """A fault: other log-probabilities in every answer."""

    def spoil(found):
        for choice in found["choices"]:
            choice["logprobs"] = {key: change(values) for key, values in choice["logprobs"].items()}
        return found

    return spoil


def one_value(value):
    return in_lists(lambda values: [*values[:-2], value if isinstance(values[-1], float) else values[-2], values[-1]])


FAULTS = {
    "500": (500, "500"),
    "429": (429, "429"),
    "dropped": ("dropped", "closed the connection before its reply"),
    "silent": ("silent", r"no complete reply within 1 s \(timeout=1\); raise timeout="),
    "not JSON": (b'{"choices": [', "not JSON .Expecting"),
    "an error with status 200": (b'{"error": "overloaded"}', "a reply without answers.*overloaded"),
    "a list": (b"[]", "a reply without answers"),
    "fewer answers": (lambda found: {"choices": found["choices"][1:]}, r"\d answers to \d prompts"),
    "more answers": (lambda found: {"choices": found["choices"] * 2}, r"\d answers to \d prompts"),
    "a number twice": (changed(index=0), r"answers to the prompts \[0, 1, 2, 0\]"),
    "no number": (changed(index=None), "answers without a number"),
    "no log-probabilities": (changed(logprobs=None), "an answer without log-probabilities"),
    "no echo": (in_lists(lambda values: values[-1:]), "log-probabilities of 1 tokens.*echo=true"),
    "one token short": (in_lists(lambda values: values[:-1]), r"log-probabilities of \d+ tokens.*echo=true"),
    "null": (one_value(None), "None in place of a log-probability"),
    "nan": (one_value(math.nan), "nan in place of a log-probability"),
    "minus infinity": (one_value(-math.inf), "-inf in place of a log-probability"),
    "cut off": (one_value(-9999.0), "-9999.0 in place of a log-probability"),
    "a probability": (one_value(0.7), "0.7 in place of a log-probability"),
    "no top": (
        changed(logprobs={"token_logprobs": [-1.0], "top_logprobs": None}),
        "an answer without log-probabilities",
    ),
}


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("name", FAULTS)
def test_log_probabilities_that_are_none(name, concurrent, server, mended, client, caplog):
    fault, says = FAULTS[name]
    model = client(num_concurrent=concurrent)
    server.fail(fault, good=3)
    with pytest.raises(Exception) as caught:  # noqa: B017, PT011
        token_likelihoods.loglikelihoods(model, PAIRS)
    assert re.search(says, repr(caught.value))
    del caught
    gc.collect()  # of requests that failed beside it, asyncio would say so now
    assert not [record for record in caplog.records if record.name == "asyncio"]
    kept = len(model.cache_hook.dbdict)
    assert kept == model.cache_hook.dbdict.written == 12 if concurrent == 1 else kept <= 12  # some may be on their way
    model.base_url = f"{mended.url}/completions"
    found = token_likelihoods.loglikelihoods(model, PAIRS)
    assert len(mended.prompts()) == len(set(mended.prompts())) == len(PAIRS) - kept  # nothing was asked again
    for (context, continuation), (value, greedy) in zip(PAIRS, found, strict=True):
        (wanted,) = servers.reply({"echo": True, "prompt": [[*context, *continuation]]})["choices"]
        assert value == sum(wanted["logprobs"]["token_logprobs"][3:5])
        assert not greedy
    assert "parse_logprobs" not in vars(model)


def test_requests_with_a_common_beginning_go_out_next_to_each_other(server, client):
    pairs = [([1, second, *[9] * length], [4, last]) for last in (5, 6) for length in (0, 2) for second in (2, 3)]
    values = token_likelihoods.loglikelihoods(client(batch_size=1), pairs)
    tokens = [(*context, *continuation) for context, continuation in pairs]
    assert [tuple(json.loads(prompt)) for prompt in server.prompts()] == sorted(tokens)
    for (context, continuation), (value, _) in zip(pairs, values, strict=True):
        (wanted,) = servers.reply({"echo": True, "prompt": [[*context, *continuation]]})["choices"]
        assert value == sum(wanted["logprobs"]["token_logprobs"][len(context) : len(context) + 2])


@pytest.mark.parametrize("chat", [False, True], ids=["plain", "chat"])
def test_texts_with_a_common_beginning_are_asked_for_next_to_each_other(chat, server, client):
    texts = [f"{start} {'long ' * n}end" for n in range(3) for start in ("One", "Two")]
    model = client(f"local-{'chat-' * chat}completions", batch_size=1)
    prompts = [model.apply_chat_template([{"role": "user", "content": text}]) if chat else text for text in texts]
    found = model.generated_text(_ask_for(prompts))
    sent = server.prompts()
    starts = [re.search("One|Two", prompt).group() if chat else json.loads(prompt)[:3] for prompt in sent]
    assert starts == sorted(starts)
    assert len(found) == len(sent) == len(texts)


WRITTEN = {
    "500": (500, "500"),
    "no answers": (b"{}", "a reply without answers"),
    "none": (b'{"choices": []}', "0 answers to 1 prompts|answers without a number"),
    "no number": (changed(index=None), "answers without a number"),
    "a number for a text": (changed(text=3, message={"content": 3}), "an answer without a text"),
    "parts": (changed(text=["a"], message={"content": [{"type": "text"}]}), "an answer without a text"),
}


def _ask_for(texts, **options):
    from lm_eval.api.instance import Instance

    return [Instance("generated_text", {}, (text, {"max_gen_toks": 3, **options}), 0) for text in texts]


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("chat", [False, True], ids=["plain", "chat"])
def test_texts_that_are_none(chat, name, concurrent, server, mended, client):
    fault, says = WRITTEN[name]
    model = client(f"local-{'chat-' * chat}completions", num_concurrent=concurrent, batch_size=1)
    prompts = [f"prompt {n}" for n in range(6)]
    if chat:
        prompts = [model.apply_chat_template([{"role": "user", "content": prompt}]) for prompt in prompts]
    server.fail(fault, good=2)
    with pytest.raises(Exception, match=says):
        model.generated_text(_ask_for(prompts))
    kept = len(model.cache_hook.dbdict)
    assert kept == 2 if concurrent == 1 else kept <= 2
    model.base_url = model.base_url.replace(server.url, mended.url)
    found = model.generated_text(_ask_for(prompts))
    assert len(mended.prompts()) == len(set(mended.prompts())) == 6 - kept
    server.fail(None)
    assert found == client(f"local-{'chat-' * chat}completions", batch_size=1).generated_text(_ask_for(prompts))
    assert all(found)


@pytest.mark.parametrize("concurrent", [1, 3])
def test_fewer_texts_than_prompts(concurrent, server, client):
    model = client(num_concurrent=concurrent)
    server.fail(lambda found: {"choices": found["choices"][:-1]})
    with pytest.raises(ValueError, match="3 answers to 4 prompts"):
        model.generated_text(_ask_for("abcdefgh"))


def test_no_text_is_a_fault_and_an_empty_text_an_answer(server, client, monkeypatch):
    model = client("local-chat-completions")
    prompts = [model.apply_chat_template([{"role": "user", "content": "a"}])]
    for text in ("", "  \n"):
        server.fail(changed(message={"content": text}))
        assert model.generated_text(_ask_for(prompts, seed=len(text))) == [text]
    for message in ({"content": None}, {"role": "assistant"}, None):
        server.fail(changed(message=message, finish_reason="length"))
        with pytest.raises(
            ValueError, match="without a text.*max_gen_toks.*set LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER= to"
        ):
            model.generated_text(_ask_for(prompts, seed=9))
    assert list(model.cache_hook.dbdict.values()) == ["", "  \n"]
    monkeypatch.setenv("LMEVAL_MODEL_NONE_ANSWER_PLACEHOLDER", "")  # who says so gets what the harness does by itself
    server.fail(changed(message={"content": None}))
    assert model.generated_text(_ask_for(prompts, seed=9)) == [""]


def test_sampled_texts_come_from_the_cache_too(server, client):
    model = client(batch_size=1)
    first, second = (model.generated_text(_ask_for("ab", do_sample=True)) for _ in range(2))
    assert first == second
    assert len(server.asked) == 2


def test_requests_are_tried_again(server, client):
    for concurrent in (1, 3):
        server.fail(429, good=1, times=1)
        found = token_likelihoods.loglikelihoods(client(num_concurrent=concurrent, max_retries=2), PAIRS)
        assert len(found) == len(PAIRS)
    assert len(server.asked) == 14


def test_a_run_stops_with_one_line_and_goes_on(server, tokenizer, tiny_mirror, tmp_path, capsys):
    chat = f"model=tiny,base_url={server.url}/chat/completions,max_retries=1"
    plain = f"model=tiny,base_url={server.url}/completions,max_retries=1,tokenizer={tokenizer}"
    for task, model, where, fault, says in (
        (
            "stereoset_en",
            "local-completions",
            f"{plain},tokenizer_backend=huggingface",
            "dropped",
            "closed the connection",
        ),
        ("gg_bbq_group_terms_gen", "local-chat-completions", chat, b"[]", "a reply without answers"),
    ):
        arguments = ["run", "--tasks", task, "--model", model, "--model_args", where, "--limit", "4"]
        arguments += ["--apply_chat_template"] * ("chat" in model)
        kept = ["--use_cache", str(tmp_path / model), "--output_path"]
        server.fail(fault, good=2)
        capsys.readouterr()
        assert main([*arguments, *kept, str(tmp_path / "out")]) == 2
        err = capsys.readouterr().err
        assert "Traceback" not in err
        line = err.strip().splitlines()[-1]
        assert re.match(
            f"lm-eval-bias: error: --model {model} base_url={server.url}.*{says}.*run the same command again to resume",
            line,
        )
        assert not list((tmp_path / "out").rglob("*.json*"))
        server.fail(None)
        first = len(server.prompts())
        assert main([*arguments, *kept, str(tmp_path / f"again_{model}")]) == 0
        assert len(server.prompts()) == len(set(server.prompts())) > first
        server.answered.clear()
        assert main([*arguments, "--output_path", str(tmp_path / f"at_once_{model}")]) == 0
        server.answered.clear()
        again, at_once = (numbers(results_of(tmp_path / f"{name}_{model}")) for name in ("again", "at_once"))
        assert repr(again) == repr(at_once)  # nan is nan


def test_a_chat_server_needs_conversations(server, tiny_mirror, capsys):
    arguments = ["run", "--tasks", "gg_bbq_group_terms_gen", "--model", "local-chat-completions", "--model_args"]
    assert main([*arguments, f"model=tiny,base_url={server.url}/chat/completions"]) == 2
    assert "add --apply_chat_template" in capsys.readouterr().err
    assert not server.asked
