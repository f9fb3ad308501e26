"""Checks of servers' answers, before they are scored or kept in the file of ``--use_cache``.

The harness's clients (``TemplateAPI``, 0.4.13) take what they find: log-probabilities of a server that doesn't echo the
prompt sum to 0, a list that is one short leaves out the last token. Here these are errors, and a message without a text
is a refusal or an empty answer. Sending requests and trying them again (``max_retries``) stay the harness's, but what a
server refuses for good isn't sent again.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from lm_eval_bias.core import redaction
from lm_eval_bias.core.errors import BiasError, one_line, printable
from lm_eval_bias.harness import internals

logger = logging.getLogger("lm_eval.bias")
DUMMY = "dummy"  # the harness's model type for smoke tests: it answers at random, as no distribution does
_REFUSES = "_lm_eval_bias_refuses_options"  # on a model whose server has refused options that may be left out
_ASKING = "_lm_eval_bias_asking"  # on a model whose answers are being checked
SERVED = "lm_eval_bias: the model that the server named"  # the key of --use_cache's file for it
# of clients, looked at here
METHODS = (
    "model_call",
    "amodel_call",
    "parse_logprobs",
    "parse_generations",
    "_create_payload",
)
_MOST = 1.1  # of probabilities: half precision rounds a half by as much as 6%, in every forward anew
_FINAL = {400, 401, 403, 404, 422}  # statuses that the same request gets again
# at 0 they ask for the whole distribution, as most servers draw by default: strict ones refuse them
_SPARED = ("top_k", "min_p")
_SAID = re.compile(
    r"API request failed.*?(?:message|text): (.*?)(?:\. Retrying\.\.\.)?$", re.DOTALL
)
# what is logged of every try, and of requests that failed beside the one whose error ends the run
_REPEATED = re.compile(
    r"^(API request failed|Exception:|Retry attempt)|never retrieved|asyncio\.run\(\) shutdown"
)
_ADVICE = {
    **dict.fromkeys((401, 403), "check the variable OPENAI_API_KEY"),
    404: "check base_url= and model=",
    429: "lower num_concurrent=",
}
# kinds of errors of requests and aiohttp, and what they mean: the first that fits
_MEANINGS = {
    "JSONDecodeError ContentTypeError": "a reply that is not JSON; check base_url=",
    "Timeout TimeoutError": "no reply in time; raise timeout= or send less at a time (--batch_size, num_concurrent=)",
    "ConnectionError ClientConnectionError": "no connection to the server, or a lost one; check base_url= and its log",
}
_prompts: ContextVar[Sequence[Any]] = ContextVar(
    "prompts"
)  # of one of several requests at a time
_said: ContextVar[str] = ContextVar("said", default="")  # by a server about the request


class _RefusedForGoodError(BaseException):
    """A refusal that the harness, which sends again whatever ended in an ``Exception``, doesn't send again."""


def kept(model: Any, kind: str, arguments: Iterable[Any]) -> list[Any]:
    """What was answered before (``--use_cache``) to requests of a kind, ``None`` where nothing was."""
    cache = getattr(model.cache_hook, "dbdict", None)
    return [
        None if cache is None else cache.get(internals.request_key(kind, args))
        for args in arguments
    ]


def commit(model: Any) -> None:
    """Wait until what the cache hook was given is on the disk."""
    if (cache := getattr(model.cache_hook, "dbdict", None)) is not None:
        cache.commit()


def without_keys(text: str, model: Any) -> str:
    """A text with stars in place of the keys that a client sends: servers repeat what they don't take."""
    given = {
        name.strip("_"): getattr(model, name, None)
        for name in ("base_url", "auth_token", "_header")
    }
    with contextlib.suppress(ValueError):  # a client without its key
        given["api_key"] = str(getattr(model, "api_key", "")).strip()
    return redaction.in_text(text, given)


@contextlib.contextmanager
def asking(model: Any) -> Iterator[None]:
    """Check a server's answers while a model is asked, and save those that came, however it ends.

    Within another one of the same model it does nothing.
    """
    if vars(model).get(_ASKING):
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(internals.shadowed(model, _ASKING, True))
        stack.callback(commit, model)
        if internals.is_client(model) and model.parse_generations.__module__.endswith(
            ".openai_completions"
        ):
            checks = _Checks(model)
            for name in METHODS:
                method = functools.partial(getattr(checks, name), getattr(model, name))
                stack.enter_context(internals.shadowed(model, name, method))
            harness = logging.getLogger("lm_eval.models.api_models")
            harness.addFilter(_listen)
            stack.callback(harness.removeFilter, _listen)
            logging.getLogger("asyncio").addFilter(
                _listen
            )  # it talks of requests when all has ended
            stack.callback(checks.say_what_is_missing)
        try:
            yield
        except _RefusedForGoodError as refused:
            raise ValueError(str(refused)).with_traceback(
                refused.__traceback__
            ) from refused.__cause__


