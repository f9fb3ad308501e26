"""Refusals before a model is loaded: flags, tasks, metadata keys, model types, devices, missing data."""

from __future__ import annotations

import fnmatch
import logging
import math
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import Data, Facts, registry
from lm_eval_bias.core.benchmark import (
    DATA,
    REQUIRED,
    SAMPLES,
    SAMPLES_BY_DEFAULT,
    options_for,
    repeats,
    samples_texts,
)
from lm_eval_bias.core.catalog import Entry
from lm_eval_bias.core.errors import (
    BiasError,
    did_you_mean,
    import_failure,
    one_line,
    require_extra,
)
from lm_eval_bias.core.files import expanded, why
from lm_eval_bias.core.numbers import join_some, grouped
from lm_eval_bias.core.questions import CONTRAST, KINDS, SENTENCE_LIKELIHOODS
from lm_eval_bias.data.sources import fetch
from lm_eval_bias.harness import internals, registration

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")
Entries = Mapping[str, Entry]
_ANY_GPU = "cuda:0"  # the harness's default for --device, with which it takes the CPU where there is no GPU
# servers of the user's own, and the ends of their addresses
_ROUTES = {
    "local-completions": "v1/completions",
    "local-chat-completions": "v1/chat/completions",
}


def split_tasks(tasks: str | list[str] | None) -> list[str]:
    """Split names from ``--tasks a,b c``."""
    if not isinstance(tasks, str | list | None):
        raise BiasError(f"--tasks {tasks!r}: must be names of tasks")
    texts = [tasks] if isinstance(tasks, str) else tasks or []
    names = map(str.strip, ",".join(texts).split(","))
    return list(filter(None, names))


def without_tags(tasks: str | list[str] | None, entries: Entries) -> list[str]:
    """Return names of tasks, with the tasks that have a tag (``social_bias``) in its place."""
    names = []
    for name in split_tasks(tasks):
        tagged = [entry.name for entry in entries.values() if name in entry.tags]
        names += tagged or [name]
    return names


def only_ours(names: list[str], entries: Entries) -> bool:
    """Tell whether every name or pattern can only mean tasks with YAMLs of this package's kind."""
    families = tuple(registry.by_name())
    for name in names:
        stem = re.split(r"[*?\[]", name)[0]
        entry = entries.get(name)
        if entry is None:
            is_ours = stem != name and stem.startswith(families)
        else:
            is_ours = entry.path is not None
        if not is_ours:
            return False
    return bool(names)


def named_entries(config: EvaluatorConfig, entries: Entries) -> list[Entry]:
    """Return our tasks among those that ``--tasks`` names, with groups resolved."""
    named: dict[str, None] = {}
    for name in split_tasks(config.tasks):
        for match in fnmatch.filter(entries, name):
            named |= dict.fromkeys(entries[match].members or (match,))
    return [entries[task] for task in named]


def request_kinds(entries: list[Entry]) -> list[str]:
    """Return the kinds of requests of some tasks."""
    return sorted({kind for entry in entries for kind in entry.asks})


def tasks_of(tasks_and_groups: Iterable[Any]) -> Data:
    """Return tasks and those of groups by name."""
    tasks: Data = {}
    for top in tasks_and_groups:
        members = top.get_all_tasks() if hasattr(top, "get_all_tasks") else [top]
        tasks.update((task.task_name, task) for task in members)
    return tasks


def check_flags(config: EvaluatorConfig) -> None:
    """Refuse flags that would fail only after the model was loaded, lose a finished run, or be ignored."""
    limit = 1 if config.limit is None else config.limit
    if not 0 < limit < math.inf or (limit > 1 and limit != int(limit)):
        raise BiasError(
            f"--limit {limit:g}: must be a whole number of documents above 0, or a share between 0 and 1"
        )
    samples = config.samples
    if samples is not None and (not samples or not isinstance(samples, dict)):
        raise BiasError(
            f'--samples {samples}: neither a file nor JSON such as {{"task": [0, 1]}}'
        )
    for name, indices in (samples or {}).items():
        is_list = isinstance(indices, list) and indices
        if not is_list or any(type(i) is not int or i < 0 for i in indices):
            raise BiasError(
                f"--samples {name}: must be a list of document numbers, as in [0, 1]"
            )
    if not re.fullmatch(r"auto(:\d+(\.\d+)?)?|0*[1-9]\d*", str(config.batch_size)):
        raise BiasError(
            f"--batch_size {config.batch_size}: must be a whole number above 0, auto or auto:N"
        )
    if config.output_path:
        out = Path(config.output_path)
        place = out.parent if out.suffix == ".json" else out
        try:
            while not os.path.lexists(place):
                place = place.parent
            tempfile.TemporaryFile(dir=place).close()
        except (OSError, ValueError) as error:
            raise BiasError(
                f"--output_path {out} cannot be written: {why(error)}"
            ) from error


