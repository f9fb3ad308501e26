"""Clients of servers: what is sent, what a refusal is about, and checks of answers before they are scored or kept.

The harness's clients (``TemplateAPI``, 0.4.13) send whatever fails again, and believe every answer: log-probabilities
of a server that doesn't echo prompts sum to 0, and a list that is one short leaves out the last token.
:func:`checked` derives a client from each of them that tells a refusal of one prompt from one of all, and waits as long
as it is asked to. ``lm_eval`` uses the harness's own: these checks need this package's ``run``.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import logging
import math
import operator
import re
import threading
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lm_eval_bias.core import Data, Facts, answers, redaction
from lm_eval_bias.core.errors import BiasError, one_line, printable
from lm_eval_bias.harness import internals

logger = logging.getLogger("lm_eval.bias")
DUMMY = "dummy"  # the harness's model type for smoke tests: it answers at random, as no distribution does
_ASKING = "_lm_eval_bias_asking"  # on a model that is asked: set when that is over
SERVED = "lm_eval_bias: the model that the server named"  # the key of --use_cache's file for it
PAUSE = 1.0  # seconds before a request is sent again, twice as many every time up to the longest
_LONGEST_PAUSE = 10.0
_MOST = 1.1  # of probabilities: half precision rounds a half by as much as 6%, in every forward anew
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
# options that few servers know; at 0 they ask for the whole distribution, as most draw by default
_UNUSUAL = ("top_k", "min_p")
_RENAMED = "max_completion_tokens"  # what max_tokens is called by models that think
_PROMPTS = {"messages", "prompt", "seed"}  # in what is sent, beside the options
_GREETING = [{"role": "user", "content": "Hello."}]
_ADVICE = {
    **dict.fromkeys((401, 403), "check the variable OPENAI_API_KEY"),
    404: "check base_url= and model=",
}
# kinds of errors of requests, and what they mean: the first that fits
_MEANINGS = {
    "JSONDecodeError": "a reply that is not JSON; check base_url=",
    "Timeout": "no reply in time; raise timeout= or send less at a time (--batch_size, num_concurrent=)",
    "ConnectionError": "no connection to the server, or a lost one; check base_url= and its log",
}
Method = Callable[..., Any]  # of a model
Answers = Iterable[tuple[Hashable, Any, float]]  # context, continuation, log-likelihood


def kept(model: Any, kind: str, arguments: Iterable[Any]) -> list[Any]:
    """Return earlier answers (``--use_cache``) to requests of a kind, ``None`` where there are none."""
    cache = _cache(model)
    if cache is None:
        return [None for _ in arguments]
    return [cache.get(internals.request_key(kind, args)) for args in arguments]


@contextlib.contextmanager
def counting_kept() -> Iterator[list[str]]:
    """Collect the keys of the answers that come from ``--use_cache``'s file meanwhile, also for the harness's tasks."""
    from sqlitedict import SqliteDict

    read = SqliteDict.__getitem__
    keys = []

    def note(cache: Any, key: str) -> Any:
        answer = read(cache, key)
        if key != SERVED:
            keys.append(key)
        return answer

    with internals.shadowed(SqliteDict, "__getitem__", note):
        yield keys


def _cache(model: Any) -> Any:
    """Return the content of ``--use_cache``'s file; ``None`` without the flag."""
    return getattr(model.cache_hook, "dbdict", None)


def commit(model: Any) -> None:
    """Wait until the answers given to the cache hook are on the disk."""
    cache = _cache(model)
    if cache is not None:
        cache.commit()


def without_keys(text: str, model: Any) -> str:
    """Put stars in place of a client's keys: servers repeat in their errors what they don't accept."""
    given = {
        name.strip("_"): getattr(model, name, None)
        for name in ("base_url", "auth_token", "_header")
    }
    with contextlib.suppress(ValueError):  # a client without its key
        given["api_key"] = str(getattr(model, "api_key", "")).strip()
    return redaction.in_text(text, given)


