"""The flags of a run, and the file of ``--config``: what is wrong with them is said before anything is loaded."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import tempfile
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.files import expanded, parse_yaml, read_text
from lm_eval_bias.harness import internals

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig


def check_words(arguments: argparse.Namespace) -> None:
    """Refuse parsed flags that the harness's configuration would pass over, or fail on; reads the files they name.

    Raises:
        BiasError: The first thing that is wrong.
    """
    if arguments.config is not None:
        _check_config(arguments.config)
    if isinstance(arguments.samples, str):
        arguments.samples = _samples(arguments.samples)
    if arguments.samples is not None and not (isinstance(arguments.samples, dict) and arguments.samples):
        raise BiasError(
            f'--samples {arguments.samples}: must be a task\'s documents by its name, as {{"task": [0, 1]}}'
        )


def _samples(given: str) -> Any:
    """What ``--samples`` gives as JSON, or the content of the file that it names."""
    try:
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(given)
        if "{" in given:
            raise BiasError("not valid JSON (put keys and texts in double quotes)")
        return json.loads(read_text(expanded(given), "utf-8-sig"))
    except BiasError as error:
        raise BiasError(f"--samples {given}: {error}") from error
    except OSError as error:
        raise BiasError(f"--samples {given}: neither JSON nor a file that can be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise BiasError(f"--samples {given}: not valid JSON") from error


def _check_config(path: str) -> None:
    """Refuse a file of ``--config`` with keys that aren't flags, or values of another type than the flag's."""
    try:
        content = parse_yaml(read_text(expanded(path), "utf-8-sig"), f"--config {path}")
    except OSError as error:
        raise BiasError(f"--config {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BiasError(f"--config {path}: byte {error.start} is not UTF-8") from error
    if not isinstance(content, dict):
        raise BiasError(f"--config {path}: must be a YAML file of flags and their values")
    types = internals.configuration_types()
    for key, value in content.items():
        if key not in types:
            raise BiasError(f"--config {path}: there is no flag {key!r}.{did_you_mean(str(key), types)}")
        if value is not None and not _fits(value, types[key]):
            raise BiasError(f"--config {path}: {key}: {value!r} is not a value for --{key}")
    if isinstance(content.get("samples"), str):
        _samples(content["samples"])  # the harness would read it with less care


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from YAML is of a flag's type, or the text that the flag would have."""
    kinds = {typing.get_origin(kind) or kind for kind in typing.get_args(hint) or (hint,)}
    kinds |= {str} if kinds & {dict} else set()
    kinds |= {int} if float in kinds else set()
    if isinstance(value, list) and list in kinds:
        return all(isinstance(entry, (str, int, type(None))) and not isinstance(entry, bool) for entry in value)
    return isinstance(value, tuple(kinds)) and (bool in kinds or not isinstance(value, bool))


def check(config: EvaluatorConfig) -> None:
    """Refuse what would fail only after the model was loaded, lose a finished run, or be passed over.

    Raises:
        BiasError: The first thing that is wrong.
    """
    limit = config.limit
    if limit is not None and not (0 < limit < math.inf and (limit < 1 or limit == int(limit))):
        raise BiasError(f"--limit {limit:g}: must be a whole number of documents above 0, or a share between 0 and 1")
    if config.samples and not isinstance(config.samples, dict):  # of --config
        raise BiasError(f"--samples {config.samples}: neither JSON nor a file that maps a task's name to its documents")
    for name, indices in (config.samples or {}).items():
        if not isinstance(indices, list) or not indices:
            raise BiasError(f"--samples {name}: must be a list of document numbers, as in [0, 1]")
        bad = [index for index in indices if not isinstance(index, int) or isinstance(index, bool) or index < 0]
        if bad:
            raise BiasError(f"--samples {name}: there is no document {bad[0]!r}: they are numbered 0, 1, 2, ...")
    if config.num_fewshot is not None and config.num_fewshot < 0:
        raise BiasError(f"--num_fewshot {config.num_fewshot}: must be 0 or more")
    if not re.fullmatch(r"auto(:\d+(\.\d+)?)?|0*[1-9]\d*", str(config.batch_size)):
        raise BiasError(f"--batch_size {config.batch_size}: must be a whole number above 0, auto or auto:N")
    if config.max_batch_size is not None and config.max_batch_size < 1:
        raise BiasError(f"--max_batch_size {config.max_batch_size}: must be 1 or more")
    for seed in config.seed or ():
        if seed is not None and not 0 <= seed < 2**32:
            raise BiasError(f"--seed {seed}: must be from 0 to {2**32 - 1}")
    if config.check_integrity:
        raise BiasError(
            "--check_integrity runs the harness's own test suite, which doesn't cover the tasks of this package: leave "
            "it out"
        )
    for folder in folders(config):
        if not os.path.isdir(expanded(folder)):
            kind = "is not a folder" if os.path.lexists(expanded(folder)) else "no such folder"
            raise BiasError(f"--include_path {folder}: {kind}: name the folder that holds the tasks' YAML files")
        _check_readable(f"--include_path {folder}", expanded(folder).rglob("*.yaml"))
    tasks = config.tasks if isinstance(config.tasks, list) else (config.tasks or "").split(",")
    for name in (name for name in tasks if os.path.isdir(name)):
        _check_readable(f"--tasks {name}", Path(name).glob("*.yaml"))
    if config.output_path:
        path = expanded(config.output_path)
        _check_writable("--output_path", config.output_path, path.parent if path.suffix == ".json" else path)
    if config.use_cache:
        _check_writable("--use_cache", config.use_cache, expanded(config.use_cache).parent)


def _check_readable(flag: str, paths: Iterable[Path]) -> None:
    """Refuse YAMLs that the harness would read for ever: a pipe, a device."""
    for path in paths:
        if not (path.is_file() or path.is_dir()) and os.path.exists(path):
            raise BiasError(f"{flag}: {path} is a pipe or a device, not a regular file: move it out of the folder")


def folders(config: EvaluatorConfig) -> list[str | Path]:
    """What ``--include_path`` names."""
    paths = config.include_path
    return [paths] if isinstance(paths, (str, Path)) else list(paths or [])


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _check_writable(flag: str, value: str, folder: Path) -> None:
    """Refuse a folder in which nothing can be written, or that can't be made; it isn't made yet."""
    try:
        while not _exists(folder):
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        raise BiasError(f"{flag} {value} cannot be written: {getattr(error, 'strerror', None) or error}") from error
