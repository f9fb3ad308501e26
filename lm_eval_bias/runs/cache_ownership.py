"""The files of ``--use_cache``: whose answers they hold. The harness names answers by their requests alone."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_eval_bias import redaction
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import expanded
from lm_eval_bias.harness import internals
from lm_eval_bias.runs.provenance import KINDS

# arguments of a model that say where and how fast it runs, not what it answers
_SPEED = {
    "batch_size", "max_batch_size", "device", "device_map", "parallelize", "max_memory_per_gpu", "max_cpu_memory",
    "offload_folder", "tokens_per_forward", "logits_cache", "low_cpu_mem_usage", "base_url", "num_concurrent",
    "max_retries", "timeout", "verify_certificate", "tensor_parallel_size", "data_parallel_size",
    "gpu_memory_utilization", "swap_space", "enforce_eager", "max_num_seqs", "max_num_batched_tokens", "block_size",
    "enable_prefix_caching",
}  # fmt: skip

_TABLE = "lm_eval_bias"
_CHECKPOINTS = {"pretrained", "tokenizer", "peft", "delta", "nsp_weights"}  # arguments that may name local files
_BLOCK, _BLOCKS = 1 << 16, 1 << 12  # bytes, and of how many such blocks more of a large file isn't read: 256 MiB


def _contents(path: Path) -> str:
    """A hash of what a checkpoint's files hold, of large ones by blocks all over them: training changes all weights."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.iterdir() if p.suffix in {*KINDS, ".gguf"})
    for file in files:
        with contextlib.suppress(OSError), file.open("rb") as content:  # that is said when the model is loaded
            size = os.fstat(content.fileno()).st_size
            digest.update(f"{file.name} {size}\n".encode())
            for start in range(0, size, max(_BLOCK, size // _BLOCKS)):
                content.seek(start)
                digest.update(content.read(_BLOCK))
    return digest.hexdigest()[:16]


def identity(model: str, arguments: Mapping[str, Any]) -> str:
    """A model as text, the same wherever it gives the same answers: a local one by what its files hold.

    >>> identity("hf-packed", {"pretrained": "gpt2", "batch_size": 4}) == identity("hf", {"pretrained": "gpt2"})
    True
    """
    relevant = {key: str(value) for key, value in redaction.arguments(arguments).items() if key not in _SPEED}
    for key in _CHECKPOINTS & set(relevant):
        if relevant[key] and os.path.exists(path := expanded(relevant[key])):
            relevant[key] = f"{path.resolve()} ({_contents(path)})"
    return json.dumps([model.removesuffix("-packed"), relevant], sort_keys=True)


def check(path: str, model: str, arguments: Mapping[str, Any]) -> None:
    """Refuse, before anything is loaded, what :func:`claim` would refuse; no file is made.

    A transaction that a kill broke off is rolled back, which a mere reader may not do.
    """
    file = internals.cache_file(path)
    if file.exists():
        with _opened(path, file, "rw") as database:
            owner = _owner(database) if _TABLE in _tables(database) else None
        if owner is not None:
            _refuse_foreign(path, file, owner, identity(model, arguments))


def claim(path: str, model: str, arguments: Mapping[str, Any]) -> None:
    """Write into this process's file whose answers it is going to hold, or see that they are this model's.

    A file that the harness itself has filled says nothing, and is taken as it is.

    Args:
        path: As given to ``--use_cache``.
        model: Type of the model.
        arguments: Of the model.

    Raises:
        BiasError: They are another model's, or the file cannot be used.
    """
    file = internals.cache_file(path)
    own = identity(model, arguments)
    with _opened(path, file, "rwc") as database:
        tables = _tables(database)
        if internals.ANSWERS in tables and _TABLE not in tables:
            return
        database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (model TEXT)")
        owner = _owner(database)
        if owner is None:
            database.execute(f"INSERT INTO {_TABLE} VALUES (?)", (own,))  # noqa: S608 (a constant)
    if owner is not None:
        _refuse_foreign(path, file, owner, own)


@contextlib.contextmanager
def _opened(path: str, file: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """The database of a file, in a mode of SQLite's."""
    try:
        if mode == "rwc":
            file.parent.mkdir(parents=True, exist_ok=True)
        address = f"{file.absolute().as_uri()}?mode={mode}"
        with contextlib.closing(sqlite3.connect(address, timeout=30, uri=True)) as database, database:
            yield database
    except (OSError, sqlite3.Error) as error:
        raise BiasError(
            f"--use_cache {path}: {file} can't be used ({one_line(error)}): name another file, or delete it"
        ) from error


def _tables(database: sqlite3.Connection) -> set[str]:
    return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


def _owner(database: sqlite3.Connection) -> str | None:
    """Whose answers a file holds, as it says itself."""
    row = database.execute(f"SELECT model FROM {_TABLE}").fetchone()  # noqa: S608 (a constant)
    return None if row is None else str(row[0])


def _refuse_foreign(path: str, file: Path, owner: str, own: str) -> None:
    if owner != own:
        raise BiasError(
            f"--use_cache {path}: {file} holds answers of another model, or of other files of this model ({owner}): "
            "name another file"
        )