@contextlib.contextmanager
def asking(model: Any) -> Iterator[None]:
    """Save the answers that came while a model is asked, however it ends; nested uses for the same model do nothing."""
    if vars(model).get(_ASKING):
        yield
        return
    with internals.shadowed(model, _ASKING, threading.Event()):
        try:
            yield
        finally:
            commit(model)


def checked(kind: Any) -> Any:
    """Derive a client with these checks from one of the harness's for OpenAI's protocol; return others as they are."""
    is_known = internals.is_client(kind) and (
        kind.parse_generations.__module__.endswith(".openai_completions")
    )
    return type(kind.__name__, (_CheckedClient, kind), {}) if is_known else kind


class _RefusedError(ValueError):
    """A server's refusal: what it said, without markup, and what to look at."""

    def __init__(self, response: Any, payload: Facts) -> None:
        import urllib3

        status = response.status_code
        words = " ".join(re.sub("<[^<>]*>", " ", response.text).split())
        options = ", ".join(_named(words, payload))
        advice = f"check {options} (--gen_kwargs)" if options else "check --model_args"
        has_ended = _NO_MONEY.search(words)
        if has_ended:
            advice = "check the account"
        elif status == 429:
            advice = "lower num_concurrent="
        elif status >= 500:
            advice = "read the server's log"
        said = f"status {status}, the server says {words[:300]!r}"
        super().__init__(f"{said}; {_ADVICE.get(status, advice)}")
        self.is_final = bool(has_ended) or (status < 500 and status not in _BUSY)
        self.delay = None  # in seconds, that the server asks for
        with contextlib.suppress(urllib3.exceptions.InvalidHeader):
            self.delay = urllib3.Retry().get_retry_after(response)


def is_asked(model: Any) -> bool:
    """Tell whether a model is being asked, in a run of this package's command from beginning to end."""
    return _ASKING in vars(model)


def _options(payload: Facts) -> str:
    """Return what is asked beside the prompts, as JSON."""
    options = {name: payload[name] for name in payload.keys() - _PROMPTS}
    return json.dumps(options, sort_keys=True, default=str)


def _named(text: str, payload: Facts) -> list[str]:
    """List the options of a request that a text names."""
    names = sorted(payload.keys() - {"messages", "prompt", "model"})
    return [name for name in names if re.search(rf"\b{name}\b", text)]


def _can_go(name: str, value: Any) -> bool:
    """Tell whether an option can be left out: as given it changes nothing, or models that think have it otherwise."""
    is_plain = name in (*_UNUSUAL, "top_p", "temperature") and value in (0, 1)
    return is_plain or name in ("seed", "max_tokens")


