"""Runs with OpenAI-compatible servers that fail or lie: one line, nothing wrong kept, and the next run goes on."""

import gc
import json
import math
import re

import pytest

from lm_eval_bias.core import redaction
from lm_eval_bias.harness.servers import SERVED
from lm_eval_bias.scoring.token_likelihoods import loglikelihoods
from tests.support import servers

pytest.importorskip("tenacity", reason="needs lm-eval[api]")

PAIRS = [([1, 2, 3 + n], [4, 5 + n % 3]) for n in range(24)]  # six batches of four
KEY = servers.KEY


def refused(ask):
    """Why a client takes no answer."""
    with redaction.learning(), pytest.raises(ValueError) as caught:  # noqa: PT011 (what it says is returned)
        ask()
    text = str(caught.value)
    assert len(text) < 700
    assert not re.search(f"\n|\x1b|{KEY}", text)
    return text


def log_likelihoods_hold(found):
    for (context, continuation), (value, greedy) in zip(PAIRS, found, strict=True):
        (wanted,) = servers.reply(
            {"echo": True, "prompt": [[*context, *continuation]]}
        )["choices"]
        assert value == sum(wanted["logprobs"]["token_logprobs"][3:5])
        assert not greedy


def changed(**values):
    """A fault: other values in the last answer of a reply."""

    def spoil(found):
        found["choices"][-1].update(values)
        return found

    return spoil


def beside(**values):
    """A fault: more beside the answers."""
    return lambda found: found | values


def in_lists(change, names=("token_logprobs", "top_logprobs")):
    """A fault: other log-probabilities in every answer."""

    def spoil(found):
        for choice in found["choices"]:
            choice["logprobs"] |= {
                name: change(choice["logprobs"].get(name)) for name in names
            }
        return found

    return spoil


def one_value(value):
    return in_lists(
        lambda values: [*values[:-2], value, values[-1]], ["token_logprobs"]
    )


def alike(value):
    return in_lists(
        lambda values: [None, *[value] * (len(values) - 1)], ["token_logprobs"]
    )


DENIED = json.dumps({"error": f"no such key: {KEY}\x1b[2J\nsorry"}).encode()
FAULTS = {
    "500": (500, "status 500, the server says .*out of order.*log"),
    "401": ((401, DENIED), r"status 401.*no such key: \*\*\*.*OPENAI_API_KEY"),
    "404": (
        (404, b'{"error": "The model `m` does not exist"}'),
        "status 404.*The model `m` does not exist.*model=",
    ),
    "dropped": ("dropped", "no connection to the server, or a lost one.*base_url="),
    "silent": ("silent", "no reply in time; raise timeout="),
    "not JSON": (b"<html>", "a reply that is not JSON; check base_url="),
    "an error with status 200": (
        b'{"error": "overloaded"}',
        "a reply without answers.*overloaded",
    ),
    "an error beside answers": (
        beside(error="over quota"),
        "an error along with the answers: .*over quota",
    ),
    "an error's end": (
        changed(finish_reason="error"),
        "an error along with the answers",
    ),
    "fewer answers": (
        lambda found: {"choices": found["choices"][1:]},
        "3 answers to 4 prompts",
    ),
    "no number": (changed(index=None), r"the numbers \[0, 1, 2, None\]"),
    "no log-probabilities": (
        changed(logprobs=None),
        "log-probabilities of 0 tokens instead of 5 and one more",
    ),
    "one token short": (
        in_lists(lambda values: values[:-1]),
        "log-probabilities of 5 tokens instead of 5.*echo=true",
    ),
    "a missing value": (one_value(None), "None in place of a log-probability"),
    "nan": (one_value(math.nan), "nan in place of a log-probability"),
    "cut off": (one_value(-9999.0), "-9999.0 in place of a log-probability"),
    "a probability": (one_value(0.7), "0.7 in place of a log-probability"),
    "all 0": (alike(0.0), "0.0, the most probable one"),
    "all -90": (
        alike(-90.0),
        r"only 1 log-probabilities for \d+ different tokens: no language model",
    ),
    "above the likeliest": (
        one_value(-2.5),
        "a token has the log-probability -2.5, the most probable one -.* match",
    ),
    "another model": (
        beside(model="other"),
        "'other' answered, 'one' before.*another file of --use_cache",
    ),
}