def before_loading(
    config: EvaluatorConfig, entries: Entries, device: str | None
) -> None:
    """Make the first checks, before tasks are loaded, and fetch missing data.

    ``device`` is the flag as given, ``None`` without one.
    """
    names = split_tasks(config.tasks)
    ours = named_entries(config, entries)
    metadata = config.metadata
    if not names:
        raise BiasError(
            "no task is named: give --tasks, for example --tasks occugender,gg_bbq ('lm-eval-bias ls')"
        )
    if config.include_path and not os.path.isdir(expanded(config.include_path)):
        raise BiasError(f"--include_path {config.include_path}: no such folder")
    if config.limit is not None:
        _warn_of_limit(config.limit, ours)
    _check_prompts(config, ours)
    _check_metadata(config, ours, only_ours(names, entries))
    check_model(config)
    if config.model.startswith("hf") and (device or config.device != _ANY_GPU):
        import torch

        try:  # the harness takes another device where this one isn't there, and says nothing
            torch.empty(0, device=config.device)
        except Exception as error:  # each kind of device fails in a way of its own
            raise BiasError(f"--device {config.device}: {one_line(error)}") from error
    sets = []
    for entry in ours:
        benchmark = entry.definition
        given = set(benchmark.options.roles) & set(metadata)
        if entry.path is not None and (given or options_for(benchmark, REQUIRED)):
            options = {**entry.metadata, **metadata}
            repeats(benchmark, options)
            benchmark.options.check(options)
        # data of the user's own are looked for when the task is built
        if entry.data and not set(options_for(benchmark, DATA)) & set(metadata):
            sets.append(entry.data)
    if sets:  # none would be all
        fetch(dict.fromkeys(sets))


def _check_prompts(config: EvaluatorConfig, entries: list[Entry]) -> None:
    """Say which tasks pass flags over; refuse one that would glue two sentences together."""
    ours = [entry for entry in entries if entry.path is not None]
    plain = [entry for entry in ours if set(entry.asks) & set(KINDS)]
    for flag, concerned, says in (
        ("num_fewshot", ours, "no examples in the prompts"),
        ("apply_chat_template", plain, "plain sentences are scored"),
        ("system_instruction", plain, "plain sentences are scored"),
    ):
        if concerned and getattr(config, flag):
            names = [entry.name for entry in concerned]
            logger.warning(
                "--%s doesn't apply to %s (%s)", flag, join_some(names), says
            )
    asks_prompts = len(ours) > len(plain)
    if asks_prompts and config.system_instruction and not config.apply_chat_template:
        raise BiasError(
            "--system_instruction: without a chat template the harness glues it to the prompt: add "
            "--apply_chat_template"
        )


def _warn_of_limit(limit: float, entries: list[Entry]) -> None:
    """Warn of a limit with which scores have no intervals or aren't balanced, and say which one would do."""
    small = []
    for entry in entries:
        documents = limit if limit >= 1 else limit * (entry.items or math.inf)
        if entry.smallest and documents < entry.smallest:
            small.append((entry.smallest, entry.name))
    for least, names in sorted(grouped(small).items()):
        logger.warning(
            "--limit %g is too small for intervals and balanced items: give at least %d for %s",
            limit,
            least,
            join_some(names),
        )


