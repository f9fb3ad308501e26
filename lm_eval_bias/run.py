"""``lm-eval-bias run``: the harness's own ``run`` with our tasks and model types loaded."""

from __future__ import annotations

import argparse
import fnmatch
import inspect
import json
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias import benchmarks, catalog, sentences
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.paths import tasks_path

if TYPE_CHECKING:
    from lm_eval.config.evaluate_config import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")
_NO_MODEL = re.compile(
    r"is not a local folder|not a valid model identifier|[Cc]ouldn't connect|couldn't find them in the cached"
    r"|does not appear to have a file|Incorrect path_or_model_id|Cannot find|offline mode|no file named"
)


def parser() -> argparse.ArgumentParser:
    """The harness's parser of ``run`` with all its flags, under our name."""
    from lm_eval._cli.run import Run

    outer = argparse.ArgumentParser(prog="lm-eval-bias")
    commands = outer.add_subparsers(dest="command")
    Run.create(commands)
    run = commands.choices["run"]
    run.usage = "lm-eval-bias run --model <model> --tasks <task>,<task> --model_args <arg=value> [options]"
    run.description = (
        "Evaluate a model on the bias tasks of this package ('lm-eval-bias ls') and, in the same run, on any task of "
        "the harness. All flags are the harness's own."
    )
    run.epilog = "example: lm-eval-bias run --tasks occugender,gg_bbq --model hf --model_args pretrained=gpt2"
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
    args = run.parse_args(argv)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    setup_logging()
    try:
        config = EvaluatorConfig.from_cli(args)
    except (ValueError, TypeError, FileNotFoundError) as error:
        raise BiasError(str(error).splitlines()[0]) from error
    _check_metadata(config, getattr(args, "metadata", None))
    _check_model(config)
    _fetch_data(config)
    return evaluate(config)


def split_tasks(tasks: str | list[str]) -> list[str]:
    """Names from ``--tasks a,b c``."""
    listed = tasks.split(",") if isinstance(tasks, str) else [name for task in tasks for name in task.split(",")]
    return [name for name in (entry.strip() for entry in listed) if name]


def only_ours(names: list[str]) -> bool:
    """Whether every name or pattern can only mean tasks of this package."""
    own = catalog.entries()
    families = {entry.path.parent.name for entry in own.values()}

    def ours(name: str) -> bool:
        if name in own:
            return True
        stem = re.split(r"[*?\[]", name)[0]
        return stem != name and any(stem.startswith(family) for family in families)

    return bool(names) and all(ours(name) for name in names)


def load_tasks(config: EvaluatorConfig) -> Any:
    """A task manager for the named tasks, which are put into the configuration (ours built, the harness's by name).

    With only our tasks named it reads our folder alone, not the harness's thousands of YAMLs.

    Raises:
        BiasError: A task that neither we nor the harness have.
    """
    from lm_eval.tasks import TaskManager

    from lm_eval_bias import link

    names = split_tasks(config.tasks)
    if not names:
        raise BiasError("no tasks named: give --tasks, for example --tasks occugender,gg_bbq ('lm-eval-bias ls')")
    extra = [config.include_path] if isinstance(config.include_path, (str, Path)) else list(config.include_path or [])
    ours = str(tasks_path())
    if not only_ours(names):
        linked = link.state()
        if linked.problem:
            logger.warning("link: %s", linked.problem)
        if linked.problem or not linked.linked:
            config.include_path = [*extra, ours]
        try:
            return config.process_tasks(config.metadata)
        except ValueError as error:
            missing = str(error).removeprefix("Tasks not found: ")
            hint = did_you_mean(missing, catalog.entries())
            raise BiasError(f"no task named {missing}, neither here nor in the harness.{hint}") from error
    manager = TaskManager(include_path=[*extra, ours], metadata=config.metadata or {}, include_defaults=False)
    found: dict[str, None] = {}
    for name in names:
        matches = fnmatch.filter(manager.all_tasks, name)
        if not matches:
            raise BiasError(f"no task matches {name!r}.{did_you_mean(name, manager.all_tasks)}")
        found.update(dict.fromkeys(matches))
    config.tasks = list(found) if config.check_integrity else [_build(manager, name) for name in found]
    return manager


def _build(manager: Any, name: str) -> Any:
    """The task or group itself, so that bad metadata shows before a model is loaded."""
    loaded = manager.load([name])
    return loaded["groups"].get(name) or loaded["tasks"][name]


