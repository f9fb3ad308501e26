"""What can be refused before a model is loaded: tasks, metadata keys, model types, samples, missing data."""

from __future__ import annotations

import fnmatch
import logging
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.benchmark import detailed, repeats
from lm_eval_bias.errors import BiasError, check_arguments, did_you_mean, import_failure, parameters, require_extra
from lm_eval_bias.evaluation import run_flags
from lm_eval_bias.files import expanded
from lm_eval_bias.harness import task_names
from lm_eval_bias.runs import cache_ownership

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")


def split_tasks(tasks: str | list[str]) -> list[str]:
    """Names from ``--tasks a,b c``."""
    texts = tasks.split(",") if isinstance(tasks, str) else [name for task in tasks for name in task.split(",")]
    return [name for name in (entry.strip() for entry in texts) if name]


def entries(config: EvaluatorConfig) -> dict[str, catalog.Entry]:
    """The tasks that are known in a run."""
    return catalog.entries(run_flags.folders(config))


def only_ours(names: list[str], entries: Mapping[str, catalog.Entry]) -> bool:
    """Whether every name or pattern can only mean tasks with YAMLs of this package's kind.

    Args:
        names: As ``--tasks`` has them.
        entries: The tasks that are known.
    """
    return bool(names) and all(_is_ours(name, entries) for name in names)


def _is_ours(name: str, entries: Mapping[str, catalog.Entry]) -> bool:
    if name in entries:
        return entries[name].path is not None
    stem = re.split(r"[*?\[]", name)[0]
    return stem != name and any(stem.startswith(family) for family in registry.by_name())


def check_names(config: EvaluatorConfig, entries: Mapping[str, catalog.Entry]) -> None:
    """Refuse names of tasks that neither this package nor the harness has, without the harness's index.

    Args:
        config: Of the run.
        entries: The tasks that are known.

    Raises:
        BiasError: No name at all, or one that no task has.
    """
    names = split_tasks(config.tasks or [])
    if not names:
        raise BiasError("no task is named: give --tasks, for example --tasks occugender,gg_bbq ('lm-eval-bias ls')")
    folders = run_flags.folders(config)
    for name in names:
        if _is_ours(name, entries) and not fnmatch.filter(entries, name) and not folders:
            raise BiasError(f"no task matches {name!r}.{similar(name, entries)}")
    unknown = task_names.unknown([n for n in names if not fnmatch.filter(entries, n)], map(expanded, folders))
    if unknown:
        hint = similar(unknown[0], entries)
        raise BiasError(f"no task named {unknown[0]}, neither here nor in the harness.{hint}")


def similar(name: str, names: Iterable[str]) -> str:
    """`` Did you mean x, y?`` for the names that begin with this one, else for the closest ones.

    >>> similar("stereoset_it", ["stereoset_tr", "stereoset_it_intra"])
    ' Did you mean stereoset_it_intra?'
    """
    longer = [other for other in names if other.startswith(f"{name}_")]
    return did_you_mean(name, names) if not longer else f" Did you mean {', '.join(longer[:3])}?"


def before_loading(config: EvaluatorConfig, entries: Mapping[str, catalog.Entry]) -> None:
    """All checks that need neither the tasks nor the class of the model.

    Args:
        config: Of the run.
        entries: The tasks that are known.

    Raises:
        BiasError: The first thing that is wrong.
    """
    run_entries = named_entries(config, entries)
    check_names(config, entries)
    alone = only_ours(split_tasks(config.tasks or []), entries)
    if alone:
        _check_sampled_tasks(config, [entry.name for entry in run_entries])
    _check_metadata(config, run_entries, alone)
    check_model(config)
    if config.use_cache:
        cache_ownership.check(config.use_cache, config.model, config.model_args or {})
    _check_options(config, run_entries)
    _fetch_data(config, run_entries)


