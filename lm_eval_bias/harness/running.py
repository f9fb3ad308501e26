"""One evaluation by the harness. The model is built here, so that its errors can be told from others."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import logging
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, TypeAlias

from lm_eval_bias.core import Data, redaction
from lm_eval_bias.core.answers import finish_reasons
from lm_eval_bias.core.errors import BiasError, import_failure, one_line
from lm_eval_bias.core.files import writable
from lm_eval_bias.core.numbers import plain
from lm_eval_bias.harness import distributed, internals, servers
from lm_eval_bias.harness.score_aggregation import BareCarrier, in_results

if TYPE_CHECKING:
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker, TrackioLogger, WandbLogger
    from lm_eval.tasks import TaskManager

    from lm_eval_bias.harness.internals import EvaluatorConfig

    Service: TypeAlias = "WandbLogger | TrackioLogger"

logger = logging.getLogger("lm_eval.bias")
Results = Data  # as simple_evaluate returns them
Samples = dict[str, list[Data]]  # by task
# methods of a backend in which it may fail
_BACKEND = {
    "loglikelihood",
    "loglikelihood_rolling",
    "generate_until",
    internals.LOGLIKELIHOOD_TOKENS,
    "tok_encode",
    "apply_chat_template",
    "chat_template",
}


def loggers(config: EvaluatorConfig) -> tuple[EvaluationTracker, list[Service]]:
    """Make the tracker that saves results, and the services that they are sent to.

    Raises:
        BiasError: One of them refuses its arguments.
    """
    from lm_eval import loggers

    if config.output_path:
        config.hf_hub_log_args["output_path"] = config.output_path
    if os.environ.get("HF_TOKEN"):
        config.hf_hub_log_args["token"] = os.environ["HF_TOKEN"]
    for package in ("wandb", "trackio"):
        is_wanted = getattr(config, f"{package}_args", None)
        if is_wanted and importlib.util.find_spec(package) is None:
            raise BiasError(
                f"--{package}_args: {package} is not installed: pip install {package}"
            )
    flags = "--hf_hub_log_args"
    services = []
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
        raise BiasError(f"{flags}: {one_line(error)}") from error
    return tracker, services


def send(services: list[Service], results: Results, samples: Samples | None) -> None:
    """Send results to dashboards; errors are logged only."""
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


class HarnessRun:
    """An evaluation by the harness: its tasks, model and outputs.

    Attributes:
        tracker: Saves results.
        services: Dashboards that results are sent to.
        model: As the harness builds it; ``None`` before it is loaded.
    """

    def __init__(self, config: EvaluatorConfig, manager: TaskManager) -> None:
        """Build the tracker and the loggers of the results.

        Args:
            config: The run's flags, with its tasks.
            manager: What loaded the tasks.

        Raises:
            BiasError: One of the services refuses its arguments.
        """
        self._config = config
        self._manager = manager
        self.tracker, self.services = loggers(config)
        self.model: LM | None = None

    def load(self) -> LM:
        """Build the model as ``simple_evaluate`` does, and return it.

        Raises:
            BiasError: It can't be built; with the reason in one line.
        """
        import numpy as np
        import torch

        config = self._config
        shape = {
            name: getattr(config, name)
            for name in ("batch_size", "max_batch_size", "device")
        }
        seeds = (random.seed, np.random.seed, torch.manual_seed)
        arguments = config.model_args
        try:
            for seed, value in zip(seeds, config.seed or (), strict=False):
                if value is not None:
                    seed(value)
            kind = servers.checked(internals.model_class(config.model))
            self.model = kind.create_from_arg_obj(config.model_args, shape)
            internals.share(self.model)
        except BiasError:
            raise
        except Exception as error:
            given = redaction.as_flag(arguments)
            message = self._why_not_loaded(error)
            raise BiasError(
                f"--model {config.model} --model_args {given}: {message}"
            ) from error
        return self.model

    def _why_not_loaded(self, error: Exception) -> str:
        """Explain in one line why the model can't be loaded."""
        text = import_failure(error)
        unrecognized = re.match(
            r"Unrecognized configuration class \S*?(\w+)'?> for this kind of AutoModel: (\w+)",
            text,
        )
        if unrecognized:
            return (
                f"a {unrecognized[1]} isn't a model that {unrecognized[2]} can load: --model hf-mlm is for masked "
                "language models, hf for causal and encoder-decoder ones, hf-multimodal for those that see"
            )
        if re.fullmatch(r"unknown argument 'load_in_\dbit'", text):
            return (
                f"{text} of transformers from release 5 on, where it is part of a quantization_config, which "
                "--model_args can't say: name a checkpoint that was saved quantized, or use transformers below 5"
            )
        is_client = internals.is_client(internals.model_class(self._config.model))
        if is_client and "tokenizer" not in self._config.model_args:
            return f"the tokenizer is looked for under the model's name: add tokenizer=NAME_OR_FOLDER ({text:.200})"
        return text

    def ask(self) -> Results | None:
        """Run the harness; return its results, ``None`` on all ranks but the first.

        Raises:
            BiasError: The model's backend failed.
        """
        from lm_eval import evaluator, simple_evaluate

        config = self._config
        named = internals.shadowed(evaluator, "get_git_commit_hash", _repository_commit)
        with self.answering(), servers.asking(self.model), named:
            results = simple_evaluate(
                **arguments(
                    config, simple_evaluate, self.model, self._manager, self.tracker
                )
            )
        if results is not None:
            internals.name_model(
                results, self.tracker, self.model, config.model, config.model_args
            )
            _in_range_of_json(results)
        return results

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Turn errors of the model's backend, or of the answers' cache, into one line."""
        try:
            yield
        except BiasError:
            raise
        except Exception as error:
            reason = self._why_not_answered(error)
            if reason is None:
                raise
            raise BiasError(reason) from error

    def _why_not_answered(self, error: Exception) -> str | None:
        """Explain in one line why the model failed to answer; ``None`` if the fault is elsewhere."""
        config = self._config
        message = one_line(error)
        if internals.NO_DOCUMENTS in message:
            return "a process got no items of one of the harness's tasks: use fewer processes or a larger --limit"
        if isinstance(error, sqlite3.Error):
            return (
                f"--use_cache {config.use_cache}: {message}: "
                "the answers so far are kept: make room, and run the same command again to resume"
            )
        if not any(
            frame.f_code.co_name in _BACKEND
            and frame.f_locals.get("self") is self.model
            for frame, _ in traceback.walk_tb(error.__traceback__)
        ):
            return None
        logger.debug("where the model failed", exc_info=error)
        given = config.model_args
        shown = redaction.arguments(given)
        places = [key for key in ("base_url", "pretrained", "model") if key in shown]
        checkpoint = f" {places[0]}={shown[places[0]]}" if places else ""
        rows = _too_few_rows(self.model)
        if rows and isinstance(error, IndexError | RuntimeError):
            message = f"{rows}: name the tokenizer that belongs to the model (--model_args tokenizer=...)"
        elif type(error) is not ValueError and type(error).__name__ not in message:
            message = f"{type(error).__name__}: {message}"
        note = "with --use_cache FILE a run keeps its answers, and the same command resumes it"
        if config.use_cache:
            note = f"the answers so far are kept in {config.use_cache}: run the same command again to resume"
        message = message.rstrip(".")
        return (
            f"--model {config.model}{checkpoint}: {message} (nothing was saved; {note})"
        )


def _in_range_of_json(results: Results) -> None:
    """Replace scores that JSON can't hold by words, in place, and drop the harness's errors of errors."""
    entries = [*results["results"].values(), *results.get("groups", {}).values()]
    for scores in entries:
        for key, value in list(scores.items()):
            if "_stderr_stderr," in key:  # the harness's, of our standard errors
                del scores[key]
            elif isinstance(value, float):
                scores[key] = in_results(value)


def _too_few_rows(model: LM) -> str:
    """Warn of a tokenizer with more tokens than the model has embeddings; empty if it hasn't."""
    with contextlib.suppress(AttributeError, NotImplementedError):
        rows = model.model.get_input_embeddings().weight.shape[0]
        tokens = len(model.tokenizer)
        if tokens > rows:
            return (
                f"the tokenizer has {tokens:,} tokens, the model embeddings of {rows:,}"
            )
    return ""


