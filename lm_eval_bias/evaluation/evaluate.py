"""A run: tasks and model are checked and built, the harness evaluates, results are saved and told."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lm_eval_bias import catalog, redaction, registry
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.evaluation import preflight, run_flags, run_plan
from lm_eval_bias.harness import distributed, internals, linking, running, score_aggregation
from lm_eval_bias.report import listings, run_output, sentences
from lm_eval_bias.runs import atomic_save, cache_ownership, provenance
from lm_eval_bias.scoring import questions

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")


def load_tasks(config: EvaluatorConfig, entries: Mapping[str, catalog.Entry]) -> Any:
    """A task manager for the named tasks, which are put into the configuration (ours built, the harness's by name).

    With only our tasks named it reads our folder alone, not the harness's thousands of YAMLs.

    Args:
        config: Of the run.
        entries: The tasks that this package knows.

    Raises:
        BiasError: A task that neither we nor the harness have.
    """
    names = preflight.split_tasks(config.tasks)
    benchmark_folders = dict.fromkeys(str(benchmark.folder) for benchmark in registry.benchmarks())
    folders = [*run_flags.folders(config), *benchmark_folders]
    if not preflight.only_ours(names, entries):
        link = linking.state()
        if link.problem:
            logger.warning("link: %s", link.problem)
        if link.problem or not (link.stubs or linking.unnecessary()):
            config.include_path = folders
        try:
            return internals.find_tasks(config)
        except LookupError as error:
            hint = preflight.similar(str(error), entries)
            raise BiasError(f"no task named {error}, neither here nor in the harness.{hint}") from error
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
    selection: run_plan.Selection | None,
    table: str,
    ready: Callable[[], None],
) -> int:
    """Run the evaluation, save what the flags ask for, print the scores in words and a table.

    Args:
        config: Of the run.
        entries: The tasks that this package knows.
        selection: A suite that was asked for.
        table: One of :data:`lm_eval_bias.report.run_output.TABLES`.
        ready: Called when all is checked and the model is loaded.
    """
    tracker = running.tracker(config)
    named = preflight.named_entries(config, entries)
    asks = preflight.request_kinds(named)
    manager = load_tasks(config, entries)
    preflight.check_requests(config, named)
    announce(config, selection)
    if config.use_cache:
        cache_ownership.claim(config.use_cache, config.model, config.model_args or {})
    dashboards = running.dashboards(config) if distributed.first() else []
    with questions.expecting(asks), score_aggregation.unlogged():
        model = running.build_model(config)
        ready()
        results = running.evaluate(config, model, manager, tracker)
    if results is not None:
        _finish(config, results, tracker, dashboards, table)
    return 0


def announce(config: EvaluatorConfig, selection: run_plan.Selection | None) -> None:
    """Take a suite's items and print its tasks with their numbers of requests."""
    if selection is None:
        return
    tasks = {task.task_name: task for top in config.tasks for task in preflight.tasks_of(top)}
    run_plan.choose_items(config, selection, tasks)
    if distributed.first():
        print(run_plan.table(config, tasks, selection), flush=True)


def _finish(config: EvaluatorConfig, results: dict[str, Any], tracker: Any, dashboards: list[Any], table: str) -> None:
    samples = running.samples_in_order(results.pop("samples", None)) if config.log_samples else None
    names = ("num_fewshot", "apply_chat_template", "fewshot_as_multiturn", "system_instruction", "samples")
    results["provenance"] = provenance.block(results, {name: getattr(config, name, None) for name in names})
    # the harness mixes the model's arguments into each task's metadata
    results.update({key: redaction.arguments(results[key]) for key in ("config", "configs", "provenance")})
    if config.show_config:
        print(running.as_json(results))
    running.send(dashboards, results, samples)
    problem = None
    with running.hub_errors(tracker) as hub_errors:
        try:
            atomic_save.save(tracker, results, samples)
        except BiasError as error:
            problem = error  # the scores first: they are all that is left of the run
        running.upload(tracker, hub_errors)
    _print(config, results, table, log=samples is not None, saved=problem is None)
    running.close(dashboards)
    if problem is not None:
        raise problem
    if hub_errors:
        text = redaction.in_text(one_line(hub_errors[0]), config.hf_hub_log_args)
        raise BiasError(
            f"--hf_hub_log_args: not pushed to the Hub: {text} (everything is saved in {tracker.output_path})"
        )


def _print(config: EvaluatorConfig, results: dict[str, Any], table: str, log: bool, saved: bool) -> None:
    """What was run, the scores in words, the tables that are wanted, and what can be done next."""
    flags = {name: getattr(config, name) for name in ("gen_kwargs", "limit", "num_fewshot", "batch_size")}
    sizes = ",".join(map(str, results["config"]["batch_sizes"]))
    given = [f"{name}: {value}" for name, value in flags.items() if value] + (
        [f"batch sizes: {sizes}"] if sizes else []
    )
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
        if log:
            print(f"To recompute the scores without the model: lm-eval-bias rescore {config.output_path}")
        print(f"For a report as a page: lm-eval-bias report {config.output_path} -o report.html")
