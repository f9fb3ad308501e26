"""Refusals before a model answers: a list of checks for each stage of a run at which they can be made."""

from __future__ import annotations

import logging
import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import (
    DATA,
    REQUIRED,
    SAMPLES,
    SAMPLES_BY_DEFAULT,
    STRUCTURED,
    options_for,
    repeats,
    samples_texts,
)
from lm_eval_bias.core.errors import (
    BiasError,
    did_you_mean,
    one_line,
    require_extra,
)
from lm_eval_bias.core.files import expanded, why
from lm_eval_bias.core.numbers import grouped, join_some
from lm_eval_bias.core.questions import CONTRAST, KINDS, SENTENCE_LIKELIHOODS
from lm_eval_bias.data.sources import fetch
from lm_eval_bias.evaluation.planned import Planned, split_tasks
from lm_eval_bias.harness import internals, registration, tokenization_boundary
from lm_eval_bias.scoring.free_answers import opening_of_thoughts

logger = logging.getLogger("lm_eval.bias")
_ANY_GPU = "cuda:0"  # the harness's default for --device, with which it takes the CPU where there is no GPU
# servers of the user's own, and the ends of their addresses
_ROUTES = {
    "local-completions": "v1/completions",
    "local-chat-completions": "v1/chat/completions",
}


def _limit(run: Planned) -> None:
    limit = 1 if run.config.limit is None else run.config.limit
    if not 0 < limit < math.inf or (limit > 1 and limit != int(limit)):
        raise BiasError(
            f"--limit {limit:g}: must be a whole number of documents above 0, or a share between 0 and 1"
        )


def _form_of_samples(run: Planned) -> None:
    samples = run.config.samples
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


def _batch_size(run: Planned) -> None:
    size = run.config.batch_size
    if not re.fullmatch(r"auto(:\d+(\.\d+)?)?|0*[1-9]\d*", str(size)):
        raise BiasError(
            f"--batch_size {size}: must be a whole number above 0, auto or auto:N"
        )


def _output_path(run: Planned) -> None:
    if not run.config.output_path:
        return
    place = out = Path(run.config.output_path)
    if out.suffix == ".json":
        raise BiasError(
            f"--output_path {out}: name a folder: commands find runs by results_<date>.json, which is saved in it"
        )
    try:
        while not os.path.lexists(place):
            place = place.parent
        tempfile.TemporaryFile(dir=place).close()
    except (OSError, ValueError) as error:
        raise BiasError(
            f"--output_path {out} cannot be written: {why(error)}"
        ) from error


def _model_type(run: Planned) -> None:
    """Refuse an unknown model type, and a model path that doesn't exist."""
    registration.register()
    config = run.config
    known = list(internals.registries()["lm_eval.models"])
    if config.model not in known:
        raise BiasError(
            f"no model type named {config.model!r}.{did_you_mean(config.model, known)}"
        )
    if config.model_args.get("gguf_file"):
        require_extra("gguf", "gguf")
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


def _are_named(run: Planned) -> None:
    if not split_tasks(run.config.tasks):
        raise BiasError(
            "no task is named: give --tasks, for example --tasks occugender,gg_bbq ('lm-eval-bias ls')"
        )


def _include_path(run: Planned) -> None:
    folder = run.config.include_path
    if folder and not os.path.isdir(expanded(folder)):
        raise BiasError(f"--include_path {folder}: no such folder")


def _small_limit(run: Planned) -> None:
    """Warn of a limit too small for intervals or balanced items, and name the smallest sufficient one."""
    limit = run.config.limit
    small = []
    for entry in run.ours if limit is not None else ():
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


def _prompts(run: Planned) -> None:
    """Warn of flags that don't apply to some tasks; refuse a system instruction that would run into the prompt."""
    plain = [entry for entry in run.ours if set(entry.asks) & set(KINDS)]
    for flag, concerned, says in (
        ("num_fewshot", run.ours, "no examples in the prompts"),
        ("apply_chat_template", plain, "plain sentences are scored"),
        ("system_instruction", plain, "plain sentences are scored"),
    ):
        if concerned and getattr(run.config, flag):
            names = join_some(entry.name for entry in concerned)
            logger.warning("--%s doesn't apply to %s (%s)", flag, names, says)
    is_glued = run.config.system_instruction and not run.config.apply_chat_template
    if is_glued and len(run.ours) > len(plain):
        raise BiasError(
            "--system_instruction: without a chat template the harness glues it to the prompt: add "
            "--apply_chat_template"
        )


