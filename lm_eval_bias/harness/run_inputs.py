"""Hashes of what a task reads and asks, for its results file; benchmarks need no code for them."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path

from lm_eval_bias.core import (
    Data,
    Facts,
    catalog,
    comparability,
    content_hashes,
    registry,
)
from lm_eval_bias.core.benchmark import DATA, Benchmark, folder_of, options_for
from lm_eval_bias.core.catalog import Loader
from lm_eval_bias.core.files import expanded, tasks_path
from lm_eval_bias.data import sources
from lm_eval_bias.harness import internals, linking


class _FunctionLoader(Loader):
    """A safe YAML loader that imports ``!function``."""


_FunctionLoader.add_constructor(
    "!function",
    lambda loader, node: pkgutil.resolve_name(loader.construct_scalar(node)),
)


def of_task(
    benchmark: Benchmark,
    yaml: Facts,
    metadata: Facts,
    read: Mapping[str, str],
) -> Data:
    """Collect the facts about a built task's inputs, for ``inputs`` in its metadata.

    These are ``files``: the SHA-256 of each file of the user's that was read, by the name that an option gives it, and
    of the pinned files; ``package_content``: one SHA-256 of what the YAMLs and data files in the benchmark's folder
    hold; ``package_code``: one of the Python files that its documents and scores come from; ``changed``: in what the
    task isn't the packaged one of its name, only where it isn't.

    The task adds, when its documents are asked, ``documents``: one SHA-256 of all documents of the data set and what is
    asked of each, in whatever order they come, without examples, chat template and system instruction, or ``scored``,
    the same of the documents that were run, where they are a part; ``different_prompts``, how many of these ask
    something else; ``chat_template``, where prompts were put into one; and ``passed_over``, flags for chat models that
    a task of plain sentences didn't use.

    Args:
        benchmark: Its benchmark.
        yaml: What its YAML says.
        metadata: With the options of the run.
        read: Hashes of the files that were read for its documents, by path.
    """
    names = {}
    for key in benchmark.options.roles:
        value = metadata.get(key)
        if isinstance(value, str) and value:
            names[os.path.abspath(expanded(value))] = value
    files = {names.get(path, path): digest for path, digest in read.items()}
    if not any(metadata.get(option) for option in options_for(benchmark, DATA)):
        files |= sources.hashes(metadata.get("data"))
    inputs: Data = {
        "files": files,
        "package_content": content_hashes.of_data_files(folder_of(benchmark)),
        "package_code": code_hash(benchmark),
    }
    changed = _changed(benchmark, yaml, metadata)
    if changed:
        inputs["changed"] = changed
    return inputs


def asked_here(task: str, options: Facts, places: Iterable[int]) -> str:
    """Return one SHA-256 of some documents of a task and their prompts, as this code makes them.

    Args:
        task: Its name.
        options: The options of the run, of ``--metadata``.
        places: Which documents.

    Raises:
        BiasError: The task can't be built, as without its data.
    """
    manager = internals.task_manager(linking.missing_folders(), options)
    return str(manager.load([task])["tasks"][task].asked(places))


def code_hash(benchmark: Benchmark) -> str:
    """Return one SHA-256 of the Python files behind a benchmark's documents and scores."""
    folders = [folder_of(benchmark)]
    if registry.is_own(benchmark):
        metrics = Path(str(resources.files("lm_eval_bias.custom_metrics")))
        folders += [tasks_path(), tasks_path() / "shared", metrics]
    return content_hashes.of_code(*folders)


def _changed(benchmark: Benchmark, yaml: Facts, metadata: Facts) -> list[str]:
    """List the keys in which a task differs from the packaged one of the same name."""
    entry = catalog.packaged().get(yaml.get("task", ""))
    if entry is None:
        return []
    packaged = catalog.read_yaml(entry.path, _FunctionLoader)
    keys = [
        key for key in comparability.task_keys() if packaged.get(key) != yaml.get(key)
    ]
    for key, value in packaged["metadata"].items():
        if key not in benchmark.options.roles and metadata.get(key) != value:
            keys.append(key)
    return keys
