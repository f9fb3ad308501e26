"""A run: tasks and model are checked and built, the harness evaluates, results are saved whole and told."""

from __future__ import annotations

import fnmatch
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias import catalog, redaction, registry
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.evaluation import preflight, suites
from lm_eval_bias.files import UNFINISHED, why
from lm_eval_bias.harness import distributed, internals, linking, running, score_aggregation
from lm_eval_bias.report import listings, run_output, sentences
from lm_eval_bias.runs import provenance, sample_logs
from lm_eval_bias.scoring import questions

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")
_ABANDONED = 24 * 60 * 60  # seconds after which an unfinished folder is a killed run's


def load_tasks(config: EvaluatorConfig, entries: Mapping[str, catalog.Entry]) -> Any:
    """A task manager for the named tasks, which are put into the configuration (ours built, the harness's by name).

    With only our tasks named it reads our folder alone, not the harness's thousands of YAMLs.

    Raises:
        BiasError: A task that neither we nor the harness have.
    """
    names = preflight.split_tasks(config.tasks)
    included = [config.include_path] if config.include_path else []
    folders = [*included, *dict.fromkeys(str(one.folder) for one in registry.benchmarks())]
    if not preflight.only_ours(names, entries):
        link = linking.state()
        if link.problem:
            logger.warning("link: %s", link.problem)
        if link.problem or not (link.stubs or linking.unnecessary()):
            config.include_path = folders
        try:
            return config.process_tasks(config.metadata)
        except ValueError as error:
            name = str(error).removeprefix("Tasks not found: ")
            hint = preflight.similar(name, entries)
            raise BiasError(f"no task named {name}, neither here nor in the harness.{hint}") from error
    manager = internals.task_manager(folders, config.metadata, include_defaults=False)
    matched: dict[str, None] = {}
    for name in names:
        matches = fnmatch.filter(manager.all_tasks, name)
        if not matches:
            raise BiasError(f"no task matches {name!r}.{preflight.similar(name, manager.all_tasks)}")
        matched.update(dict.fromkeys(matches))
    members = {member for name in matched if name in entries for member in entries[name].members}
    tasks = {name: _build(manager, name, entries) for name in matched if name not in members}
    preflight.check_samples(config, tasks)
    config.tasks = list(tasks.values())
    return manager


def _build(manager: Any, name: str, entries: Mapping[str, catalog.Entry]) -> Any:
    """The task or group itself, so that bad metadata or a bad YAML shows before a model is loaded."""
    try:
        loaded = manager.load([name])
    except (BiasError, MemoryError):
        raise
    except Exception as error:
        path = None if name in catalog.packaged() else getattr(entries.get(name), "path", None)
        if path is None:
            raise  # no file of the user's
        logger.debug("where the task failed", exc_info=error)
        raise BiasError(f"{path}: the task {name} can't be built: {one_line(error)}") from error
    return loaded["groups"].get(name) or loaded["tasks"][name]


def evaluate(
    config: EvaluatorConfig,
    entries: Mapping[str, catalog.Entry],
    suite: suites.Suite | None,
    table: str,
    ready: Callable[[], None],
) -> None:
    """Run the evaluation, save what the flags ask for, print the scores in words and a table.

    Args:
        config: Of the run.
        entries: The tasks that this package knows.
        suite: A suite that was asked for.
        table: One of :data:`lm_eval_bias.report.run_output.TABLES`.
        ready: Called when all is checked and the model is loaded.
    """
    tracker = running.tracker(config)
    named = preflight.named_entries(config, entries)
    manager = load_tasks(config, entries)
    preflight.check_requests(config, named)
    if suite is not None:
        tasks = {task.task_name: task for top in config.tasks for task in preflight.tasks_of(top)}
        suites.choose_items(config, suite, tasks)
        if distributed.first():
            print(suites.describe(suite), flush=True)
    if config.use_cache:
        provenance.claim_cache(config.use_cache, config.model, config.model_args or {})
    dashboards = running.dashboards(config) if distributed.first() else []
    with questions.expecting(preflight.request_kinds(named)), score_aggregation.unlogged():
        model = running.build_model(config)
        ready()
        results = running.evaluate(config, model, manager, tracker)
    if results is None:
        return
    samples = running.samples_in_order(results.pop("samples", None)) if config.log_samples else None
    flags = ("num_fewshot", "apply_chat_template", "fewshot_as_multiturn", "system_instruction", "samples")
    results["provenance"] = provenance.block(results, {name: getattr(config, name, None) for name in flags})
    # the harness mixes the model's arguments into each task's metadata
    results.update({key: redaction.arguments(results[key]) for key in ("config", "configs", "provenance")})
    if config.show_config:
        print(running.as_json(results))
    running.send(dashboards, results, samples)
    saved = False
    try:
        failures = save(tracker, results, samples)
        saved = bool(config.output_path)
    finally:  # the scores in any case: they may be all that is left of the run
        _print(config, results, table, saved)
    if failures:
        text = redaction.in_text(one_line(failures[0]), config.hf_hub_log_args)
        raise BiasError(
            f"--hf_hub_log_args: not pushed to the Hub: {text} (everything is saved in {config.output_path})"
        )


