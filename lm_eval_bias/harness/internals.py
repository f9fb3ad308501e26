"""What this package uses of the harness beyond its documented interface, each use with its reason.

Documented are (docs of lm-eval 0.4: ``model_guide``, ``API_guide``, ``new_task_guide``, ``python-api``): ``LM``,
``TemplateLM``, ``HFLM``, ``Instance``, ``Filter``, ``ConfigurableTask``, ``TaskManager``, ``simple_evaluate``. What
follows was seen in 0.4.13 and the main branch of August 2026; ``tests/harness/test_contract.py`` holds each of
it against the installed release.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import inspect
import io
import json
import logging.handlers
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Data, Facts, redaction
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import LARGEST_YAML, parse_yaml, read_text

if TYPE_CHECKING:
    from lm_eval.api.filter import Filter
    from lm_eval.api.group import Group as Group
    from lm_eval.api.instance import Instance as Instance
    from lm_eval.api.model import LM, TemplateLM
    from lm_eval.api.task import Task as Task
    from lm_eval.config.evaluate_config import EvaluatorConfig as EvaluatorConfig
    from lm_eval.loggers import EvaluationTracker as EvaluationTracker
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager as TaskManager

    Requests = Sequence[Instance]

Ids = list[int]  # of tokens
Pair = tuple[Ids, Ids]  # a context and a continuation
# where the components of the harness's entry-point groups are kept
REGISTRIES = {
    "lm_eval.models": "model_registry",
    "lm_eval.filters": "filter_registry",
    "lm_eval.metrics": "metric_registry",
    "lm_eval.aggregations": "aggregation_registry",
}
# methods of its models that are shadowed on one instance while it is asked
ENCODE_PAIR = (
    "_encode_pair"  # of TemplateLM: the tokens of a context and its continuation
)
LOGLIKELIHOOD_TOKENS = "_loglikelihood_tokens"  # of TemplateLM: answers to requests that are encoded already
DETECT_BATCH_SIZE = (
    "_detect_batch_size"  # of HFLM, called before every generation with batch_size=auto
)
MODEL_GENERATE = "_model_generate"  # of VLLM: tokens to texts, with why these ended
REFUSES = "refuses"  # on a request type's method that only refuses: why
WRITE_OUT = "lm_eval.evaluator_utils"  # the logger that --write_out writes prompts to
NO_DOCUMENTS = "did not find any docs"


def as_logged(doc: object, answers: object) -> list[Any]:
    """Return a document and its filtered answers as a sample log holds them."""
    from lm_eval.utils import sanitize_list

    logged: list[Any] = as_saved([doc, sanitize_list(answers)])
    return logged


def as_saved(data: object) -> Any:
    """Return data as the harness saves them: library types become numbers, lists and texts."""
    from lm_eval.utils import handle_non_serializable

    return json.loads(json.dumps(data, default=handle_non_serializable))


@contextlib.contextmanager
def shadowed(instance: object, name: str, value: object) -> Iterator[None]:
    """Replace an attribute of one object (instance, class or module) while the context lasts."""
    before = dict(vars(instance))
    setattr(instance, name, value)
    try:
        yield
    finally:
        delattr(instance, name)
        if name in before:
            setattr(instance, name, before[name])


def registries() -> Data:
    """Return the harness's registries by entry-point group."""
    import lm_eval.api.metrics
    import lm_eval.filters
    import lm_eval.models  # noqa: F401 (the harness fills its registries on import only while they are empty)
    from lm_eval.api import registry

    return {group: getattr(registry, name) for group, name in REGISTRIES.items()}


def model_class(name: str) -> type[LM]:
    """Import the class of a model type.

    Raises:
        ImportError: A package that it needs isn't installed.
        ValueError: There is no such model type, or a KeyError in some releases.
    """
    from lm_eval.api.registry import get_model

    return get_model(name)


def filter_of(step: Facts) -> Filter:
    """Make a filter of answers from its step in a YAML, in which functions are dotted names."""
    from lm_eval.api.registry import get_filter

    arguments = {key: value for key, value in step.items() if key != "function"}
    own = arguments.get("filter_fn")
    if own:
        arguments["filter_fn"] = pkgutil.resolve_name(own)
    return get_filter(step["function"])(**arguments)


def request_key(kind: str, arguments: Sequence[object]) -> str:
    """Return the key of an answer in the file of ``--use_cache``."""
    from lm_eval.api.model import hash_args

    return hash_args(kind, arguments)


def loglikelihood_tokens(
    model: TemplateLM, requests: list[tuple[tuple[str, str], Ids, Ids]]
) -> list[tuple[float, bool]]:
    """Answer requests given as token ids; the documented method takes only texts."""
    return list(getattr(model, LOGLIKELIHOOD_TOKENS)(requests))


