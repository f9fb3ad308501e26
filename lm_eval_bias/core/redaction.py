"""Keys, passwords and tokens: found by value where they are given, masked where text leaves.

A secret is known by its place: an address's user and parameters, what a header, a cookie or an environment holds, and
arguments whose name says so (:func:`secrets`). What a run was given as one (:func:`learn`) is masked wherever it turns
up later, also in what servers answer (:func:`masked`).
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
from itertools import chain
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
_ADDRESS_NAME = re.compile(r"address|endpoint|host|prox(?:y|ies)|server|ur[il]")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"<>]+|^[^/?\s'\"<>]*:[^\s'\"<>]*@\S*")
_WORD = re.compile(r"[^\s:/@?&#=,;{}'\"]{4,}")
# flags that hold arguments; what isn't any among them may be a key whose name was forgotten
_FLAGS = re.compile(
    r"--(?:model|\w+_log|wandb|wandb_config|trackio)_args|--gen_kwargs|--metadata"
)
_KNOWN: dict[str, None] = {}  # of the run that is under way


@functools.lru_cache(maxsize=10_000)
def _names_secret(name: str) -> bool:
    plain = re.sub(r"(?<=[a-z\d])(?=[A-Z])|\W", "_", name).lower()
    return bool(_NAME.search(plain)) and not _OF_TEXTS.search(plain)


def _is_secret(name: str, value: object) -> bool:
    if not _names_secret(name) or value is None or isinstance(value, bool):
        return False
    if str(value) in ("True", "False", ""):
        return False  # use_auth_token=True is no token
    is_number = re.search("tokens?$", name, re.IGNORECASE) and str(value)[:7].isdigit()
    return not is_number


def _names(value: Facts, name: str) -> dict[str, str]:
    """Return the names of a mapping's entries by key; task names aren't looked at."""
    by_task = name in ("configs", "tasks")
    return {key: "" if by_task else str(key) for key in value}


def secrets(value: object, name: str = "", is_flag: bool = False) -> Iterator[str]:
    """Yield the secrets in a model's arguments, a run's configuration, or data that contain them.

    Args:
        value: Data, or a text: an address, pairs, JSON, a dictionary as Python writes it.
        name: What it is called.
        is_flag: Whether it is the value of a flag that holds arguments, of which each has a name.

    >>> list(secrets({"model": "m", "auth_token": "s3cret", "header": {"X-Key": "x"}, "tokenizer": "gpt2"}))
    ['s3cret', 'x']
    >>> list(secrets("base_url=http://host/v1?sig=s3cret,api_key=key,max_tokens=4"))
    ['sig=s3cret', 's3cret', 'key']
    """
    if _is_secret(name, value):
        yield from _leaves(value)
    elif isinstance(value, Mapping):
        for key, called in _names(value, name).items():
            yield from secrets(value[key], called)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from secrets(entry, name)
    elif isinstance(value, str):
        yield from _in_text(value, name, is_flag)


def _in_text(text: str, name: str, is_flag: bool) -> Iterator[str]:
    if text[:1] in ("{", "["):
        for read in (json.loads, ast.literal_eval):
            with contextlib.suppress(
                ValueError, SyntaxError, RecursionError, MemoryError
            ):
                yield from secrets(read(text))
                return
    elif is_flag or re.match(r"\s*[\w.-]+=", text):
        for part in text.split(","):
            key, mark, value = part.partition("=")
            if mark:
                yield from secrets(value, key.strip())
            elif is_flag:
                yield part
        return
    if is_flag:
        yield text
    whole = [text] if _ADDRESS_NAME.search(name.lower()) else _ADDRESS.findall(text)
    for address in whole:
        yield from _in_address(address)


def _in_address(text: str) -> Iterator[str]:
    """Yield all up to an address's last @, and each parameter behind its first question mark.

    >>> list(_in_address("https://me:p@ss@host:8000/v1?sig=s3cret&version=2"))
    ['me:p@ss', 'p@ss', 'bWU6cEBzcw==', 'sig=s3cret', 's3cret', 'version=2', '2']
    """
    rest = text.partition("://")[2] or text
    user, at, place = rest.rpartition("@")
    if at:
        yield user
        yield user.partition(":")[2]
        yield base64.b64encode(unquote(user).encode("utf-8", "replace")).decode()
    _, *behind = re.split("[?#]", place, maxsplit=1)
    for parameters in behind:
        for parameter in filter(None, re.split("[&;]", parameters)):
            yield parameter
            yield parameter.partition("=")[2]


def arguments(value: object, name: str = "", is_flag: bool = False) -> Any:
    """Return a model's arguments (or data that contain some) with stars in place of keys, tokens and headers.

    Args:
        value: The arguments.
        name: What they are called.
        is_flag: As of :func:`secrets`.

    >>> arguments({"model": "m", "auth_token": "secret", "tokenizer": "gpt2"})
    {'model': 'm', 'auth_token': '***', 'tokenizer': 'gpt2'}
    """
    if isinstance(value, str):
        return _argument(value, name, is_flag)
    if _is_secret(name, value):
        return STARS
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        called = _names(value, name)
        return {key: arguments(entry, called[key]) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [arguments(entry, name) for entry in value]
    return value


@functools.lru_cache(maxsize=20_000)  # a file repeats its scores' words task by task
def _argument(text: str, name: str, is_flag: bool) -> str:
    if _is_secret(name, text):
        return STARS
    pattern = _pattern(tuple(_ways(_in_text(text, name, is_flag))))
    return pattern.sub(STARS, text)


def of_results(content: Facts) -> Data:
    """Return results with stars in their arguments: the run's, each task's, and those in the provenance."""
    parts = {"config", "configs", "provenance"} & content.keys()
    return {**content, **{part: arguments(content[part], part) for part in parts}}


def parsed(given: object) -> Data:
    """Read a model's arguments, which some versions of the harness keep as one text.

    >>> parsed("pretrained=gpt2,dtype=float32")
    {'pretrained': 'gpt2', 'dtype': 'float32'}
    """
    if isinstance(given, Mapping):
        return dict(given)
    pairs = [part.partition("=") for part in str(given).split(",")]
    return {name.strip(): value for name, mark, value in pairs if mark} or {"": given}


def as_flag(given: object) -> str:
    """Write a model's arguments as ``--model_args`` takes them, without keys and tokens."""
    shown = arguments(given or {})
    if isinstance(shown, str):
        return shown
    return ",".join(f"{key}={value}" for key, value in shown.items())


