"""Keys, passwords and tokens: stars in all that is printed or saved.

A secret is known by its place: an address's user and parameters, what a header, a cookie or an environment holds, and
arguments whose name says so (:func:`arguments`). What a run was given as one (:func:`learn`) is hidden wherever it
turns up later, also in what servers answer (:func:`masked`).
"""

from __future__ import annotations

import ast
import base64
import contextlib
import functools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from lm_eval_bias.core import Data, Facts

STARS = "***"
_NAME = re.compile(
    r"auth(?!or(?!i[sz]))|bearer|cookie|credential|passw|passphrase|secret|api_?key|(?:^|_)(?:creds?|env|environ(?:ment)?"
    r"|headers?|jwt|pass|pwd|sas|sig|signature)(?:_|$)|keys?(?:_?id)?$|tokens?$"
)
# of a tokenizer's tokens, and of numbers of them
_OF_TEXTS = re.compile(
    r"(?:^|_)(?:added|audio|bad|batched|begin|bos|budget|cls|completion|context|end|eos|extra|first|forced|generated|image"
    r"|input|last|mask|max|min|new|num|number|output|pad|per|prefix|prompt|sep|special|start|stop|suffix|suppress|think"
    r"|thinking|total|unk|video)_(?:\w+_)?tokens?$"
)
_ADDRESS = re.compile(r"address|endpoint|host|prox(?:y|ies)|server|ur[il]")
_NOT_IN_ADDRESS = r"\s'\"<>"
_ADDRESS_IN_TEXT = re.compile(rf"[A-Za-z][\w+.-]*://[^{_NOT_IN_ADDRESS}]+")
_USER_IN_TEXT = re.compile(rf"^[^/?{_NOT_IN_ADDRESS}]*:[^{_NOT_IN_ADDRESS}]*@")
_WORD = re.compile(r"[^\s:/@?&#=,;{}'\"]{4,}")
# flags that hold arguments; what isn't any among them may be a key whose name was forgotten
_FLAGS = re.compile(
    r"--(?:model|\w+_log|wandb|wandb_config|trackio)_args|--gen_kwargs|--metadata"
)
_KNOWN: dict[str, None] = {}  # of the run that is under way


@functools.lru_cache(maxsize=10_000)
def _names_secret(name: str) -> bool:
    plain = re.sub(r"(?<=[a-z\d])(?=[A-Z])|\W", "_", unquote(name)).lower()
    return bool(_NAME.search(plain)) and not _OF_TEXTS.search(plain)


def _is_secret(name: str, value: object) -> bool:
    if not name or not _names_secret(name):
        return False
    if value is None or isinstance(value, bool) or str(value) in ("True", "False", ""):
        return False  # use_auth_token=True is no token
    is_number = re.search("tokens?$", name, re.IGNORECASE) and str(value)[:7].isdigit()
    return not is_number


def address(text: str, found: list[object] | None = None) -> str:
    """Put stars in place of all up to an address's last @, and of all behind its first question mark.

    >>> address("https://me:p@ss@host:8000/v1?sig=secret&version=2"), address("me:secret@host/v1")
    ('https://***@host:8000/v1?***', '***@host/v1')
    """
    scheme, mark, rest = text.partition("://") if "://" in text else ("", "", text)
    user, at, place = rest.rpartition("@")
    place, behind, parameters = re.fullmatch(
        r"([^?#]*)([?#]?)(.*)", place, re.S
    ).groups()  # type: ignore[union-attr]
    if found is not None:
        encoded = base64.b64encode(unquote(user).encode("utf-8", "replace")).decode()
        found += [user.partition(":")[2] or user, encoded] if at else []
        found += re.split("[&;]", parameters)
    user = f"{STARS}@" if at else ""
    return f"{scheme}{mark}{user}{place}{behind}{STARS if parameters else ''}"


def _parts(text: str) -> list[str]:
    """Divide KEY=VALUE,KEY=VALUE at the commas outside of brackets and quotation marks."""
    parts = [""]
    depth = 0
    quoted = ""
    for c in text:
        if quoted or c in "\"'":
            quoted = "" if c == quoted else quoted or c
        depth += 0 if quoted else (c in "[({") - (c in "])}")
        if c == "," and depth <= 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    # a mark without its other half would hide the names behind it
    return text.split(",") if quoted or depth else parts


def _text(text: str, found: list[object], is_address: bool, is_flag: bool) -> str:
    """Hide what is secret in a text: addresses, pairs, JSON, a dictionary as Python writes it."""
    if text[:1] in ("{", "["):
        for read, write in ((json.loads, json.dumps), (ast.literal_eval, repr)):
            with contextlib.suppress(
                ValueError, SyntaxError, RecursionError, MemoryError
            ):
                content = read(text)
                hidden = _hidden("", content, found)
                return text if hidden == content else write(hidden)
    elif is_flag or ("=" in text and re.match(r"\s*[\w.-]+=", text)):
        return ",".join(_pair(part, found, is_flag) for part in _parts(text))
    if is_flag:
        found.append(text)
        return STARS
    if is_address or ("@" in text and _USER_IN_TEXT.match(text)):
        return address(text, found)
    if "://" not in text:
        return text
    return _ADDRESS_IN_TEXT.sub(lambda match: address(match[0], found), text)


def _pair(text: str, found: list[object], is_flag: bool) -> str:
    name, mark, value = text.partition("=")
    if mark:
        return f"{name}={_hidden(name.strip(), value, found)}"
    if is_flag and text:
        found.append(text)
        return STARS
    return text