def check_samples(config: EvaluatorConfig, top_level: dict[str, Any]) -> None:
    """Refuse ``--samples`` for a task that isn't run, or with a document that isn't there."""
    tasks = {t.task_name: t for top in top_level.values() for t in tasks_of(top)}
    _check_sampled_tasks(config, tasks)
    for name, indices in (config.samples or {}).items():
        size = len(tasks[name].eval_docs)
        if max(indices) >= size:
            raise BiasError(
                f"--samples {name}: there is no document {max(indices)}: they are numbered from 0 to {size - 1}"
            )
        # the harness runs them in the data's order and names them in the given one
        config.samples[name] = sorted(set(indices))


def _check_sampled_tasks(config: EvaluatorConfig, tasks: Collection[str]) -> None:
    for name in config.samples or {}:
        if name not in tasks:
            raise BiasError(f"--samples names {name!r}, which is not among --tasks.{did_you_mean(name, tasks)}")


def tasks_of(task_or_group: Any) -> list[Any]:
    """The tasks of a group, or a task alone."""
    return list(task_or_group.get_all_tasks()) if hasattr(task_or_group, "get_all_tasks") else [task_or_group]


def _check_metadata(config: EvaluatorConfig, entries: list[catalog.Entry], alone: bool) -> None:
    """Refuse a ``--metadata`` key that no named task knows: a typing error would silently give the default.

    Beside tasks of the harness, whose keys we don't know, only what looks like a misspelling of ours is refused.

    Args:
        config: Of the run.
        entries: Our tasks in it.
        alone: Whether these are all.
    """
    given = config.model_args or {}
    for entry in entries:
        own = {*entry.metadata, *registry.get(entry.benchmark).options}
        if taken := next((key for key in given if key in own), None):
            raise BiasError(
                f"--model_args {taken}=: the harness also passes a model's arguments to its tasks, and {entry.name} "
                f"has its own {taken!r} (give the options of tasks with --metadata)"
            )
    keys = [key for key in config.metadata or {} if key not in given]
    benchmarks = {entry.benchmark for entry in entries}
    options = sorted({option for name in benchmarks for option in registry.get(name).options})
    for key in keys:
        hint = did_you_mean(key, options)
        if key not in options and benchmarks and (alone or hint):
            raise BiasError(f"--metadata key {key!r} is unknown to these tasks.{hint} Known: {', '.join(options)}")
        if key in options and config.metadata[key] == "":
            raise BiasError(f"--metadata {key}= is empty: give a value, or leave it out")
        for entry in entries:
            if key in entry.metadata and key in options and key not in registry.get(entry.benchmark).options:
                raise BiasError(
                    f"--metadata {key}: {entry.name} has its own {key!r}: run the tasks that take this option "
                    "separately"
                )


def _check_options(config: EvaluatorConfig, entries: list[catalog.Entry]) -> None:
    """Refuse values of ``--metadata`` that benchmarks can judge without the harness, whose import takes longer."""
    for entry in entries:
        benchmark, metadata = registry.get(entry.benchmark), {**entry.metadata, **(config.metadata or {})}
        given = set(benchmark.options) & set(config.metadata or ())
        if entry.path is not None and (given or benchmark.required):
            repeats(benchmark, metadata)
            detailed(benchmark, metadata)
            benchmark.check_options(metadata)


def check_model(config: EvaluatorConfig) -> None:
    """Refuse an unknown model type, and a model path that doesn't exist, before anything is loaded."""
    from lm_eval_bias import registration
    from lm_eval_bias.harness import internals

    registration.register()
    model_types = internals.model_types()
    if config.model not in model_types:
        hint = did_you_mean(config.model, model_types)
        raise BiasError(
            f"no model type named {config.model!r}.{hint} 'lm-eval-bias doctor' lists those of this package"
        )
    if config.model_args.get("gguf_file"):
        require_extra("gguf")
    pretrained = str(config.model_args.get("pretrained", ""))
    looks_like_path = pretrained.startswith((".", "/", "~")) or pretrained.count("/") != 1
    exists = bool(pretrained) and os.path.exists(expanded(pretrained))
    if pretrained and not exists and looks_like_path and "/" in pretrained:
        raise BiasError(f"--model_args pretrained={pretrained}: no such folder")
    if pretrained and not exists and config.model.startswith("hf"):
        logger.info("there is no folder %s here: looking for a model of this name on the Hub", pretrained)


