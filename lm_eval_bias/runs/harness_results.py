"""Readers of the harness's ``results_<date>.json``, which make a run of it."""

from __future__ import annotations

import datetime
import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from lm_eval_bias.core import (
    Data,
    Facts,
    catalog,
    comparability,
    content_hashes,
    redaction,
    registry,
)
from lm_eval_bias.core.answers import DAMAGE
from lm_eval_bias.core.benchmark import Benchmark
from lm_eval_bias.core.errors import BiasError, call_plugin
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.core.run_record import (
    CacheUsed,
    Code,
    Machine,
    ModelUsed,
    PromptUsed,
    RunRecord,
    SamplingUsed,
)
from lm_eval_bias.core.safe_stream import visible_line
from lm_eval_bias.custom_metrics.score import (
    Bounds,
    Estimate,
    ImpossibleEstimate,
    Score,
    ScoreSpec,
    check_estimate,
)
from lm_eval_bias.harness import internals
from lm_eval_bias.runs import answer_files, diagnostics
from lm_eval_bias.runs.results_check import check, checked

# the form of what proves weights
_PROOFS = {"commit": re.compile("[0-9a-f]{40}"), "files": re.compile("[0-9a-f]{64}")}
SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")


def device(content: Facts) -> str | None:
    """Return a run's device, as ``--device`` takes it; ``None`` if unknown.

    Plain ``lm_eval`` writes its default, ``cuda:0``, whatever the model was on: that means nothing without CUDA.
    """
    device = content["config"].get("device")
    has_no_gpu = "Is CUDA available: False" in str(content.get("pretty_env_info"))
    if device is None or (device.startswith("cuda") and has_no_gpu):
        return None
    return device


def matches(path: Path) -> bool:
    """Return whether a file is named like the harness's results."""
    return path.name.startswith("results_") and path.suffix == ".json"


def value_of(name: str, value: float, stderr: float, entry: Facts) -> Value:
    """Read a score from its numbers and its entry in the task's ``metric_list``.

    An error of 0, which other people's benchmarks may write, is no certainty: an interval without width is dropped.

    """
    ends = _ends(entry.get("interval"))
    fixed = _ends(entry.get("fixed_interval"))
    dof = entry.get("dof")
    if stderr == 0 and ends and ends[0] == ends[1]:
        ends = None
    estimate = Estimate(
        value,
        stderr,
        entry.get("n"),
        entry.get("note") or "",
        math.inf if dof is None else dof,
        ends,
        fixed,
        entry.get("no_claim_reason") or entry.get("unsaid") or "",
        entry.get("clusters"),
        tuple(entry.get("statistics") or ()),
    )
    return Value.of(ScoreSpec.described(name, entry), estimate)


def _ends(ends: Sequence[float | None] | None) -> Bounds | None:
    """Read an interval; an unbounded end is null."""
    if not ends:
        return None
    low, high = ends
    return -math.inf if low is None else low, math.inf if high is None else high


def _number(value: float | str | None) -> float:
    if isinstance(value, bool):
        raise ValueError(f"a score that is {value}")
    return math.nan if value in ("N/A", None) else float(value)