def encode_pair(model: TemplateLM, context: str, continuation: str) -> Pair:
    """Encode a context and its continuation as the model's own ``loglikelihood`` does."""
    if not context:
        return [model.prefix_token_id], model.tok_encode(
            continuation, add_special_tokens=False
        )
    return getattr(model, ENCODE_PAIR)(context, continuation)


def concurrency(model: LM) -> int:
    """Return the number of concurrent requests of a server's client (``num_concurrent``)."""
    return max(1, getattr(model, "_concurrent", 1))


def end_tokens(model: HFLM) -> set[int]:
    """Return the end tokens of the harness's ``hf``, from tokenizer and generation configuration."""
    generation = attribute(model.model, "generation_config")
    configured = getattr(generation, "eos_token_id", None)
    listed = configured if isinstance(configured, list) else [configured]
    return {model.eot_token_id, *listed} - {None}


def attribute(model: object, name: str, default: object = None) -> Any:
    """Return an attribute of a model, or the default if it is missing or its property raises."""
    try:
        return getattr(model, name, default)
    except Exception:  # noqa: BLE001 (other people's code, which may download)
        return default


def share(model: LM) -> None:
    """Divide the requests of ``hf`` among processes without GPUs, too."""
    accelerator = attribute(model, "accelerator")
    if getattr(accelerator, "num_processes", 1) > model.world_size:
        model._rank = accelerator.process_index
        model._world_size = accelerator.num_processes


def window(model: LM) -> int | None:
    """Return the context window of a causal model in tokens; ``None`` if unknown.

    The harness's ``hf`` doesn't read the last one, and its ``vllm`` writes one more. Some servers get plain texts.
    """
    kind = type(model)
    limit = attribute(model, "max_length")
    is_causal = attribute(model, "backend", "causal") == "causal"
    has_tokens = attribute(
        model, "tokenized_requests", derives_from(kind, "TemplateLM")
    )
    if not isinstance(limit, int) or not is_causal or not has_tokens:
        return None
    return limit + derives_from(kind, "HFLM") - derives_from(kind, "VLLM")


def generate_silently(model: LM, requests: Requests) -> list[str]:
    """Run ``generate_until`` without a progress bar, if the model can."""
    options = {}
    if "disable_tqdm" in inspect.signature(model.generate_until).parameters:
        options["disable_tqdm"] = True
    return list(model.generate_until(requests, **options))


def is_greedy(gen_kwargs: Facts) -> bool:
    """Return whether generation options ask for greedy decoding.

    >>> is_greedy({"do_sample": False}), is_greedy({"temperature": 0.0}), is_greedy({"temperature": 0.7})
    (True, True, False)
    """
    return (
        gen_kwargs.get("do_sample") in (False, "false", "False")
        or gen_kwargs.get("temperature") == 0
    )


def key_values(text: str) -> Data:
    """Parse ``KEY=VALUE,KEY=VALUE`` as the harness reads ``--model_args``."""
    from lm_eval.utils import simple_parse_args_string

    return simple_parse_args_string(text)


@contextlib.contextmanager
def no_client_bars(model: LM) -> Iterator[None]:
    """Hide a server client's progress bars, whatever its ``disable_tqdm`` says."""
    if not is_client(model):
        yield
        return
    from lm_eval.models import api_models

    hidden = functools.partial(api_models.tqdm, disable=True)
    with shadowed(api_models, "tqdm", hidden):
        yield


def is_client(model: LM | type[LM]) -> bool:
    """Return whether a model, or its class, is a client of a server."""
    return hasattr(model, "_create_payload")


def derives_from(kind: type[object], *names: str) -> bool:
    """Return whether a model class has one of these names among its bases, without importing them."""
    return any(owner.__name__ in names for owner in getattr(kind, "__mro__", ()))


def impossible(
    kind: type[LM], arguments: Facts, asks: Sequence[str], methods: Sequence[str]
) -> BiasError | None:
    """Explain why a model class can't answer requests, as far as known in advance; ``None`` if it can.

    Args:
        kind: The class.
        arguments: The ``--model_args``.
        asks: Kinds of questions, ``loglikelihood`` or ``generate_until``.
        methods: Names of the request types.
    """
    if hasattr(kind, "refusal"):
        return kind.refusal(arguments, asks)
    for name in methods:
        problem = getattr(getattr(kind, name, None), REFUSES, "")
        if problem:
            return BiasError(f"the model type {kind.__name__} {problem}")
    if set(asks) != {"generate_until"} and "Chat" in asker(kind):
        return no_loglikelihoods(kind.__name__)
    return None