def _listen(record: logging.LogRecord) -> bool:
    """Note a server's words, and drop what would be logged for every try."""
    text = record.getMessage()
    if said := _SAID.match(text):
        _said.set(" ".join(re.sub("<[^<>]*>", " ", said[1]).split()))
    return not _REPEATED.search(text)


def _status(error: Exception) -> int | None:
    """The HTTP status that an error of requests or aiohttp is about."""
    return getattr(error, "status", None) or getattr(
        getattr(error, "response", None), "status_code", None
    )


class _Checks:
    """Stand-ins for a client's methods; each takes the method whose answers it checks."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._warn = functools.lru_cache(maxsize=None)(
            logger.warning
        )  # once of all that fail alike
        self._has_words = model.tokenizer_backend == "huggingface"
        self._is_over = False
        self._missing: list[Any] = []  # why texts ended of which there are none

    def model_call(
        self,
        call: Callable[..., Any],
        messages: Sequence[Any],
        *,
        generate: bool,
        **options: Any,
    ) -> Any:
        with self._explained():
            try:
                reply = call(messages, generate=generate, **options)
            except Exception as error:
                if not self._refuses_option(error, options):
                    raise
                reply = call(messages, generate=generate, **options)
            self._check(reply, messages, generate)
            return reply

    async def amodel_call(
        self, call: Callable[..., Any], messages: Sequence[Any], **options: Any
    ) -> Any:
        _prompts.set(messages)
        with self._explained():
            try:
                return await call(messages=messages, **options)
            except Exception as error:
                if not self._refuses_option(error, options):
                    raise
                return await call(messages=messages, **options)

    def _create_payload(
        self, create: Callable[..., dict[str, Any]], *messages: Any, **options: Any
    ) -> dict[str, Any]:
        """Ask for the whole distribution where top_k=0 does, and leave out what servers refuse.

        llama.cpp's server cuts the distribution at min_p=0.05 unless it is told not to; OpenAI's API refuses a list of
        no stop strings.
        """
        payload = create(*messages, **options)
        if payload.get("top_k") == 0:
            payload.setdefault("min_p", 0.0)
        refused = _SPARED if vars(self._model).get(_REFUSES) else ()
        return {
            name: value
            for name, value in payload.items()
            if (value or name != "stop") and (value != 0 or name not in refused)
        }

    def _refuses_option(self, error: Exception, options: dict[str, Any]) -> bool:
        """Whether a request failed because of options that it can do without, as no later one has them then."""
        sent = options.get("gen_kwargs") or {}
        named = any(
            name in _said.get() and sent.get(name, sent.get("top_k")) == 0
            for name in _SPARED
        )
        if not named or _status(error) not in (400, 422):
            return False
        setattr(self._model, _REFUSES, True)
        self._warn(
            "the server doesn't take %s: asked without them", " and ".join(_SPARED)
        )
        return True

    def parse_logprobs(
        self, parse: Callable[..., Any], outputs: Any, **options: Any
    ) -> Any:
        if (
            prompts := _prompts.get(None)
        ) is not None:  # else the reply was looked at before
            self._check(outputs, prompts, "ctxlens" not in options)
        return parse(outputs=outputs, **options)

    parse_generations = parse_logprobs

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain in plain words what went wrong, also when the request is sent again."""
        try:
            yield
        except Exception as error:
            kinds = {kind.__name__ for kind in type(error).__mro__}
            status = _status(error)
            text = (
                one_line(error)
                if type(error) is ValueError
                else f"{type(error).__name__}: {one_line(error)}"
            )
            if status:
                advice = _ADVICE.get(
                    status,
                    "read the server's log" if status >= 500 else "check --model_args",
                )
                text = (
                    f"status {status}, the server says {_said.get()[:300]!r}; {advice}"
                )
            text = next(
                (
                    meaning
                    for names, meaning in _MEANINGS.items()
                    if kinds & set(names.split())
                ),
                text,
            )
            text = printable(without_keys(text, self._model))
            if status in _FINAL or self._is_over:
                self._is_over = True  # requests on their way now fail, too
                raise _RefusedForGoodError(text) from error
            if self._model.max_retries > 1:
                self._warn(
                    "a request failed (max_retries=%s): %s",
                    self._model.max_retries,
                    text,
                )
            raise ValueError(text) from error

    def _check(self, reply: Any, prompts: Sequence[Any], generate: bool) -> None:
        """Refuse a reply that can't be one to these prompts, which ask for texts or for log-probabilities."""
        choices = reply.get("choices") if isinstance(reply, dict) else None
        if not isinstance(choices, list) or not all(
            isinstance(choice, dict) for choice in choices
        ):
            raise ValueError(f"a reply without answers ('choices'): {reply!r:.200}")
        if any(
            part.get("error") or part.get("finish_reason") == "error"
            for part in (reply, *choices)
        ):
            raise ValueError(
                f"an error along with the answers: {reply.get('error') or choices!r:.200}"
            )
        numbers = [choice.get("index") for choice in choices]
        if sorted(map(repr, numbers)) != sorted(map(repr, range(len(prompts)))):
            raise ValueError(
                f"{len(choices)} answers to {len(prompts)} prompts, with the numbers {numbers!r:.200}"
            )
        choices = sorted(choices, key=lambda choice: int(choice["index"]))
        (self._check_texts if generate else self._check_logprobs)(choices, prompts)
        self._check_name(reply.get("model"))

    def _check_texts(self, choices: Sequence[Any], prompts: Sequence[Any]) -> None:
        for choice, prompt in zip(choices, prompts, strict=True):
            message, field = (
                (choice.get("message"), "content")
                if "message" in choice
                else (choice, "text")
            )
            if not isinstance(message, dict) or not isinstance(
                message.get(field) or "", str
            ):
                raise ValueError(f"an answer without a text: {choice!r:.200}")
            if message.get(field) is None:
                message[field] = message.get("refusal") or ""
                self._missing.append(
                    "refusal" if message[field] else choice.get("finish_reason")
                )
            text = message[field]
            is_ids = isinstance(prompt, list) and all(
                isinstance(token, int) for token in prompt
            )
            own = self._model.decode_batch([prompt])[0] if is_ids else prompt
            if isinstance(own, str) and own.strip() and text.startswith(own):
                raise ValueError(
                    f"a text that repeats its prompt ({own[:60]!r}); the server must not echo it"
                )

    def say_what_is_missing(self) -> None:
        """Warn of answers without a text, all together."""
        if self._missing:
            refused, cut = self._missing.count("refusal"), self._missing.count("length")
            text = f"answers without a text: {len(self._missing):,}, which count as unanswered"
            text += f"; {refused:,} came with a refusal" if refused else ""
            text += (
                f"; {cut:,} were cut off, so that max_gen_toks= (--gen_kwargs) may be too small"
                if cut
                else ""
            )
            self._warn("%s", text)

    def _check_logprobs(self, choices: Sequence[Any], prompts: Sequence[Any]) -> None:
        by_token: dict[int, str] = {}
        for choice, ids in zip(choices, prompts, strict=True):
            logprobs = choice.get("logprobs") or {}
            values, top, names = (
                logprobs.get(key) or []
                for key in ("token_logprobs", "top_logprobs", "tokens")
            )
            if {len(values), len(top)} != {len(ids) + 1}:
                text = f"log-probabilities of {min(len(values), len(top))} tokens instead of {len(ids)} and one more"
                raise ValueError(
                    f"{text}: the server has to echo prompts as they were split (echo=true, logprobs)"
                )
            for value, best in zip(values[1:-1], top[1:-1], strict=True):
                if (
                    not isinstance(value, int | float) or not -9999 < value <= 1e-3
                ):  # -9999 stands for minus infinity
                    raise ValueError(f"{value!r:.200} in place of a log-probability")
                largest = max(
                    (v for v in (best or {}).values() if isinstance(v, int | float)),
                    default=-math.inf,
                )
                if not value <= largest + 0.1:  # where servers round one of them
                    text = f"a token has the log-probability {value}, the most probable one {largest}"
                    raise ValueError(
                        f"{text}: the server's token_logprobs and top_logprobs don't match"
                    )
            words = (
                self._model.decode_batch([[i] for i in ids])
                if names and self._has_words
                else []
            )
            for word, name in zip(
                words, names, strict=False
            ):  # only plain ones: servers write spaces in their own way
                own, theirs = (
                    word.strip().casefold(),
                    str(name).strip(" \t\n▁Ġ").casefold(),
                )
                if (
                    own != theirs
                    and own.isascii()
                    and own.isalnum()
                    and theirs.isalnum()
                ):
                    text = f"the log-probability of {name!r} instead of {word!r}"
                    raise ValueError(
                        f"{text}: the server has to split prompts as the tokenizer named here does"
                    )
            by_token.update(zip(ids[1:], map(repr, values[1:-1]), strict=True))
        different = len(set(by_token.values()))
        if len(by_token) >= 5 and (
            different == 1 or len(by_token) >= 20 * different
        ):  # servers may round
            text = f"only {different} log-probabilities for {len(by_token)} different tokens"
            raise ValueError(f"{text}: no language model gives such values")

    def _check_name(self, name: Any) -> None:
        """Refuse a model with another name than the one that answered before, for the file of ``--use_cache`` too."""
        if isinstance(name, str) and name:
            cache = getattr(self._model.cache_hook, "dbdict", None)
            first = vars(self._model).setdefault("_served", name)
            before = first if cache is None else cache.setdefault(SERVED, first)
            if name != before:
                raise ValueError(
                    f"an answer of {name!r:.90}, where {before!r:.90} answered before: a run has one model"
                )


