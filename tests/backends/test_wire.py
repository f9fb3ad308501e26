"""What can go wrong on the wire: the right result in the end, or one line and nothing wrong that is kept."""

import contextlib
import gzip
import json
import math
import re
import threading
import time
import types

import pytest

from lm_eval_bias import registration
from lm_eval_bias.cli.main import main
from lm_eval_bias.errors import BiasError, printable
from lm_eval_bias.harness import api_answers, api_calls, api_replies, running
from lm_eval_bias.scoring import token_likelihoods
from tests import servers, tiny

pytest.importorskip("tenacity", reason="needs lm-eval[api]")

PAIRS = [([1, 2, 3 + n], [4, 5 + n % 3]) for n in range(8)]  # two batches of four
KEY = "sk-very-secret-0123456789"


class Handler(servers.Handler):
    """Answers with what ``server.fault`` writes, as often as ``server.times`` says, else as all is well."""

    def answer(self, asked):
        self.asked = asked
        with self.server.lock:
            fault = self.server.fault if self.server.times > 0 else None
            self.server.times -= 1
        good = json.dumps(servers.reply(asked)).encode()
        with contextlib.suppress(OSError):  # a client that has gone away is none
            self.send(good) if fault is None else fault(self, good)

    def do_GET(self):
        self.answer({"prompt": [], "seed": 0})

    def write(self, body, status=200, length=None, **headers):
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)


class Server(servers.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.fault, self.times = threading.Lock(), None, 0
        servers.serve(self)

    def handle_error(self, request, client_address):
        pass


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny.gpt2_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    from lm_eval.models import api_models

    monkeypatch.setattr(api_models, "wait_exponential", lambda **_: lambda state: 0.0)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def status(number, body=b"", **headers):
    return lambda handler, good: handler.write(body, number, **headers)


def body(change, **options):
    """Another body, made of the good one."""
    return lambda handler, good: handler.write(change(good), **options)


def reply(change):
    """Another reply, made of the good one."""

    def changed(good):
        content = json.loads(good)
        return json.dumps(change(content) or content).encode()

    return body(changed)


def each(change):
    """Another answer to each prompt."""

    def changed(content):
        for choice in content["choices"]:
            change(choice)

    return reply(changed)


def values(change):
    """Other log-probabilities of the prompt's tokens behind the first."""
    return each(
        lambda choice: choice["logprobs"].update(
            token_logprobs=[None, *change(choice["logprobs"]["token_logprobs"][1:-1]), -1.0]
        )
    )


def last(value):
    return values(lambda numbers: [*numbers[:-1], value])


def named(change):
    """Names of the tokens beside their log-probabilities: ids, as some servers give them."""

    def write(handler, good):
        content = json.loads(good)
        for choice, ids in zip(content["choices"], handler.asked["prompt"], strict=True):
            choice["logprobs"]["tokens"] = [f"token_id:{number}" for number in change(ids)] + ["x"]
        handler.send(content)

    return write


def pause(seconds):
    return lambda handler, good: (time.sleep(seconds), handler.send(good))


def trickle(handler, good):
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(good)))
    handler.end_headers()
    for byte in good:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.05)


def dropped(handler, good):
    handler.close_connection = True


def redirected(handler, good):
    handler.write(b"", 307, Location=handler.path)


def chunked(handler, good):
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"%x\r\n%s" % (len(good), good[:40]))


def twice(good):
    return b'{"choices": [], ' + good.lstrip()[1:]


def pick(number):
    def change(content):
        content["choices"] = content["choices"][:number]

    return reply(change)


def missing(*names):
    def remove(choice):
        inside = choice
        for name in names[:-1]:
            inside = inside[name]
        del inside[names[-1]]

    return each(remove)