def no_loglikelihoods(model: str) -> BiasError:
    """Make the error for a backend that only writes texts."""
    return BiasError(
        f"the model type {model} gives no log-likelihoods, which these tasks need: use a completions endpoint with "
        "log-probabilities (local-completions), hf or vllm"
    )


def asker(kind: type[LM]) -> str:
    """Return the name of the class that defines a model type's ``loglikelihood``."""
    for base in getattr(kind, "__mro__", ()):
        if "loglikelihood" in vars(base):
            return base.__name__
    return ""


def tasks_folder() -> Path:
    """Return the installed harness's task folder, where ``link`` writes."""
    import lm_eval

    return Path(lm_eval.__path__[0]) / "tasks"


def _is_not_of_a_tag(line: logging.LogRecord) -> bool:
    """Return whether a log line is about duplicate tasks, not about a tag, which tasks share by design."""
    return None not in (line.args or ())


def task_manager(
    include_path: Sequence[str | Path] = (),
    metadata: Facts | None = None,
) -> TaskManager:
    """Build the harness's index of the tasks in some folders, without reading the thousands of its own YAMLs."""
    from lm_eval.tasks import TaskManager as TaskManager

    paths = list(map(str, include_path))
    logging.getLogger("lm_eval.tasks._index").addFilter(_is_not_of_a_tag)
    return TaskManager(
        include_path=paths, metadata=dict(metadata or {}), include_defaults=False
    )


def set_up_logging(level: int | str) -> None:
    """Set up logging of the harness and of this package to standard error."""
    from lm_eval.utils import setup_logging

    setup_logging(level)
    # what it logs of a full disk comes as an error, too
    logging.getLogger("sqlitedict").setLevel(logging.CRITICAL)


@contextlib.contextmanager
def held_back() -> Iterator[Callable[[], None]]:
    """Buffer all logging until the yielded function is called, so that a refusal is one line."""
    logger = logging.getLogger("lm_eval")
    handlers = logger.handlers
    held = logging.handlers.BufferingHandler(sys.maxsize)

    def release() -> None:
        logger.handlers = handlers
        while held.buffer:
            logger.handle(held.buffer.pop(0))

    if logger.getEffectiveLevel() > logging.DEBUG:
        logger.handlers = [held]
    try:
        yield release
    except (BiasError, SystemExit):
        held.buffer.clear()
        raise
    finally:
        release()


def run_parser(outer: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Make the parser of the harness's ``run`` with all its flags, of the same class as the outer parser."""
    from lm_eval._cli.run import Run

    commands = outer.add_subparsers(dest="command", parser_class=type(outer))
    Run.create(commands)
    return commands.choices["run"]


def configuration(flags: Facts) -> EvaluatorConfig:
    """Make a run's configuration from the harness's flags, including a ``--config`` file.

    Raises:
        BiasError: A flag or a key of the file is wrong or unknown, or the file can't be read.
    """
    from lm_eval.config.evaluate_config import EvaluatorConfig

    file = flags.get("config")
    if file and os.path.isfile(file):
        text = read_text(Path(file), largest=LARGEST_YAML)
        redaction.learn(parse_yaml(text, f"--config {file}"))
    # it prints the content of --config, with all keys
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            return EvaluatorConfig.from_cli(argparse.Namespace(**flags))
        except TypeError as error:
            place = f"--config {flags['config']}: " if flags.get("config") else ""
            raise BiasError(f"{place}{one_line(error)}") from error
        except (ValueError, OSError) as error:
            raise BiasError(one_line(error)) from error


def name_model(
    results: Data,
    tracker: EvaluationTracker,
    model: LM,
    kind: str,
    arguments: Facts,
) -> None:
    """Record the model's type and device in results and tracker, and name its folder."""
    facts = tracker.general_config_tracker
    results["config"]["model"] = facts.model_source = kind
    # of LM: none where the model is elsewhere, or nowhere
    device = attribute(model, "device")
    results["config"]["device"] = None if device is None else str(device)
    if facts.model_name not in map(str, arguments.values()):  # a random word
        facts.model_name = facts.model_name_sanitized = kind
    for name, value in vars(facts).items():
        setattr(facts, name, redaction.masked(redaction.arguments(value)))
    path = os.path.expanduser(facts.model_name)
    if path.startswith((".", "/")) or os.path.exists(path):
        # models in other folders may have the same name
        place = os.path.realpath(path).encode("utf-8", "surrogateescape")
        digest = hashlib.sha256(place).hexdigest()[:8]
        base = os.path.basename(os.path.abspath(path))
        name = re.sub(r"[^\w.+-]+", "_", base).lstrip(".") or "model"
        facts.model_name_sanitized = f"{name}-{digest}"