def check_requests(config: EvaluatorConfig, entries: list[catalog.Entry]) -> None:
    """Refuse a model type that cannot answer what the tasks ask, or lacks arguments, and flags out of place.

    Raises:
        BiasError: The first thing that is wrong.
    """
    from lm_eval_bias.harness.internals import model_class

    check_model_arguments(config)
    problem = misfit(config, entries)
    if problem is not None:
        raise problem
    kind: Any = model_class(config.model)
    _check_sampling(config, kind, entries)
    if request_kinds(entries) and "Chat" in _asker(kind) and not config.apply_chat_template:
        raise BiasError(f"--model {config.model} sends conversations instead of plain texts: add --apply_chat_template")


def check_model_arguments(config: EvaluatorConfig) -> None:
    """Refuse a model type whose packages are missing, and ``--model_args`` that it doesn't take or that lack some.

    Raises:
        BiasError: The first thing that is wrong.
    """
    from lm_eval_bias.harness import internals

    flag = f"--model {config.model} --model_args"
    try:
        kind: Any = internals.model_class(config.model)
    except (ImportError, ValueError, KeyError) as error:
        raise BiasError(f"--model {config.model}: {import_failure(error)}") from error
    check_arguments(kind, config.model_args, flag, ("batch_size", "max_batch_size", "device"))
    for name in ("pretrained", "model"):
        if config.model_args.get(name) == "":
            raise BiasError(f"{flag}: {name}= is empty")
    named = {"model", "pretrained", "base_url", "tokenizer"} & set(config.model_args)
    default = getattr(parameters(kind)[0].get("model"), "default", None)
    if internals.is_client(kind) and not named and not isinstance(default, str):
        raise BiasError(f"{flag}: model= is missing")


def _asker(kind: Any) -> str:
    """The name of the class that asks a model type's requests; chat models have their own."""
    return next((c.__name__ for c in getattr(kind, "__mro__", ()) if "loglikelihood" in vars(c)), "")


def misfit(config: EvaluatorConfig, entries: list[catalog.Entry]) -> BiasError | None:
    """Why the model type or the flags don't fit what tasks ask; ``None`` where they do, or that isn't known."""
    from lm_eval_bias.harness.internals import model_class
    from lm_eval_bias.scoring.questions import KINDS
    from lm_eval_bias.scoring.token_likelihoods import no_loglikelihoods

    asks = request_kinds(entries)
    if not asks:
        return None
    plain = [entry.name for entry in entries if set(entry.asks) & set(KINDS)]
    for flag, value in (
        ("--apply_chat_template", config.apply_chat_template),
        ("--system_instruction", config.system_instruction),
        ("--num_fewshot", config.num_fewshot),
    ):
        if plain and value:
            return BiasError(f"{flag}: {plain[0]} scores plain sentences: run it without this flag")
    try:
        kind: Any = model_class(config.model)
    except (ImportError, ValueError, KeyError):
        return None
    refusal = getattr(kind, "refusal", None)
    if refusal is not None:
        problem: BiasError | None = refusal(config.model_args, asks)
        return problem
    if config.model in ("hf", "hf-packed"):
        return _unfit_architecture(config, asks)
    return no_loglikelihoods(config.model) if set(asks) != {"generate_until"} and "Chat" in _asker(kind) else None


def _not_above(value: Any, bound: float) -> bool:
    """Whether a value that was given is no number above a bound."""
    if value is None:
        return False
    return isinstance(value, bool) or not isinstance(value, (int, float)) or not bound < value < math.inf


