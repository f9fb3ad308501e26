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
    listed = tasks.split(",") if isinstance(tasks, str) else [name for task in tasks for name in task.split(",")]
    return [name for name in (entry.strip() for entry in listed) if name]


def folders(config: EvaluatorConfig) -> list[str | Path]:
    """What ``--include_path`` names."""
    given = config.include_path
    return [given] if isinstance(given, (str, Path)) else list(given or [])


def entries(config: EvaluatorConfig) -> dict[str, catalog.Entry]:
    """The tasks that are known in a run."""
    return catalog.entries(folders(config))


def only_ours(names: list[str], known: Mapping[str, catalog.Entry] | None = None) -> bool:
    """Whether every name or pattern can only mean tasks with YAMLs of this package's kind.

    Args:
        names: As ``--tasks`` has them.
        known: The tasks that are known; by default those of :func:`catalog.entries`.
    """
    own = catalog.entries() if known is None else known
    families = registry.by_name()

    def ours(name: str) -> bool:
        if name in own:
            return own[name].path is not None
        stem = re.split(r"[*?\[]", name)[0]
        return stem != name and any(stem.startswith(family) for family in families)

    return bool(names) and all(ours(name) for name in names)


def before_loading(config: EvaluatorConfig) -> None:
    """All checks that need nothing but the configuration.

    Raises:
        BiasError: The first thing that is wrong.
    """
    _check_flags(config)
    _check_metadata(config)
    check_model(config)
    _check_requests(config)
    _fetch_data(config)


def check_samples(config: EvaluatorConfig, built: dict[str, Any]) -> None:
    """Refuse ``--samples`` for a task that isn't run, or with a document that isn't there."""
    if not config.samples:
        return
    if not isinstance(config.samples, dict):
        raise BiasError(f"--samples {config.samples}: neither JSON nor a file with JSON")
    tasks = {t.task_name: t for top in built.values() for t in tasks_of(top)}
    for name, indices in config.samples.items():
        if name not in tasks:
            raise BiasError(f"--samples names {name!r}, which is not run.{did_you_mean(name, tasks)}")
        size = len(tasks[name].eval_docs)
        bad = [i for i in indices if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < size]
        if bad:
            raise BiasError(f"--samples {name}: no document {bad[0]!r}: numbers go from 0 to {size - 1}")
        # the harness runs them in the data's order and names them in the given one
        config.samples[name] = sorted(set(indices))


def tasks_of(built: Any) -> list[Any]:
    """The tasks of a group, or a task alone."""
    return list(built.get_all_tasks()) if hasattr(built, "get_all_tasks") else [built]


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


def _check_metadata(config: EvaluatorConfig) -> None:
    """Refuse a ``--metadata`` key that no named task knows: a typing error would silently give the default.

    Beside tasks of the harness, whose keys we don't know, only what looks like a misspelling of ours is refused.
    """
    given = [key for key in config.metadata or {} if key not in (config.model_args or {})]
    named = {entry.benchmark for entry in _named_entries(config)}
    known = sorted({option for name in named for option in registry.get(name).options})
    alone = only_ours(split_tasks(config.tasks or []), entries(config))
    for key in given:
        hint = did_you_mean(key, known)
        if key not in known and named and (alone or hint):
            raise BiasError(f"--metadata key {key!r} is unknown to these tasks.{hint} Known: {', '.join(known)}")


def check_model(config: EvaluatorConfig) -> None:
    """Refuse an unknown model type, and a model path that doesn't exist, before anything is loaded."""
    from lm_eval_bias import registration
    from lm_eval_bias.harness import internals

    registration.register()
    known = internals.model_types()
    if config.model not in known:
        hint = did_you_mean(config.model, known)
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


def _check_requests(config: EvaluatorConfig) -> None:
    """Refuse a model type that cannot answer what the tasks ask, and flags that have no place in plain sentences."""
    from lm_eval_bias.harness.internals import model_class

    problem = misfit(config)
    if problem is not None:
        raise problem
    try:
        kind: Any = model_class(config.model)
    except (ImportError, ValueError, KeyError):
        return  # the harness says what is missing when it makes the model
    _check_sampling(config, kind, _named_entries(config))
    if asked(config) and "Chat" in _asker(kind) and not config.apply_chat_template:
        raise BiasError(f"--model {config.model} sends conversations, not texts: add --apply_chat_template")


def _asker(kind: Any) -> str:
    """The name of the class that asks a model type's requests; chat models have their own."""
    return next((c.__name__ for c in getattr(kind, "__mro__", ()) if "loglikelihood" in vars(c)), "")


