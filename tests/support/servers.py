"""A small OpenAI-like server of our own, whose answers follow from the prompt, and which can be made to fail."""

import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
import transformers
from lm_eval.api.instance import Instance

KEY = "sk-very-secret-0123456789"


def _draw(*key):
    return (
        int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4], "big") / 2**32
    )


def _scored(index, ids):
    """The prompt's tokens and one more, each with its log-probability; the likeliest token beside it is no worse.

    Each is so small that those of all 400 tokens of the tiny models sum to less than 1.
    """
    own = [None] + [-6.5 - 5 * _draw(ids[: i + 1]) for i in range(1, len(ids))] + [-1.0]
    top = [None] + [{"x": value + 0.005} for value in own[1:]]
    return {
        "index": index,
        "text": "",
        "logprobs": {"token_logprobs": own, "top_logprobs": top},
    }


def reply(asked, said=None):
    """What the server answers when all is well, to all chats the same where that is given."""
    if "messages" in asked:
        said = (
            said
            or ["A", "B", "C", "keine Antwort"][
                int(4 * _draw(asked["messages"], asked.get("seed")))
            ]
        )
        return {
            "choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]
        }
    if asked.get("echo"):
        return {
            "choices": [
                _scored(index, ids) for index, ids in enumerate(asked["prompt"])
            ]
        }
    prompts = [asked["prompt"]] if isinstance(asked["prompt"], str) else asked["prompt"]
    return {
        "choices": [
            {"index": i, "text": f" {_draw(p, asked['seed']):.6f}."}
            for i, p in enumerate(prompts)
        ]
    }


class Handler(BaseHTTPRequestHandler):
    """Of a server that answers JSON with JSON and is silent about it; ``answer`` takes what was asked."""

    def do_POST(self):
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *arguments):
        pass

    def send(self, reply, status=200, headers=()):
        body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, str(value))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(handler):
    """A server on a free port of this machine, at work until it is shut down."""
    server = (
        handler
        if isinstance(handler, ThreadingHTTPServer)
        else ThreadingHTTPServer(("127.0.0.1", 0), handler)
    )
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def completions(folder):
    """A server of a causal LM on the disk: echoes prompts of token ids with their log-probabilities."""

    class Completions(Handler):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

        def answer(self, asked):
            choices = []
            for index, ids in enumerate(asked["prompt"]):
                with torch.no_grad():
                    logs = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
                own = (
                    [None]
                    + [logs[i - 1, token].item() for i, token in enumerate(ids) if i]
                    + [-1.0]
                )
                top = [{"x": value} for value in own]
                choices.append(
                    {
                        "index": index,
                        "logprobs": {"token_logprobs": own, "top_logprobs": top},
                    }
                )
            self.send({"choices": choices})

    return serve(Completions)


class Kept(dict):
    """In place of the file of --use_cache."""

    written = 0

    def commit(self):
        self.written = len(self)


# what OpenAI's endpoints know, of what the harness's clients send
KNOWN = {
    "model",
    "messages",
    "prompt",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "echo",
    "logprobs",
}


class _Failing(Handler):
    def answer(self, asked):
        server = self.server
        if server.is_strict and (unknown := sorted(asked.keys() - KNOWN)):
            message = f"Unrecognized request argument supplied: {', '.join(unknown)}"
            error = {
                "message": message,
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
            server.refused.append(asked)
            self.send({"error": error}, 400)
            return
        with server.lock:
            server.asked.append(asked)
            fault = server.fault if len(server.asked) > server.good else None
            if server.judge is not None:
                fault = server.judge(asked)
            if fault is None:
                server.answered.append(asked)
            elif server.times is not None:
                server.times -= 1
                server.fault = fault if server.times else None
        if fault == "silent":
            time.sleep(1.5)
        if fault in ("silent", "dropped"):
            return
        if isinstance(fault, int):
            fault = fault, b"out of order"
        status, body, *headers = fault if isinstance(fault, tuple) else (200, fault)
        if body is None or callable(body):
            answered = reply(asked, server.said)
            body = body(answered) if body else answered
        self.send(body, status, *headers)


class Server(ThreadingHTTPServer):
    """Answers ``good`` requests, then fails as ``fault`` says: ``times`` times, or for ever.

    A fault is a status, one with a body and perhaps headers, a body, a function that spoils a reply, ``dropped`` (no
    answer) or ``silent`` (none for long). A strict one refuses parameters that OpenAI's endpoints don't know. ``said``
    is what all chats get; ``judge`` names the fault of each request, or ``None``.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Failing)
        self.lock = threading.Lock()
        self.asked, self.answered, self.refused = [], [], []
        self.is_strict, self.said = False, None
        self.fault, self.good, self.times = None, 0, None
        self.judge = None
        serve(self)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def fail(self, fault, good=0, times=None):
        self.fault, self.good, self.times = fault, len(self.asked) + good, times

    def prompts(self):
        """Prompts that were answered, each as often as it was."""
        return [
            json.dumps(p)
            for asked in self.answered
            for p in asked.get("prompt", [asked.get("messages")])
        ]

    def handle_error(self, request, client_address):
        """A client that has gone away is none."""

    def close(self):
        self.shutdown()
        self.server_close()


def chats(model, number):
    """So many different conversations of one question."""
    return [
        model.apply_chat_template([{"role": "user", "content": f"prompt {n}"}])
        for n in range(number)
    ]


def ask_for(texts, **options):
    return [
        Instance("generated_text", {}, (text, {"max_gen_toks": 3, **options}), 0)
        for text in texts
    ]