def _metadata(run: Planned) -> None:
    """Refuse unknown keys of ``--metadata``; beside tasks of the harness, only likely misspellings."""
    config = run.config
    known: set[str] = set()
    for entry in run.ours:
        options = entry.definition.options.roles
        known.update(options)
        for key in config.model_args:
            if key in entry.metadata or key in options:
                raise BiasError(
                    f"--model_args {key}=: the harness passes it to tasks, too, and {entry.name} has its own (give "
                    "options with --metadata)"
                )
    alone = run.only_ours()
    for key in config.metadata:
        if key in config.model_args:
            continue
        hint = did_you_mean(key, sorted(known))
        if key not in known and run.ours and (alone or hint):
            raise BiasError(
                f"--metadata key {key!r} is unknown to these tasks.{hint} Known: {', '.join(sorted(known))}"
            )
        for entry in run.ours if key in known else ():
            if key in entry.metadata and key not in entry.definition.options.roles:
                raise BiasError(
                    f"--metadata {key}: {entry.name} has its own {key!r}: run tasks with this option separately"
                )


def _device(run: Planned) -> None:
    """Refuse a missing device, which the harness would silently replace."""
    device = run.config.device
    if not run.config.model.startswith("hf"):
        return
    if not run.device and device == _ANY_GPU:
        return
    import torch

    try:
        torch.empty(0, device=device)
    except Exception as error:  # each kind of device fails in a way of its own
        raise BiasError(f"--device {device}: {one_line(error)}") from error


def _options(run: Planned) -> None:
    """Refuse values of ``--metadata`` that a benchmark refuses."""
    metadata = run.config.metadata
    for entry in run.ours:
        benchmark = entry.definition
        given = set(benchmark.options.roles) & set(metadata)
        if given or options_for(benchmark, REQUIRED):
            options = {**entry.metadata, **metadata}
            repeats(benchmark, options)
            benchmark.options.check(options)


def _data(run: Planned) -> None:
    """Fetch missing data; the user's own files are read when the task is built."""
    given = set(run.config.metadata)
    sets = [
        entry.data
        for entry in run.ours
        if entry.data and not given.intersection(options_for(entry.definition, DATA))
    ]
    if sets:  # none would be all
        fetch(dict.fromkeys(sets))


def _samples(run: Planned) -> None:
    """Refuse ``--samples`` for a task that isn't run, or with a document that is missing."""
    samples = run.config.samples or {}
    for name, indices in samples.items() if run.tasks else ():
        if name not in run.tasks:
            raise BiasError(
                f"--samples names {name!r}, which is not among --tasks.{did_you_mean(name, run.tasks)}"
            )
        number = len(run.tasks[name].eval_docs)
        if max(indices) >= number:
            raise BiasError(
                f"--samples {name}: there is no document {max(indices)}: they go from 0 to {number - 1}"
            )
        # the harness runs them in the data's order and names them in the given one
        samples[name] = sorted(set(indices))


def _fits(run: Planned) -> None:
    """Refuse a model type that can't answer what the tasks ask."""
    problem = misfit(run, run.asks)
    if not problem:
        return
    refused = [entry.name for entry in run.ours if misfit(run, entry.asks)]
    if len(refused) < len(run.ours) or not run.tasks:
        raise BiasError(f"{problem}: leave out {join_some(refused)}")
    raise problem


def _structured(run: Planned) -> None:
    """Refuse structured answers of a model that isn't served."""
    kind = run.model_class()
    if run.config.metadata.get(STRUCTURED) and not internals.is_client(kind):
        raise BiasError(
            f"--metadata {STRUCTURED}: the model type {kind.__name__} can't keep answers to a form: serve the model "
            "(vllm serve), and take --model local-chat-completions"
        )


def _server(run: Planned) -> None:
    """Refuse log-likelihoods from a server without a tokenizer, and plain texts for a chat server."""
    kind = run.model_class()
    asks_likelihoods = not set(run.asks) <= {"generate_until"}
    for name, useless in (
        ("tokenizer_backend", "none"),
        ("tokenized_requests", "false"),
    ):
        given = str(run.config.model_args.get(name, "")).lower()
        if asks_likelihoods and internals.is_client(kind) and given == useless:
            raise BiasError(
                f"--model_args {name}=: log-likelihoods of a server are cut by tokens: leave it out and give "
                "tokenizer=NAME_OR_FOLDER, or run the tasks whose names end in _gen"
            )
    sends_turns = run.asks and "Chat" in internals.asker(kind)
    if sends_turns and not run.config.apply_chat_template:
        raise BiasError(
            f"--model {run.config.model} sends conversations instead of plain texts: add --apply_chat_template"
        )