def check_samples(config: EvaluatorConfig, top_level: Iterable[Any]) -> None:
    """Refuse ``--samples`` for a task that isn't run, or with a document that isn't there."""
    tasks = tasks_of(top_level)
    for name, indices in (config.samples or {}).items():
        if name not in tasks:
            raise BiasError(
                f"--samples names {name!r}, which is not among --tasks.{did_you_mean(name, tasks)}"
            )
        number = len(tasks[name].eval_docs)
        if max(indices) >= number:
            raise BiasError(
                f"--samples {name}: there is no document {max(indices)}: they go from 0 to {number - 1}"
            )
        # the harness runs them in the data's order and names them in the given one
        config.samples[name] = sorted(set(indices))


def _check_metadata(config: EvaluatorConfig, entries: list[Entry], alone: bool) -> None:
    """Refuse a key that no named task knows; beside tasks of the harness, only one that looks like a misspelling."""
    known: set[str] = set()
    for entry in entries:
        options = entry.definition.options.roles
        known.update(options)
        for key in config.model_args:
            if key in entry.metadata or key in options:
                raise BiasError(
                    f"--model_args {key}=: the harness passes it to tasks, too, and {entry.name} has its own (give "
                    "options with --metadata)"
                )
    for key in config.metadata:
        if key in config.model_args:
            continue
        hint = did_you_mean(key, sorted(known))
        if key not in known and entries and (alone or hint):
            raise BiasError(
                f"--metadata key {key!r} is unknown to these tasks.{hint} Known: {', '.join(sorted(known))}"
            )
        for entry in entries if key in known else ():
            if key in entry.metadata and key not in entry.definition.options.roles:
                raise BiasError(
                    f"--metadata {key}: {entry.name} has its own {key!r}: run tasks with this option separately"
                )


def check_model(config: EvaluatorConfig) -> None:
    """Refuse an unknown model type, and a model path that doesn't exist, before anything is loaded."""
    registration.register()
    known = list(internals.registries()["lm_eval.models"])
    if config.model not in known:
        raise BiasError(
            f"no model type named {config.model!r}.{did_you_mean(config.model, known)}"
        )
    if config.model_args.get("gguf_file"):
        require_extra("gguf")
    pretrained = str(config.model_args.get("pretrained", ""))
    is_path = pretrained.startswith((".", "/", "~")) or pretrained.count("/") > 1
    if is_path and not os.path.exists(expanded(pretrained)):
        raise BiasError(f"--model_args pretrained={pretrained}: no such folder")
    revision = config.model_args.get("revision", "main")
    is_folder = os.path.isdir(os.path.expanduser(pretrained))
    # of an adapter it may be the commit
    if is_folder and revision != "main" and not config.model_args.get("peft"):
        raise BiasError(
            f"--model_args revision={revision}: pretrained={pretrained} is a folder, which has no revisions: leave it "
            "out, or name the model as the Hub does"
        )
    if config.model in _ROUTES and not config.model_args.get("base_url"):
        raise BiasError(
            f"--model {config.model}: add --model_args base_url=http://HOST:PORT/{_ROUTES[config.model]}"
        )


def _check_tokenizer(config: EvaluatorConfig, kind: Any, asks: list[str]) -> None:
    """Refuse to ask a server for log-likelihoods without the tokens that its answer is cut by."""
    if not internals.is_client(kind) or set(asks) <= {"generate_until"}:
        return
    for name, useless in (
        ("tokenizer_backend", "none"),
        ("tokenized_requests", "false"),
    ):
        if str(config.model_args.get(name, "")).lower() == useless:
            raise BiasError(
                f"--model_args {name}=: log-likelihoods of a server are cut by tokens: leave it out and give "
                "tokenizer=NAME_OR_FOLDER, or run the tasks whose names end in _gen"
            )