def _check_metadata(config: EvaluatorConfig, given: dict[str, Any] | None) -> None:
    """Refuse a ``--metadata`` key that no named task knows: a typing error would silently give the default."""
    names = split_tasks(config.tasks) if config.tasks else []
    if not given or not only_ours(names):
        return
    named = {entry.benchmark for entry in _named_entries(config)}
    known = sorted({option for name in named for option in benchmarks.get(name).options})
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known)
            raise BiasError(f"--metadata key {key!r} is unknown to these tasks.{hint} Known: {', '.join(known)}")


def _check_model(config: EvaluatorConfig) -> None:
    """Refuse an unknown model type, and a model path that doesn't exist, before anything is loaded."""
    from lm_eval.api.registry import model_registry

    from lm_eval_bias import _registry

    _registry.register()
    if config.model not in model_registry:
        hint = did_you_mean(config.model, model_registry)
        raise BiasError(f"no model type named {config.model!r}.{hint} 'lm-eval-bias doctor' lists ours")
    pretrained = str(config.model_args.get("pretrained", ""))
    looks_like_path = pretrained.startswith((".", "/", "~")) or pretrained.count("/") > 1
    if looks_like_path and not Path(pretrained).expanduser().exists():
        raise BiasError(f"--model_args pretrained={pretrained}: no such folder")


def _named_entries(config: EvaluatorConfig) -> list[catalog.Entry]:
    """Our tasks among those that ``--tasks`` names, groups resolved."""
    own = catalog.entries()
    named = [m for name in split_tasks(config.tasks or []) for m in fnmatch.filter(own, name)]
    return [own[task] for task in dict.fromkeys(t for n in named for t in (own[n].members or (n,)))]


def _fetch_data(config: EvaluatorConfig) -> None:
    """Have the pinned data before a model is loaded, so that a lack of it shows at once."""
    from lm_eval_bias.data.fetch import fetch

    sets = dict.fromkeys(entry.data for entry in _named_entries(config) if entry.data)
    if sets:
        fetch(sets)


def evaluate(config: EvaluatorConfig) -> int:
    """Run the evaluation, save what the flags ask for, print the harness's table and how to read it.

    Follows the harness's own ``run`` step by step; only the task manager is ours.
    """
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker

    if config.output_path:
        config.hf_hub_log_args["output_path"] = config.output_path
    if os.environ.get("HF_TOKEN"):
        config.hf_hub_log_args["token"] = os.environ["HF_TOKEN"]
    tracker = EvaluationTracker(**config.hf_hub_log_args)
    manager = load_tasks(config)
    loggers = _loggers(config)
    try:
        results = simple_evaluate(**_arguments(config, simple_evaluate, manager, tracker))
    except OSError as error:
        if _NO_MODEL.search(str(error)):
            raise BiasError(f"--model_args {config.model_args}: {_one_line(error)}") from error
        raise
    if results is not None:
        _finish(config, results, tracker, loggers)
    return 0


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


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


def _finish(config: EvaluatorConfig, results: dict[str, Any], tracker: Any, loggers: list[Any]) -> None:
    from lm_eval.utils import handle_non_serializable, make_table

    samples = results.pop("samples", None) if config.log_samples else None
    if config.show_config:
        print(json.dumps(results, indent=2, default=handle_non_serializable, ensure_ascii=False))
    for remote in loggers:
        try:
            remote.post_init(results)
            remote.log_eval_result()
            if samples is not None:
                remote.log_eval_samples(samples)
        except Exception as error:  # noqa: BLE001 (a failing dashboard must not lose the run)
            logger.warning("logging to %s failed: %s", type(remote).__name__, _one_line(error))
    tracker.save_results_aggregated(results=results, samples=samples)
    if samples is not None:
        for name in results["configs"]:
            tracker.save_results_samples(task_name=name, samples=samples[name])
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
        how = catalog.legend(list(results["configs"]))
        print(f"How to read the scores (a breakdown value/… or …/prompt_… reads like its score):\n{how}\n")
        print(f"In words (± is a 95% interval):\n{said}")
    if config.output_path and samples is not None:
        print(f"Recompute without the model: lm-eval-bias rescore {config.output_path}")
    for remote in loggers:
        remote.finish() if hasattr(remote, "finish") else remote.run.finish()