def _explanation(error: Exception) -> str:
    """Explain an error of a request in plain words."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for name, meaning in _MEANINGS.items():
        if name in kinds:
            return meaning
    return one_line(error)


class _CheckedClient:
    """What goes before the methods of the harness's clients.

    Attributes:
        marks: Whether texts carry why they ended (:func:`~lm_eval_bias.core.answers.with_finish`).
        answered: The options with which prompts were answered, as JSON, in the order of the first answers.
        served: The name that the server gave its model; empty before it gave one.
        fingerprints: What it calls the model's state.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the harness's client."""
        super().__init__(*args, **kwargs)
        self.marks = False
        self.answered: dict[str, None] = {}
        self.served = ""
        self.fingerprints: set[str] = set()
        self._left_out: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._why_over = ""
        # once of all that fail alike
        self._warn = functools.cache(logger.warning)
        # here it is known what is worth another try
        self._tries, self.max_retries = self.max_retries, 1

    async def get_batched_requests(
        self,
        requests: Sequence[Any],
        cache_keys: Sequence[Any],
        *,
        generate: bool = True,
        ctxlens: Sequence[int] | None = None,
        gen_kwargs: Facts | None = None,
    ) -> list[list[Any]]:
        """Override: ask for the answers to all prompts, several requests at a time."""
        kind = "generate_until" if generate else "loglikelihood"

        def ask(start: int) -> list[Any]:
            part = slice(start, start + self._batch_size)
            prompts = requests[part]
            reply = self.model_call(prompts, generate=generate, gen_kwargs=gen_kwargs)
            if generate:
                found = self.parse_generations(outputs=reply)
            else:
                lengths = (ctxlens or [])[part]
                found = self.parse_logprobs(
                    outputs=reply, tokens=prompts, ctxlens=lengths
                )
            for answer, key in zip(found, cache_keys[part], strict=True):
                self.cache_hook.add_partial(kind, key, answer)
            return found

        from lm_eval.models import api_models

        starts = range(0, len(requests), self._batch_size)
        pool = ThreadPoolExecutor(self._concurrent)
        try:
            asked = pool.map(ask, starts)
            return list(
                api_models.tqdm(asked, desc="Requesting API", total=len(starts))
            )
        finally:
            pool.shutdown(cancel_futures=True)

    def model_call(
        self, messages: Sequence[Any], *, generate: bool = True, **options: Any
    ) -> Data:
        """Override: ask until there is an answer to each prompt, or none to be had.

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
                reply = self._send(messages, generate, options, is_last)
            except BiasError:
                raise
            except Exception as error:
                problem = error
            else:
                if reply is not None:
                    return reply
                continue
            text = printable(without_keys(_explanation(problem), self))
            pause = min(PAUSE * 2 ** (tries - 1), _LONGEST_PAUSE)
            delay = getattr(problem, "delay", None)
            if delay is None:
                tries += 1
            else:
                pause = max(pause, delay)
                waited += max(pause, 1.0)
                is_last = waited > self.timeout
                text = f"{text}, and to wait for {delay:.0f} seconds"
            if is_last or getattr(problem, "is_final", False):
                self._why_over = text
                over.set()
                raise ValueError(text) from problem
            self._warn("a request failed (max_retries=%s): %s", self._tries, text)
            over.wait(pause)
        raise ValueError(self._why_over)  # what is on its way would fail, too

    def _post(self, payload: Facts) -> Any:
        """Send a request and return the response."""
        import requests

        return requests.post(
            self.base_url,
            json=payload,
            headers=self.header,
            verify=self.verify_certificate,
            timeout=self.timeout,
        )

    def _send(
        self, messages: Sequence[Any], generate: bool, options: Facts, is_last: bool
    ) -> Data | None:
        """Ask once, perhaps for the last time; return nothing where to ask again with other options.

        Raises:
            _RefusedError: The server refuses, and not for one prompt.
            ValueError: A reply that can't be one to these prompts.
        """
        payload = self._create_payload(
            self.create_message(messages),
            generate=generate,
            gen_kwargs=copy.deepcopy(options.get("gen_kwargs")),
            seed=self._seed,
            eos=self.eos_string if self.tokenizer else None,
        )
        response = self._post(payload)
        status = response.status_code
        if status < 400:
            reply: Data = response.json()
            self._check(reply, messages, generate)
            self.answered.setdefault(_options(payload))
            return reply
        if status in _OF_PROMPTS or (status == 500 and is_last):
            # the same about nothing that could be refused
            is_chat = "messages" in payload
            nothing = {"messages": _GREETING} if is_chat else {"prompt": "Hello."}
            other = self._post({**payload, **nothing})
            if other.status_code < 400:
                return self._without_answers(response, messages, generate, options)
            if other.status_code in _BUSY:
                raise _RefusedError(other, payload)
            if status in _OF_OPTIONS and self._leave_out(response.text, payload):
                return None
        raise _RefusedError(response, payload)

    def _leave_out(self, text: str, payload: Facts) -> bool:
        """Leave options that a refusal names out of all requests to come, where that may be; tell whether it may."""
        names = _named(text, payload) or _UNUSUAL
        spared = [name for name in names if _can_go(name, payload.get(name))]
        if _RENAMED not in text and "max_tokens" in spared:
            spared.remove("max_tokens")
        self._left_out.update(spared)
        given = " and ".join(f"{name}={payload[name]}" for name in spared)
        if spared:
            self._warn("the server doesn't take %s: asked without", given)
        return bool(spared)

    def _without_answers(
        self, response: Any, messages: Sequence[Any], generate: bool, options: Facts
    ) -> Data:
        """Make a reply to prompts of which one is refused; the others are asked alone."""
        if len(messages) > 1:
            choices = []
            for index, message in enumerate(messages):
                reply = self.model_call([message], generate=generate, **options)
                choices.append({**reply["choices"][0], "index": index})
            return {"choices": choices}
        is_filtered = _FILTERED.search(response.text)
        finish = "content_filter" if is_filtered else answers.FAILED
        said = without_keys(str(_RefusedError(response, {})), self)
        if self._refusals.setdefault(finish, said) is said:
            logger.warning("a prompt has no answer, the rest goes on: %s", said)
        text = answers.with_finish("", finish) if self.marks else ""
        numbers = [math.nan] * (len(messages[0]) + 1)
        logprobs = {
            "token_logprobs": numbers,
            "top_logprobs": [{"": value} for value in numbers],
        }
        choice = {"index": 0, "text": text, "message": {"content": text}}
        return {"choices": [{**choice, "logprobs": logprobs}]}

    def _create_payload(self, *messages: Any, **options: Any) -> Data:
        """Override: ask for the whole distribution where ``top_k=0`` does, and leave out what the server refuses.

        llama.cpp's server cuts the distribution at ``min_p=0.05`` unless it is told not to; OpenAI's API refuses an
        empty list of stop strings. The harness asks some names for temperature 1, whatever is wanted.
        """
        temperature = (options["gen_kwargs"] or {}).get("temperature", 0)
        payload = super()._create_payload(*messages, **options)
        if options["generate"]:
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

    def _check(self, reply: Any, prompts: Sequence[Any], generate: bool) -> None:
        """Refuse a reply that can't be one to these prompts, which ask for texts or for log-probabilities."""
        choices: Any = reply.get("choices") if isinstance(reply, dict) else None
        is_list = isinstance(choices, list)
        if not is_list or not all(isinstance(choice, dict) for choice in choices):
            raise ValueError(f"a reply without answers ('choices'): {reply!r:.200}")
        for part in (reply, *choices):
            if part.get("error") or part.get("finish_reason") == "error":
                raise ValueError(
                    f"an error along with the answers: {reply.get('error') or choices!r:.200}"
                )
        numbers = [choice.get("index") for choice in choices]
        if sorted(map(repr, numbers)) != sorted(map(repr, range(len(prompts)))):
            raise ValueError(
                f"{len(choices)} answers to {len(prompts)} prompts, with the numbers {numbers!r:.200}"
            )
        choices = sorted(choices, key=operator.itemgetter("index"))
        check = self._check_texts if generate else self._check_logprobs
        check(choices, prompts)
        self._check_name(reply.get("model"))
        if reply.get("system_fingerprint"):
            self.fingerprints.add(str(reply["system_fingerprint"]))

    def _check_texts(self, choices: Sequence[Any], prompts: Sequence[Any]) -> None:
        """Refuse what is no text; a refusal becomes one, and parts are joined."""
        for choice, prompt in zip(choices, prompts, strict=True):
            finish = str(choice.get("finish_reason") or "")
            is_blocked = finish.lower() in answers.BLOCKED
            if is_blocked and "text" not in choice and not choice.get("message"):
                choice["message"] = {}
            message = choice.get("message", choice)
            field = "content" if "message" in choice else "text"
            try:
                text = _joined(message.get(field))
            except (AttributeError, KeyError, TypeError) as error:
                raise ValueError(
                    f"an answer without a text: {choice!r:.200}"
                ) from error
            if not text and message.get("refusal"):
                text = str(message["refusal"])
                finish = "refusal"
            is_list = isinstance(prompt, list)
            if is_list and all(isinstance(token, int) for token in prompt):
                (prompt,) = self.decode_batch([prompt])
            is_text = isinstance(prompt, str) and prompt.strip()
            if is_text and text.startswith(prompt):
                raise ValueError(
                    f"a text that repeats its prompt ({prompt[:60]!r}); the server must not echo it"
                )
            message[field] = answers.with_finish(text, finish) if self.marks else text

    def _check_logprobs(self, choices: Sequence[Any], prompts: Sequence[Any]) -> None:
        by_token: dict[int, str] = {}
        for choice, ids in zip(choices, prompts, strict=True):
            logprobs = choice.get("logprobs") or {}
            values = logprobs.get("token_logprobs") or []
            top = logprobs.get("top_logprobs") or []
            if {len(values), len(top)} != {len(ids) + 1}:
                raise ValueError(
                    f"log-probabilities of {min(len(values), len(top))} tokens instead of {len(ids)} and one more: "
                    "the server has to echo prompts as they were split (echo=true, logprobs)"
                )
            for value, likeliest in zip(values[1:-1], top[1:-1], strict=True):
                _check_logprob(value, likeliest or {})
            self._check_tokens(logprobs.get("tokens") or [], ids)
            by_token.update(zip(ids[1:], map(repr, values[1:-1]), strict=True))
        count = len(by_token)
        different = len(set(by_token.values()))
        # servers may round
        if count >= 5 and (different == 1 or count >= 20 * different):
            raise ValueError(
                f"only {different} log-probabilities for {count} different tokens: "
                "no language model gives such values"
            )

    def _check_tokens(self, served: Sequence[Any], ids: Sequence[int]) -> None:
        """Refuse tokens other than those that were sent; only plain words are compared.

        Servers write spaces in their own ways.
        """
        if not served or self.tokenizer_backend != "huggingface":
            return
        words = self.decode_batch([[token] for token in ids])
        for word, name in zip(words, served, strict=False):
            sent = word.strip().casefold()
            got = str(name).strip(" \t\n▁Ġ").casefold()
            is_plain = sent.isascii() and sent.isalnum() and got.isalnum()
            if is_plain and sent != got:
                raise ValueError(
                    f"the log-probability of {name!r} instead of {word!r}: "
                    "the server has to split prompts as the tokenizer named here does"
                )

    def _check_name(self, name: Any) -> None:
        """Refuse a model with another name than the one that answered before, for the file of ``--use_cache`` too."""
        if isinstance(name, str) and name:
            cache = _cache(self)
            self.served = self.served or name
            before = self.served
            if cache is not None:
                before = cache.setdefault(SERVED, before)
            if name != before:
                raise BiasError(
                    f"--model_args model={self.model}: {name!r:.90} answered, {before!r:.90} before, and a run has one "
                    "model: ask for the one before by its own name, or begin anew, with another file of --use_cache"
                )