def save(tracker: Any, results: dict[str, Any], samples: dict[str, Any] | None) -> list[Exception]:
    """Let the harness save a run in a folder of its own, and give what is whole its place, the results last.

    Returns:
        What else went wrong: on the Hub.

    Raises:
        BiasError: Something couldn't be written. What is whole has its place all the same.
    """
    if not (output_path := tracker.output_path):
        return []
    path = Path(output_path)
    root, name = (path.parent, path.name) if path.suffix == ".json" else (path, "")
    broken = []
    try:
        root.mkdir(parents=True, exist_ok=True)
        for folder in root.glob(f"{UNFINISHED}*"):
            if time.time() - folder.stat().st_mtime > _ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=UNFINISHED, ignore_cleanup_errors=True) as made:
            tracker.output_path = os.path.join(made, name)
            failures = running.save(tracker, results, samples)
            logs = {sample_logs.task_of(file): file for file in Path(made).rglob("*.jsonl")}
            counts = {task: len(samples[task]) for task in results["configs"]} if samples is not None else {}
            files = [(f"samples of {task}", logs.get(task), count) for task, count in counts.items()]
            for what, file, count in [*files, ("results", next(Path(made).rglob("*.json"), None), None)]:
                if file is None or not _is_whole(file, count):
                    broken.append(what)
                    continue
                target = root / file.relative_to(made)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
    except OSError as error:
        raise BiasError(f"--output_path {output_path} cannot be written: {why(error)}") from error
    if broken:
        reason = f" ({why(failures[0])})" if failures else ""
        others = f" and {len(broken) - 1} more" if broken[1:] else ""
        raise BiasError(
            f"--output_path {output_path}: {broken[0]}{others} could not be written{reason}; with --use_cache FILE a "
            "run keeps its answers, and the same command resumes it"
        )
    return failures


def _is_whole(file: Path, lines: int | None) -> bool:
    """Whether a file has so many lines; whether it is JSON, where it should be a whole one."""
    with file.open("rb+") as written:
        os.fsync(written.fileno())  # where blocks are allocated late, a full disk shows only now
        if lines is not None:
            return sum(line.endswith(b"\n") for line in written) == lines
        try:
            json.load(written)
        except ValueError:
            return False
    return True


def _print(config: EvaluatorConfig, results: dict[str, Any], table: str, saved: bool) -> None:
    """What was run, the scores in words, the tables that are wanted, and what can be done next."""
    flags = {name: getattr(config, name) for name in ("gen_kwargs", "limit", "num_fewshot", "batch_size")}
    flags["batch sizes"] = ",".join(map(str, results["config"]["batch_sizes"]))
    given = [f"{name}: {value}" for name, value in flags.items() if value]
    print(", ".join([f"{config.model} ({redaction.arguments(config.model_args)})", *given]))
    tasks = [] if config.predict_only else sentences.of_results(results["results"], results["configs"])
    words = sentences.describe(tasks, beside_tables=table != "all")
    if tasks:
        print(f"\nIn words ({sentences.LEGEND}):\n{words}")
    blocks = []
    if tasks and table == "main":
        blocks.append(run_output.main_scores(tasks))
    if not tasks or table != "none":
        blocks.append(running.tables(results, () if table == "all" else {task.task for task in tasks}))
    if tasks and table == "all":
        legend = listings.legend(results["configs"].values())
        blocks.append(
            f"How to read the scores (a breakdown such as gender/… or …/prompt_… reads like its score):\n{legend}"
        )
    blocks.append(run_output.notes(tasks, table == "all", words))
    print("".join(f"\n{block}\n" for block in blocks if block))
    if not config.output_path:
        print("Nothing was saved: --output_path FOLDER saves the scores, and --log_samples the answers, too")
    elif tasks and saved:
        if config.log_samples:
            print(f"To recompute the scores without the model: lm-eval-bias rescore {config.output_path}")
        print(f"For a report as a page: lm-eval-bias report {config.output_path} -o report.html")
