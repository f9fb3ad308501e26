"""Readers of the harness's ``results_<date>.json``, which make a run of it."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from lm_eval_bias.core import Data, Facts, catalog, content_hashes, redaction, registry
from lm_eval_bias.core.answers import DAMAGE, NotOurs, SavedSample
from lm_eval_bias.core.benchmark import Benchmark
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Run, TaskRun, Value, values_of
from lm_eval_bias.custom_metrics.score import Bounds, Estimate, Meaning, undefined
from lm_eval_bias.runs import remarks, sample_logs

Tasks = Mapping[str, TaskRun]
SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")


def device(content: Facts) -> str | None:
    """Return the device that a run's model was on, as ``--device`` takes it; ``None`` where that isn't known.

    Plain ``lm_eval`` writes its default, ``cuda:0``, whatever the model was on: that means nothing without CUDA.
    """
    device = content["config"].get("device")
    has_no_gpu = "Is CUDA available: False" in str(content.get("pretty_env_info"))
    if device is None or (device.startswith("cuda") and has_no_gpu):
        return None
    return device


def _options(tasks: Tasks) -> Data:
    """Collect the options of ``--metadata``, as far as the tasks' own metadata show them."""
    options = {}
    for task in tasks.values():
        entry = catalog.entries().get(task.task)
        defaults = entry.metadata if entry else {}
        for option in task.definition.options.roles:
            value = task.metadata.get(option, defaults.get(option))
            if value != defaults.get(option):
                options[option] = value
        dataset = task.metadata.get("dataset_used")
        if "dataset" in options and dataset:
            options["dataset"] = dataset.get("file")  # absolute
    return options


def command(content: Facts, tasks: Tasks, facts: Facts) -> str:
    """Write the command that repeats the run, as far as its result file and the facts from it tell."""
    labels = [task.metadata.get("suite") or {} for task in tasks.values()]
    suites = {(label.get("name"), *label.get("languages", ())) for label in labels}
    suite, *languages = suites.pop() if len(suites) == 1 else (None,)
    folders = set()
    for name, task in tasks.items():
        source = content["configs"][name]["metadata"].get("config_source")
        if source and "dataset" in (task.metadata.get("fixed") or {}):
            folders.add(str(Path(source).parent))
    options = {} if suite else _options(tasks)
    flags = [
        ("suite", suite),
        ("tasks", None if suite else ",".join(tasks)),
        ("language", ",".join(languages) or None),
        ("model", str(facts["model"])),
        ("model_args", facts["model_args"] or None),
        *(("include_path", folder) for folder in sorted(folders)),
        ("metadata", json.dumps(options, ensure_ascii=False) if options else None),
        ("name", _given_name(content)),
    ]
    names = ("batch_size", "device", "limit", "gen_kwargs")
    flags += [(name, facts[name]) for name in names]
    parts = ["lm-eval-bias", "run"]
    for flag, value in flags:
        if value is not None:
            parts += [f"--{flag}", str(value)]
    templates = [task.inputs.get("chat_template") for task in tasks.values()]
    if content.get("chat_template") or any(templates):
        parts.append("--apply_chat_template")
    if facts["system_instruction"]:
        parts += ["--system_instruction", facts["system_instruction"]]
    if any(seed is not None for seed in facts["seeds"]):
        parts += ["--seed", ",".join(map(str, facts["seeds"]))]
    return shlex.join([*parts, "--log_samples", "--output_path", "OUT"])


def matches(path: Path) -> bool:
    """Tell whether a file is called like the harness's results."""
    return path.name.startswith("results_") and path.suffix == ".json"


def value_of(name: str, value: float, stderr: float, entry: Facts) -> Value:
    """Read a score from its numbers and its entry in the task's ``metric_list``.

    An error of 0, which other people's benchmarks may write, is no certainty: an interval without width is dropped.
    """
    ends = _ends(entry.get("interval"))
    fixed = _ends(entry.get("fixed_interval"))
    dof = entry.get("dof")
    if stderr == 0 and ends and ends[0] >= ends[1]:
        ends = None
    estimate = Estimate(
        value,
        stderr,
        entry.get("n"),
        entry.get("note") or "",
        math.inf if dof is None else dof,
        ends,
        fixed,
        entry.get("unsaid") or "",
        entry.get("clusters"),
        entry.get("stays") or 0.0,
    )
    return Value.of(Meaning.described(name, entry), estimate)


def _ends(ends: Sequence[float | None] | None) -> Bounds | None:
    """Read an interval, of which an end without bound is no number."""
    if not ends:
        return None
    low, high = ends
    return -math.inf if low is None else low, math.inf if high is None else high


def _number(value: Any) -> float:
    return math.nan if value in ("N/A", None) else float(value)


