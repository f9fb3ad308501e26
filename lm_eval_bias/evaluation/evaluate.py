"""``lm-eval-bias run``: the harness's own ``run`` with our tasks and model types loaded."""

from __future__ import annotations

import argparse
import fnmatch
import inspect
import json
import logging
import os
from typing import TYPE_CHECKING, Any

from lm_eval_bias import installation, registry
from lm_eval_bias.errors import BiasError, Parser, did_you_mean, one_line
from lm_eval_bias.evaluation import model_errors, preflight, run_plan, suites, warm_up
from lm_eval_bias.harness import distributed, linking
from lm_eval_bias.report import listings, sentences
from lm_eval_bias.runs import atomic_save, cache_ownership, provenance
from lm_eval_bias.scoring import questions

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")


def parser() -> argparse.ArgumentParser:
    """The harness's parser of ``run`` with all its flags, under our name."""
    from lm_eval._cli.run import Run

    outer = Parser(prog="lm-eval-bias")  # and of its kind the harness makes the one of run
    commands = outer.add_subparsers(dest="command")
    Run.create(commands)
    run = commands.choices["run"]
    run.usage = "lm-eval-bias run --model <model> --tasks <task>,<task> --model_args <arg=value> [options]"
    run.description = (
        "Evaluate a model on the bias tasks of this package ('lm-eval-bias ls') and, in the same run, on any task of "
        "the harness. All flags but those of 'suites' are the harness's own."
    )
    run.epilog = (
        "examples:\n  lm-eval-bias run --tasks occugender,gg_bbq --model hf --model_args pretrained=gpt2\n"
        "  lm-eval-bias run --suite quick --model hf-packed --model_args pretrained=gpt2 --output_path OUT"
    )
    own = run.add_argument_group("suites", "of this package, in place of --tasks, --limit and --samples")
    own.add_argument(
        "--suite",
        metavar="<name>",
        help="; ".join(f"{name}: {suites.load(name).purpose}" for name in suites.NAMES)
        + " ('lm-eval-bias ls --suites')",
    )
    own.add_argument(
        "--estimate",
        action="store_true",
        help="Load the model, time a few requests, say how long the run would take, and stop (also with --tasks)",
    )
    return run


def main(argv: list[str]) -> int:
    """Run with these arguments; returns the exit status.

    Raises:
        BiasError: Bad usage or input.
    """
    from lm_eval.config.evaluate_config import EvaluatorConfig
    from lm_eval.utils import setup_logging

    run = parser()
    if not argv:
        run.print_help()
        return 0
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    setup_logging(logging.INFO if distributed.first() else logging.WARNING)
    _check_harness()
    try:
        arguments = run.parse_args(argv)
        # ours: the harness's configuration would not know them
        suite, estimate = vars(arguments).pop("suite"), vars(arguments).pop("estimate")
        config = EvaluatorConfig.from_cli(arguments)
    except (ValueError, TypeError, AttributeError, FileNotFoundError) as error:
        raise BiasError(one_line(error)) from error
    chosen = run_plan.apply(config, suite) if suite is not None else None
    if estimate and not preflight.only_ours(preflight.split_tasks(config.tasks or []), preflight.entries(config)):
        raise BiasError("--estimate is for tasks of this package alone ('lm-eval-bias ls')")
    preflight.before_loading(config)
    return evaluate(config, chosen, estimate)


def _check_harness() -> None:
    """Refuse a harness that is too old, and say so where it is newer than any that was tested.

    Raises:
        BiasError: It is too old, or not there.
    """
    found = installation.harness()
    if found.status == "problem":
        raise BiasError(found.text)
    if found.status == "note" and distributed.first():
        logger.warning("%s", found.text)


