"""Provenance, on which a run's numbers depend: a block of the result file, and the model of a ``--use_cache`` file."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from lm_eval_bias.core import (
    Data,
    Facts,
    catalog,
    comparability,
    content_hashes,
    redaction,
)
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import (
    LARGEST_YAML,
    expanded,
    read_text,
    why,
    write_whole,
)
from lm_eval_bias.data import sources
from lm_eval_bias.runs import answer_files, sample_logs

PACKAGES = (
    "lm-eval-bias", "lm_eval", "torch", "transformers", "tokenizers", "accelerate", "sentence-transformers", "vllm",
    "numpy", "scipy", "scikit-learn", "sentencex",
)  # fmt: skip
# arguments of a model that may name local files
_CHECKPOINTS = ("pretrained", "tokenizer", "peft", "delta")
_TABLE = "lm_eval_bias"  # beside the answers, with the model that gave them
_ANSWERS = "unnamed"  # where the harness keeps them


def _data(name: str, results: Data) -> Data:
    """Return the data that a task read: the user's (``dataset``) or the pinned files (``data``)."""
    metadata = results["configs"][name].get("metadata") or {}
    if "dataset_used" in metadata:
        return {"dataset": metadata["dataset_used"]}
    entry = catalog.entries().get(name)
    return {"data": sources.hashes(entry.data)} if entry and entry.data else {}


def block(results: Data) -> Data:
    """Collect the provenance that the harness doesn't record."""
    import torch

    packages = {}
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
    arguments = results["config"].get("model_args")
    return {
        "packages": packages,
        "machine": machine,
        "model": weights(arguments) if isinstance(arguments, Mapping) else {},
        "tasks": {name: _data(name, results) for name in results["configs"]},
    }


def weights(arguments: Facts) -> Data:
    """Return the proofs of a model's weights by argument; empty for a server's.

    Of local files the SHA-256 of each (``pretrained files``), of a model of the Hub the commit that its name stood for
    when it was loaded (``pretrained commit``), of an adapter both.
    """
    proofs: Data = {}
    for key in _CHECKPOINTS:
        name = str(arguments.get(key) or "")
        path = expanded(name or "-")
        file = None
        if path.is_file():
            path, file = path.parent, path.name
        elif key == "pretrained":
            file = arguments.get("gguf_file")
        if path.is_dir():
            proofs[f"{key} files"] = content_hashes.of_checkpoint(path, file)
        elif name:
            commit = _commit(name, str(arguments.get("revision") or "main"))
            if commit:
                proofs[f"{key} commit"] = commit
    return proofs


def _commit(name: str, revision: str) -> str:
    """Return the commit of a Hub model from its cache folder; empty without one."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for file in ("config.json", "adapter_config.json", "tokenizer_config.json"):
        with contextlib.suppress(HFValidationError):
            found = try_to_load_from_cache(name, file, revision=revision)
            if isinstance(found, str):
                return Path(found).parent.name
    return ""


def identity(model: str, arguments: Facts, template: object = None) -> str:
    """Describe as text what determines a model's answers, with weights by content.

    Args:
        model: Its type.
        arguments: Its arguments.
        template: Whether its chat template is used, or which one; none if it is unknown.
    """
    proofs = weights(arguments)
    relevant = {
        key: str(value)
        for key, value in redaction.arguments(arguments).items()
        if comparability.fact_of_argument(key).cache and f"{key} files" not in proofs
    }
    described = [model.removesuffix("-packed"), relevant, proofs]
    if template and comparability.facts()["prompt.template"].cache:
        described.append({"chat template": template})
    return json.dumps(described, sort_keys=True)


def claim_cache(
    path: str, model: str, arguments: Facts, template: object = None
) -> str:
    """Record the model in this process's ``--use_cache`` file; return the day it was begun.

    Raises:
        BiasError: It holds another model's answers, or of one that isn't known, or can't be used.
    """
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or "0"
    file = Path(f"{path}_rank{rank}.db")
    asked = identity(model, arguments, template)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.closing(sqlite3.connect(file, timeout=30)) as database,
            database,
        ):
            tables = database.execute("SELECT name FROM sqlite_master").fetchall()
            database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (model, begun)")
            row = database.execute(f"SELECT model, begun FROM {_TABLE}").fetchone()  # noqa: S608 (a constant)
            if row is None:
                holds_answers = (_ANSWERS,) in tables
                row = ("unknown" if holds_answers else asked, f"{date.today()}")
                if not holds_answers:
                    database.execute(f"INSERT INTO {_TABLE} VALUES (?, ?)", row)  # noqa: S608 (a constant)
    except (OSError, sqlite3.Error) as error:
        raise BiasError(
            f"--use_cache {path}: "
            f"{file} can't be used ({why(error)}): name another file, or delete it"
        ) from error
    if row[0] != asked:
        raise BiasError(
            f"--use_cache {path}: {file} "
            f"holds answers of another model, or of other files of this model ({row[0]}): name another file"
        )
    return row[1]


def sums_beside(results: Path) -> Path:
    """Return the path of a run's checksums, in the format of ``sha256sum``."""
    date = results.stem.removeprefix("results_")
    return results.with_name(f"SHA256SUMS_{date}.txt")


def _files_of(results: Path) -> list[Path]:
    """List a run's files: results, answers and logs."""
    answers = [answer_files.beside(results)]
    return [results, *filter(Path.is_file, answers), *sample_logs.beside(results)]


def _recorded_sums(sums: Path) -> dict[str, str]:
    """Read a file of checksums by file name; empty without one."""
    if not sums.is_file():
        return {}
    lines = read_text(sums, largest=LARGEST_YAML).splitlines()
    parted = (line.partition("  ") for line in lines)
    return {name: digest for digest, _, name in parted}


def write_sums(results: Path, files: Iterable[Path] = ()) -> Path:
    """Write the checksums of a run's files, or update those of some files; return the path."""
    sums = sums_beside(results)
    files = list(files)
    recorded = _recorded_sums(sums) if files else {}
    for file in files or _files_of(results):
        recorded[file.name] = content_hashes.of_file(file)
    lines = (f"{digest}  {name}\n" for name, digest in sorted(recorded.items()))
    write_whole(sums, "".join(lines).encode())
    return sums


def sum_faults(results: Path, may_lack: bool = False) -> Iterator[str]:
    """Yield the files of a run that don't match their checksums; logs may be missing if the answers exist.

    Args:
        results: The results file.
        may_lack: Whether there may be no file of sums.
    """
    sums = sums_beside(results)
    recorded = _recorded_sums(sums)
    if not recorded:
        if not may_lack:
            yield (
                f"no {sums.name} beside it, by which a change is found; lm-eval-bias run writes it, plain lm_eval and "
                'older releases don\'t: to allow that, add to the policy: allow: ["provenance"]'
            )
        return
    now = {file.name: file for file in _files_of(results)}
    has_answers = answer_files.beside(results).name in now
    for name in sorted({*recorded, *now}):
        if name not in recorded:
            yield f"{name}: not in {sums.name}"
        elif name not in now:
            if not (has_answers and name.startswith("samples_")):
                yield f"{name}: gone"
        elif content_hashes.of_file(now[name]) != recorded[name]:
            yield f"{name}: not as the run wrote it"
