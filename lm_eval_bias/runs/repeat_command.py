"""The command that repeats a run, as far as the harness's result file tells."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_bias import catalog, redaction, registry
from lm_eval_bias.runs.run_data import TaskRun

SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")


def model_arguments(config: Mapping[str, Any]) -> str:
    """The model's arguments as ``--model_args`` takes them, but for keys and tokens."""
    arguments = redaction.arguments(config.get("model_args") or {})
    return (
        ",".join(f"{key}={value}" for key, value in arguments.items())
        if isinstance(arguments, Mapping)
        else str(arguments)
    )


def device(content: Mapping[str, Any]) -> str | None:
    """The device that a run's model was on, as ``--device`` takes it.

    Plain ``lm_eval`` writes its default, ``cuda:0``, whatever the model was on: it says nothing where CUDA is missing.
    """
    named = content["config"].get("device")
    has_no_gpu = "Is CUDA available: False" in str(content.get("pretty_env_info"))
    return None if named is None or (str(named).startswith("cuda") and has_no_gpu) else str(named)


def _suite(tasks: Mapping[str, TaskRun]) -> str:
    """The suite that a run was made with; empty where it was none."""
    names = {str((task.metadata.get("suite") or {}).get("name") or "") for task in tasks.values()}
    return names.pop() if len(names) == 1 else ""


def _options(tasks: Mapping[str, TaskRun]) -> dict[str, Any]:
    """What ``--metadata`` gave, as far as it is known from what the tasks say by themselves."""
    options = {}
    for task in tasks.values():
        entry = catalog.entries().get(task.task)
        defaults = entry.metadata if entry else {}
        for option in registry.get(task.benchmark).options if task.benchmark in registry.by_name() else ():
            if option in task.metadata and task.metadata[option] != defaults.get(option):
                options[option] = task.metadata[option]
        dataset = task.metadata.get("dataset_used")
        if "dataset" in options and isinstance(dataset, Mapping):
            options["dataset"] = dataset.get("file")  # absolute
    return options


def _folders(content: Mapping[str, Any], tasks: Mapping[str, TaskRun]) -> list[str]:
    """Where the tasks over data sets of one's own lay."""
    fixed = {name: task.metadata.get("fixed") for name, task in tasks.items()}
    names = [name for name, options in fixed.items() if isinstance(options, Mapping) and "dataset" in options]
    sources = [content["configs"][name]["metadata"].get("config_source") for name in names]
    return sorted({str(Path(source).parent) for source in sources if isinstance(source, str)})


def command(content: Mapping[str, Any], tasks: Mapping[str, TaskRun]) -> str:
    """What repeats the run, as far as its result file tells."""
    config = content["config"]
    suite = _suite(tasks)
    selection = ["--suite", suite] if suite else ["--tasks", ",".join(tasks)]
    parts = ["lm-eval-bias", "run", *selection, "--model", str(config.get("model"))]
    if arguments := model_arguments(config):
        parts += ["--model_args", arguments]
    for folder in _folders(content, tasks):
        parts += ["--include_path", folder]
    if not suite and (options := _options(tasks)):
        parts += ["--metadata", json.dumps(options, ensure_ascii=False)]
    given = {"batch_size": config.get("batch_size"), "device": device(content), "limit": config.get("limit")}
    parts += [word for flag, value in given.items() if value is not None for word in (f"--{flag}", str(value))]
    if config.get("gen_kwargs"):
        gen_kwargs = config["gen_kwargs"]
        parts += ["--gen_kwargs", gen_kwargs if isinstance(gen_kwargs, str) else json.dumps(gen_kwargs)]
    if content.get("chat_template"):
        parts.append("--apply_chat_template")
    if content.get("system_instruction"):
        parts += ["--system_instruction", str(content["system_instruction"])]
    seeds = [config.get(name) for name in SEEDS]
    if any(seed is not None for seed in seeds):
        parts += ["--seed", ",".join(map(str, seeds))]
    return shlex.join([*parts, "--log_samples", "--output_path", "OUT"])
