"""What can be refused before a model is loaded: flags, metadata keys, model paths, samples, missing data."""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.errors import BiasError, did_you_mean, require_extra
from lm_eval_bias.files import expanded

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

logger = logging.getLogger("lm_eval.bias")


def split_tasks(tasks: str | list[str]) -> list[str]:
    """Names from ``--tasks a,b c``."""
    texts = tasks.split(",") if isinstance(tasks, str) else [name for task in tasks for name in task.split(",")]
    return [name for name in (entry.strip() for entry in texts) if name]


def folders(config: EvaluatorConfig) -> list[str | Path]:
    """What ``--include_path`` names."""
    paths = config.include_path
    return [paths] if isinstance(paths, (str, Path)) else list(paths or [])


def entries(config: EvaluatorConfig) -> dict[str, catalog.Entry]:
    """The tasks that are known in a run."""
    return catalog.entries(folders(config))


def only_ours(names: list[str], entries: Mapping[str, catalog.Entry]) -> bool:
    """Whether every name or pattern can only mean tasks with YAMLs of this package's kind.

    Args:
        names: As ``--tasks`` has them.
        entries: The tasks that are known.
    """
    families = registry.by_name()

    def is_ours(name: str) -> bool:
        if name in entries:
            return entries[name].path is not None
        stem = re.split(r"[*?\[]", name)[0]
        return stem != name and any(stem.startswith(family) for family in families)

    return bool(names) and all(is_ours(name) for name in names)


def before_loading(config: EvaluatorConfig, entries: Mapping[str, catalog.Entry]) -> None:
    """All checks that need nothing but the configuration.

    Args:
        config: Of the run.
        entries: The tasks that are known.

    Raises:
        BiasError: The first thing that is wrong.
    """
    run_entries = named_entries(config, entries)
    _check_flags(config)
    _check_metadata(config, run_entries, only_ours(split_tasks(config.tasks or []), entries))
    check_model(config)
    _check_requests(config, run_entries)
    _fetch_data(config, run_entries)


def check_samples(config: EvaluatorConfig, top_level: dict[str, Any]) -> None:
    """Refuse ``--samples`` for a task that isn't run, or with a document that isn't there."""
    if not config.samples:
        return
    if not isinstance(config.samples, dict):
        raise BiasError(f"--samples {config.samples}: neither JSON nor a file with JSON")
    tasks = {t.task_name: t for top in top_level.values() for t in tasks_of(top)}
    for name, indices in config.samples.items():
        if name not in tasks:
            raise BiasError(f"--samples names {name!r}, which is not run.{did_you_mean(name, tasks)}")
        size = len(tasks[name].eval_docs)
        bad = [i for i in indices if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < size]
        if bad:
            raise BiasError(f"--samples {name}: no document {bad[0]!r}: numbers go from 0 to {size - 1}")
        # the harness runs them in the data's order and names them in the given one
        config.samples[name] = sorted(set(indices))


def tasks_of(task_or_group: Any) -> list[Any]:
    """The tasks of a group, or a task alone."""
    return list(task_or_group.get_all_tasks()) if hasattr(task_or_group, "get_all_tasks") else [task_or_group]


def _check_flags(config: EvaluatorConfig) -> None:
    """Refuse what would fail only after the model was loaded, or lose a finished run."""
    if config.limit is not None and config.limit <= 0:
        raise BiasError(f"--limit {config.limit:g}: must be above 0 (a number of documents, or below 1 their share)")
    if config.check_integrity:
        raise BiasError(
            "--check_integrity runs the harness's own test suite, which our tasks are not part of: leave it out"
        )
    if not config.output_path:
        return
    path = expanded(config.output_path)
    folder = path.parent if path.suffix == ".json" else path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BiasError(f"--output_path {config.output_path} cannot be written: {error.strerror}") from error


def _check_metadata(config: EvaluatorConfig, entries: list[catalog.Entry], alone: bool) -> None:
    """Refuse a ``--metadata`` key that no named task knows: a typing error would silently give the default.

    Beside tasks of the harness, whose keys we don't know, only what looks like a misspelling of ours is refused.

    Args:
        config: Of the run.
        entries: Our tasks in it.
        alone: Whether these are all.
    """
    keys = [key for key in config.metadata or {} if key not in (config.model_args or {})]
    benchmarks = {entry.benchmark for entry in entries}
    options = sorted({option for name in benchmarks for option in registry.get(name).options})
    for key in keys:
        hint = did_you_mean(key, options)
        if key not in options and benchmarks and (alone or hint):
            raise BiasError(f"--metadata key {key!r} is unknown to these tasks.{hint} Known: {', '.join(options)}")


def check_model(config: EvaluatorConfig) -> None:
    """Refuse an unknown model type, and a model path that doesn't exist, before anything is loaded."""
    from lm_eval_bias import registration
    from lm_eval_bias.harness import internals

    registration.register()
    model_types = internals.model_types()
    if config.model not in model_types:
        hint = did_you_mean(config.model, model_types)
        raise BiasError(f"no model type named {config.model!r}.{hint} 'lm-eval-bias doctor' lists ours")
    if config.model_args.get("gguf_file"):
        require_extra("gguf")
    pretrained = str(config.model_args.get("pretrained", ""))
    looks_like_path = pretrained.startswith((".", "/", "~")) or pretrained.count("/") != 1
    exists = bool(pretrained) and os.path.exists(expanded(pretrained))
    if pretrained and not exists and looks_like_path and "/" in pretrained:
        raise BiasError(f"--model_args pretrained={pretrained}: no such folder")
    if pretrained and not exists and config.model.startswith("hf"):
        logger.info("no folder %s here: taken as the name of a model on the hub", pretrained)


def _check_requests(config: EvaluatorConfig, entries: list[catalog.Entry]) -> None:
    """Refuse a model type that cannot answer what the tasks ask, and flags that have no place in plain sentences."""
    from lm_eval_bias.harness.internals import model_class

    problem = misfit(config, entries)
    if problem is not None:
        raise problem
    try:
        kind: Any = model_class(config.model)
    except (ImportError, ValueError, KeyError):
        return  # the harness says what is missing when it makes the model
    _check_sampling(config, kind, entries)
    if request_kinds(entries) and "Chat" in _asker(kind) and not config.apply_chat_template:
        raise BiasError(f"--model {config.model} sends conversations, not texts: add --apply_chat_template")


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
            return BiasError(f"{flag}: {plain[0]} scores plain sentences: run it without")
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
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value <= bound


def _check_sampling(config: EvaluatorConfig, kind: Any, entries: list[catalog.Entry]) -> None:
    """Refuse options that do not sample, and an API that gets one seed for all samples and answers each time alike."""
    from lm_eval_bias.harness import internals
    from lm_eval_bias.scoring import sampled_texts

    sampled = [entry.name for entry in entries if registry.get(entry.benchmark).samples_texts]
    gen_kwargs = config.gen_kwargs or {}
    for key, wrong, requirement in (
        ("do_sample", gen_kwargs.get("do_sample") in (False, "false", "False"), "true"),
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
            f"{sampled[0]} samples every prompt many times, but --model {config.model} sends one seed with all "
            "requests, to which a server gives one answer: add --gen_kwargs '{\"seed\": null}'"
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
            f"--model hf pretrained={model_args['pretrained']}: a masked language model ({classes[0]}), which has no "
            "log-likelihoods of a text from left to right: StereoSet takes it with --model hf-mlm"
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
