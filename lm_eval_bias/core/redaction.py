"""Keys, passwords and tokens among a model's arguments: stars in all that is printed or saved."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

STARS = "***"
# of arguments, of which many are about tokens and tokenizers
_ARGUMENT = re.compile(
    r"auth|bearer|cookie|credential|passw|secret|^headers?$|"
    r"(^|[_-])key(_id)?$|api_?key|^token$|(^|[_-])(access|api|hf|hub|session)_?token$",
    re.IGNORECASE,
)
# one of key=value,key=value: a value holds no comma, but in a quoted or bracketed header
_PAIR = re.compile(
    r"(?P<name>(?:^|(?<=,))\s*[\w-]+)=(?P<value>\{[^}]*\}|\"[^\"]*\"|'[^']*'|[^,]*)"
)
_USER = re.compile(r"(?<=://)(?:([^/?#@:]*:)[^/?#@]*|[^/?#@]*)@")
_PARAMETER = re.compile(
    r"(?<=[?&])([^=&#]*(?:auth|key|token|secret|password|cookie)[^=&#]*)=[^&#]*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s:/@?&=,;{}'\"]{4,}")


def _url(text: str) -> str:
    """Put stars in place of an address's password and of the keys among its parameters.

    >>> _url("https://me:secret@host:8000/v1?api_key=secret&version=2")
    'https://me:***@host:8000/v1?api_key=***&version=2'
    """
    return _PARAMETER.sub(
        rf"\1={STARS}", _USER.sub(lambda user: f"{user[1] or ''}{STARS}@", text)
    )


def _without(name: str, value: Any) -> Any:
    if str(value) in ("True", "False", "None", ""):  # use_auth_token=True is no token
        return value
    if _ARGUMENT.search(name):
        return STARS
    if isinstance(value, str):
        return _url(value) if "://" in value else value
    return arguments(value)


def arguments(value: Any) -> Any:
    """Arguments of a model, or whatever holds some, with stars in place of keys, tokens and headers.

    >>> arguments({"model": "m", "auth_token": "secret", "tokenizer": "gpt2", "header": {"X-Key": "secret"}})
    {'model': 'm', 'auth_token': '***', 'tokenizer': 'gpt2', 'header': '***'}
    >>> arguments("model=m,api_key=secret,max_tokens=4")
    'model=m,api_key=***,max_tokens=4'
    """
    if isinstance(value, Mapping):
        return {name: _without(str(name), argument) for name, argument in value.items()}
    if isinstance(value, list | tuple):
        return [_without("", argument) for argument in value]
    if isinstance(value, str):
        return _PAIR.sub(
            lambda pair: (
                f"{pair['name']}={_without(pair['name'].strip(), pair['value'])}"
            ),
            value,
        )
    return value


def parsed(given: Any) -> dict[str, Any]:
    """Read a model's arguments, which some versions of the harness keep as one text.

    >>> parsed("pretrained=gpt2,dtype=float32")
    {'pretrained': 'gpt2', 'dtype': 'float32'}
    """
    if isinstance(given, Mapping):
        return dict(given)
    pairs = {pair["name"].strip(): pair["value"] for pair in _PAIR.finditer(str(given))}
    return pairs or {"": given}


def as_flag(given: Any) -> str:
    """Write a model's arguments as ``--model_args`` takes them, without keys and tokens."""
    shown = arguments(given or {})
    if isinstance(shown, str):
        return shown
    return ",".join(f"{key}={value}" for key, value in shown.items())


def command(words: Sequence[str]) -> list[str]:
    """Return a command's words with stars in place of keys, tokens and headers among arguments.

    >>> command(["run", "--model_args=model=m,api_key=secret", "--metadata", '{"hf_token": "secret"}'])
    ['run', '--model_args', 'model=m,api_key=***', '--metadata', '{"hf_token": "***"}']
    """
    parts: list[str] = []
    for word in words:
        parts += word.split("=", 1) if word.startswith("--") else [word]
    return list(map(_word, parts))


def _word(text: str) -> str:
    """Put stars into arguments as the command line takes them: key=value,key=value or JSON."""
    try:
        return json.dumps(arguments(dict(json.loads(text))))
    except (ValueError, TypeError):
        return str(arguments(text))


def in_text(text: str, given: Mapping[str, Any]) -> str:
    """Cut the secrets among a model's arguments out of a message, since libraries repeat them.

    >>> in_text("bad header for secret", {"auth_token": "secret"})
    'bad header for ***'
    """
    hidden = arguments(given)
    secrets = {
        word
        for name in given
        for word in set(_WORD.findall(str(given[name])))
        - set(_WORD.findall(str(hidden[name])))
    }
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, STARS)
    return text
