"""One evaluation by the harness: the model is built here, so that what goes wrong with it is known to be its own."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import logging
import os
import random
from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, Any

from lm_eval_bias import redaction
from lm_eval_bias.errors import BiasError, check_arguments, import_failure, one_line
from lm_eval_bias.harness import distributed, internals, servers

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")
# what a backend does in its own way
_BACKEND = (
    *("loglikelihood", "loglikelihood_rolling", "generate_until", internals.LOGLIKELIHOOD_TOKENS),
    *("tok_encode", "apply_chat_template", "chat_template"),
)


def tracker(config: EvaluatorConfig) -> Any:
    """What saves results, with the options that the configuration has for it."""
    from lm_eval.loggers import EvaluationTracker

    if config.output_path:
        config.hf_hub_log_args["output_path"] = config.output_path
    if os.environ.get("HF_TOKEN"):
        config.hf_hub_log_args["token"] = os.environ["HF_TOKEN"]
    check_arguments(EvaluationTracker, config.hf_hub_log_args, "--hf_hub_log_args")
    pushed = [name for name in ("push_results_to_hub", "push_samples_to_hub") if config.hf_hub_log_args.get(name)]
    if pushed and not config.hf_hub_log_args.get("output_path"):
        raise BiasError(f"--hf_hub_log_args {pushed[0]}: pushing needs --output_path FOLDER")
    if "push_samples_to_hub" in pushed and not config.log_samples:
        raise BiasError("--hf_hub_log_args push_samples_to_hub: pushing samples needs --log_samples")
    try:
        return EvaluationTracker(**config.hf_hub_log_args)
    except Exception as error:  # it asks the hub, which fails in ways of its own
        raise BiasError(f"--hf_hub_log_args: {one_line(error)}") from error


def dashboards(config: EvaluatorConfig) -> list[Any]:
    """The services that a run's results are sent to.

    Raises:
        BiasError: One of them isn't installed, or refuses its arguments.
    """
    services: list[Any] = []
    flag = "--wandb_args"
    try:
        if config.wandb_args:
            from lm_eval.loggers import WandbLogger

            services.append(WandbLogger(config.wandb_args, config.wandb_config_args))
        flag = "--trackio_args"
        if getattr(config, "trackio_args", None):
            from lm_eval.loggers import TrackioLogger

            services.append(TrackioLogger(config.trackio_args))
    except Exception as error:  # services fail in ways of their own
        raise BiasError(f"{flag}: {one_line(error)}") from error
    return services


def build_model(config: EvaluatorConfig) -> Any:
    """The model, built as ``simple_evaluate`` builds it.

    Raises:
        BiasError: It can't be.
    """
    import numpy as np
    import torch

    for seed, value in zip((random.seed, np.random.seed, torch.manual_seed), config.seed or (), strict=False):
        if value is not None:
            seed(value)
    shape = {name: getattr(config, name) for name in ("batch_size", "max_batch_size", "device")}
    try:
        return internals.model_class(config.model).create_from_arg_obj(config.model_args, shape)
    except BiasError:
        raise
    except Exception as error:
        given = ",".join(f"{name}={value}" for name, value in redaction.arguments(config.model_args or {}).items())
        message = redaction.in_text(import_failure(error), config.model_args or {})
        raise BiasError(f"--model {config.model} --model_args {given}: {message}") from error


def _failure(error: Exception, config: EvaluatorConfig, model: Any) -> BiasError:
    """The line for an error of a backend while it was answering."""
    logger.debug("where the model failed", exc_info=error)
    model_args = config.model_args or {}
    shown = redaction.arguments(model_args)
    checkpoint = next((f" {key}={shown[key]}" for key in ("base_url", "pretrained", "model") if key in shown), "")
    message = one_line(error)
    if type(error) is not ValueError and type(error).__name__ not in message:
        message = f"{type(error).__name__}: {message}"
    cache_note = (
        f"; the answers so far are kept in {config.use_cache}: run the same command again to resume"
        if config.use_cache
        else "; with --use_cache FILE a run keeps its answers, and the same command resumes it"
    )
    message = redaction.in_text(servers.without_keys(message, model), model_args).rstrip(".")
    return BiasError(f"--model {config.model}{checkpoint}: {message} (nothing was saved{cache_note})")


@contextlib.contextmanager
def _answering(model: Any, config: EvaluatorConfig) -> Iterator[None]:
    """Report errors of the model's backend in one line while the context lasts."""

    def explained(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except BiasError:
            raise
        except Exception as error:
            if isinstance(error, NotImplementedError) and method.__name__ == internals.LOGLIKELIHOOD_TOKENS:
                raise  # scoring knows what that means
            raise _failure(error, config, model) from error

    with contextlib.ExitStack() as stack:
        for name in _BACKEND:
            method = getattr(model, name, None)
            if method is not None:
                wrapped = functools.wraps(method)(functools.partial(explained, method))
                stack.enter_context(internals.shadowed(model, name, wrapped))
        yield


def arguments(config: EvaluatorConfig, function: Any, model: Any, manager: Any, tracker: Any) -> dict[str, Any]:
    """The arguments of ``simple_evaluate`` from the configuration, as the harness's own ``run`` passes them."""
    seeded = ("random_seed", "numpy_random_seed", "torch_random_seed", "fewshot_random_seed")
    caching = ("cache_requests", "rewrite_requests_cache", "delete_requests_cache")
    special = {
        **{"model": model, "task_manager": manager, "evaluation_tracker": tracker},
        **{name: config.cache_requests.get(name, False) for name in caching},
        **dict(zip(seeded, config.seed or [None] * 4, strict=True)),
    }
    parameters = inspect.signature(function).parameters
    plain = {name: getattr(config, name) for name in parameters if name not in special and hasattr(config, name)}
    return {**plain, **{name: value for name, value in special.items() if name in parameters}}


def evaluate(config: EvaluatorConfig, model: Any, manager: Any, tracker: Any) -> dict[str, Any] | None:
    """The results of a run; ``None`` on all ranks but the first.

    Args:
        config: Of the run.
        model: The built model.
        manager: Of its tasks.
        tracker: That saves its results.

    Raises:
        BiasError: The model's backend failed, or a rank is left without documents.
    """
    from lm_eval import simple_evaluate

    try:
        with _answering(model, config), internals.silent_git():
            results: dict[str, Any] | None = simple_evaluate(
                **arguments(config, simple_evaluate, model, manager, tracker)
            )
    except ValueError as error:
        if internals.NO_DOCUMENTS not in str(error):
            raise
        text = "a process got no items of one of the harness's tasks: use fewer processes or a larger --limit"
        raise BiasError(text) from error
    if results is not None:
        internals.name_model(results, tracker, model, config.model, config.model_args or {})
    return results


def samples_in_order(samples: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Samples in the order of the documents, which the harness puts rank behind rank, without idle ranks' stand-ins."""
    by_task = {}
    for task, logged in samples.items():
        filters = {name: i for i, name in enumerate(dict.fromkeys(sample["filter"] for sample in logged))}
        scored = (sample for sample in logged if distributed.IDLE not in sample["doc"])
        by_task[task] = sorted(scored, key=lambda sample: (filters[sample["filter"]], sample["doc_id"]))
    return by_task


def send(services: list[Any], results: dict[str, Any], samples: dict[str, Any] | None) -> None:
    """Send results to the dashboards; one that fails must not lose the run."""
    for dashboard in services:
        try:
            dashboard.post_init(results)
            dashboard.log_eval_result()
            if samples is not None:
                dashboard.log_eval_samples(samples)
        except Exception as error:  # noqa: BLE001 (services fail in ways of their own)
            logger.warning("logging to %s failed: %s", type(dashboard).__name__, one_line(error))


def close(services: list[Any]) -> None:
    """End what was sent to the dashboards."""
    for dashboard in services:
        dashboard.finish() if hasattr(dashboard, "finish") else dashboard.run.finish()


def save(tracker: Any, results: dict[str, Any], samples: dict[str, Any] | None) -> None:
    """Write results, and samples where there are some, to the tracker's output path."""
    tracker.save_results_aggregated(results=results, samples=samples)
    if samples is not None:
        for name in results["configs"]:
            tracker.save_results_samples(task_name=name, samples=samples[name])


class _Hub:
    """A client of the hub that keeps the errors of its methods: the harness goes on after them with a warning."""

    def __init__(self, client: Any, errors: list[Exception]) -> None:
        self._client = client
        self._errors = errors

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)

        def kept(*args: Any, **kwargs: Any) -> Any:
            try:
                return attribute(*args, **kwargs)
            except Exception as error:
                self._errors.append(error)
                raise

        return kept if callable(attribute) else attribute


@contextlib.contextmanager
def hub_errors(tracker: Any) -> Iterator[list[Exception]]:
    """What goes wrong on the hub while a tracker saves and uploads."""
    errors: list[Exception] = []
    with internals.shadowed(tracker, "api", _Hub(tracker.api, errors) if tracker.api else None):
        yield errors


def upload(tracker: Any, errors: list[Exception]) -> None:
    """Describe results on the hub where the flags had them sent there.

    Args:
        tracker: That saved them.
        errors: Of :func:`hub_errors`; without those that are there already, nothing is described.
    """
    if not errors and (tracker.push_results_to_hub or tracker.push_samples_to_hub):
        try:
            tracker.recreate_metadata_card()
        except Exception as error:  # noqa: BLE001 (the hub fails in ways of its own)
            errors.append(error)


def tables(results: dict[str, Any], without: Container[str] = ()) -> str:
    """The harness's own tables of tasks and, where there are some, groups; empty if no scores are left.

    Args:
        results: Of a run.
        without: Tasks that are left out.
    """
    from lm_eval.utils import make_table

    shown = {name: entry for name, entry in results["results"].items() if name not in without}
    has_scores = any("," in key for entry in shown.values() for key in entry)  # groups of ours have none
    of_tasks = make_table({**results, "results": shown}) if has_scores else ""
    groups = make_table(results, "groups") if has_scores and "groups" in results else ""
    return "\n".join(text for text in (of_tasks, groups) if text)


def as_json(results: dict[str, Any]) -> str:
    """Results as ``--show_config`` prints them."""
    from lm_eval.utils import handle_non_serializable

    return json.dumps(results, indent=2, default=handle_non_serializable, ensure_ascii=False)