def _check_logprob(value: Any, likeliest: Facts) -> None:
    """Refuse what is no log-probability, or one that is larger than those of the likeliest tokens."""
    # -9999 stands for minus infinity
    if not isinstance(value, int | float) or not -9999 < value <= 1e-3:
        raise ValueError(f"{value!r:.200} in place of a log-probability")
    numbers = [v for v in likeliest.values() if isinstance(v, int | float)]
    largest = max(numbers, default=-math.inf)
    if not value <= largest + 0.1:  # where servers round one of them
        raise ValueError(
            f"a token has the log-probability {value}, the most probable one {largest}: "
            "the server's token_logprobs and top_logprobs don't match"
        )


def _joined(content: Any) -> str:
    """Join the parts of a message; those that aren't text are thoughts before it.

    >>> _joined([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "B"}])
    '<think>Hm.</think>B'

    Raises:
        TypeError: It is no text; a KeyError or AttributeError for a part that is none.
    """
    if not isinstance(content, list):
        return operator.add("", content or "")
    thoughts = ""
    text = ""
    for part in content:
        kind = part["type"]
        inner = _joined(part[kind if kind in part else "text"])
        if kind.endswith("text") or kind == "refusal":
            text += inner
        else:
            thoughts += inner
    end = "</think>" if text else ""
    return f"<think>{thoughts}{end}{text}" if thoughts else text


