"""Hashes of documents and data files, which tell whether two runs asked and scored the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from lm_eval_bias.core import Facts
from lm_eval_bias.core.catalog import Loader
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import list_files, parse_yaml

CHECKPOINT_FILES = {
    ".safetensors",
    ".bin",
    ".gguf",
    ".pt",
    ".json",
    ".model",
    ".txt",
    ".jinja",
}  # of which a checkpoint is made
_PLACE = "file"
_HASH = "sha256"


def of_document(doc: Mapping[str, object], requests: Sequence[object] = ()) -> str:
    """Return the SHA-256 of a document and its requests.

    Where it names a file beside that file's SHA-256, only the latter counts: the same file may lie anywhere.

    >>> here, there = ({"dataset": {"file": place, "sha256": "0f"}} for place in ("here", "there"))
    >>> of_document(here) == of_document(there)
    True
    >>> of_document({"words": ["he"]}) == of_document({"words": ["she"]})
    False
    """
    content = {key: _without_place(value) for key, value in doc.items()}
    text = json.dumps(
        [content, list(requests)], ensure_ascii=False, sort_keys=True, default=str
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_place(value: object) -> object:
    if isinstance(value, Mapping) and _PLACE in value and _HASH in value:
        return {key: entry for key, entry in value.items() if key != _PLACE}
    return value


def of_text(text: str) -> str:
    """Return a short hash that stands for a text in records, which must not contain texts.

    >>> of_text("I am a nurse")
    '1b5e04de908d'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def of_all(hashes: Iterable[str]) -> str:
    """Combine the hashes of documents into one that doesn't depend on their order."""
    return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()


@cache
def of_data_files(folder: Path) -> str:
    """Return one SHA-256 of the contents of a benchmark's YAMLs and data files, comments ignored."""
    return _of_files(
        {
            path.relative_to(folder).as_posix(): path
            for path in list_files(folder)
            if _holds_data(path)
        },
        _content,
    )


@cache
def of_code(folder: Path, *shared: Path) -> str:
    """Return one SHA-256 of the Python files in a benchmark's folder and in the shared folders that it uses."""
    files = {
        path.relative_to(folder).as_posix(): path for path in list_files(folder, "*.py")
    }
    files |= {
        f"{place.name}/{path.name}": path
        for place in shared
        for path in sorted(place.glob("*.py"))
    }
    return _of_files(files, Path.read_bytes)


def _holds_data(path: Path) -> bool:
    is_data = path.suffix in (".yaml", ".csv", ".json") or path.name.endswith("_yaml")
    # no score rests on what is said of items, and of the harness's tasks
    return is_data and path.name not in ("card.yaml", "card.bib")


def _of_files(files: Mapping[str, Path], read: Callable[[Path], bytes]) -> str:
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(f"{name}\n{hashlib.sha256(read(path)).hexdigest()}\n".encode())
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    """Read a data file for hashing: the ordered values of YAML and JSON, the bytes of others."""
    if path.suffix == ".csv":
        return path.read_bytes()
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"), path.name, Loader)
    except (BiasError, UnicodeDecodeError):  # several documents in one file, say
        return path.read_bytes()
    return json.dumps(content, ensure_ascii=False, default=str).encode(
        "utf-8", "surrogatepass"
    )


def of_checkpoint(folder: Path, only: str | None = None) -> dict[str, str]:
    """Return the SHA-256 of a local checkpoint's files, or of one (``only``); each process reads a file once."""
    paths = (
        [folder / only]
        if only
        else sorted(p for p in folder.iterdir() if p.suffix in CHECKPOINT_FILES)
    )
    digests = {}
    for path in filter(Path.is_file, paths):
        facts = path.stat()
        # the time of a change can't be set
        digests[path.name] = _in_state(path, facts.st_size, facts.st_ctime_ns)
    return digests


@cache
def _in_state(path: Path, *_state: int) -> str:
    return of_file(path)


def of_files(hashes: Mapping[str, str]) -> str:
    """Combine many files' hashes into one: the first 16 digits of ``sha256sum FILES... | sha256sum``, files by name.

    >>> of_files({"b": "0" * 64, "a": "1" * 64})
    'fabf5fb920fd6814'
    """
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def flat(facts: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield all values of nested facts as text, each with its path of names.

    >>> dict(flat({"logs": {"a": 1, "b": None}, "dtype": "float32"}))
    {'logs, a': '1', 'dtype': 'float32'}
    """
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}, ")
        elif value:
            yield f"{before}{name}", str(value)


def changed(then: Facts, now: Facts) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield the differences between nested facts: name, earlier value, current value.

    >>> list(changed({"a": 1, "b": 2}, {"a": 1, "b": 3}))
    [('b', '2', '3')]
    """
    earlier, today = dict(flat(then)), dict(flat(now))
    for name in {**earlier, **today}:
        old, new = earlier.get(name), today.get(name)
        if old != new:
            yield name, old, new


def of_file(path: Path) -> str:
    """Return the SHA-256 of a file, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()
