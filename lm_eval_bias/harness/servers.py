"""Checks of servers' answers, before they are scored or kept in the file of ``--use_cache``.

The harness's clients (``TemplateAPI``, 0.4.13) believe every answer: log-probabilities of a server that doesn't echo
prompts sum to 0, and a list that is one short leaves out the last token. Here these are errors, and a message without
text is a refusal or an empty answer. The harness sends requests and tries them again (``max_retries``), but not those
that a server has refused for good.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from lm_eval_bias.core import Data, Facts, redaction
from lm_eval_bias.core.errors import BiasError, one_line, printable
from lm_eval_bias.harness import internals

logger = logging.getLogger("lm_eval.bias")
DUMMY = "dummy"  # the harness's model type for smoke tests: it answers at random, as no distribution does
_REFUSES = "_lm_eval_bias_refuses_options"  # on a model whose server has refused options that may be left out
_ASKING = "_lm_eval_bias_asking"  # on a model whose answers are being checked
_FINGERPRINTS = (
    "_lm_eval_bias_fingerprints"  # on a model: what its server calls its state
)
SERVED = "lm_eval_bias: the model that the server named"  # the key of --use_cache's file for it
# methods of clients that are checked here
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
# of one of several requests at a time
_prompts: ContextVar[Sequence[Any]] = ContextVar("prompts")
# by a server about the request
_said: ContextVar[str] = ContextVar("said", default="")
Method = Callable[..., Any]  # of a model
Answers = Iterable[tuple[Hashable, Any, float]]  # context, continuation, log-likelihood


class _RefusedForGoodError(BaseException):
    """Raised for a refusal that must not be sent again; the harness sends again whatever raised an ``Exception``."""


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
    """Check a server's answers while a model is asked, and save those that came, however it ends.

    Nested uses for the same model do nothing.
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
            # it tells of failed requests even later
            logging.getLogger("asyncio").addFilter(_listen)
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
    said = _SAID.match(text)
    if said:
        _said.set(" ".join(re.sub("<[^<>]*>", " ", said[1]).split()))
    return not _REPEATED.search(text)


def _status(error: Exception) -> int | None:
    """Return the HTTP status that an error of requests or aiohttp is about."""
    response = getattr(error, "response", None)
    return getattr(error, "status", None) or getattr(response, "status_code", None)


def _explanation(error: Exception) -> str:
    """Explain an error of a request in plain words."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for names, meaning in _MEANINGS.items():
        if kinds & set(names.split()):
            return meaning
    status = _status(error)
    if status:
        check = "read the server's log" if status >= 500 else "check --model_args"
        advice = _ADVICE.get(status, check)
        return f"status {status}, the server says {_said.get()[:300]!r}; {advice}"
    text = one_line(error)
    return text if type(error) is ValueError else f"{type(error).__name__}: {text}"


class _Checks:
    """Stand-ins for a client's methods; each takes the method whose answers it checks."""

    def __init__(self, model: Any) -> None:
        self._model = model
        # once of all that fail alike
        self._warn = functools.cache(logger.warning)
        self._has_words = model.tokenizer_backend == "huggingface"
        self._is_over = False
        self._missing: list[Any] = []  # why texts ended of which there are none

    def model_call(
        self,
        call: Method,
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
        self, call: Method, messages: Sequence[Any], **options: Any
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
        self, create: Callable[..., Data], *messages: Any, **options: Any
    ) -> Data:
        """Ask for the whole distribution where ``top_k=0`` does, and leave out what servers refuse.

        llama.cpp's server cuts the distribution at ``min_p=0.05`` unless it is told not to; OpenAI's API refuses an
        empty list of stop strings.
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

    def _refuses_option(self, error: Exception, options: Data) -> bool:
        """Tell whether a request failed because of options that it can do without; later requests leave them out."""
        sent = options.get("gen_kwargs") or {}
        named = [name for name in _SPARED if name in _said.get()]
        is_sent = any(sent.get(name, sent.get("top_k")) == 0 for name in named)
        if not is_sent or _status(error) not in (400, 422):
            return False
        setattr(self._model, _REFUSES, True)
        self._warn(
            "the server doesn't take %s: asked without them", " and ".join(_SPARED)
        )
        return True

    def parse_logprobs(self, parse: Method, outputs: Any, **options: Any) -> Any:
        prompts = _prompts.get(None)
        if prompts is not None:  # else the reply was checked before
            self._check(outputs, prompts, "ctxlens" not in options)
        return parse(outputs=outputs, **options)

    parse_generations = parse_logprobs

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain what went wrong, also when the request is sent again."""
        try:
            yield
        except Exception as error:
            text = printable(without_keys(_explanation(error), self._model))
            if _status(error) in _FINAL or self._is_over:
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
            said = vars(self._model).setdefault(_FINGERPRINTS, set())
            said.add(str(reply["system_fingerprint"]))

    def _check_texts(self, choices: Sequence[Any], prompts: Sequence[Any]) -> None:
        for choice, prompt in zip(choices, prompts, strict=True):
            message = choice
            field = "text"
            if "message" in choice:
                message = choice["message"]
                field = "content"
            is_message = isinstance(message, dict)
            if not is_message or not isinstance(message.get(field) or "", str):
                raise ValueError(f"an answer without a text: {choice!r:.200}")
            if message.get(field) is None:
                refusal = message.get("refusal") or ""
                message[field] = refusal
                reason = "refusal" if refusal else choice.get("finish_reason")
                self._missing.append(reason)
            is_list = isinstance(prompt, list)
            if is_list and all(isinstance(token, int) for token in prompt):
                (prompt,) = self._model.decode_batch([prompt])
            is_text = isinstance(prompt, str) and prompt.strip()
            if is_text and message[field].startswith(prompt):
                raise ValueError(
                    f"a text that repeats its prompt ({prompt[:60]!r}); the server must not echo it"
                )

    def say_what_is_missing(self) -> None:
        """Warn of answers without a text, all together."""
        if self._missing:
            refused = self._missing.count("refusal")
            cut = self._missing.count("length")
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
        if not served or not self._has_words:
            return
        words = self._model.decode_batch([[token] for token in ids])
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
            cache = _cache(self._model)
            first = vars(self._model).setdefault("_served", name)
            before = first if cache is None else cache.setdefault(SERVED, first)
            if name != before:
                raise ValueError(
                    f"an answer of {name!r:.90}, where {before!r:.90} answered before: a run has one model"
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


def served_as(model: Any) -> list[str]:
    """Say as which model a server answered, where that isn't the one that was asked for."""
    name = vars(model).get("_served")
    if not name or not model.model or name == model.model:
        return []
    return [f"the server answered as {name!r:.90}, asked for {model.model!r:.90}"]


def fingerprints(model: Any) -> list[str]:
    """Return the name and the fingerprints that a server gave with its answers: what it says, which proves nothing."""
    name = vars(model).get("_served")
    said = sorted(vars(model).get(_FINGERPRINTS, ()))
    return [*([name] if name else []), *said]


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