def _base_models(run: Planned) -> None:
    """Warn of tasks with written answers that are run without a chat template."""
    writes = internals.derives_from(run.model_class(), "HFLM", "VLLM", "TemplateAPI")
    if run.config.apply_chat_template or not writes:
        return
    read = [
        entry.name
        for entry in run.ours
        if "generate_until" in entry.asks and samples_texts(entry.definition) != SAMPLES
    ]
    if read:
        logger.warning(
            "%s: without --apply_chat_template a model may write on behind its answer, up to max_gen_toks= tokens, or "
            "give none; base models are better asked by the tasks without _gen",
            join_some(read),
        )


def _sampling(run: Planned) -> None:
    """Refuse sampling options with which all samples of a prompt are equal."""
    from lm_eval_bias.scoring import sampled_texts

    kind = run.model_class()
    greedy = internals.is_greedy(run.config.gen_kwargs)
    needed = (SAMPLES,) if greedy else (SAMPLES, SAMPLES_BY_DEFAULT)
    sampled = [
        entry.name for entry in run.ours if samples_texts(entry.definition) in needed
    ]
    if sampled and greedy:
        raise BiasError(
            f"--gen_kwargs: {sampled[0]} compares samples: leave out do_sample=false and temperature=0"
        )
    has_seeds = "seed" in run.config.gen_kwargs or sampled_texts.seeded(kind)
    if sampled and internals.is_client(kind) and not has_seeds:
        raise BiasError(
            f"{sampled[0]} samples every prompt many times, but --model {run.config.model} "
            "sends the same seed each time, and gets the same answer: add --gen_kwargs '{\"seed\": null}'"
        )


def _greeting(run: Planned) -> str:
    """Return a prompt in the model's chat template; empty without one."""
    model = run.model
    if not run.config.apply_chat_template or not hasattr(model, "apply_chat_template"):
        return ""
    turns = [{"role": "user", "content": "Hello."}]
    if run.config.system_instruction:
        turns.insert(0, {"role": "system", "content": run.config.system_instruction})
    return str(model.apply_chat_template(turns))


def _system_instruction(run: Planned) -> None:
    """Refuse a chat template that drops the system instruction; tasks of plain sentences use neither."""
    instruction = run.config.system_instruction
    if instruction and not internals.is_client(run.model) and run.output_types():
        tokenization_boundary.check_prompt(_greeting(run), [instruction])


def _thoughts(run: Planned) -> None:
    """Refuse a chat template in which options would be scored within a thought."""
    mark = opening_of_thoughts(_greeting(run))
    if not mark:
        return
    if run.output_types() - {"generate_until"}:
        raise BiasError(
            f"--apply_chat_template: this model's template opens a thought ({mark}), in which options would be scored: "
            "add --model_args enable_thinking=False, or run the tasks whose names end in _gen"
        )
    if "max_gen_toks" not in run.config.gen_kwargs:
        logger.warning(
            "this model's template opens a thought (%s), which rarely ends within the tasks' limit: give it room with "
            "--gen_kwargs max_gen_toks=4096",
            mark,
        )


def _tokenizer(run: Planned) -> None:
    """Check the tokens that the model really gets; correct or refuse what would change every score."""
    prompt = _greeting(run)
    if set(run.asks) & set(KINDS) and not internals.is_client(run.model):
        # sentences lack the start token that a template may bring; the harness adds no second one to prompts
        prompt = ""
    tokenization_boundary.check_tokenizer(run.model, run.config.model_args, prompt)


def misfit(run: Planned, asks: Sequence[str]) -> BiasError | None:
    """Explain why the model type or the flags don't fit what tasks ask; ``None`` where they do, or that isn't known."""
    if not asks:
        return None
    asks = sorted(set(asks))
    kind = run.model_class()
    arguments = run.config.model_args
    problem = internals.impossible(kind, arguments, asks, asks)
    if problem is None and internals.derives_from(kind, "HFLM"):
        return _unfit_architecture(arguments, asks)
    return problem


def _unfit_architecture(model_args: Facts, asks: Sequence[str]) -> BiasError | None:
    """Describe what a checkpoint of ``hf``, or a model type derived from it, can't answer, by its configuration."""
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


# by what is known of a run, each with what is known at those before
FLAGS = (_limit, _form_of_samples, _batch_size, _output_path)
MODEL_TYPE = (_model_type,)  # a suite goes by it next
NAMES = (
    _are_named, _include_path, _small_limit, _prompts, _metadata, _device, _options, _data,
)  # fmt: skip
TASKS = (_samples, _fits, _structured, _server, _base_models, _sampling)
MODEL = (_system_instruction, _thoughts, _tokenizer)


def check(checks: Sequence[Callable[[Planned], None]], run: Planned) -> None:
    """Run the checks of a stage, in order.

    Raises:
        BiasError: The run would fail, lose its results, or measure something else than it says.
    """
    for refuse in checks:
        refuse(run)
