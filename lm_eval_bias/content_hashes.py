"""What documents and data files hold, as hashes: by them it is known whether two runs asked and scored the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lm_eval_bias.files import under

_PLACE, _HASH = "file", "sha256"


def of_document(doc: Mapping[str, Any], requests: Sequence[Any] = ()) -> str:
    """SHA-256 of all that a document and its requests hold.

    Where it names a file beside that file's SHA-256, only the latter counts: the same file may lie anywhere.

    >>> here, there = ({"dataset": {"file": place, "sha256": "0f"}} for place in ("here", "there"))
    >>> of_document(here) == of_document(there)
    True
    >>> of_document({"words": ["he"]}) == of_document({"words": ["she"]})
    False
    """
    content = {key: _without_place(value) for key, value in doc.items()}
    text = json.dumps([content, list(requests)], ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_place(value: Any) -> Any:
    if isinstance(value, Mapping) and _PLACE in value and _HASH in value:
        return {key: own for key, own in value.items() if key != _PLACE}
    return value


def of_all(hashes: Iterable[str]) -> str:
    """One hash of many documents', in whatever order they come."""
    return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()


def differing_fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The names of the fields in which two documents differ.

    >>> differing_fields({"id": 1, "words": ["he"]}, {"id": 1, "words": ["xer"]})
    ['words']
    """
    missing = object()
    return [
        key
        for key in dict.fromkeys((*one, *other))
        if _without_place(one.get(key, missing)) != _without_place(other.get(key, missing))
    ]


@cache
def of_data_files(folder: Path) -> str:
    """One SHA-256 of the YAMLs and data files in a benchmark's folder and of their names."""
    digest = hashlib.sha256()
    for path in under(folder):
        if path.suffix in (".yaml", ".csv", ".json") or path.name.endswith("_yaml"):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()}\n{content}\n".encode())
    return digest.hexdigest()
