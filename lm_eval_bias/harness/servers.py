"""Clients of servers: what they send, what a refusal is about, and how long to wait.

The harness's clients (``TemplateAPI``, 0.4.13) send again whatever fails, and end the run. :func:`checked` derives a
client from each of them that tells a refusal of one prompt from one of all, waits as long as it is asked to, and checks
every reply. ``lm_eval`` uses the harness's own: these are for runs of this package's command.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Data, Facts, answers, redaction
from lm_eval_bias.core.errors import BiasError, one_line, printable
from lm_eval_bias.core.files import writable
from lm_eval_bias.harness import answer_checks, internals

if TYPE_CHECKING:
    from lm_eval.api.model import LM
    from lm_eval.models.api_models import TemplateAPI as Client
    from requests import Response
    from sqlitedict import SqliteDict

    from lm_eval_bias.harness.answer_checks import Prompt
else:
    Client = object  # the harness's need an extra

logger = logging.getLogger("lm_eval.bias")
DUMMY = "dummy"  # the harness's model type for smoke tests: it answers at random, as no distribution does
_ASKING = (
    "_lm_eval_bias_asking"  # on a model that is asked: an event, set when that is over
)
SERVED = "lm_eval_bias: the model that the server named"  # the key of --use_cache's file for it
PAUSE = 1.0  # seconds before a request is sent again, twice as many every time up to the longest
_LONGEST_PAUSE = 10.0
# statuses of refusals that may be about options, those that may be about one prompt, and those below 500 that pass
_OF_OPTIONS = {400, 422}
_OF_PROMPTS = {400, 403, 413, 422}
_BUSY = {408, 409, 425, 429}
_NO_MONEY = re.compile(
    r"insufficient_quota|billing|insufficient (balance|credit|funds)", re.I
)
_FILTERED = re.compile(
    r"content.?(filter|management|moderation|policy)|flagged|harmful|moderation|prohibited|responsible ?ai|safety",
    re.I,
)
_GREETING = "Hello."  # which no server refuses
# options that few servers know; at 0 they ask for the whole distribution, as most draw by default
_UNUSUAL = ["min_p", "top_k"]
FORM = "response_format"  # of an answer, as JSON Schema
_RENAMED = "max_completion_tokens"  # what max_tokens is called by models that think
_PROMPTS = {"messages", "prompt"}  # in what is sent
_ADVICE = {
    **dict.fromkeys((401, 403), "check the variable OPENAI_API_KEY"),
    404: "check base_url= and model=",
    429: "lower num_concurrent=",
    500: "read the server's log",
}
# kinds of errors of requests, and what they mean: the first that fits
_MEANINGS = {
    "JSONDecodeError": "a reply that is not JSON; check base_url=",
    "Timeout": "no reply in time; raise timeout= or send less at a time (--batch_size, num_concurrent=)",
    "ConnectionError": "no connection to the server, or a lost one; check base_url= and its log",
}
Method = Callable[..., Sequence[object]]  # of a model


def kept(model: LM, kind: str, arguments: Iterable[Sequence[object]]) -> list[Any]:
    """Return cached answers (``--use_cache``) to requests of a kind, ``None`` for those without."""
    cache = _cache(model)
    if cache is None:
        return [None for _ in arguments]
    return [cache.get(internals.request_key(kind, args)) for args in arguments]


@contextlib.contextmanager
def counting_kept() -> Iterator[list[str]]:
    """Collect the keys of all answers read from the ``--use_cache`` file, also for the harness's tasks."""
    from sqlitedict import SqliteDict

    read = SqliteDict.__getitem__
    keys = []

    def note(cache: SqliteDict, key: str) -> object:
        answer = read(cache, key)
        if key != SERVED:
            keys.append(key)
        return answer

    with internals.shadowed(SqliteDict, "__getitem__", note):
        yield keys


def _cache(model: LM) -> SqliteDict | None:
    """Return the content of ``--use_cache``'s file; ``None`` without the flag."""
    return getattr(model.cache_hook, "dbdict", None)


def commit(model: LM) -> None:
    """Commit the cached answers to the disk."""
    cache = _cache(model)
    if cache is not None:
        cache.commit()


