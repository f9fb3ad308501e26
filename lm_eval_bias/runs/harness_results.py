"""The harness's ``results_<date>.json`` as a run."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_bias.core import catalog, content_hashes, redaction, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.custom_metrics.score import Estimate, Meaning, undefined
from lm_eval_bias.runs import sample_logs

SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")


def model_arguments(config: Mapping[str, Any]) -> str:
    """The model's arguments as ``--model_args`` takes them, but for keys and tokens."""
    given = redaction.arguments(config.get("model_args") or {})
    return (
        ",".join(f"{key}={value}" for key, value in given.items())
        if isinstance(given, Mapping)
        else str(given)
    )


def device(content: Mapping[str, Any]) -> str | None:
    """The device that a run's model was on, as ``--device`` takes it.

    Plain ``lm_eval`` writes its default, ``cuda:0``, whatever the model was on: it says nothing where CUDA is missing.
    """
    named = content["config"].get("device")
    has_no_gpu = "Is CUDA available: False" in str(content.get("pretty_env_info"))
    return (
        None
        if named is None or (str(named).startswith("cuda") and has_no_gpu)
        else str(named)
    )


def _options(tasks: Mapping[str, TaskRun]) -> dict[str, Any]:
    """What ``--metadata`` gave, as far as it is known from what the tasks say by themselves."""
    options = {}
    for task in tasks.values():
        entry = catalog.entries().get(task.task)
        defaults = entry.metadata if entry else {}
        for option in (
            registry.get(task.benchmark).options.roles
            if task.benchmark in registry.by_name()
            else ()
        ):
            if option in task.metadata and task.metadata[option] != defaults.get(
                option
            ):
                options[option] = task.metadata[option]
        dataset = task.metadata.get("dataset_used")
        if "dataset" in options and dataset:
            options["dataset"] = dataset.get("file")  # absolute
    return options


def command(content: Mapping[str, Any], tasks: Mapping[str, TaskRun]) -> str:
    """What repeats the run, as far as its result file tells."""
    config = content["config"]
    suites = {(task.metadata.get("suite") or {}).get("name") for task in tasks.values()}
    suite = suites.pop() if len(suites) == 1 else None
    selection = ["--suite", suite] if suite else ["--tasks", ",".join(tasks)]
    parts = ["lm-eval-bias", "run", *selection, "--model", str(config.get("model"))]
    if arguments := model_arguments(config):
        parts += ["--model_args", arguments]
    own = [
        name
        for name, task in tasks.items()
        if "dataset" in (task.metadata.get("fixed") or {})
    ]
    places = [content["configs"][name]["metadata"].get("config_source") for name in own]
    for folder in sorted({str(Path(place).parent) for place in places if place}):
        parts += ["--include_path", folder]
    if not suite and (options := _options(tasks)):
        parts += ["--metadata", json.dumps(options, ensure_ascii=False)]
    gen_kwargs = config.get("gen_kwargs") or None
    given = {
        "batch_size": config.get("batch_size"),
        "device": device(content),
        "limit": config.get("limit"),
        "gen_kwargs": json.dumps(gen_kwargs)
        if isinstance(gen_kwargs, Mapping)
        else gen_kwargs,
    }
    parts += [
        word
        for flag, value in given.items()
        if value is not None
        for word in (f"--{flag}", str(value))
    ]
    if content.get("chat_template") or any(
        task.inputs.get("chat_template") for task in tasks.values()
    ):
        parts.append("--apply_chat_template")
    if content.get("system_instruction"):
        parts += ["--system_instruction", str(content["system_instruction"])]
    seeds = [config.get(name) for name in SEEDS]
    if any(seed is not None for seed in seeds):
        parts += ["--seed", ",".join(map(str, seeds))]
    return shlex.join([*parts, "--log_samples", "--output_path", "OUT"])


def matches(path: Path) -> bool:
    """Whether a file is called like the harness's results."""
    return path.name.startswith("results_") and path.suffix == ".json"


def _estimate(value: float, stderr: float, entry: Mapping[str, Any]) -> Estimate:
    """Read a score's estimate from its numbers and its entry in the task's ``metric_list``.

    An error of 0, which benchmarks of one's own may write, is no certainty: the score has none then, and no interval
    but one that was computed otherwise.
    """
    ends, fixed, dof = (
        entry.get("interval"),
        entry.get("fixed_interval"),
        entry.get("dof"),
    )
    if stderr == 0 and ends and ends[0] >= ends[1]:
        ends = None
    return Estimate(
        value,
        stderr,
        0,
        str(entry.get("note") or ""),
        math.inf if dof is None else float(dof),
        (float(ends[0]), float(ends[1])) if ends else None,
        (float(fixed[0]), float(fixed[1])) if fixed else None,
    )


def value_of(name: str, value: float, stderr: float, entry: Mapping[str, Any]) -> Value:
    """Read a score from its numbers and its entry in the task's ``metric_list``."""
    return Value.of(Meaning.described(name, entry), _estimate(value, stderr, entry))