def _hidden(
    name: str, value: object, found: list[object], is_flag: bool = False
) -> Any:
    """Return a value with stars in it; ``found`` gets what they stand for."""
    if _is_secret(name, value):
        found.append(value)
        return STARS
    if isinstance(value, str):
        is_address = bool(_ADDRESS.search(name.lower()))
        return _text(value, found, is_address, is_flag)
    if isinstance(value, Mapping):
        is_by_task = name in ("configs", "tasks")  # whose names say nothing
        names = {key: "" if is_by_task else str(key) for key in value}
        return {key: _hidden(names[key], value[key], found) for key in value}
    if isinstance(value, list | tuple):
        return [_hidden(name, entry, found) for entry in value]
    return value


def arguments(value: object) -> Any:
    """Arguments of a model, or whatever holds some, with stars in place of keys, tokens and headers.

    >>> arguments({"model": "m", "auth_token": "secret", "tokenizer": "gpt2", "header": {"X-Key": "secret"}})
    {'model': 'm', 'auth_token': '***', 'tokenizer': 'gpt2', 'header': '***'}
    >>> arguments("model=m,api_key=secret,max_tokens=4")
    'model=m,api_key=***,max_tokens=4'
    """
    return _hidden("", value, [])


def of_results(content: Facts) -> Data:
    """Return results with stars in their arguments: the run's, each task's, and those in the provenance."""
    parts = {"config", "configs", "provenance"} & content.keys()
    return {**content, **{part: _hidden(part, content[part], []) for part in parts}}


def parsed(given: object) -> Data:
    """Read a model's arguments, which some versions of the harness keep as one text.

    >>> parsed("pretrained=gpt2,dtype=float32")
    {'pretrained': 'gpt2', 'dtype': 'float32'}
    """
    if isinstance(given, Mapping):
        return dict(given)
    pairs = [part.partition("=") for part in _parts(str(given))]
    return {name.strip(): value for name, mark, value in pairs if mark} or {"": given}


def as_flag(given: object) -> str:
    """Write a model's arguments as ``--model_args`` takes them, without keys and tokens."""
    shown = arguments(given or {})
    if isinstance(shown, str):
        return shown
    return ",".join(f"{key}={value}" for key, value in shown.items())


def command(words: Sequence[str], found: list[object] | None = None) -> list[str]:
    """Return a command's words with stars in place of keys, tokens and headers among arguments.

    >>> command(["run", "--model_args=model=m,api_key=secret", "--metadata", '{"hf_token": "secret"}'])
    ['run', '--model_args', 'model=m,api_key=***', '--metadata', '{"hf_token": "***"}']
    >>> command(["run", "--model_args", "sk-secret"])
    ['run', '--model_args', '***']
    """
    parts: list[str] = []
    for word in words:
        parts += word.split("=", 1) if word.startswith("--") else [word]
    hidden = []
    flag = ""
    found = [] if found is None else found
    for word in parts:
        if word.startswith("--"):
            flag = word
            hidden.append(word)
        else:
            holds_arguments = bool(_FLAGS.fullmatch(flag))
            hidden.append(_hidden(flag.strip("-"), word, found, holds_arguments))
    return hidden


@contextlib.contextmanager
def learning() -> Iterator[None]:
    """Know the environment's secrets, and those that :func:`learn` is told meanwhile."""
    before = dict(_KNOWN)
    found: list[object] = []
    for name, value in os.environ.items():
        if not os.path.exists(value):
            _hidden(name.removesuffix("_ENV"), value, found)
    _remember(found)
    try:
        yield
    finally:
        _KNOWN.clear()
        _KNOWN.update(before)


def learn(given: object) -> None:
    """Know what is secret in arguments, or in a command's words, so that :func:`masked` hides it."""
    found: list[object] = []
    if isinstance(given, list):
        shown = command(given, found)
    else:
        shown = _hidden("", given, found)
    _remember(found, set(_leaves(shown)))


def _remember(found: Iterable[object], shown: Iterable[str] = ()) -> None:
    for whole in map(str, _leaves(list(found))):
        # a word is no secret, as in "Bearer ..." and application/json
        words = [
            word for word in _WORD.findall(whole) if re.search(r"\d|[a-z][A-Z]", word)
        ]
        for secret in {whole, whole.strip(), *words} - set(shown):
            if len(secret) >= 8 or (len(secret) >= 4 and not secret.isalpha()):
                ways = {secret, unquote(secret), quote(secret, safe="")}
                ways |= {json.dumps(way)[1:-1] for way in ways}
                _KNOWN.update(dict.fromkeys(ways))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _leaves(entry)
    else:
        yield str(value)


def masked(value: object) -> Any:
    """Put stars in place of secrets that are known, in a text or in all texts of some data.

    >>> with learning():
    ...     learn({"auth_token": "s3cret"})
    ...     masked({"says": ["no such key: s3cret"]})
    {'says': ['no such key: ***']}
    """
    if not _KNOWN:
        return value
    if isinstance(value, Mapping):
        return {masked(key): masked(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [masked(entry) for entry in value]
    if not isinstance(value, str):
        return value
    return _pattern(tuple(_KNOWN)).sub(STARS, value)


@functools.lru_cache(maxsize=8)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    ways = []
    for secret in sorted(secrets, key=len, reverse=True):
        # a number is one where it stands alone
        is_number = not re.search("[A-Za-z]", secret)
        way = re.escape(secret)
        ways.append(rf"(?<![\w.]){way}(?!\w)" if is_number else way)
    return re.compile("|".join(ways))