def served_as(model: Any) -> list[str]:
    """Say as which model a server answered, where that isn't the one that was asked for."""
    name = getattr(model, "served", "")
    if not name or not model.model or name == model.model:
        return []
    return [f"the server answered as {name!r:.90}, asked for {model.model!r:.90}"]


def told(model: Any) -> Data:
    """Return what a server was asked for beside prompts, and what it calls its model and that one's states.

    That is ``sent`` and ``served``; what a server says proves nothing. Of other models nothing.
    """
    if not isinstance(model, _CheckedClient):
        return {}
    names = [model.served] if model.served else []
    sent = list(map(json.loads, model.answered))
    return {"served": [*names, *sorted(model.fingerprints)], "sent": sent}


def largest_sum(probabilities: Mapping[Any, float]) -> float:
    """Return the largest sum of probabilities over continuations none of which begins another.

    Continuations are texts or tuples of token ids.
    """
    # each continuation with the larger of its probability and the sum of those that it begins
    sums: list[tuple[Any, float]] = []
    # in this order those that it begins stand right before it
    for continuation in sorted(probabilities, reverse=True):
        longer = 0.0
        while sums and sums[-1][0][: len(continuation)] == continuation:
            longer += sums.pop()[1]
        sums.append((continuation, max(probabilities[continuation], longer)))
    return sum(value for _, value in sums)


