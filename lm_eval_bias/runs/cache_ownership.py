"""The files of ``--use_cache``: whose answers they hold. The harness names answers by their requests alone."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Mapping
from typing import Any

from lm_eval_bias import redaction
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import expanded
from lm_eval_bias.harness import internals

# arguments of a model that say where and how fast it runs, not what it answers
_SPEED = {
    "batch_size", "max_batch_size", "device", "device_map", "parallelize", "max_memory_per_gpu", "max_cpu_memory",
    "offload_folder", "tokens_per_forward", "logits_cache", "low_cpu_mem_usage", "base_url", "num_concurrent",
    "max_retries", "timeout", "verify_certificate", "tensor_parallel_size", "data_parallel_size",
    "gpu_memory_utilization", "swap_space", "block_size", "enable_prefix_caching", "enforce_eager", "max_num_seqs", "max_num_batched_tokens",
}  # fmt: skip


def identity(model: str, arguments: Mapping[str, Any]) -> str:
    """A model as text, the same wherever it gives the same answers.

    >>> identity("hf-packed", {"pretrained": "gpt2", "batch_size": 4}) == identity("hf", {"pretrained": "gpt2"})
    True
    """
    relevant = {key: str(value) for key, value in redaction.arguments(arguments).items() if key not in _SPEED}
    if relevant.get("pretrained") and os.path.isdir(folder := expanded(relevant["pretrained"])):
        relevant["pretrained"] = str(folder.resolve())
    return json.dumps([model.removesuffix("-packed"), relevant], sort_keys=True)


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
    owner = identity(model, arguments)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(file, timeout=30)) as database, database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            if internals.ANSWERS in tables and "lm_eval_bias" not in tables:
                return
            database.execute("CREATE TABLE IF NOT EXISTS lm_eval_bias (model TEXT)")
            row = database.execute("SELECT model FROM lm_eval_bias").fetchone()
            if row is None:
                database.execute("INSERT INTO lm_eval_bias VALUES (?)", (owner,))
    except (OSError, sqlite3.Error) as error:
        raise BiasError(
            f"--use_cache {path}: {file} cannot be used ({one_line(error)}): name another, or delete it"
        ) from error
    if row is not None and row[0] != owner:
        raise BiasError(f"--use_cache {path}: {file} holds answers of another model ({row[0]}): name another file")