def numbers(results: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Values and standard errors by score, of a task's entry in the harness's results: ``name,filter`` names each.

    >>> numbers({"alias": "x", "ss,none": 51.5, "ss_stderr,none": "N/A"})
    {'ss': (51.5, nan)}
    """
    keys = [(key, *key.partition(",")[::2]) for key in results if "," in key]

    def number(raw: Any) -> float:
        return math.nan if raw in ("N/A", None) else float(raw)

    return {
        name: (number(results[key]), number(results.get(f"{name}_stderr,{label}")))
        for key, name, label in keys
        if not name.endswith("_stderr")
    }


def _scores(results: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Value]:
    by_name = numbers(results)
    metrics = [(one.get("metric"), one) for one in config.get("metric_list") or []]
    return {
        name: value_of(name, *by_name[name], meaning)
        for name, meaning in metrics
        if name in by_name
    }


def _from_samples(benchmark: str, samples: Path) -> dict[str, Value]:
    """The scores of a task of the harness's own that a benchmark describes: the harness computes other ones."""
    described = registry.get(benchmark)
    if not samples.is_file():
        absent = undefined("no sample log: run it again with --log_samples")
        estimates = [(score, absent) for score in described.scores()]
    else:
        records = [
            described.record(one.doc, one.answers)
            for one in sample_logs.first_filter(samples)
        ]
        estimates = [
            (score, score.compute(records)) for score in described.scores(records)
        ]
    return {score.name: Value.of(score, estimate) for score, estimate in estimates}


def _task(
    task: str, content: Mapping[str, Any], path: Path, date: str
) -> TaskRun | None:
    """One task of a results file; ``None`` for groups and for tasks that aren't ours."""
    config = content["configs"].get(task)
    metadata = (config or {}).get("metadata") or {}
    entry = catalog.entries().get(task)
    described = (
        entry if entry is not None and entry.path is None else None
    )  # a task of the harness's own
    if config is None or (metadata.get("benchmark") is None and described is None):
        return None
    # the harness mixes the model's arguments into it
    model_args = content["config"].get("model_args")
    known = registry.by_name().get(str(metadata.get("benchmark")))
    benchmark = described.benchmark if described else str(metadata["benchmark"])
    own = (
        set(known.options.roles) if known else set()
    )  # what a task took from there counts as its option
    mixed = model_args.items() if isinstance(model_args, Mapping) else ()
    foreign = {"config_source", "model", "model_args"}
    foreign |= {
        key for key, value in mixed if key not in own and metadata.get(key) == value
    }
    metadata = {key: value for key, value in metadata.items() if key not in foreign}
    number = int(content["n-samples"][task]["effective"])
    original = int(content["n-samples"][task].get("original", 0))
    samples = path.with_name(f"samples_{task}_{date}.jsonl")
    if described and samples.is_file():
        # what it was asked, which its results don't say: the documents in its log
        documents = content_hashes.of_all(
            content_hashes.of_document(s.doc) for s in sample_logs.first_filter(samples)
        )
        metadata["inputs"] = {"scored" if number < original else "documents": documents}
        metadata["inputs"] |= (
            {"num_fewshot": config["num_fewshot"]} if config.get("num_fewshot") else {}
        )
    return TaskRun(
        task=task,
        benchmark=benchmark,
        language=str(
            described.language if described else metadata.get("language") or ""
        ),
        version=str(content.get("versions", {}).get(task, "")),
        documents=number,
        # a run may have a part of the task's; a data set of one's own has its own number
        items=entry.items or 0
        if entry and "dataset_used" not in metadata
        else original,
        metadata=metadata,
        scores=(
            _from_samples(described.benchmark, samples)
            if described
            else _scores(content["results"][task], config)
        ),
        samples=samples if samples.is_file() else None,
        usual_repeats=catalog.usual_repeats(task),
    )


def _name(content: Mapping[str, Any]) -> str:
    """The model: a hub's name as it is, of a path its last part, without either the model type with its arguments.

    The harness's own ``model_name`` is a random word where the arguments name no checkpoint.
    """
    config = content["config"]
    model_args = config.get("model_args")
    arguments = model_args if isinstance(model_args, Mapping) else {}
    checkpoints = [
        str(arguments[key])
        for key in ("pretrained", "model", "path", "engine")
        if arguments.get(key)
    ]
    if not checkpoints:
        kind = str(config.get("model") or "model")
        return (
            f"{kind} ({model_arguments(config)})" if model_arguments(config) else kind
        )
    adapters = [str(arguments[key]) for key in ("peft", "delta") if arguments.get(key)]
    short = [
        n.rstrip("/").rpartition("/")[2] if n.startswith(("/", ".", "~")) else n
        for n in [checkpoints[0], *adapters]
    ]
    return " + ".join(short)


def _plain(value: Any) -> Any:
    return (
        value
        if isinstance(value, (str, int, float, bool)) or value is None
        else json.dumps(value)
    )


def _machine_facts(block: Mapping[str, Any]) -> dict[str, Any]:
    """What a run of ``lm-eval-bias run`` says beyond the harness: machine, files of the model, data."""
    if not block:
        return {}
    machine = block["machine"]
    hashes = {
        kind: files for kind, files in block["model"].items() if kind.endswith(" files")
    }
    data = {
        path: digest
        for task in block["tasks"].values()
        for path, digest in task.get("data", {}).items()
    }
    datasets = {
        d["file"]: d["sha256"]
        for task in block["tasks"].values()
        if (d := task.get("dataset"))
    }
    return {
        "machine": ", ".join(
            str(machine[key]) for key in ("system", "cpu", "gpu") if machine.get(key)
        ),
        "threads": machine["threads"],
        **{
            name: version
            for name, version in block["packages"].items()
            if name in ("tokenizers", "numpy", "vllm")
        },
        "model_files": _digest(hashes) if hashes else None,
        "border": "; ".join(block["model"].get("border") or []) or None,
        "data": "; ".join(
            sorted({"/".join(path.split("/")[:2]) for path in data} | set(datasets))
        )
        or None,
        "data_files": _digest({**data, **datasets}) if data or datasets else None,
    }


def _digest(hashes: Mapping[str, Any]) -> str:
    """Many files' hashes as one, for people to compare."""
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:16]


