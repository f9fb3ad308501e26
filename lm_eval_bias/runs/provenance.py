"""What a result file says about all that would change its numbers, as far as it can be had without waiting for it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.data import sources
from lm_eval_bias.files import expanded

PACKAGES = (
    "lm-eval-bias", "lm_eval", "torch", "transformers", "tokenizers", "accelerate", "sentence-transformers", "vllm",
    "numpy", "scipy", "scikit-learn", "sentencex",
)  # fmt: skip
KINDS = {".safetensors", ".bin", ".pt", ".json", ".model", ".txt", ".jinja"}  # of which a checkpoint is made
_MOST = 2 << 30  # bytes: what is hashed in a second or two


def _packages() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _machine() -> dict[str, Any]:
    import torch

    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }
    if torch.cuda.is_initialized():
        facts |= {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return facts


def files(folder: Path, only: str | None = None) -> dict[str, str]:
    """SHA-256 of the files of a local checkpoint; their sizes alone where there is too much to read.

    Args:
        folder: The checkpoint.
        only: The one file in it that is read, if only one is.
    """
    paths = [folder / only] if only else sorted(p for p in folder.iterdir() if p.suffix in KINDS)
    paths = [path for path in paths if path.is_file()]
    if sum(path.stat().st_size for path in paths) > _MOST:
        return {path.name: f"{path.stat().st_size:,} bytes" for path in paths}
    digests = {}
    for path in paths:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        digests[path.name] = digest.hexdigest()
    return digests


def _model(config: Mapping[str, Any]) -> dict[str, Any]:
    model_args = config.get("model_args")
    arguments = model_args if isinstance(model_args, Mapping) else {}
    facts: dict[str, Any] = {
        "type": config.get("model"),
        "arguments": model_args,
        "dtype": config.get("model_dtype"),
        "revision": config.get("model_sha") or config.get("model_revision"),
    }
    for key in ("pretrained", "tokenizer", "peft", "delta"):
        if arguments.get(key) and os.path.isdir(folder := expanded(str(arguments[key]))):
            facts[f"{key} files"] = files(folder, arguments.get("gguf_file") if key == "pretrained" else None)
    if arguments.get("nsp_weights") and os.path.isfile(weights := expanded(str(arguments["nsp_weights"]))):
        facts["nsp_weights files"] = files(weights.parent, weights.name)
    return facts


def _task(name: str, results: Mapping[str, Any]) -> dict[str, Any]:
    metadata = results["configs"][name].get("metadata") or {}
    facts: dict[str, Any] = {"version": results["versions"].get(name)}
    benchmark = metadata.get("benchmark")
    if benchmark is not None:
        options = registry.get(str(benchmark)).options
        facts["options"] = {key: metadata[key] for key in options if key in metadata}
    entry = catalog.entries().get(name)
    if "dataset_used" in metadata:
        facts["dataset"] = metadata["dataset_used"]
    elif entry is not None and entry.data:
        facts["data"] = sources.hashes(entry.data)
    if "classifier_used" in metadata:
        facts["classifier"] = metadata["classifier_used"]
    return facts


def block(results: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance of a run.

    Args:
        results: As the harness returns them.
        settings: Flags of the run that are not among them.
    """
    config = results["config"]
    names = ("device", "batch_size", "batch_sizes", "limit", "gen_kwargs", "random_seed", "numpy_seed", "torch_seed",
            "fewshot_seed")  # fmt: skip
    return {
        "packages": _packages(),
        "machine": _machine(),
        "model": _model(config),
        "settings": {**{key: config.get(key) for key in names}, **settings},
        "tasks": {name: _task(name, results) for name in results["configs"]},
    }
