"""One request to an OpenAI-compatible server, and what went wrong with it, in words for people.

The harness's clients (``TemplateAPI``, 0.4.13) lose the server's own words, wait for ever for a server that keeps
sending a byte now and then, and take JSON in any encoding. Here a reply is whole, JSON and of a bounded size when it is
handed on; everything else is a :class:`Fault`. Retrying stays the harness's.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import html
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from lm_eval_bias import redaction
from lm_eval_bias.errors import printable

_LARGEST = 1 << 28  # bytes of a reply; 64 prompts of 2,048 tokens with log-probabilities are some 2^24
_WORDS = 300  # characters of what a server says
_PASSING = {408, 425, 429}  # statuses below 500 after which the same request may be answered
_ADVICE = {
    400: "check --model_args and --gen_kwargs",
    401: "check the server's API key: it is read from the environment variable OPENAI_API_KEY",
    404: "check base_url= and model=",
    408: "raise timeout= or send fewer prompts at a time (--batch_size, num_concurrent=)",
    413: "send fewer prompts at a time (--batch_size)",
    429: "send fewer requests at a time (num_concurrent=) or allow more retries (max_retries=)",
    500: "read the server's log",
}
_ADVICE |= {403: _ADVICE[401], 405: _ADVICE[404], 422: _ADVICE[400], 504: _ADVICE[408]}
# what a reply may not say twice: a token that is named twice among others is nobody's mistake
_ONCE = {"choices", "index", "text", "message", "content", "logprobs", "tokens", "token_logprobs", "top_logprobs"}


class Fault(ValueError):
    """What a server did wrong.

    Attributes:
        passing: Whether the same request may be answered another time.
    """

    def __init__(self, message: str, passing: bool = True) -> None:
        """A fault with the words for it."""
        super().__init__(message)
        self.passing = passing


def public_url(url: str) -> str:
    """An address without the user, password and parameters that it may hold.

    >>> public_url("https://me:secret@host:8000/v1/completions?api_key=secret")
    'https://host:8000/v1/completions'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def without_keys(text: str, model: Any) -> str:
    """A text in which the keys that a client sends are blotted out: servers repeat what they don't take."""
    url = urlsplit(str(getattr(model, "base_url", None) or ""))
    secrets = [url.password, getattr(model, "auth_token", None)]
    secrets += [value for name, value in parse_qsl(url.query) if redaction.SENT.search(name)]
    with contextlib.suppress(Exception):  # a client without its key has no headers
        headers = getattr(model, "header", None) or {}
        secrets += [
            word for name, value in headers.items() if redaction.SENT.search(name) for word in str(value).split()[-1:]
        ]
    for secret in filter(None, secrets):
        if len(str(secret)) > 3:
            text = text.replace(str(secret), "***")
    return text


def _message(content: Any) -> str:
    """The words in a server's JSON, wherever it puts them."""
    for name in ("error", "errors", "message", "detail", "msg", "reason"):
        if isinstance(content, dict) and content.get(name):
            return _message(content[name])
    if isinstance(content, list) and content:
        return _message(content[0])
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _words(body: bytes) -> str:
    """What a server says, on one line: of JSON its message, of a page its text."""
    text = body[: 1 << 16].decode("utf-8", "replace")
    try:
        text = _message(json.loads(text))
    except (ValueError, RecursionError):
        text = html.unescape(re.sub(r"(?is)<(head|script|style)\b.*?</\1>|<[^<>]{0,999}>", " ", text))
    text = printable(" ".join(text.split())[: 2 * _WORDS])
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}…"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        for name in _ONCE.intersection(names):
            if names.count(name) > 1:
                raise ValueError(f"{name!r} appears twice")
    return content


