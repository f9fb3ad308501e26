"""Provenance, on which a run's numbers depend: a block of the result file, and the model of a ``--use_cache`` file."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from lm_eval_bias.core import Data, catalog, content_hashes, redaction, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, why
from lm_eval_bias.data import sources

PACKAGES = (
    "lm-eval-bias", "lm_eval", "torch", "transformers", "tokenizers", "accelerate", "sentence-transformers", "vllm",
    "numpy", "scipy", "scikit-learn", "sentencex",
)  # fmt: skip
# arguments of a model that may name local files
_CHECKPOINTS = ("pretrained", "tokenizer", "peft", "delta", "nsp_weights")
# arguments of a model that say where and how fast it runs, not what it answers
_SPEED = {
    "batch_size", "max_batch_size", "device", "device_map", "parallelize", "max_memory_per_gpu", "max_cpu_memory",
    "offload_folder", "tokens_per_forward", "logits_cache", "low_cpu_mem_usage", "base_url", "num_concurrent",
    "max_retries", "timeout", "verify_certificate", "tensor_parallel_size", "data_parallel_size",
    "gpu_memory_utilization", "swap_space", "enforce_eager", "max_num_seqs", "max_num_batched_tokens", "block_size",
    "enable_prefix_caching",
}  # fmt: skip
_TABLE = "lm_eval_bias"  # beside the answers, with the model that gave them


def _task(name: str, results: Data) -> Data:
    metadata = results["configs"][name].get("metadata") or {}
    facts = {"version": results["versions"].get(name)}
    if "benchmark" in metadata:
        options = registry.get(str(metadata["benchmark"])).options.roles
        facts["options"] = {key: metadata[key] for key in options if key in metadata}
    for key in ("dataset", "classifier"):
        if f"{key}_used" in metadata:
            facts[key] = metadata[f"{key}_used"]
    entry = catalog.entries().get(name)
    if "dataset" not in facts and entry is not None and entry.data:
        facts["data"] = sources.hashes(entry.data)
    return facts


def block(results: Data, settings: Data) -> Data:
    """Collect the provenance of a run from its results and ``settings``, flags that these don't hold."""
    import torch

    config, packages = results["config"], {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    machine = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }
    if torch.cuda.is_initialized():
        machine |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    arguments = config.get("model_args")
    model = {
        "type": config.get("model"),
        "arguments": arguments,
        "dtype": config.get("model_dtype"),
        "revision": config.get("model_sha") or config.get("model_revision"),
    }
    for key in _CHECKPOINTS if isinstance(arguments, Mapping) else ():
        path = expanded(str(arguments.get(key) or "-"))
        file = arguments.get("gguf_file") if key == "pretrained" else None
        if path.is_file():
            path, file = path.parent, path.name
        elif not path.is_dir():
            continue
        model[f"{key} files"] = content_hashes.of_checkpoint(path, file)
    names = ("device", "batch_size", "batch_sizes", "limit", "gen_kwargs", "random_seed", "numpy_seed", "torch_seed",
            "fewshot_seed")  # fmt: skip
    return {
        "packages": packages,
        "machine": machine,
        "model": model,
        "settings": {**{key: config.get(key) for key in names}, **settings},
        "tasks": {name: _task(name, results) for name in results["configs"]},
    }


def identity(model: str, arguments: Data) -> str:
    """Describe a model by what decides its answers, as text; a local one with its files' sizes and times."""
    relevant = {
        key: str(value)
        for key, value in redaction.arguments(arguments).items()
        if key not in _SPEED
    }
    for key in set(_CHECKPOINTS) & set(relevant):
        path = expanded(relevant[key] or "-")
        if path.exists():
            kinds = {*content_hashes.CHECKPOINT_FILES, ".gguf"}
            files = [path]
            if path.is_dir():
                files = sorted(file for file in path.iterdir() if file.suffix in kinds)
            facts = []
            for file in files:
                status = file.stat()
                facts.append((file.name, status.st_size, status.st_mtime_ns))
            digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
            relevant[key] = f"{path.resolve()} ({digest})"
    return json.dumps([model.removesuffix("-packed"), relevant], sort_keys=True)


def claim_cache(path: str, model: str, arguments: Data) -> None:
    """Write into this process's file of ``--use_cache`` whose answers it holds.

    Raises:
        BiasError: It holds another model's answers, or can't be used.
    """
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or "0"
    file, asked = Path(f"{path}_rank{rank}.db"), identity(model, arguments)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.closing(sqlite3.connect(file, timeout=30)) as database,
            database,
        ):
            database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (model TEXT)")
            row = database.execute(f"SELECT model FROM {_TABLE}").fetchone()  # noqa: S608 (a constant)
            if row is None:
                database.execute(f"INSERT INTO {_TABLE} VALUES (?)", (asked,))  # noqa: S608 (a constant)
    except (OSError, sqlite3.Error) as error:
        text = f"{file} can't be used ({why(error)}): name another file, or delete it"
        raise BiasError(f"--use_cache {path}: {text}") from error
    if row is not None and row[0] != asked:
        text = f"holds answers of another model, or of other files of this model ({row[0]}): name another file"
        raise BiasError(f"--use_cache {path}: {file} {text}")