def forget(model: LM, kind: str, arguments: Iterable[Sequence[object]]) -> None:
    """Remove the answers to requests of a kind from ``--use_cache``'s file."""
    cache = _cache(model)
    if cache is not None:
        for args in arguments:
            cache.pop(internals.request_key(kind, args), None)
        cache.commit()


@contextlib.contextmanager
def asking(model: LM) -> Iterator[bool]:
    """Commit a model's answers when the context ends, also after an error; nested contexts do nothing.

    Yields:
        Whether the model is asked in a run of this package's command, from beginning to end.
    """
    if _ASKING in vars(model):
        yield True
        return
    with internals.shadowed(model, _ASKING, threading.Event()):
        try:
            yield False
        finally:
            commit(model)


def checked(kind: type[LM]) -> type[LM]:
    """Derive a checked client from the harness's clients of OpenAI's protocol; return other model types unchanged."""
    parse = getattr(kind, "parse_generations", None)
    if not getattr(parse, "__module__", "").endswith(".openai_completions"):
        return kind
    return type(kind.__name__, (_CheckedClient, kind), {})


class _RefusedError(ValueError):
    """A server's refusal, with its text and advice."""

    def __init__(self, response: Any, payload: Facts) -> None:
        import urllib3

        status = response.status_code
        body = response.text
        advice = _ADVICE.get(500 if status > 500 else status, "check --model_args")
        options = _named(body, payload)
        if status in _OF_OPTIONS and options:
            advice = f"check {', '.join(options)} (--gen_kwargs)"
        if status in _OF_OPTIONS and FORM in options:
            advice = (
                "it can't keep answers to a form: leave out structured (--metadata)"
            )
        has_ended = _NO_MONEY.search(body) is not None
        if has_ended:
            advice = "check the account"
        words = " ".join(re.sub("<[^<>]*>", " ", body).split())[:300]
        super().__init__(f"status {status}, the server says {words!r}; {advice}")
        self.is_final = has_ended or (status < 500 and status not in _BUSY)
        self.delay = None  # in seconds, for which the server asks
        with contextlib.suppress(urllib3.exceptions.InvalidHeader):
            self.delay = urllib3.Retry().get_retry_after(response)


def _named(text: str, payload: Facts) -> list[str]:
    """List the request options that a text names."""
    names = sorted(payload.keys() - _PROMPTS - {"model"})
    return [name for name in names if re.search(rf"\b{name}\b", text)]


def _can_go(name: str, value: object) -> bool:
    """Return whether an option can be left out, because its value is neutral or reasoning models refuse it."""
    is_plain = name in (*_UNUSUAL, "top_p", "temperature") and value in (0, 1)
    return is_plain or name in ("seed", "max_tokens")


