"""Provenance, on which a run's numbers depend: a block of the result file, and the model of a ``--use_cache`` file."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from lm_eval_bias.core import (
    Data,
    Facts,
    catalog,
    content_hashes,
    redaction,
    what_counts,
)
from lm_eval_bias.core.benchmark import DATA, options_for
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import (
    expanded,
    read_json,
    schema_validator,
    why,
    write_whole,
)
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.data import sources
from lm_eval_bias.runs import answer_files, sample_logs

PACKAGES = (
    "lm-eval-bias", "lm_eval", "torch", "transformers", "tokenizers", "accelerate", "sentence-transformers", "vllm",
    "numpy", "scipy", "scikit-learn", "sentencex",
)  # fmt: skip
# arguments of a model that may name local files
_CHECKPOINTS = ("pretrained", "tokenizer", "peft", "delta", "nsp_weights")
_TABLE = "lm_eval_bias"  # beside the answers, with the model that gave them
_ANSWERS = "unnamed"  # where the harness keeps them
ANSWERS, SAMPLES = (
    "answers",
    "samples",
)  # how hashes of files beside the results are named
HASHES = "hashes"  # of all that a run wrote


def _data(name: str, results: Data) -> Data:
    """Return which data a task read: the user's (``dataset``), or the pinned files (``data``)."""
    metadata = results["configs"][name].get("metadata") or {}
    if "dataset_used" in metadata:
        return {"dataset": metadata["dataset_used"]}
    entry = catalog.entries().get(name)
    return {"data": sources.hashes(entry.data)} if entry and entry.data else {}


def block(results: Data) -> Data:
    """Collect what a run's numbers depend on and the harness doesn't write into its results."""
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
    """Return what proves which weights a model has, by argument; nothing for a server's.

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
            proofs[f"{key} files"] = _hashes(path, file)
        elif name:
            commit = _commit(name, str(arguments.get("revision") or "main"))
            if commit:
                proofs[f"{key} commit"] = commit
    return proofs


def _hashes(folder: Path, only: str | None) -> dict[str, str]:
    """Hash a checkpoint's files, which takes minutes where they are large: once, and kept in the user's own cache."""
    place = sources.own_folder() / "weights.json"
    known = _kept_hashes(place)
    before = dict(known)
    digests = content_hashes.of_checkpoint(folder, only, known)
    if before != known:
        with contextlib.suppress(OSError):
            write_whole(place, json.dumps(known).encode())
            place.chmod(0o600)
    return digests


def _kept_hashes(place: Path) -> Data:
    """Read the hashes that this user has kept; none of what anybody else could have written, or of a damaged file."""
    with contextlib.suppress(OSError, BiasError):
        facts = place.lstat()
        is_own = not hasattr(os, "getuid") or facts.st_uid == os.getuid()
        if is_own and stat.S_ISREG(facts.st_mode) and not facts.st_mode & 0o022:
            content = read_json(place)
            if schema_validator(__package__, "kept_hashes.json").is_valid(content):
                return dict(content)
    return {}


def _commit(name: str, revision: str) -> str:
    """Return the commit of a model of the Hub, as its folder in the cache tells it; empty where it isn't there."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for file in ("config.json", "adapter_config.json", "tokenizer_config.json"):
        with contextlib.suppress(HFValidationError):
            found = try_to_load_from_cache(name, file, revision=revision)
            if isinstance(found, str):
                return Path(found).parent.name
    return ""


def identity(model: str, arguments: Facts, template: object = None) -> str:
    """Describe a model by what decides its answers, as text: its weights by content, wherever they lie.

    Args:
        model: Its type.
        arguments: Its arguments.
        template: Whether its chat template is used, or which one; none where that isn't known.
    """
    proofs = weights(arguments)
    relevant = {
        key: str(value)
        for key, value in redaction.arguments(arguments).items()
        if what_counts.fact_of_argument(key).cache and f"{key} files" not in proofs
    }
    described = [model.removesuffix("-packed"), relevant, proofs]
    if template and what_counts.facts()["prompt.template"].cache:
        described.append({"chat template": template})
    return json.dumps(described, sort_keys=True)


def claim_cache(
    path: str, model: str, arguments: Facts, template: object = None
) -> str:
    """Write into this process's file of ``--use_cache`` whose answers it holds; return when it was begun.

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


def hashes(content: Facts, file: Path) -> dict[str, str]:
    """SHA-256 of each part of a results file, such as ``config, model_args``, of each log's lines and the answers."""
    found = {}
    answers = answer_files.beside(file)
    if answers.is_file():
        found[ANSWERS] = content_hashes.of_file(answers)
    for log in sample_logs.beside(file):
        found[f"{SAMPLES}, {sample_logs.task_of(log)}"] = sample_logs.content_hash(log)
    for name, value in content.items():
        parts = value if isinstance(value, Mapping) else {"": value}
        for key, part in parts.items():
            if key != HASHES:  # in which these stand
                digest = content_hashes.of_document({name: part})
                found[f"{name}, {key}".removesuffix(", ")] = digest
    return found


def contradictions(
    content: Facts, file: Path, tasks: Iterable[TaskRun], may_lack: bool = False
) -> Iterator[str]:
    """Yield in what a results file isn't what the packaged tasks and the pins say, or it or a log what the run wrote.

    Args:
        content: The file's.
        file: Its path.
        tasks: Its tasks of this package.
        may_lack: Whether it may lack what tells that.
    """
    block = content.get("provenance") or {}
    written = block.get(HASHES) or {}
    if not written and not may_lack:
        yield (
            "it lacks the provenance by which a change is found; lm-eval-bias run writes it, plain lm_eval and "
            'older releases don\'t: to allow that, add to the policy: allow: ["provenance"]'
        )
    for task in tasks:
        name = task.task
        for fault in _beside_the_package(task, content["configs"][name], block):
            yield f"{name}: {fault}"
    now = hashes(content, file) if written else {}
    for name, then, hash_now in content_hashes.changed(written, now):
        # answers can be made of logs later, and passed on without them: scores follow from either
        is_made_later = name == ANSWERS and not then
        is_left_out = name.startswith(SAMPLES) and not hash_now and ANSWERS in now
        if not is_made_later and not is_left_out:
            yield f"{name}: not as the run wrote it"


def _beside_the_package(task: TaskRun, config: Facts, block: Facts) -> Iterator[str]:
    """Yield in what a task isn't the packaged one, or its data aren't the pinned ones, though it says neither."""
    entry = catalog.packaged().get(task.task)
    if not entry or not entry.path or "dataset_used" in task.metadata:
        return
    packaged = {"target_delimiter": " ", **catalog.read_yaml(entry.path)}
    for key in what_counts.task_keys():
        used = config.get(key) or ""
        is_said = key in task.inputs.get("changed", ()) or not isinstance(used, str)
        if not is_said and used != (packaged.get(key) or ""):
            yield f"{key} is {used[:80]!r}, of the packaged task {packaged.get(key)!r}"
    said = {"inputs": task.inputs.get("files")}
    if block:
        said["provenance"] = block["tasks"].get(task.task, {}).get("data", {})
    has_own_data = any(map(task.metadata.get, options_for(task.definition, DATA)))
    pins = {} if has_own_data else sources.hashes(packaged["metadata"].get("data"))
    for place, files in said.items():
        for name, pin in pins.items():
            if files is not None and files.get(name) != pin:
                yield f"{place} has SHA-256 {files.get(name)} of {name}, pinned is {pin}"