def _check_sampling(config: EvaluatorConfig, kind: Any, entries: list[catalog.Entry]) -> None:
    """Refuse options that do not sample, and an API that gets one seed for all samples and answers each time alike."""
    from lm_eval_bias.harness import internals, request_types
    from lm_eval_bias.scoring import sampled_texts

    gen_kwargs = config.gen_kwargs or {}
    benchmarks = [(entry.name, registry.get(entry.benchmark)) for entry in entries]
    sampled = [
        name
        for name, own in benchmarks
        if own.samples_texts == "always"
        or (own.samples_texts == "by default" and not request_types.is_greedy(gen_kwargs))
    ]
    for key, wrong, requirement in (
        ("do_sample", gen_kwargs.get("do_sample", True) not in (True, None, "true", "True"), "true"),
        ("temperature", _not_above(gen_kwargs.get("temperature", 1), 0), "above 0"),
        ("max_gen_toks", _not_above(gen_kwargs.get("max_gen_toks", 1), 0), "1 or more"),
    ):
        if sampled and wrong:
            raise BiasError(
                f"--gen_kwargs {key}={gen_kwargs[key]}: {sampled[0]} compares samples: must be {requirement}"
            )
    seed = gen_kwargs.get("seed")
    if sampled and seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise BiasError(f"--gen_kwargs seed={seed}: must be a whole number, or null for none")
    if sampled and internals.is_client(kind) and not sampled_texts.seeded(kind) and "seed" not in gen_kwargs:
        raise BiasError(
            f"{sampled[0]} samples every prompt many times, but --model {config.model} sends the same seed "
            "with all requests, so a server gives the same answer each time: add --gen_kwargs '{\"seed\": null}'"
        )


def request_kinds(entries: list[catalog.Entry]) -> list[str]:
    """The kinds of requests of some tasks."""
    return sorted({kind for entry in entries for kind in entry.asks})


def _unfit_architecture(config: EvaluatorConfig, asks: list[str]) -> BiasError | None:
    """What a checkpoint cannot answer with ``hf`` and ``hf-packed``, where its configuration can be read."""
    import transformers
    from transformers.models.auto import modeling_auto

    from lm_eval_bias.scoring import seq2seq
    from lm_eval_bias.scoring.questions import SENTENCE_LIKELIHOODS

    model_args = config.model_args or {}
    if "gguf_file" in model_args or "pretrained" not in model_args or set(asks) == {"generate_until"}:
        return None
    try:
        architecture = transformers.AutoConfig.from_pretrained(
            model_args["pretrained"],
            revision=str(model_args.get("revision", "main")),
            trust_remote_code=bool(model_args.get("trust_remote_code", False)),
        )
    except (OSError, ValueError, KeyError):
        return None  # the harness says what is wrong when it loads the model
    classes = [str(name) for name in architecture.architectures or []]
    masked = (
        architecture.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        and classes
        and not architecture.is_encoder_decoder
    )
    if masked and all(
        name.endswith(("ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction")) for name in classes
    ):
        return BiasError(
            f"--model hf pretrained={model_args['pretrained']}: this is a masked language model ({classes[0]}), which "
            "gives no log-likelihoods of a text from left to right: run StereoSet with --model hf-mlm"
        )
    if architecture.is_encoder_decoder and SENTENCE_LIKELIHOODS in asks:
        return seq2seq.no_contexts()
    return None


def named_entries(config: EvaluatorConfig, entries: Mapping[str, catalog.Entry]) -> list[catalog.Entry]:
    """Our tasks among those that ``--tasks`` names, groups resolved."""
    names = [m for name in split_tasks(config.tasks or []) for m in fnmatch.filter(entries, name)]
    return [entries[task] for task in dict.fromkeys(t for n in names for t in (entries[n].members or (n,)))]


def _fetch_data(config: EvaluatorConfig, entries: list[catalog.Entry]) -> None:
    """Have the pinned data before a model is loaded, so that a lack of it shows at once."""
    from lm_eval_bias.data.download import fetch

    # what an option names in place of the pinned data is looked for when the task is built
    metadata = config.metadata or {}
    sets = dict.fromkeys(
        entry.data for entry in entries if entry.data and registry.get(entry.benchmark).data_option not in metadata
    )
    if sets:
        fetch(sets)