def _scores(results: Facts, config: Facts) -> dict[str, Value]:
    """Read the scores: main ones from the harness's results, as ``name,filter``, the others from their entries.

    Files of earlier versions have all of them in the results.
    """
    labels = dict(key.split(",", 1) for key in results if "," in key)
    scores = {}
    for entry in config.get("metric_list") or []:
        name = entry["metric"]
        if name in labels:
            value = _number(results[f"{name},{labels[name]}"])
            stderr = _number(results.get(f"{name}_stderr,{labels[name]}"))
        elif "value" in entry:
            value, stderr = _number(entry["value"]), _number(entry["stderr"])
        else:
            continue
        scores[name] = value_of(name, value, stderr, entry)
    return scores


def _from_samples(
    benchmark: Benchmark, logged: Sequence[SavedSample]
) -> dict[str, Value]:
    """Compute our scores for one of the harness's tasks from its logged samples."""
    if not logged:
        absent = undefined("no sample log: run it again with --log_samples")
        return {score.name: Value.of(score, absent) for score in benchmark.scores()}
    records = [benchmark.record(sample.doc, sample.answers) for sample in logged]
    return values_of(benchmark.scores(records), records)


def _task(task: str, content: Facts, path: Path, date: str) -> TaskRun | None:
    """Read one task of a results file; ``None`` for groups and for tasks that aren't ours."""
    config = content["configs"].get(task) or {}
    metadata = dict(config.get("metadata") or {})
    entry = catalog.entries().get(task)
    # of the harness's own tasks
    described = entry if config and entry and entry.path is None else None
    if described is None and metadata.get("benchmark") is None:
        return None
    counts = content["n-samples"][task]
    number = counts["effective"]
    original = counts.get("original", 0)
    samples = path.with_name(f"samples_{task}_{date}.jsonl")
    if described:
        definition = described.definition
        language = described.language
        logged = []
        if samples.is_file():
            # its results don't say what was asked: the documents in its log do
            try:
                logged = list(sample_logs.first_filter(samples))
            except NotOurs as error:
                print(f"lm-eval-bias: skipped: {error}", file=sys.stderr)
                return None
            hashes = [content_hashes.of_document(sample.doc) for sample in logged]
            name = "scored" if number < original else "documents"
            metadata["inputs"] = {name: content_hashes.of_all(hashes)}
            if config.get("num_fewshot"):
                metadata["inputs"]["num_fewshot"] = config["num_fewshot"]
        scores = _from_samples(definition, logged)
    else:
        definition = registry.of_run(metadata["benchmark"])
        language = metadata.get("language") or ""
        scores = _scores(content["results"][task], config)
    # the harness mixes the model's arguments into the metadata; those that the task took are its options
    model_args = content["config"].get("model_args")
    options = definition.options.roles
    for key, value in model_args.items() if isinstance(model_args, Mapping) else ():
        if key not in options and metadata.get(key) == value:
            metadata.pop(key, None)
    for key in ("config_source", "model", "model_args"):
        metadata.pop(key, None)
    # a run may have a part of the task's items; a data set of the user's has its own number
    items = original
    if entry and "dataset_used" not in metadata:
        items = entry.items or 0
    return TaskRun(
        task=task,
        definition=definition,
        language=language,
        version=str(content.get("versions", {}).get(task, "")),
        documents=number,
        items=items,
        metadata=metadata,
        scores=scores,
        samples=samples if samples.is_file() else None,
        usual_repeats=catalog.usual_repeats(task),
    )


def _given_name(content: Facts) -> str | None:
    """Return the name that ``run --name`` gave the model."""
    block = content.get("provenance") or {"model": {}}
    name = block["model"].get("name")
    return name


def _name(content: Facts) -> str:
    """Name the model: as ``run --name`` did, else by its checkpoint, else by type and arguments.

    The harness's own ``model_name`` is a random word where the arguments name no checkpoint.
    """
    config = content["config"]
    name = _given_name(content)
    if name:
        return name
    model_args = config.get("model_args")
    arguments = model_args if isinstance(model_args, Mapping) else {}

    def named(*keys: str) -> list[str]:
        return [str(arguments[key]) for key in keys if arguments.get(key)]

    checkpoints = named("pretrained", "model", "path", "engine")
    if not checkpoints:
        kind = config.get("model") or "model"
        given = redaction.as_flag(model_args)
        return f"{kind} ({given})" if given else kind
    parts = [checkpoints[0], *named("peft", "delta")]
    if _is_path(parts[0]):
        parts[:1] = named("gguf_file") or parts[:1]
    return " + ".join(map(_name_of_checkpoint, parts))


def _is_path(checkpoint: str) -> bool:
    return checkpoint.startswith(("/", ".", "~"))


def _name_of_checkpoint(checkpoint: str) -> str:
    """Name a checkpoint: a hub's name as it is, also of its folder in the hub's cache; a path by its last part.

    >>> _name_of_checkpoint("~/models--openai--gpt2/snapshots/1f"), _name_of_checkpoint("./out/tuned")
    ('openai/gpt2', 'tuned')
    """
    path = PurePath(checkpoint)
    for part in path.parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    if path.suffix == ".gguf":
        return path.stem
    return path.name if _is_path(checkpoint) else checkpoint