def arguments(
    config: EvaluatorConfig,
    function: Callable[..., Results],
    model: LM,
    manager: TaskManager,
    tracker: EvaluationTracker,
) -> Data:
    """Collect the arguments of ``simple_evaluate`` from the configuration, as the harness's own ``run`` does."""
    caching = ("cache_requests", "rewrite_requests_cache", "delete_requests_cache")
    kinds = ("random", "numpy_random", "torch_random", "fewshot_random")
    special = {"model": model, "task_manager": manager, "evaluation_tracker": tracker}
    special["log_samples"] = True  # answers are saved without their texts in any case
    for name in caching:
        special[name] = config.cache_requests.get(name, False)
    for kind, seed in zip(kinds, config.seed or [None] * 4, strict=True):
        special[f"{kind}_seed"] = seed
    names = inspect.signature(function).parameters
    chosen = {name: getattr(config, name) for name in names if hasattr(config, name)}
    return chosen | {name: special[name] for name in names if name in special}


def _repository_commit() -> str | None:
    """Name the commit of the current folder as the harness does, without git's complaint where there is none."""
    if shutil.which("git") is None:
        return None
    command = ["git", "describe", "--always"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (constants)
    return done.stdout.strip() or None


def samples_in_order(
    samples: Samples,
) -> Samples:
    """Sort samples by document, and drop their standard errors."""
    by_task = {}
    for task, logged in samples.items():
        filters = list(dict.fromkeys(sample["filter"] for sample in logged))
        scored = []
        for sample in logged:
            metrics = [one for one in sample["metrics"] if not one.endswith("_stderr")]
            kept = {key: sample[key] for key in sample if not key.endswith("_stderr")}
            kept["metrics"] = metrics
            for name in ("doc", *metrics):
                is_empty = isinstance(sample[name], BareCarrier)
                kept[name] = None if is_empty else plain(sample[name])
            reasons = finish_reasons(sample["resps"])
            if reasons:
                kept["finish_reasons"] = reasons
            scored.append(writable(kept))
        scored.sort(
            key=lambda sample: (filters.index(sample["filter"]), sample["doc_id"])
        )
        by_task[task] = scored
    return by_task


def save(
    tracker: EvaluationTracker,
    results: Results,
    samples: Samples | None,
    push: bool = True,
) -> list[Exception]:
    """Write and push results and samples; return all errors.

    Args:
        tracker: The harness's.
        results: The run's.
        samples: Its answers.
        push: Whether they may be pushed, too.
    """
    from lm_eval.loggers import evaluation_tracker

    failures = []
    tracker.push_samples_to_hub = tracker.push_samples_to_hub and push

    def keep(*_: object) -> None:  # in place of a warning, while the error is handled
        error = sys.exc_info()[1]
        if isinstance(error, Exception):
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


def tables(results: Results, left_out: Collection[str]) -> str:
    """Make the harness's own tables of tasks and groups; empty if there are no scores to show.

    Args:
        results: Of a run.
        left_out: Tasks without a row.
    """
    from lm_eval.utils import make_table

    shown = {
        name: entry
        for name, entry in results["results"].items()
        if name not in left_out
    }
    # groups of ours have no scores
    if not any("," in key for entry in shown.values() for key in entry):
        return ""
    groups = make_table(results, "groups") if "groups" in results else ""
    return "\n".join(filter(None, [make_table({**results, "results": shown}), groups]))


def keep(results: Results, folder: str) -> None:
    """Write the results of ``simple_evaluate`` into a folder, as the harness's command would have."""
    from lm_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=folder)
    config = results.get("config", {})
    given = redaction.as_flag(config.get("model_args"))
    tracker.general_config_tracker.log_experiment_args(
        str(config.get("model")), given, "", "", False
    )
    scores = {key: value for key, value in results.items() if key != "samples"}
    failures = save(tracker, scores, results.get("samples"))
    if failures:
        raise BiasError(
            f"results in memory can't be read: {one_line(failures[0])}"
        ) from failures[0]