def check_requests(config: EvaluatorConfig, entries: list[Entry]) -> None:
    """Refuse a model type that cannot answer what the tasks ask, and flags out of place."""
    from lm_eval_bias.scoring import sampled_texts

    kind = _model_class(config)
    asks = request_kinds(entries)
    problem = misfit(config, entries)
    if problem:
        refused = [entry.name for entry in entries if misfit(config, [entry])]
        has_others = any(isinstance(task, str) for task in config.tasks)
        if len(refused) < len(entries) or has_others:
            raise BiasError(f"{problem}: leave out {join_some(refused)}")
        raise problem
    _check_tokenizer(config, kind, asks)
    if asks and "Chat" in internals.asker(kind) and not config.apply_chat_template:
        raise BiasError(
            f"--model {config.model} sends conversations instead of plain texts: add --apply_chat_template"
        )
    _warn_of_base_models(config, entries, kind)
    greedy = internals.is_greedy(config.gen_kwargs)
    needed = (SAMPLES,) if greedy else (SAMPLES, SAMPLES_BY_DEFAULT)
    sampled = [
        entry.name for entry in entries if samples_texts(entry.definition) in needed
    ]
    if sampled and greedy:
        raise BiasError(
            f"--gen_kwargs: {sampled[0]} compares samples: leave out do_sample=false and temperature=0"
        )
    has_seeds = "seed" in config.gen_kwargs or sampled_texts.seeded(kind)
    if sampled and internals.is_client(kind) and not has_seeds:
        raise BiasError(
            f"{sampled[0]} samples every prompt many times, but --model {config.model} "
            "sends the same seed each time, and gets the same answer: add --gen_kwargs '{\"seed\": null}'"
        )


def _warn_of_base_models(
    config: EvaluatorConfig, entries: list[Entry], kind: Any
) -> None:
    """Say what to expect of tasks that read an answer from a model that isn't asked as a chat model."""
    is_plain = internals.derives_from(kind, "HFLM", "VLLM", "TemplateAPI")
    if config.apply_chat_template or not is_plain:
        return
    read = [
        entry.name
        for entry in entries
        if "generate_until" in entry.asks and samples_texts(entry.definition) != SAMPLES
    ]
    if read:
        logger.warning(
            "%s: without --apply_chat_template a model may write on behind its answer, up to max_gen_toks= tokens, or "
            "give none; base models are better asked by the tasks without _gen",
            join_some(read),
        )


def _model_class(config: EvaluatorConfig) -> Any:
    """Import the class of the model type.

    Raises:
        BiasError: One of its packages isn't installed.
    """
    try:
        return internals.model_class(config.model)
    except (ImportError, ValueError, KeyError) as error:
        raise BiasError(f"--model {config.model}: {import_failure(error)}") from error


def misfit(config: EvaluatorConfig, entries: list[Entry]) -> BiasError | None:
    """Say why the model type or the flags don't fit what tasks ask; ``None`` where they do, or that isn't known."""
    asks = request_kinds(entries)
    if not asks:
        return None
    kind = _model_class(config)
    problem = internals.impossible(kind, config.model_args, asks, asks)
    if problem is None and internals.derives_from(kind, "HFLM"):
        return _unfit_architecture(config.model_args, asks)
    return problem


def _unfit_architecture(model_args: Facts, asks: list[str]) -> BiasError | None:
    """Say what a checkpoint of ``hf``, or a model type derived from it, can't answer, as its configuration tells."""
    import transformers
    from transformers.models.auto import modeling_auto

    from lm_eval_bias.scoring import seq2seq

    has_configuration = "pretrained" in model_args and "gguf_file" not in model_args
    if not has_configuration or set(asks) == {"generate_until"}:
        return None
    try:
        architecture = transformers.AutoConfig.from_pretrained(
            model_args["pretrained"],
            revision=str(model_args.get("revision", "main")),
            trust_remote_code=bool(model_args.get("trust_remote_code", False)),
        )
    except (OSError, ValueError, KeyError):
        return None  # the harness says what is wrong when it loads the model
    if architecture.is_encoder_decoder:
        needs_contexts = {CONTRAST, SENTENCE_LIKELIHOODS} & set(asks)
        return seq2seq.no_contexts() if needs_contexts else None
    classes = [str(name) for name in architecture.architectures or []]
    heads = ("ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction")
    is_masked = (
        architecture.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )
    if not (is_masked and classes and all(name.endswith(heads) for name in classes)):
        return None
    text = "which gives no log-likelihoods of a text from left to right: run StereoSet with --model hf-mlm"
    return BiasError(
        f"--model hf pretrained={model_args['pretrained']}: a masked language model ({classes[0]}), {text}"
    )