def _machine_facts(block: Facts) -> Data:
    """Collect what ``lm-eval-bias run`` records beyond the harness: machine, files of the model, data."""
    if not block:
        return {}
    machine = block["machine"]
    packages = block["packages"]
    proofs = []
    for kind, proof in block["model"].items():
        if kind.endswith((" files", " commit")):
            told = proof if isinstance(proof, str) else _digest(proof)
            proofs.append(f"{kind} {told}")
    cache = block.get("cache") or {}
    cached = None
    if cache.get("answers"):
        cached = f"{cache['answers']:,} of {cache['begun']}"
    said = ", ".join(block["model"].get("served") or [])
    names = set()
    data_files = {}
    for task in block["tasks"].values():
        for path, digest in task.get("data", {}).items():
            names.add("/".join(path.split("/")[:2]))
            data_files[path] = digest
        if task.get("dataset"):
            names.add(task["dataset"]["file"])
            data_files[task["dataset"]["file"]] = task["dataset"]["sha256"]
    kinds = ("system", "cpu", "gpu")
    libraries = ("tokenizers", "vllm", "numpy")
    return {
        "machine": ", ".join(machine[kind] for kind in kinds if machine.get(kind)),
        "threads": machine["threads"],
        **{name: packages[name] for name in libraries if name in packages},
        "weights": "; ".join(proofs) or None,
        "served": f"{said} (not proven)" if said else None,
        "sent": "; ".join(map(json.dumps, block["model"].get("sent") or [])) or None,
        "cached": cached,
        "border": "; ".join(block["model"].get("border") or []) or None,
        "data": "; ".join(sorted(names)) or None,
        "data_files": _digest(data_files),
    }


def _digest(hashes: Facts) -> str | None:
    """Combine many files' hashes into one, for people to compare; ``None`` without files."""
    if not hashes:
        return None
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:16]


def _provenance(content: Facts, tasks: Tasks) -> Data:
    config = content["config"]
    date = content.get("date")
    if date:
        moment = datetime.datetime.fromtimestamp(date, datetime.timezone.utc)
        date = moment.date().isoformat()
    environment = content.get("pretty_env_info") or ""
    versions = dict(
        line.split(": ", 1) for line in environment.splitlines() if ": " in line
    )
    ours = [task.metadata.get("lm_eval_bias") for task in tasks.values()]
    gen_kwargs = config.get("gen_kwargs") or None
    if isinstance(gen_kwargs, Mapping):
        gen_kwargs = json.dumps(gen_kwargs)
    return {
        "date": date or None,
        "lm-eval-bias": next(filter(None, ours), None),
        "lm_eval": content.get("lm_eval_version"),
        "transformers": content.get("transformers_version"),
        "torch": versions.get("PyTorch version"),
        "python": (versions.get("Python version") or "").partition(" ")[0] or None,
        "model": config.get("model"),
        "model_args": redaction.as_flag(config.get("model_args")),
        "model_revision": config.get("model_sha") or config.get("model_revision"),
        "parameters": config.get("model_num_parameters"),
        "dtype": str(config.get("model_dtype") or "").removeprefix("torch.") or None,
        "device": device(content),
        "batch_size": config.get("batch_size"),
        "chat_template": content.get("chat_template_sha"),
        "system_instruction": content.get("system_instruction"),
        "limit": config.get("limit"),
        "gen_kwargs": gen_kwargs,
        "seeds": [config.get(name) for name in SEEDS],
        **_machine_facts(content.get("provenance") or {}),
    }


def read(path: Path, content: Facts) -> Run:
    """Read a results file as a run.

    Raises:
        BiasError: It holds no task of ours, or is no results file.
    """
    date = path.stem.removeprefix("results_")
    tasks = {}
    try:
        for name in content["results"]:
            task = _task(name, content, path, date)
            if task is not None:
                tasks[name] = task
        if not tasks:
            raise BiasError(
                f"holds no task of this package (it has {', '.join(content['results']) or 'none at all'})"
            )
        facts = _provenance(content, tasks)
        repeated = command(content, tasks, facts)
        return remarks.applied(Run(_name(content), path, facts, repeated, tasks))
    except BiasError:
        raise
    except DAMAGE as error:
        problem = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise BiasError(f"not the results of a harness run ({problem})") from error


def in_memory(results: Facts) -> Run | None:
    """Read the results of a harness run as a run; ``None`` where they hold no scores of ours.

    The harness's own tasks, whose scores here come from the sample log, are left out.
    """
    ours = {}
    for name, result in results["results"].items():
        entry = catalog.entries().get(name)
        if entry is None or entry.path:
            ours[name] = result
    try:
        return read(Path("results.json"), {**results, "results": ours})
    except BiasError:
        return None


def presentable(runs: Sequence[Run]) -> list[Run]:
    """Return the same runs without the scores that their benchmarks withhold."""
    shown = []
    for run in runs:
        tasks = dict(run.tasks)
        for name, task in run.tasks.items():
            if task.withheld:
                tasks[name] = replace(task, scores={})
        shown.append(replace(run, tasks=tasks))
    return shown