def _folded(text: Any) -> Any:
    """Fold case, accents and spaces of a text, which a tokenizer may not tell apart; leave ids as they are."""
    if not isinstance(text, str):
        return text
    characters = unicodedata.normalize("NFKD", text.casefold())
    letters = [c for c in characters if not unicodedata.combining(c)]
    return " ".join("".join(letters).split())


def problem(answers: Answers) -> str:
    """Say why log-likelihoods are those of no distribution; empty where they may be.

    Contexts and continuations are texts or tuples of token ids. Of continuations none of which begins another, at most
    one can follow a context: their probabilities sum to at most 1.
    """
    groups: dict[Hashable, dict[Any, float]] = {}
    for context, continuation, value in answers:
        if value > math.log(_MOST):
            return f"a log-likelihood of {value:.6g}, above 0: a probability of more than 1"
        group = groups.setdefault(context, {})
        key = _folded(continuation)
        if not math.isnan(value):
            group[key] = max(math.exp(value), group.get(key, 0.0))
    for group in groups.values():
        total = largest_sum(group)
        if total > _MOST:
            names = [
                name if isinstance(name, str) else f"tokens {name[:8]}"
                for name in list(group)[:3]
            ]
            some = ", ".join(names)
            return f"continuations that exclude each other ({some}) with probabilities that sum to {total:.0%}"
    return ""


def refuse(model: Any, keys: Sequence[Any], answers: Answers) -> None:
    """Stop a run before it scores log-likelihoods of no distribution, and remove them from ``--use_cache``'s file.

    Args:
        model: The model that answered.
        keys: Arguments of the requests, by which the file keeps the answers.
        answers: The answers.

    Raises:
        BiasError: The answers can't be probabilities.
    """
    kind = type(model).__name__
    wrong = "" if kind == "DummyLM" else problem(answers)
    if wrong:
        cache = _cache(model)
        if cache is not None:
            for key in keys:
                cache.pop(internals.request_key("loglikelihood", key), None)
        commit(model)
        raise BiasError(
            f"the model type {kind} gives {wrong}: check it (no answer was kept or scored)"
        )