def _scores(results: Facts, config: Facts, definition: Benchmark) -> dict[str, Value]:
    """Read the scores: main ones from the harness's results, as ``name,filter``, the others from their entries.

    Files of earlier versions have all of them in the results.

    Raises:
        ValueError: A number that no such score can have.
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
        _check(scores[name], definition)
    return scores


def _check(value: Value, definition: Benchmark) -> None:
    high = value.high
    if value.value > high:  # answers of some model families may push it above
        known: Sequence[Score] = call_plugin((), definition, definition.scores)
        largest = {score.name: score.largest for score in known}
        high = largest.get(value.name) or high
    try:
        check_estimate(value, value.low, high)
    except ImpossibleEstimate as error:
        raise ValueError(f"{value.name}: {error}") from error


def _if_file(path: Path) -> Path | None:
    return path if path.is_file() else None


def _task(task: str, content: Facts, path: Path, date: str) -> TaskRun | None:
    """Read one task of a results file; ``None`` for groups and for tasks that aren't ours."""
    config = content["configs"].get(task) or {}
    metadata = dict(config.get("metadata") or {})
    entry = catalog.entries().get(task)
    if metadata.get("benchmark") is None:
        return None
    counts = content["n-samples"][task]
    number = counts["effective"]
    original = counts.get("original", 0)
    samples = _if_file(path.with_name(f"samples_{task}_{date}.jsonl"))
    answers = _if_file(answer_files.beside(path))
    definition = registry.of_run(metadata["benchmark"])
    language = metadata.get("language") or ""
    scores = _scores(content["results"][task], config, definition)
    # the harness mixes the model's arguments into the metadata; those that the task took are its options
    model_args = content["config"].get("model_args")
    options = definition.options.roles
    for key, value in model_args.items() if isinstance(model_args, Mapping) else ():
        if key not in options and metadata.get(key) == value:
            metadata.pop(key, None)
    for key in ("config_source", "model", "model_args"):
        metadata.pop(key, None)
    # without the model's arguments, which the harness mixes into them
    check(metadata, "configs", task, "metadata")
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
        samples=samples,
        answers=answers,
        usual_repeats=catalog.usual_repeats(task),
    )


def _name(content: Facts) -> str:
    """Return the model's name: from ``run --name``, else its checkpoint, else type and arguments.

    The harness's own ``model_name`` is a random word where the arguments name no checkpoint.
    """
    config = content["config"]
    facts = (content.get("provenance") or {}).get("model") or {}
    if facts.get("name"):
        return str(facts["name"])
    model_args = config.get("model_args")
    arguments = model_args if isinstance(model_args, Mapping) else {}

    def named(*keys: str) -> list[str]:
        return [str(arguments[key]) for key in keys if arguments.get(key)]

    checkpoints = named("pretrained", "model", "path", "engine")
    if not checkpoints:
        kind = config.get("model") or "model"
        given = model_args
        if isinstance(model_args, Mapping):
            given = ",".join(f"{key}={value}" for key, value in model_args.items())
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


def proofs(recorded: Facts, arguments: Facts) -> dict[str, dict[str, str]]:
    """Return the proofs of weights by kind: SHA-256 by file (``pretrained files``) or a commit (``pretrained commit``).

    Args:
        recorded: What ``run`` found, as :func:`lm_eval_bias.runs.provenance.weights`.
        arguments: The model's: nothing counts that they don't name.
    """
    found = {}
    for kind, proof in recorded.items():
        argument, _, form = kind.partition(" ")
        if form in _PROOFS and argument in arguments:
            parts = {form: proof} if isinstance(proof, str) else proof
            if parts and all(map(_PROOFS[form].fullmatch, parts.values())):
                found[kind] = parts
    return found


def _model(config: Facts, recorded: Facts, arguments: Mapping[str, Facts]) -> ModelUsed:
    """Read the facts of the model: ``told`` is what ``lm-eval-bias run`` says of it."""
    files = proofs(recorded, arguments["model.arguments"])
    weights = {
        kind: parts.get("commit") or content_hashes.of_files(parts)
        for kind, parts in files.items()
    }
    return ModelUsed(
        config.get("model"),
        arguments["model.arguments"],
        arguments["model.placement"],
        weights,
        files,
        config.get("model_sha") or config.get("model_revision"),
        str(config.get("model_dtype") or "").removeprefix("torch.") or None,
        config.get("model_num_parameters"),
        tuple(recorded.get("served") or ()),
    )