UNKNOWN = json.dumps({"error": {"message": "The model `m` does not exist", "type": "invalid_request_error"}}).encode()
DENIED = json.dumps({"error": f"no such key: {KEY}\x1b[2J\nsorry"}).encode()
PAGE = b"<html><head><title>x</title></head><body><h1>Bad   Gateway</h1><script>1</script></body></html>"
# what is written, what the line says, and whether it says that the run can be gone on with
STOPS = {
    "400": (
        status(400, b'{"detail": [{"msg": "logprobs must be <= 0"}]}'),
        r"status 400.*logprobs must be <= 0",
        False,
    ),
    "401": (
        status(401, DENIED),
        r"status 401 \(Unauthorized\).*no such key: \*\*\*\\\\x1b\[2J sorry.*OPENAI_API_KEY",
        False,
    ),
    "403": (status(403, b"forbidden for you"), r"status 403.*forbidden for you.*OPENAI_API_KEY", False),
    "404": (status(404, UNKNOWN), r"status 404 \(Not Found\).*The model `m` does not exist.*model=", False),
    "413": (status(413), r"status 413.*without a message.*--batch_size", False),
    "429": (status(429, b'{"message": "slow down"}'), r"status 429.*slow down.*num_concurrent=", True),
    "500": (status(500, b'"oops"'), r"status 500.*oops.*log", True),
    "502": (status(502, PAGE), r"status 502.*says: 'Bad Gateway'", True),
    "503": (status(503, b"x" * 9999), r"status 503.*xxx…'", True),
    "504": (status(504), r"status 504.*timeout=", True),
    "599": (status(599, b"what"), r"status 599, the server says: 'what'", True),
    "redirects": (redirected, r"redirects without end|status 307", False),
    "not JSON": (body(lambda good: b"hello"), r"not JSON \(Expecting value\): 'hello'", True),
    "cut JSON": (body(lambda good: good[:-20]), "not JSON", True),
    "empty": (body(lambda good: b""), "an empty reply", True),
    "HTML": (body(lambda good: PAGE, Content_Type="text/html"), "not JSON.*'Bad Gateway'", True),
    "nested": (body(lambda good: b"[" * 100_000), "not JSON.*recursion|not JSON.*nest|not JSON", True),
    "huge": (body(lambda good: good + b" " * 200_000), "a reply of more than 100,000 bytes", True),
    "huge length": (body(lambda good: good, length=1 << 40), "a reply of more than 100,000 bytes", True),
    "length too large": (body(lambda good: good, length=5_000), "closed the connection", True),
    "length too small": (body(lambda good: good, length=100), "not JSON|closed the connection", True),
    "dropped before": (dropped, "closed the connection before its reply.*max_retries= .now 2", True),
    "dropped within": (chunked, "closed the connection before its reply.*max_retries= .now 2", True),
    "gzip garbage": (body(lambda good: good, Content_Encoding="gzip"), "can't be unpacked", True),
    "cut gzip": (
        body(lambda good: gzip.compress(good)[:-40], Content_Encoding="gzip"),
        "can't be unpacked|not JSON",
        True,
    ),
    "twice": (body(twice), "'choices' appears twice", True),
    "a list": (body(lambda good: b"[1]"), "without answers", True),
    "null": (body(lambda good: b"null"), "without answers", True),
    "an error in 200": (body(lambda good: b'{"error": "overloaded"}'), "without answers.*overloaded", True),
    "no choices": (reply(lambda content: {"object": "x"}), "without answers", True),
    "fewer": (pick(3), "3 answers to 4 prompts", True),
    "more": (reply(lambda content: {"choices": content["choices"] * 2}), "8 answers to 4 prompts", True),
    "one index": (each(lambda choice: choice.update(index=0)), r"to the prompts \[0, 0, 0, 0\]", True),
    "null logprobs": (each(lambda choice: choice.update(logprobs=None)), "without log-probabilities", False),
    "no token_logprobs": (missing("logprobs", "token_logprobs"), "without log-probabilities", False),
    "cut echo": (each(lambda c: c["logprobs"].update(token_logprobs=[-1.0])), "of 1 and 6 tokens.*echo=true", False),
    "NaN": (last(math.nan), "nan in place of a log-probability", True),
    "Infinity": (last(math.inf), "inf in place of a log-probability", True),
    "a string": (last("-1.5"), "'-1.5' in place of a log-probability", True),
    "a null": (last(None), "None in place of a log-probability", True),
    "a truth": (last(False), "False in place of a log-probability", True),
    "positive": (last(0.5), "0.5 in place of a log-probability", True),
    "all 0": (values(lambda numbers: [0.0] * len(numbers)), r"0.0 for each of \d+ different tokens", False),
    "all -1": (values(lambda numbers: [-1.0] * len(numbers)), r"-1.0 for each of \d+ different tokens", False),
    "an error along with": (
        reply(lambda content: content | {"error": {"message": "over quota"}}),
        "an error along with the answers: .*over quota",
        True,
    ),
    "an error's end": (
        each(lambda choice: choice.update(finish_reason="error")),
        "an error along with the answers",
        True,
    ),
    "above the largest": (
        each(lambda c: c["logprobs"].update(top_logprobs=[None] + [{"x": -20.0}] * 5)),
        "while that of the most probable one is -20.0: .* don't match",
        False,
    ),
    "other tokens": (named(lambda ids: [*ids[:-1], 77]), "'token_id:77' instead of ", False),
}
GOOD = {
    "another content type": body(lambda good: good, Content_Type="text/plain"),
    "a charset": body(lambda good: good, Content_Type="application/json; charset=latin-1"),
    "an unknown charset": body(lambda good: good, Content_Type="application/json; charset=utf8"),
    "UTF-16": body(lambda good: good.decode().encode("utf-16")),
    "gzip": body(gzip.compress, Content_Encoding="gzip"),
    "another order": reply(lambda content: {"choices": content["choices"][::-1], "usage": {"total_tokens": 3}}),
    "usage null": reply(lambda content: content | {"usage": None, "error": None}),
    "another name than asked for": reply(lambda content: content | {"model": "/weights/of-tiny"}),
    "the same tokens": named(lambda ids: ids),
    "slow": pause(0.1),
}


