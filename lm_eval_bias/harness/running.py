"""One evaluation by the harness. The model is built here, to tell its errors from others."""

from __future__ import annotations

import contextlib
import inspect
import logging
import math
import os
import random
import re
import sqlite3
import sys
import traceback
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import redaction
from lm_eval_bias.core.errors import BiasError, import_failure, one_line
from lm_eval_bias.harness import distributed, internals, servers

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")
# what a backend does in its own way
_BACKEND = {
    *(
        "loglikelihood",
        "loglikelihood_rolling",
        "generate_until",
        internals.LOGLIKELIHOOD_TOKENS,
    ),
    *("tok_encode", "apply_chat_template", "chat_template"),
}


def loggers(config: EvaluatorConfig) -> tuple[Any, list[Any]]:
    """What saves results, and the services that they are sent to; a BiasError where one refuses its arguments."""
    from lm_eval import loggers

    own = {"output_path": config.output_path, "token": os.environ.get("HF_TOKEN")}
    config.hf_hub_log_args |= {name: value for name, value in own.items() if value}
    flags, services = "--hf_hub_log_args", []
    try:
        tracker = loggers.EvaluationTracker(**config.hf_hub_log_args)
        flags = "--wandb_args or --trackio_args"
        if config.wandb_args and distributed.first():
            services.append(
                loggers.WandbLogger(config.wandb_args, config.wandb_config_args)
            )
        if getattr(config, "trackio_args", None) and distributed.first():
            services.append(loggers.TrackioLogger(config.trackio_args))
    except Exception as error:  # services fail in ways of their own
        raise BiasError(
            f"{flags}: {redaction.in_text(one_line(error), config.hf_hub_log_args)}"
        ) from error
    return tracker, services


def send(
    services: list[Any], results: dict[str, Any], samples: dict[str, Any] | None
) -> None:
    """Send results to the dashboards; one that fails must not lose the run."""
    for service in services:
        try:
            service.post_init(results)
            service.log_eval_result()
            if samples is not None:
                service.log_eval_samples(samples)
            service.finish() if hasattr(service, "finish") else service.run.finish()
        except Exception as error:  # noqa: BLE001 (services fail in ways of their own)
            logger.warning(
                "logging to %s failed: %s", type(service).__name__, one_line(error)
            )


def build_model(config: EvaluatorConfig) -> Any:
    """The model, built as ``simple_evaluate`` builds it; a BiasError where it can't be."""
    import numpy as np
    import torch

    shape = {
        name: getattr(config, name)
        for name in ("batch_size", "max_batch_size", "device")
    }
    try:
        for seed, value in zip(
            (random.seed, np.random.seed, torch.manual_seed),
            config.seed or (),
            strict=False,
        ):
            if value is not None:
                seed(value)
        return internals.model_class(config.model).create_from_arg_obj(
            config.model_args, shape
        )
    except BiasError:
        raise
    except Exception as error:
        given = ",".join(
            f"{name}={value}"
            for name, value in redaction.arguments(config.model_args or {}).items()
        )
        message = redaction.in_text(
            _why_not_loaded(error, config), config.model_args or {}
        )
        raise BiasError(
            f"--model {config.model} --model_args {given}: {message}"
        ) from error


def _why_not_loaded(error: Exception, config: EvaluatorConfig) -> str:
    """Say in one line why a model can't be loaded; transformers lists every class that could have been meant."""
    text = import_failure(error)
    if found := re.match(
        r"Unrecognized configuration class \S*?(\w+)'?> for this kind of AutoModel: (\w+)",
        text,
    ):
        return (
            f"a {found[1]} isn't a model that {found[2]} can load: --model hf-mlm is for masked language models, hf "
            "for causal and encoder-decoder ones, hf-multimodal for those that see"
        )
    if internals.is_client(internals.model_class(config.model)) and "tokenizer" not in (
        config.model_args or {}
    ):
        return f"the tokenizer is looked for under the model's name: add tokenizer=NAME_OR_FOLDER ({text:.200})"
    return text


@contextlib.contextmanager
def _answering(model: Any, config: EvaluatorConfig) -> Iterator[None]:
    """Report in one line what goes wrong in methods of the model's backend, or in the file of its answers."""
    try:
        yield
    except BiasError:
        raise
    except Exception as error:
        message, given = one_line(error), config.model_args or {}
        if internals.NO_DOCUMENTS in message:
            text = "a process got no items of one of the harness's tasks: use fewer processes or a larger --limit"
            raise BiasError(text) from error
        if isinstance(error, sqlite3.Error):
            text = "the answers so far are kept: make room, and run the same command again to resume"
            raise BiasError(
                f"--use_cache {config.use_cache}: {message}: {text}"
            ) from error
        frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
        if not any(
            f.f_code.co_name in _BACKEND and f.f_locals.get("self") is model
            for f in frames
        ):
            raise
        logger.debug("where the model failed", exc_info=error)
        shown = redaction.arguments(given)
        checkpoint = next(
            (
                f" {key}={shown[key]}"
                for key in ("base_url", "pretrained", "model")
                if key in shown
            ),
            "",
        )
        if isinstance(error, IndexError | RuntimeError) and (
            rows := _too_few_rows(model)
        ):
            message = f"{rows}: name the tokenizer that belongs to the model (--model_args tokenizer=...)"
        elif type(error) is not ValueError and type(error).__name__ not in message:
            message = f"{type(error).__name__}: {message}"
        note = "with --use_cache FILE a run keeps its answers, and the same command resumes it"
        if config.use_cache:
            note = f"the answers so far are kept in {config.use_cache}: run the same command again to resume"
        message = redaction.in_text(servers.without_keys(message, model), given).rstrip(
            "."
        )
        raise BiasError(
            f"--model {config.model}{checkpoint}: {message} (nothing was saved; {note})"
        ) from error