def _code(content: Facts, packages: Facts, ours: str | None) -> Code:
    environment = content.get("pretty_env_info") or ""
    versions = dict(
        line.split(": ", 1) for line in environment.splitlines() if ": " in line
    )
    torch, _, build = versions.get("PyTorch version", "").partition("+")
    return Code(
        ours,
        content.get("lm_eval_version"),
        content.get("transformers_version"),
        torch or None,
        build or None,
        packages.get("tokenizers"),
        packages.get("vllm"),
        packages.get("numpy"),
        versions.get("Python version", "").partition(" ")[0] or None,
    )


def _files(tasks: Iterable[Facts]) -> dict[str, str]:
    """Collect the data files that tasks read, as ``lm-eval-bias run`` says."""
    files: dict[str, str] = {}
    for task in tasks:
        files |= task.get("data", {})
        if task.get("dataset"):
            files[task["dataset"]["file"]] = task["dataset"]["sha256"]
    return files


def _arguments_by_fact(given: object) -> Mapping[str, Data]:
    """Group a model's arguments by the fact that they belong to."""
    by_fact: defaultdict[str, Data] = defaultdict(dict)
    for key, value in redaction.parsed(given or {}).items():
        by_fact[comparability.fact_of_argument(key).field][key] = value
    return by_fact


def record(content: Facts, ours: str | None = None, file: str = "") -> RunRecord:
    """Make the provenance record of a results file, from ``lm_eval`` or any release of this package.

    Args:
        content: The file's.
        ours: This package's release, as the tasks say it.
        file: Its path.
    """
    config = content["config"]
    block = content.get("provenance") or {}
    recorded = block.get("model") or {}
    machine = block.get("machine") or {}
    cache = block.get("cache")
    arguments = _arguments_by_fact(config.get("model_args"))
    date = content.get("date")
    made = ""
    if date:
        moment = datetime.datetime.fromtimestamp(date, datetime.timezone.utc)
        made = moment.strftime("%Y-%m-%d %H:%M:%S")
    prompt = PromptUsed(
        content.get("chat_template_sha"),
        arguments["prompt.template_arguments"],
        content.get("system_instruction") or None,
        tuple(recorded.get("tokenization_boundary") or recorded.get("border") or ()),
    )
    kinds = ("system", "cpu", "gpu")
    return RunRecord(
        _model(config, recorded, arguments),
        prompt,
        SamplingUsed(
            redaction.parsed(config.get("gen_kwargs") or {}), recorded.get("sent") or ()
        ),
        tuple(config.get(name) for name in SEEDS),
        code=_code(content, block.get("packages") or {}, ours),
        machine=Machine(
            device(content),
            config.get("batch_size"),
            tuple(machine[kind] for kind in kinds if machine.get(kind)),
            machine.get("threads"),
        ),
        cache=CacheUsed(**cache) if cache else None,
        limit=config.get("limit"),
        files=_files((block.get("tasks") or {}).values()),
        date=made[:10] or None,
        made=made or None,
        command=shlex.join(block.get("command") or ()),
        file=file,
    )


def read(path: Path, content: Facts) -> Run:
    """Read a results file as a run.

    Raises:
        BiasError: It holds no task of ours, or is no results file.
    """
    date = path.stem.removeprefix("results_")
    tasks = {}
    try:
        content = checked(content)
        for name in content["results"]:
            task = _task(name, content, path, date)
            if task is not None:
                tasks[name] = task
        if not tasks:
            raise BiasError(
                f"holds no task of this package (it has {', '.join(content['results']) or 'none at all'})"
            )
        ours = [task.metadata.get("lm_eval_bias") for task in tasks.values()]
        run_record = record(content, next(filter(None, ours), None), str(path))
        for name, task in tasks.items():
            tasks[name] = replace(task, record=run_record)
        return diagnostics.applied(Run(visible_line(_name(content)), path, tasks))
    except BiasError:
        raise
    except DAMAGE as error:
        problem = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise BiasError(f"not the results of a harness run ({problem})") from error


def in_memory(results: Facts) -> Run | None:
    """Read the results of a harness run as a run; ``None`` where they hold no scores of ours."""
    try:
        content = internals.as_saved(results)
        return read(Path("results.json"), content)
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