def decoded(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """The JSON in a reply.

    Raises:
        Fault: A status that is none of success, or no JSON.
    """
    words = _words(body)
    if not 200 <= status < 300:
        phrase = next((f" ({known.phrase})" for known in HTTPStatus if known == status), "")
        quoted = f", the server says: {words!r}" if words else ", without a message from the server"
        advice = _ADVICE.get(status, _ADVICE[500 if status >= 500 else 404 if status < 400 else 400])
        raise Fault(f"status {status}{phrase}{quoted}; {advice}", status >= 500 or status in _PASSING)
    if not body:
        raise Fault("an empty reply")
    charset = re.search(r"charset=[\"']?([\w.:-]+)", headers.get("Content-Type") or "", re.IGNORECASE)
    try:
        content = body.decode(charset[1]) if charset and charset[1].lower() != "utf-8" else body
        return json.loads(content, object_pairs_hook=_unique)
    except (ValueError, LookupError, RecursionError) as error:
        problem = getattr(error, "msg", "") or str(error)
        raise Fault(f"a reply that is not JSON ({problem}): {words!r}; check base_url=") from error


def _bounded(body: bytearray, size: str | None = None) -> None:
    if max(len(body), int(size) if size and size.isdigit() else 0) > _LARGEST:
        raise Fault(f"a reply of more than {_LARGEST:,} bytes; send fewer prompts at a time (--batch_size)")


def _body(response: Any, deadline: float) -> bytes:
    """What a server sends, until a moment: ``requests`` alone would wait for every next byte anew."""
    body = bytearray()
    _bounded(body, response.headers.get("Content-Length"))
    read = getattr(response.raw, "read1", None)  # urllib3 2 has it
    for chunk in iter(lambda: read(1 << 16, decode_content=True), b"") if read else response.iter_content(1 << 10):
        body += chunk
        _bounded(body)
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(body)


def post(model: Any, messages: Sequence[Any], *, generate: bool, gen_kwargs: Any = None, **kwargs: Any) -> Any:
    """The harness's ``TemplateAPI.model_call``: a request and its reply.

    Raises:
        Fault: There is no reply, or it is no JSON.
    """
    import requests

    payload = model._create_payload(
        model.create_message(messages),
        generate=generate,
        gen_kwargs=copy.deepcopy(gen_kwargs),  # the harness's methods take options out of it
        seed=model._seed,
        eos=model.eos_string,
        **kwargs,
    )
    options = {"headers": model.header, "verify": model.verify_certificate, "stream": True}
    deadline = time.monotonic() + model.timeout
    with explained(model):
        with requests.post(model.base_url, json=payload, timeout=model.timeout, **options) as response:
            body = _body(response, deadline)
        return decoded(response.status_code, response.headers, body)


class _Reply:
    """A reply that was read, as the harness's ``amodel_call`` reads one."""

    ok = True

    def __init__(self, content: Any) -> None:
        self._content = content

    def raise_for_status(self) -> None:
        """Its status was looked at."""

    async def json(self) -> Any:
        return self._content


class Session:
    """In place of the session of ``aiohttp`` that the harness's ``amodel_call`` sends a request with."""

    def __init__(self, session: Any, model: Any, check: Callable[[Any], None]) -> None:
        """Send with a session what a model asks, and look at each reply."""
        self._session, self._model, self._check = session, model, check

    @contextlib.asynccontextmanager
    async def post(self, url: str, **options: Any) -> AsyncIterator[_Reply]:
        """A reply.

        Raises:
            Fault: There is none, or it is no JSON.
        """
        with explained(self._model):
            async with self._session.post(url, **options) as response:
                body = bytearray()
                _bounded(body, response.headers.get("Content-Length"))
                async for chunk in response.content.iter_any():
                    body += chunk
                    _bounded(body)
            content = decoded(response.status, response.headers, bytes(body))
        self._check(content)
        yield _Reply(content)


@contextlib.contextmanager
def explained(model: Any) -> Iterator[None]:
    """Errors of a connection in words for people.

    Raises:
        Fault: In place of an error of ``requests`` or ``aiohttp``.
    """
    import aiohttp
    import requests
    import urllib3

    libraries = (requests.RequestException, urllib3.exceptions.HTTPError, aiohttp.ClientError)
    kinds: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, asyncio.TimeoutError, *libraries)
    try:
        yield
    except kinds as error:
        raise _connection_fault(error, model) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _connection_fault(error: BaseException, model: Any) -> Fault:
    """What an error of ``requests``, ``urllib3`` or ``aiohttp`` means."""
    import aiohttp
    import requests
    import urllib3

    causes = list(_causes(error))

    def any_is(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    retries = f"raise max_retries= (now {model.max_retries})"
    if any_is(requests.TooManyRedirects, aiohttp.TooManyRedirects):
        return Fault(f"the server redirects without end; {_ADVICE[404]}", False)
    addresses = (requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL)
    if any_is(*addresses, aiohttp.InvalidURL):
        return Fault("base_url= must be an address that begins with http:// or https://", False)
    if any_is(requests.exceptions.SSLError, aiohttp.ClientSSLError):
        return Fault("the server's certificate isn't trusted; check base_url= and verify_certificate=", False)
    # before timeouts: urllib3 counts this among them
    if any_is(urllib3.exceptions.NewConnectionError, aiohttp.ClientConnectorError):
        reason = next((text for cause in reversed(causes) if (text := getattr(cause, "strerror", ""))), "")
        problem = f" ({reason})" if reason else ""
        return Fault(f"the server can't be reached{problem}; check base_url= and whether the server runs, or {retries}")
    if any_is(requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError, asyncio.TimeoutError):
        return Fault(
            f"no complete reply within {model.timeout} s (timeout={model.timeout}); {_ADVICE[408]}, or {retries}"
        )
    if any_is(urllib3.exceptions.DecodeError, aiohttp.http_exceptions.ContentEncodingError):
        return Fault(f"a reply that can't be unpacked (Content-Encoding); {_ADVICE[500]}")
    return Fault(f"the server closed the connection before its reply was complete; {_ADVICE[500]}, or {retries}")