def load_tasks(config: EvaluatorConfig) -> Any:
    """A task manager for the named tasks, which are put into the configuration (ours built, the harness's by name).

    With only our tasks named it reads our folder alone, not the harness's thousands of YAMLs.

    Raises:
        BiasError: A task that neither we nor the harness have.
    """
    from lm_eval.tasks import TaskManager

    names = preflight.split_tasks(config.tasks)
    if not names:
        raise BiasError("no tasks named: give --tasks, for example --tasks occugender,gg_bbq ('lm-eval-bias ls')")
    known = preflight.entries(config)
    own = list(dict.fromkeys(str(benchmark.folder) for benchmark in registry.benchmarks()))
    if not preflight.only_ours(names, known):
        linked = linking.state()
        if linked.problem:
            logger.warning("link: %s", linked.problem)
        if linked.problem or not (linked.linked or linking.unnecessary()):
            config.include_path = [*preflight.folders(config), *own]
        try:
            return config.process_tasks(config.metadata)
        except ValueError as error:
            missing = str(error).removeprefix("Tasks not found: ")
            hint = did_you_mean(missing, known)
            raise BiasError(f"no task named {missing}, neither here nor in the harness.{hint}") from error
    manager = TaskManager(
        include_path=[*preflight.folders(config), *own], metadata=config.metadata or {}, include_defaults=False
    )
    found: dict[str, None] = {}
    for name in names:
        matches = fnmatch.filter(manager.all_tasks, name)
        if not matches:
            raise BiasError(f"no task matches {name!r}.{did_you_mean(name, manager.all_tasks)}")
        found.update(dict.fromkeys(matches))
    members = {member for name in found if name in known for member in known[name].members}
    built = {name: _build(manager, name) for name in found if name not in members}
    preflight.check_samples(config, built)
    config.tasks = list(built.values())
    return manager


def _build(manager: Any, name: str) -> Any:
    """The task or group itself, so that bad metadata shows before a model is loaded."""
    loaded = manager.load([name])
    return loaded["groups"].get(name) or loaded["tasks"][name]


def evaluate(config: EvaluatorConfig, chosen: run_plan.Chosen | None = None, estimate: bool = False) -> int:
    """Run the evaluation, save what the flags ask for, print the harness's table and how to read it.

    Follows the harness's own ``run`` step by step; only the task manager is ours.

    Args:
        config: Of the run.
        chosen: A suite that was asked for.
        estimate: Whether to stop after saying how long it would take.
    """
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker

    if config.output_path:
        config.hf_hub_log_args["output_path"] = config.output_path
    if os.environ.get("HF_TOKEN"):
        config.hf_hub_log_args["token"] = os.environ["HF_TOKEN"]
    tracker = EvaluationTracker(**config.hf_hub_log_args)
    asks = preflight.asked(config)
    manager = load_tasks(config)
    timed = _announced(config, chosen, estimate)
    if config.use_cache:
        cache_ownership.claim(config.use_cache, config.model, config.model_args or {})
    loggers = _loggers(config) if distributed.first() and not estimate else []
    try:
        with questions.expecting(asks), warm_up.planned(timed):
            results = simple_evaluate(**_arguments(config, simple_evaluate, manager, tracker))
    except warm_up.Stop:
        return 0
    except BiasError:
        raise
    except Exception as error:
        line = model_errors.explained(error, config)
        if line is None:
            raise
        raise line from error
    if results is not None:
        _finish(config, results, tracker, loggers)
    return 0


def _announced(config: EvaluatorConfig, chosen: run_plan.Chosen | None, estimate: bool) -> warm_up.WarmUp | None:
    """Take a suite's items, say what is going to be run, and what is to say how long; ``None`` for any other run."""
    if chosen is None and not estimate:
        return None
    tasks = {task.task_name: task for top in config.tasks for task in preflight.tasks_of(top)}
    if chosen is not None:
        run_plan.choose_items(config, chosen, tasks)
    if distributed.first():
        print(run_plan.table(config, tasks, chosen), flush=True)
    if estimate:
        config.use_cache = None  # nothing is scored: not even an empty file
    return warm_up.WarmUp(stop=estimate)


