"""A run: tasks and model are checked and built, the harness evaluates, results are saved whole and told."""

from __future__ import annotations

import fnmatch
import json
import logging
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import catalog, redaction
from lm_eval_bias.core.errors import BiasError, did_you_mean, one_line
from lm_eval_bias.core.files import UNFINISHED, why
from lm_eval_bias.evaluation import preflight, suites
from lm_eval_bias.harness import (
    border,
    distributed,
    internals,
    linking,
    running,
    servers,
)
from lm_eval_bias.runs import provenance, sample_logs
from lm_eval_bias.scoring import questions
from lm_eval_bias.scoring.free_answers import opening_of_thoughts

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")


def load_tasks(config: EvaluatorConfig, entries: Mapping[str, catalog.Entry]) -> Any:
    """A task manager for the named tasks, which are put into the configuration (ours built, the harness's by name)."""
    names = preflight.split_tasks(config.tasks)
    included = [config.include_path] if config.include_path else []
    folders = [
        *linking.missing_folders(),
        *included,
    ]  # of two tasks of one name the later is taken
    if not preflight.only_ours(
        names, entries
    ):  # else the harness's thousands of YAMLs aren't read
        if problem := linking.problem():
            logger.warning("link: %s", problem)
        if problem or not linking.stubs():
            config.include_path = folders
        try:
            return config.process_tasks(config.metadata)
        except ValueError as error:
            name = str(error).removeprefix("Tasks not found: ")
            text = f"no task named {name}, neither here nor in the harness.{did_you_mean(name, entries)}"
            raise BiasError(text) from error
    manager = internals.task_manager(folders, config.metadata)
    matched: dict[str, None] = {}
    for name in names:
        matches = fnmatch.filter(manager.all_tasks, name)
        if not matches:
            raise BiasError(
                f"no task matches {name!r}.{did_you_mean(name, manager.all_tasks)}"
            )
        matched.update(dict.fromkeys(matches))
    members = {
        member
        for name in matched
        if name in entries
        for member in entries[name].members
    }
    config.tasks = []
    for name in (name for name in matched if name not in members):
        try:  # built here, so that bad metadata or a bad YAML shows before a model is loaded
            loaded = manager.load([name])
        except Exception as error:
            entry = entries.get(name)
            if entry is None or isinstance(error, BiasError | MemoryError):
                raise
            logger.debug("where the task failed", exc_info=error)
            raise BiasError(
                f"{entry.path}: the task {name} can't be built: {one_line(error)}"
            ) from error
        config.tasks.append(loaded["groups"].get(name) or loaded["tasks"][name])
    preflight.check_samples(config, config.tasks)
    return manager


def evaluate(
    config: EvaluatorConfig,
    entries: Mapping[str, catalog.Entry],
    suite: suites.Suite | None,
    ready: Callable[[], None],
    tell: Callable[[dict[str, Any], dict[str, Any] | None, bool], None],
) -> None:
    """Run the evaluation, and save what the flags ask for.

    ``ready`` is called when the model is loaded, ``tell`` with the results, the samples if they are logged, and
    whether both could be saved. A BiasError says what kept the run from its end, or its files from being written or
    pushed.
    """
    named = preflight.named_entries(config, entries)
    manager = load_tasks(config, entries)
    preflight.check_requests(config, named)
    if suite is not None:
        tasks = preflight.tasks_of(config.tasks)
        for name, task in tasks.items():
            task.config.metadata["suite"] = suite.label(name, task.eval_docs)
        chosen = {
            name: suite.choose(name, task.eval_docs) for name, task in tasks.items()
        }
        config.samples = {
            name: indices for name, indices in chosen.items() if indices is not None
        } or None
        if distributed.first():
            print(suites.describe(suite), flush=True)
    if distributed.first():
        if not config.output_path:
            print(
                "Nothing will be saved: --output_path FOLDER saves the scores, and --log_samples the answers, too"
            )
        print(
            f"Loading {config.model} ({redaction.arguments(config.model_args) or 'no arguments'})",
            flush=True,
        )
    tracker, dashboards = running.loggers(config)
    if config.use_cache:
        provenance.claim_cache(config.use_cache, config.model, config.model_args or {})
    with questions.expecting(preflight.request_kinds(named)):
        model = running.build_model(config)
        border_facts = _looked_at(model, config, manager)
        ready()
        results = running.evaluate(config, model, manager, tracker)
    if results is None:
        return
    samples = (
        running.samples_in_order(results.pop("samples", None))
        if config.log_samples
        else None
    )
    flags = (
        "num_fewshot",
        "apply_chat_template",
        "fewshot_as_multiturn",
        "system_instruction",
        "samples",
    )
    results["provenance"] = provenance.block(
        results, {name: getattr(config, name, None) for name in flags}
    )
    results["provenance"]["model"]["border"] = [
        *border_facts,
        *servers.served_as(model),
    ]
    # the harness mixes the model's arguments into each task's metadata
    results.update(
        {
            key: redaction.arguments(results[key])
            for key in ("config", "configs", "provenance")
        }
    )
    if config.show_config:
        print(json.dumps(results, indent=2, default=str, ensure_ascii=False))
    running.send(dashboards, results, samples)
    saved = False
    try:
        failures = save(tracker, results, samples)
        saved = bool(config.output_path)
    finally:  # the scores in any case: they may be all that is left of the run
        tell(results, samples, saved)
    if failures:
        text = redaction.in_text(one_line(failures[0]), config.hf_hub_log_args)
        text = f"not pushed to the Hub: {text} (everything is saved in {config.output_path})"
        raise BiasError(f"--hf_hub_log_args: {text}")