# asked one at a time and three at a time in turn
@pytest.mark.parametrize(
    ("name", "client"),
    [(name, 1 + 2 * (place % 2)) for place, name in enumerate(FAULTS)],
    indirect=["client"],
)
def test_log_probabilities_that_are_none(name, server, mended, client, caplog):
    fault, says = FAULTS[name]
    model = client()
    if name == "another model":
        model.cache_hook.dbdict[SERVED] = "one"
    server.fail(fault, good=3)
    caplog.clear()
    text = refused(lambda: loglikelihoods(model, PAIRS))
    assert re.search(says, text), text
    gc.collect()  # of requests that failed beside it, asyncio would say so now
    assert not caplog.records
    kept = len(model.cache_hook.dbdict) - (SERVED in model.cache_hook.dbdict)
    assert kept == 12 if client.at_once == 1 else kept <= 12  # some may be on their way
    assert len(model.cache_hook.dbdict) == model.cache_hook.dbdict.written
    model.base_url = f"{mended.url}/completions"
    log_likelihoods_hold(loglikelihoods(model, PAIRS))
    assert (
        len(mended.prompts()) == len(set(mended.prompts())) == len(PAIRS) - kept
    )  # nothing was asked again
    assert "parse_logprobs" not in vars(model)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: {"choices": found["choices"][::-1]},
        beside(usage=None, error=None),
        beside(model="/of/tiny"),
    ],
    ids=["another order", "nothing beside", "another name than asked for"],
)
def test_what_is_no_fault(change, server, client):
    server.fail(change)
    log_likelihoods_hold(loglikelihoods(client(), PAIRS))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://127.0.0.1:1/v1", "no connection to the server.*base_url="),
        ("v1/completions", "(?i)invalid.?url"),
    ],
)
def test_no_server_and_a_key_with_a_line_break(url, says, client, monkeypatch):
    model = client()
    model.base_url = url
    text = refused(lambda: loglikelihoods(model, PAIRS))
    assert re.search(says, text), text
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-secret\n")
    assert "sk-another" not in refused(lambda: loglikelihoods(client(), PAIRS))


def test_tokens_that_a_server_names(server, client):
    model = client()
    ids = model.tok_encode("The old gardener, 7 flowers: <|endoftext|>ü")
    decoded = [model.tokenizer.decode([number]) for number in ids]
    word = next(
        i
        for i, name in enumerate(decoded)
        if len(name.strip()) > 2 and name.strip().isalpha()
    )

    def ask(names):
        server.fail(in_lists(lambda values: names, ["tokens"]))
        model.cache_hook.dbdict.clear()
        return loglikelihoods(model, [(ids[:-2], ids[-2:])])

    for names in (
        model.tokenizer.convert_ids_to_tokens(ids),
        decoded,
        [f"token_id:{number}" for number in ids],
        [],
    ):
        assert len(ask(names)) == 1
    with pytest.raises(ValueError, match=f"' man' instead of '{decoded[word]}'"):
        ask([*decoded[:word], " man", *decoded[word + 1 :]])


def test_an_answer_without_a_text_is_a_refusal_or_an_empty_one(server, client):
    model = client("local-chat-completions")
    prompts = servers.chats(model, 1)
    for seed, (message, text) in enumerate([
        ({"content": ""}, ""), ({"content": "  \n"}, "  \n"), ({"content": None}, ""), ({"role": "assistant"}, ""),
        ({"content": None, "refusal": "I can't help with that."}, "I can't help with that."),
    ]):  # fmt: skip
        server.fail(changed(message=message, finish_reason="length"))
        assert model.generated_text(servers.ask_for(prompts, seed=seed)) == [text]
        assert model.cache_hook.dbdict.written == seed + 1
    server.fail(changed(message=None))
    assert "an answer without a text" in refused(
        lambda: model.generated_text(servers.ask_for(prompts, seed=9))
    )


def test_a_strict_server_is_asked_without_top_k(server, client, caplog):
    model = client("local-chat-completions")
    prompts = servers.chats(model, 6)
    drawn = {"do_sample": True, "temperature": 1.0, "top_k": 0}
    model.generated_text(servers.ask_for(prompts[5:], **drawn))
    assert [(asked["top_k"], asked["min_p"]) for asked in server.answered] == [
        (0, 0)
    ]  # other servers are told
    server.is_strict = True
    assert all(model.generated_text(servers.ask_for(prompts[:4], **drawn)))
    before = len(server.refused)
    # those sent before the first refusal came, and as many about nothing
    assert 2 <= before <= 2 * client.at_once
    assert len(server.answered) == 5
    assert all(model.generated_text(servers.ask_for(prompts, **drawn)))
    assert len(server.refused) == before
    (warning,) = (
        record.getMessage()
        for record in caplog.records
        if "top_k" in record.getMessage()
    )
    assert warning == "the server doesn't take min_p=0.0 and top_k=0: asked without"
    text = refused(lambda: model.generated_text(servers.ask_for(prompts, min_p=0.1)))
    assert re.search(
        r"status 400, the server says .*argument supplied: min_p.*check min_p \(--gen_kwargs\)",
        text,
    )


@pytest.mark.parametrize("tokenized", [True, False])
def test_texts_with_their_prompt(tokenized, server, client):
    model = client(batch_size=1, tokenized_requests=tokenized)
    prompt = "The old gardener"
    server.fail(
        lambda found: {"choices": [{"index": 0, "text": f"{prompt} was here."}]}
    )
    assert "repeats its prompt ('The old gardener')" in refused(
        lambda: model.generated_text(servers.ask_for([prompt]))
    )
    assert not model.cache_hook.dbdict
    assert (
        model.generated_text(servers.ask_for(["The young gardener", f" {prompt}"]))
        == [f"{prompt} was here."] * 2
    )