def _too_few_rows(model: Any) -> str:
    """Say that a tokenizer has more tokens than its model has embeddings; empty where it hasn't."""
    with contextlib.suppress(AttributeError, NotImplementedError):
        rows = model.model.get_input_embeddings().weight.shape[0]
        tokens = len(model.tokenizer)
        if tokens > rows:
            return (
                f"the tokenizer has {tokens:,} tokens, the model embeddings of {rows:,}"
            )
    return ""


def arguments(
    config: EvaluatorConfig, function: Any, model: Any, manager: Any, tracker: Any
) -> dict[str, Any]:
    """The arguments of ``simple_evaluate`` from the configuration, as the harness's own ``run`` passes them."""
    caching = ("cache_requests", "rewrite_requests_cache", "delete_requests_cache")
    seeds = (
        "random_seed",
        "numpy_random_seed",
        "torch_random_seed",
        "fewshot_random_seed",
    )
    special = {
        **{"model": model, "task_manager": manager, "evaluation_tracker": tracker},
        **{name: config.cache_requests.get(name, False) for name in caching},
        **dict(zip(seeds, config.seed or [None] * 4, strict=True)),
    }
    names = [
        name
        for name in inspect.signature(function).parameters
        if name in special or hasattr(config, name)
    ]
    return {
        name: special[name] if name in special else getattr(config, name)
        for name in names
    }


def evaluate(
    config: EvaluatorConfig, model: Any, manager: Any, tracker: Any
) -> dict[str, Any] | None:
    """The results of a run; ``None`` on all ranks but the first. A BiasError says how the model's backend failed."""
    from lm_eval import simple_evaluate

    with _answering(model, config), servers.asking(model):
        results: dict[str, Any] | None = simple_evaluate(
            **arguments(config, simple_evaluate, model, manager, tracker)
        )
    if results is not None:
        internals.name_model(results, tracker, model, config.model, config.model_args)
    return results


def samples_in_order(
    samples: dict[str, list[dict[str, Any]]],
) -> dict[str, list[dict[str, Any]]]:
    """Sort samples by document (the harness orders them by rank).

    Standard errors have no value of a document, nor has a score to which it contributes nothing.
    """

    def is_nan(value: object) -> bool:
        return isinstance(value, float) and math.isnan(value)

    by_task = {}
    for task, logged in samples.items():
        filters = {
            name: i
            for i, name in enumerate(
                dict.fromkeys(sample["filter"] for sample in logged)
            )
        }
        scored = [
            {
                name: None if is_nan(value) else value
                for name, value in sample.items()
                if not name.endswith("_stderr")
            }
            for sample in logged
        ]
        by_task[task] = sorted(
            scored, key=lambda sample: (filters[sample["filter"]], sample["doc_id"])
        )
    return by_task


def save(
    tracker: Any, results: dict[str, Any], samples: dict[str, Any] | None
) -> list[Exception]:
    """Write and push results, and samples if any; errors don't stop it and are returned."""
    from lm_eval.loggers import evaluation_tracker

    failures: list[Exception] = []

    def keep(*_: object) -> None:  # in place of a warning, while the error is handled
        if isinstance(error := sys.exc_info()[1], Exception):
            failures.append(error)

    with internals.shadowed(evaluation_tracker.eval_logger, "warning", keep):
        tracker.save_results_aggregated(results=results, samples=samples)
        if samples is not None:
            for name in results["configs"]:
                tracker.save_results_samples(task_name=name, samples=samples[name])
    if not failures and (tracker.push_results_to_hub or tracker.push_samples_to_hub):
        try:
            tracker.recreate_metadata_card()
        except Exception as error:  # noqa: BLE001 (the hub fails in ways of its own)
            failures.append(error)
    return failures


def tables(results: dict[str, Any], without: Container[str] = ()) -> str:
    """The harness's own tables of tasks (``without`` some) and groups; empty if no scores are left."""
    from lm_eval.utils import make_table

    shown = {
        name: entry for name, entry in results["results"].items() if name not in without
    }
    if not any(
        "," in key for entry in shown.values() for key in entry
    ):  # groups of ours have no scores
        return ""
    groups = make_table(results, "groups") if "groups" in results else ""
    return "\n".join(filter(None, [make_table({**results, "results": shown}), groups]))


def keep(results: dict[str, Any], folder: str) -> None:
    """Write what ``simple_evaluate`` returned into a folder, as its command would have."""
    from lm_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=folder)
    config = results.get("config", {})
    given = config.get("model_args") or ""
    text = (
        given
        if isinstance(given, str)
        else ",".join(f"{name}={value}" for name, value in given.items())
    )
    tracker.general_config_tracker.log_experiment_args(
        str(config.get("model")), text, "", "", False
    )
    samples = results.get("samples")
    if failures := save(
        tracker,
        {key: value for key, value in results.items() if key != "samples"},
        samples,
    ):
        raise BiasError(
            f"results in memory can't be read: {one_line(failures[0])}"
        ) from failures[0]