class Kept(dict):
    """In place of the file of --use_cache."""

    def commit(self):
        pass


@pytest.fixture
def client(server, tokenizer):
    """One of the harness's clients of the server, and the run that it is asked in."""
    from lm_eval.api.model import CacheHook
    from lm_eval.api.registry import get_model

    registration.register()

    def make(model="local-completions", **more):
        path = f"{'chat/' * ('chat' in model)}completions"
        url = f"http://127.0.0.1:{server.server_port}/v1/{path}?api_key={KEY}"
        given = {"model": "tiny", "base_url": url, "timeout": 30, "max_retries": 2, "batch_size": 4, **more}
        if "chat" not in model:
            given |= {"tokenizer": str(tokenizer), "tokenizer_backend": "huggingface"}
        made = get_model(model)(**given)
        made.set_cache_hook(CacheHook(None))
        made.cache_hook.dbdict = Kept()
        return made, types.SimpleNamespace(model=model, model_args=given, use_cache=None)

    return make


def line(model, config, ask):
    """What a run says at its end when asking fails."""
    with pytest.raises(BiasError) as caught, running._answering(model, config):
        ask()
    text = printable(caught.value)
    assert "\n" not in text
    assert len(text) < 1_200
    assert KEY not in text
    assert f"base_url={model.base_url.partition('?')[0]}: " in text
    return text