def _arguments(config: EvaluatorConfig, function: Any, manager: Any, tracker: Any) -> dict[str, Any]:
    """The arguments of ``simple_evaluate`` from the configuration, as the harness's own ``run`` passes them."""
    seeds = config.seed or [None] * 4
    special = {
        "task_manager": manager,
        "evaluation_tracker": tracker,
        "cache_requests": config.cache_requests.get("cache_requests", False),
        "rewrite_requests_cache": config.cache_requests.get("rewrite_requests_cache", False),
        "delete_requests_cache": config.cache_requests.get("delete_requests_cache", False),
        "random_seed": seeds[0],
        "numpy_random_seed": seeds[1],
        "torch_random_seed": seeds[2],
        "fewshot_random_seed": seeds[3],
    }
    wanted = inspect.signature(function).parameters
    plain = {name: getattr(config, name) for name in wanted if name not in special and hasattr(config, name)}
    return {**plain, **{name: value for name, value in special.items() if name in wanted}}


def _loggers(config: EvaluatorConfig) -> list[Any]:
    made: list[Any] = []
    if config.wandb_args:
        from lm_eval.loggers import WandbLogger

        made.append(WandbLogger(config.wandb_args, config.wandb_config_args))
    if getattr(config, "trackio_args", None):
        from lm_eval.loggers import TrackioLogger

        made.append(TrackioLogger(config.trackio_args))
    return made


def _in_order(samples: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Samples in the order of the documents, which the harness puts rank behind rank, without idle ranks' stand-ins."""
    found = {}
    for task, own in samples.items():
        filters = {name: i for i, name in enumerate(dict.fromkeys(sample["filter"] for sample in own))}
        kept = (sample for sample in own if distributed.IDLE not in sample["doc"])
        found[task] = sorted(kept, key=lambda sample: (filters[sample["filter"]], sample["doc_id"]))
    return found


def _finish(config: EvaluatorConfig, results: dict[str, Any], tracker: Any, loggers: list[Any]) -> None:
    from lm_eval.utils import handle_non_serializable, make_table

    samples = _in_order(results.pop("samples", None)) if config.log_samples else None
    names = ("num_fewshot", "apply_chat_template", "fewshot_as_multiturn", "system_instruction", "samples")
    results["provenance"] = provenance.block(results, {name: getattr(config, name, None) for name in names})
    if config.show_config:
        print(json.dumps(results, indent=2, default=handle_non_serializable, ensure_ascii=False))
    for remote in loggers:
        try:
            remote.post_init(results)
            remote.log_eval_result()
            if samples is not None:
                remote.log_eval_samples(samples)
        except Exception as error:  # noqa: BLE001 (a failing dashboard must not lose the run)
            logger.warning("logging to %s failed: %s", type(remote).__name__, one_line(error))
    problem: BiasError | None = None
    try:
        with atomic_save.whole(tracker):
            tracker.save_results_aggregated(results=results, samples=samples)
            if samples is not None:
                for name in results["configs"]:
                    tracker.save_results_samples(task_name=name, samples=samples[name])
    except BiasError as error:
        problem = error  # the table first: it is all that is left of the run
    if tracker.push_results_to_hub or tracker.push_samples_to_hub:
        tracker.recreate_metadata_card()
    batch_sizes = ",".join(map(str, results["config"]["batch_sizes"]))
    print(
        f"{config.model} ({config.model_args}), gen_kwargs: ({config.gen_kwargs}), limit: {config.limit}, "
        f"num_fewshot: {config.num_fewshot}, batch_size: {config.batch_size}"
        + (f" ({batch_sizes})" if batch_sizes else "")
    )
    print(make_table(results))
    if "groups" in results:
        print(make_table(results, "groups"))
    said = "" if config.predict_only else sentences.describe(results["results"], results["configs"])
    if said:
        how = listings.legend(results["configs"].values())
        print(f"How to read the scores (a breakdown such as gender/… or …/prompt_… reads like its score):\n{how}\n")
        print(f"In words (± is a 95% interval):\n{said}")
    if said and config.output_path and samples is not None:
        print(f"Recompute without the model: lm-eval-bias rescore {config.output_path}")
    if said and config.output_path:
        print(f"As a page: lm-eval-bias report {config.output_path} -o report.html")
    for remote in loggers:
        remote.finish() if hasattr(remote, "finish") else remote.run.finish()
    if problem is not None:
        raise problem
