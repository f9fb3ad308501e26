"""``nsp train``: training on next sentences, resumed after a stop, ended when held-out accuracy has settled."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import accelerate
import torch
import transformers
from numpy.typing import NDArray

from lm_eval_bias import __version__
from lm_eval_bias.custom_metrics.designs import share_of, tabulate
from lm_eval_bias.custom_metrics.jackknife import clustered_estimate
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import write_whole
from lm_eval_bias.models.next_sentence import nsp_card, nsp_checkpoint, sentence_pairs
from lm_eval_bias.models.next_sentence.article_corpus import Corpus
from lm_eval_bias.models.next_sentence.nsp_card import Accuracy, TrainingRecord
from lm_eval_bias.models.next_sentence.nsp_settings import Settings
from lm_eval_bias.models.next_sentence.nsp_trainer import PairTrainer, had_ended, last_whole_checkpoint
from lm_eval_bias.models.next_sentence.pair_classifier import PairClassifier

_PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "datasets", "sentencex")


def _claim(folder: Path, choices: Mapping[str, Any]) -> None:
    """Take a working folder for these choices.

    Raises:
        BiasError: Training with others was begun in it.
    """
    path = folder / "settings.json"
    current = json.loads(json.dumps(choices))
    if path.is_file():
        try:
            recorded = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BiasError(f"{path}: damaged: delete {folder} to start again") from error
        different = sorted(key for key in {*current, *recorded} if current.get(key) != recorded.get(key))
        if different:
            raise BiasError(
                f"{folder}: its training was started with {different[0]} {recorded.get(different[0])!r}, now it is "
                f"{current.get(different[0])!r}: resume with the same value, delete the folder, or name another "
                "--output"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(current, indent=2) + "\n").encode())


def accuracy(correct: NDArray[Any], articles: NDArray[Any]) -> Accuracy:
    """Share of pairs that were told right, with an interval that takes pairs of an article to hang together."""
    form = tabulate(articles.tolist(), [[1.0] * len(correct), correct.tolist()], share_of)
    estimate = clustered_estimate(form, whole=1.0, clusters="articles")
    return {
        "accuracy": estimate.value,
        "stderr": estimate.stderr,
        "interval": list(estimate.interval or (0.0, 1.0)),
        "pairs": estimate.n,
        "articles": len(form.names),
    }


def train(
    corpora: list[Corpus],
    settings: Settings,
    output: Path,
    held_out: float = 0.05,
    most: int | None = None,
    most_held_out: int = 2_000,
    finish: bool = False,
) -> TrainingRecord:
    """Train a model and save it for ``--model hf-nsp``; the same call goes on after a stop.

    Pairs and checkpoints lie in ``<output>.work`` until the model is saved.

    Args:
        corpora: What to make pairs of.
        settings: How to train.
        output: Where the model goes; must not exist.
        held_out: Share of the articles for each of the two parts that are not trained on.
        most: Pairs to train on, at most.
        most_held_out: Pairs of each of the two parts, at most.
        finish: Train no further: test and save the best that training has reached.

    Returns:
        What its card says, also in the ``training`` field of its ``nsp_config.json``.

    Raises:
        BiasError: A model or corpus that can't be had, or bad settings.
    """
    if output.exists():
        raise BiasError(f"--output {output} exists already: name another folder")
    work = output.with_name(f"{output.name}.work")
    choices = {"corpora": [dataclasses.asdict(c) for c in corpora], "held_out": held_out, "pairs": most,
               "held-out pairs": most_held_out, **dataclasses.asdict(settings)}  # fmt: skip
    transformers.set_seed(settings.seed)
    classifier = PairClassifier(settings.model, settings.longest, settings.revision, settings.gguf_file)
    settings = settings.filled(classifier.family)
    if settings.layers is not None:
        classifier.freeze(settings.layers)
    state = accelerate.PartialState(cpu=bool(settings.trainer.get("use_cpu", False)))
    with state.main_process_first():
        _claim(work, choices)
        if not (work / "pairs").is_dir():
            sentence_pairs.build(corpora, work / "pairs", settings.seed, held_out, most, most_held_out)
    pairs = sentence_pairs.load(work / "pairs")
    updates = settings.updates(pairs.about["pairs"]["train"]["pairs"], state.num_processes)
    checkpoints = work / "checkpoints"
    try:
        trainer = PairTrainer(
            classifier,
            pairs,
            settings.arguments(checkpoints, updates),
            settings.head_rate,
            transformers.EarlyStoppingCallback(settings.patience, settings.gain),
        )
    except RuntimeError as error:  # such as report_to=tensorboard without TensorBoard
        raise BiasError(f"training can't start: {one_line(error)[:300]}") from error
    if trainer.is_world_process_zero():
        print(_announcement(trainer, settings, updates), flush=True)
        last_whole_checkpoint(checkpoints)
    trainer.accelerator.wait_for_everyone()
    last = last_whole_checkpoint(checkpoints)
    try:
        if finish or (last is not None and had_ended(last)):
            trainer.restore_best(last)
        else:
            trainer.train(resume_from_checkpoint=str(last) if last else None)
    except torch.cuda.OutOfMemoryError as error:
        raise BiasError(
            f"out of GPU memory at --batch_size {settings.batch_size}: make it smaller and --accumulate larger (the "
            f"work so far is kept in {work})"
        ) from error
    has_settled = trainer.state.global_step < updates
    reason = "stopped by hand" if finish else "held-out accuracy settled" if has_settled else "all updates were made"
    record = _record(trainer, settings, choices, reason)
    if trainer.is_world_process_zero():
        config = dataclasses.replace(classifier.config, training=dict(record))
        card = nsp_card.markdown(record)
        nsp_checkpoint.save(output, classifier.body, classifier.tokenizer, config, classifier.head, card)
        shutil.rmtree(work)
    return record


def _announcement(trainer: PairTrainer, settings: Settings, updates: int) -> str:
    about, classifier = trainer.pairs.about, trainer.classifier
    sizes = [(p.numel(), p.requires_grad) for p in classifier.network.parameters()]
    trained, total = sum(size for size, learns in sizes if learns), sum(size for size, _ in sizes)
    counts = ", ".join(f"{about['pairs'][part]['pairs']:,} {name}" for part, name in
                       (("train", "to train on"), ("held_out", "to stop by"), ("test", "to test")))  # fmt: skip
    rates = f"{settings.body_rate:g}" + (f" (head {settings.head_rate:g})" if classifier.family == "causal" else "")
    at_once = settings.pairs_per_update(trainer.accelerator.num_processes)
    return (
        f"{about['articles']:,} articles, {about['sentences']:,} sentences ({about['repeated']:,} repeated); pairs: "
        f"{counts}\n{settings.model} ({classifier.family}): {trained:,} of {total:,} parameters are trained, learning "
        f"rate {rates}; {at_once} pairs an update, {updates:,} updates at most, a look at the held-out pairs every "
        f"{trainer.args.eval_steps:,.0f}"
    )


def _record(trainer: PairTrainer, settings: Settings, choices: Mapping[str, Any], reason: str) -> TrainingRecord:
    """What the card says of a trained model; the test pairs are looked at here, once."""
    pairs, state = trainer.pairs, trainer.state
    accuracies = {part: accuracy(trainer.right(part), pairs.articles(part)) for part in sentence_pairs.PARTS[1:]}
    examples = state.global_step * settings.pairs_per_update(trainer.accelerator.num_processes)
    if settings.max_steps < 0:
        examples = min(examples, math.ceil(settings.epochs * pairs.about["pairs"]["train"]["pairs"]))
    return {
        "base": settings.model,
        "family": trainer.classifier.family,
        "test": accuracies["test"],
        "held_out": accuracies["held_out"],
        "looks": [
            {"update": entry["step"], "accuracy": entry["eval_accuracy"], "loss": entry["eval_loss"]}
            for entry in state.log_history
            if "eval_accuracy" in entry
        ],
        "updates": state.global_step,
        "examples": examples,
        "best_update": state.best_global_step,
        "stopped": reason,
        "data": pairs.about,
        "settings": {**choices, **dataclasses.asdict(settings), "schedule": str(trainer.args.lr_scheduler_type.value)},
        "versions": {"lm-eval-bias": __version__, **{name: importlib.metadata.version(name) for name in _PACKAGES}},
    }