def _explanation(error: Exception) -> str:
    """Explain an error of a request in plain words."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    meanings = [_MEANINGS[name] for name in kinds if name in _MEANINGS]
    return meanings[0] if meanings else one_line(error)


class _CheckedClient(Client):
    """A mixin for the harness's clients, which checks replies and decides on retries.

    Attributes:
        marks: Whether texts carry why they ended (:func:`~lm_eval_bias.core.answers.with_finish`).
        sent: The options with which prompts were answered.
        notes: What was asked otherwise than the task does, and which other model answered.
        served: The name that the server gave its model; empty before it gave one.
        fingerprints: What it calls the model's state.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Initialise the harness's client."""
        super().__init__(*args, **kwargs)
        self.marks = False
        self.sent: list[Facts] = []
        self.notes: dict[str, None] = {}
        self.served = ""
        self.fingerprints: set[str] = set()
        self._left_out: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._why_over = ""
        self._warn_once = functools.cache(logger.warning)
        self._warning = threading.Lock()  # a cache alone lets two threads through
        # here it is known what is worth another try
        self._tries: int = vars(self)["max_retries"]
        self.max_retries = 1

    async def get_batched_requests(
        self,
        requests: Sequence[Prompt],
        cache_keys: Sequence[Sequence[object]],
        *,
        generate: bool = True,
        ctxlens: Sequence[int] = (),
        **options: Facts | None,
    ) -> list[list[object]]:
        """Override: ask for the answers to all prompts, several requests at a time."""
        from lm_eval.models import api_models

        kind = "generate_until" if generate else "loglikelihood"

        def ask(start: int) -> list[object]:
            part = slice(start, start + self._batch_size)
            prompts = requests[part]
            reply = self.model_call(prompts, generate=generate, **options)
            parse = self.parse_generations if generate else self.parse_logprobs
            found = parse(outputs=reply, tokens=prompts, ctxlens=ctxlens[part])
            for answer, key in zip(found, cache_keys[part], strict=True):
                self.cache_hook.add_partial(kind, key, answer)
            return found

        starts = range(0, len(requests), self._batch_size)
        pool = ThreadPoolExecutor(self._concurrent)
        try:
            found = pool.map(ask, starts)
            return list(api_models.tqdm(found, "Requesting API", len(starts)))
        finally:
            pool.shutdown(cancel_futures=True)

    def model_call(
        self,
        messages: Sequence[Prompt],
        *,
        generate: bool = True,
        gen_kwargs: Facts | None = None,
    ) -> Data:
        """Override: send requests until each prompt has an answer or a final refusal.

        Raises:
            ValueError: The server fails, or refuses whatever is asked.
            BiasError: Another model answers than before.
        """
        over = vars(self).get(_ASKING) or threading.Event()
        tries = 1
        waited = 0.0
        while not over.is_set():
            is_last = tries >= self._tries
            try:
                return self._send(messages, generate, gen_kwargs, is_last)
            except BiasError:
                raise
            except Exception as error:
                text = printable(redaction.masked(_explanation(error)))
                pause = min(PAUSE * 2 ** (tries - 1), _LONGEST_PAUSE)
                delay = getattr(error, "delay", None)
                if delay is None:
                    tries += 1
                else:  # which is no failure
                    pause = max(pause, delay)
                    waited += max(pause, 1.0)
                    is_last = waited > self.timeout
                    text += f", and to wait for {delay:.0f} seconds"
                if is_last or getattr(error, "is_final", False):
                    self._why_over = text
                    over.set()
                    raise ValueError(text) from error
            self._warn("a request failed (max_retries=%s): %s", self._tries, text)
            over.wait(pause)
        raise ValueError(self._why_over)  # what is on its way would fail, too

    def _warn(self, *message: str | int) -> None:
        """Warn, once of all requests that fail alike."""
        with self._warning:
            self._warn_once(*message)

    def _send(
        self,
        messages: Sequence[Prompt],
        generate: bool,
        gen_kwargs: Facts | None,
        is_last: bool,
    ) -> Data:
        """Send one request; resend it with fewer options where the server refuses some.

        Raises:
            _RefusedError: The server refuses, and not for one prompt.
            ValueError: A reply that can't be one to these prompts.
        """
        payload = self._create_payload(
            self.create_message(messages),
            generate=generate,
            gen_kwargs=copy.deepcopy(gen_kwargs),
            seed=self._seed,
            eos=self.eos_string if self.tokenizer else None,
        )
        response = self._post(payload)
        status = response.status_code
        if status < 400:
            sent = writable(response.json())
            reply: Data = redaction.masked(sent)
            if reply != sent:
                note = "the server's answers repeat a key or password, which is hidden"
                self.notes[note] = None
                self._warn("%s", note)
            answer_checks.check(self, reply, messages, generate)
            if FORM in payload and not answer_checks.has_form(reply):
                self.notes["some answers lack the form that was asked for"] = None
            self._note(payload, reply)
            return reply
        if status not in _OF_PROMPTS and not (status == 500 and is_last):
            raise _RefusedError(response, payload)
        nothing: Data = {"prompt": _GREETING}
        if "messages" in payload:
            nothing = {"messages": [{"role": "user", "content": _GREETING}]}
        other = self._post({**payload, **nothing})
        if other.status_code < 400:
            return self._without_answers(response, messages, generate, gen_kwargs)
        if status in _OF_OPTIONS and self._leave_out(response.text, payload):
            return self._send(messages, generate, gen_kwargs, is_last)
        # what the other was refused for may pass
        is_passing = other.status_code in _BUSY or other.status_code >= 500
        raise _RefusedError(other if is_passing else response, payload)

    def _post(self, payload: Facts) -> Response:
        """Send a request, and return the response."""
        import requests

        return requests.post(
            self.base_url,
            json=payload,
            headers=self.header,
            verify=self.verify_certificate,
            timeout=self.timeout,
        )

    def _create_payload(self, *messages: object, **options: Any) -> Data:
        """Override: request the whole distribution for ``top_k=0``, and leave out options that the server refuses.

        llama.cpp's server cuts the distribution at ``min_p=0.05`` unless it is told not to; OpenAI's API refuses an
        empty list of stop strings. The harness asks some names for temperature 1, whatever is wanted.
        """
        temperature = (options["gen_kwargs"] or {}).get("temperature", 0)
        payload = {**super()._create_payload(*messages, **options)}
        payload["temperature"] = temperature
        if payload.get("top_k") == 0:
            payload.setdefault("min_p", 0.0)
        if not payload.get("stop", True):
            del payload["stop"]
        for name in self._left_out.intersection(payload):
            if _can_go(name, payload[name]):
                value = payload.pop(name)
                if name == "max_tokens":
                    payload[_RENAMED] = value
        return payload

    def _leave_out(self, text: str, payload: Facts) -> bool:
        """Leave refused options out of all further requests where possible; return whether it is."""
        spared = []
        for name in _named(text, payload) or _UNUSUAL:
            is_known = name != "max_tokens" or _RENAMED in text
            if is_known and _can_go(name, payload.get(name)):
                spared.append(f"{name}={payload[name]}")
                self._left_out.add(name)
        note = f"the server doesn't take {' and '.join(spared)}: asked without"
        if spared and note not in self.notes:
            self.notes[note] = None
            logger.warning("%s", note)
        return bool(spared)

    def _without_answers(
        self,
        response: Response,
        messages: Sequence[Prompt],
        generate: bool,
        gen_kwargs: Facts | None,
    ) -> Data:
        """Make the reply to a batch with a refused prompt; the other prompts are sent one by one."""
        if len(messages) > 1:
            choices = []
            for index, message in enumerate(messages):
                reply = self.model_call(
                    [message], generate=generate, gen_kwargs=gen_kwargs
                )
                choices.append({**reply["choices"][0], "index": index})
            return {"choices": choices}
        finish = "content_filter" if _FILTERED.search(response.text) else "error"
        refusal = str(_RefusedError(response, {}))
        if self._refusals.setdefault(finish, refusal) is refusal:
            logger.warning("a prompt has no answer, the rest goes on: %s", refusal)
        text = answers.with_finish("", finish if self.marks else "")
        values = [math.nan] * (len(messages[0]) + 1)
        top = [{"": value} for value in values]
        logprobs = {"token_logprobs": values, "top_logprobs": top}
        choice = {"index": 0, "text": text, "message": {"content": text}}
        return {"choices": [{**choice, "logprobs": logprobs}]}

    def _note(self, payload: Facts, reply: Facts) -> None:
        """Record the options sent, and the server's name of its model.

        Raises:
            BiasError: Another model answered before; for the file of ``--use_cache`` too.
        """
        options = {name: payload[name] for name in sorted(payload.keys() - _PROMPTS)}
        options.pop("seed", None)  # of which every draw has its own
        if options not in self.sent:
            self.sent.append(options)
        if reply.get("system_fingerprint"):
            self.fingerprints.add(str(reply["system_fingerprint"]))
        name = reply.get("model")
        if not isinstance(name, str) or not name:
            return
        if self.model not in (None, name):
            self.notes.setdefault(
                f"the server answered as {name!r:.90}, asked for {self.model!r:.90}"
            )
        cache = _cache(self)
        before = self.served = self.served or name
        if cache is not None:
            before = cache.setdefault(SERVED, before)
        if name != before:
            raise BiasError(
                f"--model_args model={self.model}: {name!r:.90} answered, {before!r:.90} before, and a run has one "
                "model: ask for the one before by its own name, or begin again with another file of --use_cache"
            )


def notes(model: LM) -> list[str]:
    """Describe how requests differed from the task's, and another model name that the server returned."""
    return list(getattr(model, "notes", ()))


def facts(model: LM) -> Data:
    """Return the options sent to a server, and the names it gave its model and the model's states.

    That is ``sent`` and ``served``; what a server says proves nothing. Of other models nothing.
    """
    if not isinstance(model, _CheckedClient):
        return {}
    names = [model.served] if model.served else []
    return {"served": [*names, *sorted(model.fingerprints)], "sent": model.sent}