def served_as(model: Any) -> list[str]:
    """Say as which model a server answered, where that isn't the one that it was asked for."""
    name = vars(model).get("_served")
    if not name or not model.model or name == model.model:
        return []
    return [f"the server answered as {name!r:.90}, asked for {model.model!r:.90}"]


def largest_sum(probabilities: Mapping[Any, float]) -> float:
    """The largest sum of probabilities over continuations (texts or tuples of ids) none of which begins another."""
    sums: list[
        tuple[Any, float]
    ] = []  # of each one and those it begins, the likelier side
    for continuation in sorted(
        probabilities, reverse=True
    ):  # those that one begins stand right before it
        longer = 0.0
        while sums and sums[-1][0][: len(continuation)] == continuation:
            longer += sums.pop()[1]
        sums.append((continuation, max(probabilities[continuation], longer)))
    return sum(value for _, value in sums)


def _folded(text: Any) -> Any:
    """A text without case, accents and the number of spaces, which a tokenizer may not tell apart; ids as they are."""
    if not isinstance(text, str):
        return text
    letters = unicodedata.normalize("NFKD", text.casefold())
    return " ".join(
        "".join(
            letter for letter in letters if not unicodedata.combining(letter)
        ).split()
    )


def problem(answers: Iterable[tuple[Hashable, Any, float]]) -> str:
    """Why log-likelihoods are those of no distribution; empty where they may be.

    Each comes with its context and continuation, both texts or both tuples of ids. Of continuations of one context none
    of which begins another, at most one can follow: their probabilities sum to at most 1.
    """
    groups: dict[Hashable, dict[Any, float]] = {}
    for context, continuation, value in answers:
        if value > math.log(_MOST):
            return f"a log-likelihood of {value:.6g}, above 0: a probability of more than 1"
        group, key = groups.setdefault(context, {}), _folded(continuation)
        if not math.isnan(value):
            group[key] = max(math.exp(value), group.get(key, 0.0))
    for group in groups.values():
        if (total := largest_sum(group)) > _MOST:
            some = ", ".join(
                name if isinstance(name, str) else f"tokens {name[:8]}"
                for name in list(group)[:3]
            )
            return f"continuations that exclude each other ({some}) with probabilities that sum to {total:.0%}"
    return ""


def refuse(
    model: Any,
    kind: str,
    keys: Sequence[Any],
    answers: Iterable[tuple[Hashable, Any, float]],
) -> None:
    """Stop a run before it scores log-likelihoods of no distribution, and take them out of ``--use_cache``'s file.

    Raises:
        BiasError: The model's answers, which are kept there as of that kind under these keys, can't be probabilities.
    """
    if type(model).__name__ != "DummyLM" and (wrong := problem(answers)):
        if (cache := getattr(model.cache_hook, "dbdict", None)) is not None:
            for key in keys:
                cache.pop(internals.request_key(kind, key), None)
        commit(model)
        raise BiasError(
            f"the model type {type(model).__name__} gives {wrong}: check it (no answer was kept or scored)"
        )