def _looked_at(model: Any, config: EvaluatorConfig, manager: Any) -> list[str]:
    """Look at a model's tokenizer and template; returns what was found, in sentences.

    Raises:
        BiasError: What is sent would be another text, or options would be scored within a thought.
    """
    prompt = ""
    if config.apply_chat_template and hasattr(model, "apply_chat_template"):
        prompt = str(model.apply_chat_template([{"role": "user", "content": "Hello."}]))
    mark = opening_of_thoughts(prompt)
    if mark and _output_types(config, manager) != {"generate_until"}:
        raise BiasError(
            f"--apply_chat_template: this model's template opens a thought ({mark}), in which options would be scored: "
            "add --model_args enable_thinking=False, or run the tasks whose names end in _gen"
        )
    return border.look_at(model, config.model_args or {}, prompt)


def _output_types(config: EvaluatorConfig, manager: Any) -> set[str]:
    """Return the output types of all tasks of a run; the harness's tasks, still names, are loaded for it."""
    names = [task for task in config.tasks if isinstance(task, str)]
    loaded = manager.load(names)["tasks"].values() if names else []
    built = [task for task in config.tasks if not isinstance(task, str)]
    tasks = preflight.tasks_of([*built, *loaded])
    return {str(task.OUTPUT_TYPE) for task in tasks.values()}


def save(
    tracker: Any, results: dict[str, Any], samples: dict[str, Any] | None
) -> list[Exception]:
    """Let the harness save a run in a folder of its own, and give what is whole its place, the results last.

    Returns what else went wrong, on the Hub. A BiasError says what couldn't be written; what is whole is kept.
    """
    if not (output_path := tracker.output_path):
        return []
    root, name = (
        os.path.split(output_path)
        if output_path.endswith(".json")
        else (output_path, "")
    )
    missing = number = 1 + (0 if samples is None else len(results["configs"]))
    try:
        os.makedirs(root or ".", exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=root or ".", prefix=UNFINISHED, ignore_cleanup_errors=True
        ) as made:
            tracker.output_path = os.path.join(made, name)
            failures = running.save(tracker, results, samples)
            for file in sorted(
                Path(made).rglob("*.json*"), key=lambda file: file.suffix == ".json"
            ):
                if _is_whole(file, (samples or {}).get(sample_logs.task_of(file))):
                    target = Path(root, file.relative_to(made))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(file, target)
                    missing -= 1
    except OSError as error:
        raise BiasError(
            f"--output_path {output_path} cannot be written: {why(error)}"
        ) from error
    if missing:
        reason = f" ({why(failures[0])})" if failures else ""
        text = f"could not be written{reason}; with --use_cache FILE the same command resumes it"
        raise BiasError(
            f"--output_path {output_path}: {missing} of {number} files {text}"
        )
    return failures


def _is_whole(file: Path, samples: list[Any] | None) -> bool:
    """Whether a log has a line for each sample; without samples, whether the file is whole JSON."""
    with file.open("rb+") as written:
        os.fsync(
            written.fileno()
        )  # where blocks are allocated late, a full disk shows only now
        if samples is not None:
            return sum(line.endswith(b"\n") for line in written) == len(samples)
        try:
            return isinstance(json.load(written), dict)
        except ValueError:
            return False