_Named = tuple[object, str, bool]  # a value, its name, whether a flag holds it


def _in_command(words: Sequence[str]) -> Iterator[tuple[str, _Named]]:
    """Yield each word of a command in two parts: a flag with its sign, and a value with what it is called."""
    flag = ""
    for word in words:
        before = ""
        if word.startswith("--"):
            flag, sign, word = word.partition("=")
            before = flag + sign
        yield before, (word, flag.strip("-"), bool(_FLAGS.fullmatch(flag)))


def command(words: Sequence[str]) -> list[str]:
    """Return a command's words with stars in place of keys, tokens and headers among arguments.

    >>> command(["run", "--model_args=model=m,api_key=secret", "--metadata", '{"hf_token": "s3cret"}'])
    ['run', '--model_args=model=m,api_key=***', '--metadata', '{"hf_token": "***"}']
    >>> command(["run", "--model_args", "sk-secret"])
    ['run', '--model_args', '***']
    """
    return [before + arguments(*given) for before, given in _in_command(words)]


@contextlib.contextmanager
def learning() -> Iterator[None]:
    """Mask the environment's secrets, and those passed to :func:`learn`, while the context lasts."""
    before = dict(_KNOWN)
    for name, value in os.environ.items():
        if not os.path.exists(value):
            learn({name.removesuffix("_ENV"): value})
    try:
        yield
    finally:
        _KNOWN.clear()
        _KNOWN.update(before)


def learn(given: object) -> None:
    """Register the secrets in arguments or in a command's words, so that :func:`masked` hides them."""
    values: list[_Named] = [(given, "", False)]
    if isinstance(given, list):
        values = [value for _, value in _in_command(given)]
    ways = _ways(chain.from_iterable(secrets(*value) for value in values))
    _KNOWN.update(dict.fromkeys(filter(_is_telling, ways)))


def _is_telling(secret: str) -> bool:
    """Return whether a secret is long enough to be masked everywhere; a short one is part of other words."""
    return len(secret) >= 8 or (len(secret) >= 4 and not secret.isalpha())


def _ways(found: Iterable[str]) -> set[str]:
    """Return the spellings of secrets, and their parts that are secret by themselves."""
    ways = set()
    for whole in found:
        # a word is no secret, as in "Bearer ..." and application/json
        words = [w for w in _WORD.findall(whole) if re.search(r"\d|[a-z][A-Z]", w)]
        for secret in filter(None, (whole, whole.strip(), *words)):
            ways |= {secret, unquote(secret), quote(secret, safe="")}
    return ways | {json.dumps(way)[1:-1] for way in ways}


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _leaves(entry)
    else:
        yield str(value)


def masked(value: object) -> Any:
    """Replace known secrets with stars, in a text or in all texts of some data.

    >>> with learning():
    ...     learn({"auth_token": "s3cret"})
    ...     masked({"says": ["no such key: s3cret"]})
    {'says': ['no such key: ***']}
    """
    return _masked(value, _pattern(tuple(_KNOWN)), names=True) if _KNOWN else value


def _masked(value: object, pattern: re.Pattern[str], names: bool = False) -> Any:
    if isinstance(value, Mapping):
        keys = _masked([*value], pattern) if names else value
        entries = _masked([*value.values()], pattern, names)
        return dict(zip(keys, entries, strict=True))
    if isinstance(value, list | tuple):
        return [_masked(entry, pattern, names) for entry in value]
    return pattern.sub(STARS, value) if isinstance(value, str) else value


@functools.lru_cache(maxsize=8)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    ways = []
    for secret in sorted(secrets, key=len, reverse=True):
        # a number, or a short word, is one where it stands alone
        is_part = re.search("[A-Za-z]", secret) and _is_telling(secret)
        way = re.escape(secret)
        ways.append(way if is_part else rf"(?<![\w.]){way}(?!\w)")
    return re.compile("|".join(ways) or "(?!)")