def _provenance(
    content: Mapping[str, Any], tasks: Mapping[str, TaskRun]
) -> dict[str, Any]:
    config = content["config"]
    date = content.get("date")
    environment = str(content.get("pretty_env_info") or "")
    versions = dict(
        line.split(": ", 1) for line in environment.splitlines() if ": " in line
    )
    version = next(
        (
            t.metadata.get("lm_eval_bias")
            for t in tasks.values()
            if t.metadata.get("lm_eval_bias")
        ),
        None,
    )
    facts = {
        "date": datetime.datetime.fromtimestamp(date, datetime.timezone.utc)
        .date()
        .isoformat()
        if date
        else None,
        "lm-eval-bias": version,
        "lm_eval": content.get("lm_eval_version"),
        "transformers": content.get("transformers_version"),
        "torch": versions.get("PyTorch version"),
        "python": (versions.get("Python version") or "").partition(" ")[0] or None,
        "model": config.get("model"),
        "model_args": model_arguments(config),
        "model_revision": config.get("model_sha") or config.get("model_revision"),
        "parameters": config.get("model_num_parameters"),
        "dtype": str(config.get("model_dtype") or "").removeprefix("torch.") or None,
        "device": device(content),
        "batch_size": config.get("batch_size"),
        "chat_template": content.get("chat_template_sha"),
        "system_instruction": content.get("system_instruction"),
        "limit": config.get("limit"),
        "gen_kwargs": config.get("gen_kwargs") or None,
        "seeds": [config.get(name) for name in SEEDS],
        **_machine_facts(content.get("provenance") or {}),
    }
    return {
        key: value if key == "seeds" else _plain(value) for key, value in facts.items()
    }


def read(path: Path, content: Mapping[str, Any]) -> Run:
    """A results file as a run.

    Raises:
        BiasError: It holds no task of ours, or is no results file.
    """
    date = path.stem.removeprefix("results_")
    try:
        tasks = {
            name: task
            for name in content["results"]
            if (task := _task(name, content, path, date)) is not None
        }
        if not tasks:
            raise BiasError(
                f"holds no task of this package (it has {', '.join(content['results']) or 'none at all'})"
            )
        return Run(
            _name(content),
            path,
            _provenance(content, tasks),
            command(content, tasks),
            tasks,
        )
    except (
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        IndexError,
        OverflowError,
        OSError,
    ) as error:
        if isinstance(error, BiasError):
            raise
        problem = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise BiasError(f"not the results of a harness run ({problem})") from error


def in_memory(results: Mapping[str, Any]) -> Run | None:
    """Return what a harness run gave as a run; ``None`` where it holds no scores of ours.

    The harness's own tasks, whose scores here come from the sample log, are left out.
    """
    names = [
        name
        for name in results["results"]
        if (entry := catalog.entries().get(name)) is None or entry.path
    ]
    ours = {**results, "results": {name: results["results"][name] for name in names}}
    try:
        return read(Path("results.json"), ours)
    except BiasError:
        return None


def presentable(runs: Sequence[Run]) -> list[Run]:
    """The same runs without the scores that their benchmarks withhold."""

    def shown(task: TaskRun) -> TaskRun:
        return (
            replace(task, scores={})
            if registry.withheld(task.benchmark, task)
            else task
        )

    return [
        replace(run, tasks={name: shown(task) for name, task in run.tasks.items()})
        for run in runs
    ]
