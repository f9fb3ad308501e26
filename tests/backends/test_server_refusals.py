"""What servers refuse: one prompt, some options, or all; and what they ask to wait for."""

import email.utils
import json
import math
import threading
import time
from types import SimpleNamespace

import pytest

from lm_eval_bias.harness import servers as checks
from lm_eval_bias.scoring.token_likelihoods import loglikelihoods
from tests.support import servers

CHAT = "local-chat-completions"
FILTERED = (
    400,
    b'{"error": {"code": "content_filter", "message": "The response was filtered due to the prompt triggering Azure '
    b"OpenAI's content management policy.\"}}",
)
TOO_LONG = (
    400,
    b'{"error": {"message": "This model\'s maximum context length is 8 tokens", "code": "context_length_exceeded"}}',
)
FLAGGED = (403, b'{"error": {"message": "Your input was flagged", "code": 403}}')


def error(message, status=400, **more):
    return status, json.dumps({"error": {"message": message, **more}}).encode()


def on(word, fault):
    """A judge: the fault for prompts that hold a word."""
    return lambda asked: fault if word in json.dumps(asked) else None


@pytest.fixture
def written():
    """Ask for texts as a run does: they know why they ended."""

    def ask(model, prompts, **options):
        with checks.asking(model):
            return model.generated_text(servers.ask_for(prompts, **options))

    return ask


@pytest.mark.parametrize(
    ("fault", "finish"),
    [
        (FILTERED, "content_filter"),
        (FLAGGED, "content_filter"),
        (TOO_LONG, "error"),
        (error("no", 422), "error"),
        (error("out of order", 500), "error"),
    ],
)
@pytest.mark.parametrize("sampled", [False, True])
def test_a_refused_prompt_ends_no_run(
    fault, finish, sampled, server, client, written, caplog
):
    model = client(CHAT, max_retries=2)
    server.judge = on("prompt 2", fault)
    prompts = servers.chats(model, 6)
    texts = written(model, prompts, do_sample=sampled, temperature=float(sampled))
    assert [text.finish for text in texts] == ["", "", finish, "", "", ""]
    assert [text == "" for text in texts] == [n == 2 for n in range(6)]
    told = [r.getMessage() for r in caplog.records if "has no answer" in r.getMessage()]
    assert len(told) == 1
    assert f"status {fault[0]}" in told[0]
    # it is kept as what it is, and nothing is asked again
    asked = len(server.asked)
    assert [
        text.finish
        for text in written(
            model, prompts, do_sample=sampled, temperature=float(sampled)
        )
    ] == [text.finish for text in texts]
    assert len(server.asked) == asked


def test_a_refused_log_likelihood_is_no_number(server, client):
    model = client()
    pairs = [([1, 2, 3 + n], [4, 5]) for n in range(8)]
    server.judge = lambda asked: (
        TOO_LONG if [1, 2, 6, 4, 5] in [*asked["prompt"]] else None
    )
    found = loglikelihoods(model, pairs)
    assert [math.isnan(value) for value, _ in found] == [n == 3 for n in range(8)]


@pytest.mark.parametrize(
    "fault",
    [
        error("You exceeded your current quota", 429, code="insufficient_quota"),
        error("Insufficient Balance", 402),
        error("Incorrect API key provided", 401),
        error("The model `tiny` does not exist", 404),
        error("API key not valid", 400),
        error("Country not supported", 403),
    ],
)
def test_what_is_about_the_account_or_the_address_ends_a_run_at_once(
    fault, server, client, written
):
    model = client(CHAT, max_retries=9)
    server.judge = lambda asked: fault
    with pytest.raises(ValueError, match="the server says") as caught:
        written(model, servers.chats(model, 30))
    assert json.loads(fault[1])["error"]["message"] in str(caught.value)
    assert "num_concurrent" not in str(caught.value)
    assert len(server.asked) <= 2 * client.at_once


def test_a_server_that_breaks_down_ends_a_run(server, client, written):
    model = client(CHAT, max_retries=2)
    server.judge = lambda asked: 500
    with pytest.raises(ValueError, match="status 500"):
        written(model, servers.chats(model, 3))


def after(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize("wait", [lambda: 3, lambda: after(3)], ids=["seconds", "date"])
def test_retry_after_is_waited_for_and_is_no_try(
    wait, server, client, written, monkeypatch
):
    model = client(CHAT, max_retries=2, timeout=60)
    waited = []

    class Event(threading.Event):
        def wait(self, timeout=None):
            waited.append(timeout)

    monkeypatch.setattr(checks, "threading", SimpleNamespace(Event=Event))
    turns = iter(range(1000))
    server.judge = lambda asked: (
        (429, b"slow down", {"Retry-After": wait()}) if next(turns) % 4 else None
    )
    assert all(written(model, servers.chats(model, 4)))
    assert len(waited) > 6
    assert all(1 < seconds <= 3 for seconds in waited)


def test_a_long_retry_after_ends_a_run(server, client, written):
    model = client(CHAT, timeout=60)
    server.judge = lambda asked: (429, b"come back", {"Retry-After": 3600})
    with pytest.raises(ValueError, match="come back.*wait for 3600 seconds"):
        written(model, servers.chats(model, 3))


PARTS = {
    "B": [{"type": "text", "text": "B"}],
    "B, I think": [{"type": "text", "text": "B"}, {"type": "output_text", "text": ", I think"}],
    "<think>Hm.</think>B": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "B"},
    ],
    "<think>Hm, hm.</think>B": [
        {"type": "reasoning", "text": "Hm,"},
        {"type": "reasoning", "reasoning": " hm."},
        {"type": "text", "text": "B"},
    ],
    "<think>Hm.": [{"type": "thinking", "thinking": "Hm."}],
    "I won't.": [{"type": "refusal", "refusal": "I won't."}],
    "": [],
}  # fmt: skip


@pytest.mark.parametrize("text", PARTS)
def test_answers_in_parts(text, server, client, written):
    model = client(CHAT)
    message = {"role": "assistant", "content": PARTS[text]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    server.fail(lambda found: {"choices": [choice]})
    (found,) = written(model, servers.chats(model, 1))
    assert (found, found.finish) == (text, "stop")


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": None}, "finish_reason": "content_filter"},
        {"message": None, "finish_reason": "content_filter"},
        {"finish_reason": "content_filter"},
        {"message": {"content": "", "refusal": ""}, "finish_reason": "refusal"},
    ],
)
def test_an_answer_that_a_filter_took_away(choice, server, client, written):
    model = client(CHAT)
    server.fail(lambda found: {"choices": [{"index": 0, **choice}]})
    (found,) = written(model, servers.chats(model, 1))
    assert (found, found.finish) == ("", choice["finish_reason"])