def misfit(config: EvaluatorConfig) -> BiasError | None:
    """Why the model type or the flags don't fit what the tasks ask; ``None`` where they do, or that isn't known."""
    from lm_eval_bias.harness.internals import model_class
    from lm_eval_bias.scoring.questions import KINDS
    from lm_eval_bias.scoring.token_likelihoods import no_loglikelihoods

    asks = asked(config)
    if not asks:
        return None
    plain = [entry.name for entry in _named_entries(config) if set(entry.asks) & set(KINDS)]
    for flag, given in (
        ("--apply_chat_template", config.apply_chat_template),
        ("--system_instruction", config.system_instruction),
        ("--num_fewshot", config.num_fewshot),
    ):
        if plain and given:
            return BiasError(f"{flag}: {plain[0]} scores plain sentences: run it without")
    try:
        kind: Any = model_class(config.model)
    except (ImportError, ValueError, KeyError):
        return None
    own = getattr(kind, "refusal", None)
    if own is not None:
        problem: BiasError | None = own(config.model_args, asks)
        return problem
    if config.model in ("hf", "hf-packed"):
        return _unfit_architecture(config, asks)
    return no_loglikelihoods(config.model) if set(asks) != {"generate_until"} and "Chat" in _asker(kind) else None


def _not_above(value: Any, bound: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value <= bound


def _check_sampling(config: EvaluatorConfig, kind: Any, named: list[catalog.Entry]) -> None:
    """Refuse options that do not sample, and an API that gets one seed for all samples and answers each time alike."""
    from lm_eval_bias.harness import internals
    from lm_eval_bias.scoring import sampled_texts

    sampled = [entry.name for entry in named if registry.get(entry.benchmark).samples_texts]
    given = config.gen_kwargs or {}
    for key, wrong, needed in (
        ("do_sample", given.get("do_sample") in (False, "false", "False"), "true"),
        ("temperature", _not_above(given.get("temperature", 1), 0), "above 0"),
        ("max_gen_toks", _not_above(given.get("max_gen_toks", 1), 0), "1 or more"),
    ):
        if sampled and wrong:
            raise BiasError(f"--gen_kwargs {key}={given[key]}: {sampled[0]} compares samples: must be {needed}")
    seed = given.get("seed")
    if sampled and seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise BiasError(f"--gen_kwargs seed={seed}: must be a whole number, or null for none")
    if sampled and internals.is_client(kind) and not sampled_texts.seeded(kind) and "seed" not in given:
        raise BiasError(
            f"{sampled[0]} samples every prompt many times, but --model {config.model} sends one seed with all "
            "requests, to which a server gives one answer: add --gen_kwargs '{\"seed\": null}'"
        )


def asked(config: EvaluatorConfig) -> list[str]:
    """The kinds of requests of our tasks among those that ``--tasks`` names."""
    return sorted({kind for entry in _named_entries(config) for kind in entry.asks})


def _unfit_architecture(config: EvaluatorConfig, asks: list[str]) -> BiasError | None:
    """What a checkpoint cannot answer with ``hf`` and ``hf-packed``, where its configuration can be read."""
    import transformers
    from transformers.models.auto import modeling_auto

    from lm_eval_bias.scoring import seq2seq
    from lm_eval_bias.scoring.questions import SENTENCE_LIKELIHOODS

    given = config.model_args or {}
    if "gguf_file" in given or "pretrained" not in given or set(asks) == {"generate_until"}:
        return None
    try:
        found = transformers.AutoConfig.from_pretrained(
            given["pretrained"],
            revision=str(given.get("revision", "main")),
            trust_remote_code=bool(given.get("trust_remote_code", False)),
        )
    except (OSError, ValueError, KeyError):
        return None  # the harness says what is wrong when it loads the model
    made = [str(name) for name in found.architectures or []]
    masked = (
        found.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES and made and not found.is_encoder_decoder
    )
    if masked and all(name.endswith(("ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction")) for name in made):
        return BiasError(
            f"--model hf pretrained={given['pretrained']}: a masked language model ({made[0]}), which has no "
            "log-likelihoods of a text from left to right: StereoSet takes it with --model hf-mlm"
        )
    if found.is_encoder_decoder and SENTENCE_LIKELIHOODS in asks:
        return seq2seq.no_contexts()
    return None


def _named_entries(config: EvaluatorConfig) -> list[catalog.Entry]:
    """Our tasks among those that ``--tasks`` names, groups resolved."""
    own = entries(config)
    named = [m for name in split_tasks(config.tasks or []) for m in fnmatch.filter(own, name)]
    return [own[task] for task in dict.fromkeys(t for n in named for t in (own[n].members or (n,)))]


def _fetch_data(config: EvaluatorConfig) -> None:
    """Have the pinned data before a model is loaded, so that a lack of it shows at once."""
    from lm_eval_bias.data.download import fetch

    # what an option names in place of the pinned data is looked for when the task is built
    given = config.metadata or {}
    sets = dict.fromkeys(
        entry.data
        for entry in _named_entries(config)
        if entry.data and registry.get(entry.benchmark).data_option not in given
    )
    if sets:
        fetch(sets)