def wanted():
    for context, continuation in PAIRS:
        (choice,) = servers.reply({"echo": True, "prompt": [[*context, *continuation]]})["choices"]
        yield sum(choice["logprobs"]["token_logprobs"][3:5]), False


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("name", STOPS)
def test_log_likelihoods(name, concurrent, server, client, monkeypatch, caplog):
    monkeypatch.setattr(api_calls, "_LARGEST", 100_000)
    server.fault, says, goes_on = STOPS[name]
    model, config = client(num_concurrent=concurrent)
    server.times = 1_000
    text = line(model, config, lambda: token_likelihoods.loglikelihoods(model, PAIRS))
    assert re.search(says, text), text
    assert ("resume" in text) is goes_on
    assert not model.cache_hook.dbdict
    warnings = [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    # once of each kind: some faults look like one or another, as the bytes come in
    assert 1 <= len([w for w in warnings if "sending a request again" in w]) <= 1 + says.count("|")
    assert not [w for w in warnings if "Retrying" in w or "Exception:" in w or KEY in w]
    server.times = 1  # and with another try all is well
    assert token_likelihoods.loglikelihoods(model, PAIRS) == list(wanted())


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_fault(name, concurrent, server, client):
    model, _ = client(num_concurrent=concurrent, max_retries=1)
    server.fault, server.times = GOOD[name], 1_000
    assert token_likelihoods.loglikelihoods(model, PAIRS) == list(wanted())


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("fault", [pause(1), trickle], ids=["silent", "a byte now and then"])
def test_slow_servers(fault, concurrent, server, client):
    model, config = client(num_concurrent=concurrent, max_retries=1)
    model.timeout = 0.2
    server.fault, server.times = fault, 1_000
    text = line(model, config, lambda: token_likelihoods.loglikelihoods(model, PAIRS))
    assert re.search(r"no complete reply within 0.2 s \(timeout=0.2\); raise timeout= .*max_retries= \(now 1\)", text)
    assert "resume" in text


@pytest.mark.parametrize("concurrent", [1, 3])
def test_no_server(concurrent, client):
    model, config = client(num_concurrent=concurrent)
    for url, says in (("http://127.0.0.1:1/v1", "can't be reached.*base_url="), ("v1/completions", "begins with http")):
        model.base_url = url
        with pytest.raises(BiasError, match=says), running._answering(model, config):
            token_likelihoods.loglikelihoods(model, PAIRS)


TEXTS = {
    "null": (each(lambda choice: choice.update(text=None, message={"content": None})), "set LMEVAL_MODEL_NONE_ANSWER"),
    "no field": (each(lambda choice: [choice.pop(name, 0) for name in ("text", "message")]), "without a text"),
    "no content": (each(lambda choice: choice.update(text=None, message={"role": "x"})), "without a text"),
    "no message": (each(lambda choice: choice.update(text=None, message=None)), "without a text"),
    "a number": (each(lambda choice: choice.update(text=3, message={"content": 3})), "without a text"),
    "no answers": (reply(lambda content: {"choices": []}), "0 answers to 1 prompts|without a number"),
    "no choices": (reply(lambda content: {"id": "x"}), "a reply without answers"),
    "cut": (
        reply(
            lambda content: {
                "choices": [choice | {"finish_reason": "length"} for choice in content["choices"]],
                "usage": {"completion_tokens": 1},
            }
        ),
        "texts of at most 1 tokens were cut off, although 3 tokens per text were requested",
    ),
    "Latin-1": (body(lambda good: re.sub(rb'("content": "|"text": ")', b"\\1\xe4", good)), "not JSON .*decode"),
}


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", ["local-completions", "local-chat-completions"])
def test_texts(kind, name, concurrent, server, client):
    from lm_eval.api.instance import Instance

    model, config = client(kind, num_concurrent=concurrent, batch_size=1)
    prompts = ["a", "b"]
    if "chat" in kind:
        prompts = [model.apply_chat_template([{"role": "user", "content": prompt}]) for prompt in "ad"]
    requests = [Instance("generated_text", {}, (prompt, {"max_gen_toks": 3}), 0) for prompt in prompts]
    server.times = 0
    right = model.generated_text(requests)
    assert all(right)
    model.cache_hook.dbdict.clear()
    server.fault, says = TEXTS[name]
    server.times = 1_000
    text = line(model, config, lambda: model.generated_text(requests))
    assert re.search(says, text), text
    assert not model.cache_hook.dbdict
    server.times = 1
    assert model.generated_text(requests) == right


def texts_of(model, *prompts):
    from lm_eval.api.instance import Instance

    return model.generated_text(
        [Instance("generated_text", {}, (prompt, {"max_gen_toks": 3}), 0) for prompt in prompts]
    )


@pytest.mark.parametrize("concurrent", [1, 3])
def test_texts_with_their_prompt(concurrent, server, client):
    model, config = client(num_concurrent=concurrent, batch_size=1)
    prompt = "The old gardener"
    server.fault, server.times = each(lambda choice: choice.update(text=f"{prompt} was here.")), 1_000
    text = line(model, config, lambda: texts_of(model, prompt))
    assert re.search(r"repeats its prompt \('The old gardener'\).*echo=false", text), text
    assert not model.cache_hook.dbdict
    assert texts_of(model, "The young gardener", f" {prompt}") == [f"{prompt} was here."] * 2
    with pytest.raises(ValueError, match="its prompt"):  # asked as texts, not as token ids
        api_replies.check(model, ["a", prompt], {"choices": [{"text": "b"}, {"text": f"{prompt}."}]}, {})


@pytest.mark.parametrize(
    ("ends", "tokens"), [("stop", 1), ("length", 3), ("length", 2), ("length", 0), ("length", None), (None, 1)]
)
def test_texts_that_end_where_they_may(ends, tokens, server, client):
    model, _ = client(batch_size=1, max_retries=1)
    usage = {"completion_tokens": tokens}
    server.fault = reply(lambda c: {"choices": [one | {"finish_reason": ends} for one in c["choices"]], "usage": usage})
    server.times = 1_000
    assert all(texts_of(model, "a", "b"))


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("cached", [False, True])
def test_a_run_is_of_one_model(cached, concurrent, server, client):
    def is_called(name):
        return reply(lambda content: content | {"model": name})

    model, config = client(num_concurrent=concurrent)
    server.times, server.fault = 1_000, is_called("one")
    if not cached:
        model.cache_hook.dbdict = None
    token_likelihoods.loglikelihoods(model, PAIRS[:4])
    if cached:  # the run goes on later, in another process
        model, config = client(num_concurrent=concurrent)
        model.cache_hook.dbdict.update({api_replies.SERVED: "one"})
    server.fault = is_called("other")
    text = line(model, config, lambda: token_likelihoods.loglikelihoods(model, PAIRS[4:]))
    assert "an answer of the model 'other', where 'one' answered before" in text
    server.fault = is_called("one")
    assert len(token_likelihoods.loglikelihoods(model, PAIRS[4:])) == 4
    assert client()[0].cache_hook.dbdict == {}


def test_few_numbers_for_many_tokens(server, client):
    model, config = client(batch_size=4)
    pairs = [(list(range(20 * n + 1, 20 * n + 20)), [100 + n]) for n in range(4)]
    server.times = 1_000
    server.fault = values(lambda numbers: [-7.0 - place % 2 for place in range(len(numbers))])
    assert "only 2 log-probabilities for 76 different tokens" in line(
        model, config, lambda: token_likelihoods.loglikelihoods(model, pairs)
    )
    server.fault = values(lambda numbers: [round(number, 1) - 5 for number in numbers])
    assert len(token_likelihoods.loglikelihoods(model, pairs)) == 4


@pytest.mark.parametrize("concurrent", [1, 3])
@pytest.mark.parametrize("name", ["404", "cut JSON", "all -1"])
def test_a_run_ends_with_one_line(name, concurrent, server, tokenizer, tmp_path, capsys):
    server.fault, says, _ = STOPS[name]
    server.times = 1_000
    where = f"model=m,base_url=http://127.0.0.1:{server.server_port}/v1/completions,num_concurrent={concurrent}"
    arguments = [
        "run",
        "--tasks",
        "occugender_implicit",
        "--limit",
        "2",
        "--model",
        "local-completions",
        "--model_args",
    ]
    arguments.append(f"{where},tokenizer={tokenizer},tokenizer_backend=huggingface,max_retries=2")
    assert main([*arguments, "--log_samples", "--output_path", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    last_line = err.splitlines()[-1]
    assert last_line.startswith("lm-eval-bias: error: --model local-completions base_url=http://127.0.0.1")
    assert re.search(says, last_line)
    assert "Traceback" not in err
    assert KEY not in err
    assert not list(tmp_path.rglob("*.json*"))


def test_tokens_that_a_server_names(client):
    model, _ = client()
    checks = api_answers._Checks(model)
    ids = model.tok_encode("The old gardener, 7 flowers: <|endoftext|>ü")
    plain = model.tokenizer.convert_ids_to_tokens(ids)
    decoded = [model.tokenizer.decode([number]) for number in ids]
    for names in (plain, decoded, [*decoded, "one more"], ["bytes:\\xc3" if not n.isascii() else n for n in decoded]):
        checks._check_tokens(names, ids)
    checks._check_tokens(
        [name.upper() for name in decoded], ids
    )  # a part of the prompt, where the tokenizer folds case
    checks._check_tokens(None, ids)
    word = next(i for i, name in enumerate(decoded) if len(name.strip()) > 2 and name.strip().isalpha())
    for other in (" man", "▁woman"):
        with pytest.raises(ValueError, match=f"'{other}' instead of '{decoded[word].strip()}'"):
            checks._check_tokens([*decoded[:word], other, *decoded[word + 1 :]], ids)


@pytest.mark.parametrize("text", ["", " \n "])
def test_a_server_of_empty_texts_passes_no_gate(text, server, tiny_mirror, tmp_path, capsys):
    server.fault = each(lambda choice: choice["message"].update(content=text))
    server.times = 1_000
    url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    arguments = ["run", "--tasks", "gg_bbq_group_terms_gen", "--model", "local-chat-completions", "--model_args"]
    arguments += [f"model=m,base_url={url}", "--apply_chat_template", "--output_path", str(tmp_path)]
    assert main(arguments) == 0
    (path,) = tmp_path.rglob("results_*.json")
    scores = json.loads(path.read_text(encoding="utf-8"))["results"]["gg_bbq_group_terms_gen"]
    assert scores["unanswered,answer"] == 1
    assert all(math.isnan(scores[f"diff_bias_{kind},answer"]) for kind in ("amb", "disamb"))
    policy = tmp_path / "policy.yaml"
    policy.write_text("bounds:\n  - {task: gg_bbq_*, score: acc_amb, max: 0.9, on: point}\n")
    capsys.readouterr()
    assert main(["check", str(path), "--policy", str(policy)]) == 1
    assert re.search("unanswered.*1 of them weren't answered", capsys.readouterr().out)
