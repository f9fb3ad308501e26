"""Training through transformers' ``Trainer``: resumed after a stop, ended when held-out accuracy has settled."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import logging
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from lm_eval_bias import __version__
from lm_eval_bias.custom_metrics.bootstrap import clustered_stderr, effective_clusters
from lm_eval_bias.custom_metrics.score import t_factor
from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import write_whole
from lm_eval_bias.models.next_sentence import nsp_card, nsp_checkpoint, sentence_pairs
from lm_eval_bias.models.next_sentence.article_corpus import Corpus
from lm_eval_bias.models.next_sentence.nsp_network import Asked

logger = logging.getLogger("lm_eval.bias")
_NEEDED = ("trainer_state.json", "optimizer.pt", "scheduler.pt")  # the first is written last
_OWN = {"output_dir", "seed", "data_seed", "resume_from_checkpoint", "remove_unused_columns", "load_best_model_at_end",
        "metric_for_best_model", "greater_is_better", "save_strategy", "eval_strategy", "save_steps", "eval_steps",
        "label_names", "learning_rate", "max_steps", "num_train_epochs", "per_device_train_batch_size",
        "gradient_accumulation_steps"}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a model is trained; ``None`` stands for the paper's value for its family.

    Attributes:
        model: Folder or hub name of the model.
        seed: Of the pairs, of the head's first weights and of the order.
        epochs: How often every pair is seen, at most.
        max_steps: Updates, at most.
        batch_size: Pairs at a time and device.
        accumulate: Batches before an update.
        body_rate: Learning rate of the body: 5e-6 (causal), 1e-4 (T5).
        head_rate: Learning rate of the head: 1e-3.
        cycles: Of the cosine schedule with restarts.
        longest: Most tokens of a pair.
        layers: How many last layers of the body are trained; all without it.
        evaluate_every: Updates between two looks at the held-out pairs.
        patience: Looks without gain after which training stops.
        gain: What counts as gain in held-out accuracy.
        revision: Of the model on the hub.
        gguf_file: The file in the model's folder, where it is one.
        trainer: More of ``transformers.TrainingArguments``.
    """

    model: str
    seed: int = 0
    epochs: float = 1.0
    max_steps: int = -1
    batch_size: int | None = None
    accumulate: int | None = None
    body_rate: float | None = None
    head_rate: float = 1e-3
    cycles: int = 1
    longest: int = 256
    layers: int | None = None
    evaluate_every: int | None = None
    patience: int = 3
    gain: float = 0.002
    revision: str | None = None
    gguf_file: str | None = None
    trainer: dict[str, Any] = dataclasses.field(default_factory=dict)

    def filled(self, family: str) -> Settings:
        """With the paper's values (section 5.2) where there are none."""
        paper = {"causal": (4, 16, 5e-6), "seq2seq": (8, 8, 1e-4)}[family]
        names = ("batch_size", "accumulate", "body_rate")
        missing: dict[str, Any] = {
            name: value for name, value in zip(names, paper, strict=True) if getattr(self, name) is None
        }
        return dataclasses.replace(self, **missing)


class Rows(torch.utils.data.Dataset[dict[str, Any]]):
    """The pairs of one part as the network wants them."""

    def __init__(self, found: sentence_pairs.Pairs, part: str, asked: Asked) -> None:
        """Rows of a part.

        Args:
            found: Pairs on disk.
            part: One of :data:`lm_eval_bias.models.next_sentence.sentence_pairs.PARTS`.
            asked: What encodes them.
        """
        self._pairs, self._rows, self._asked = found, found.rows(part), asked

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self._asked.encode(self._pairs.pair(self._rows[number]))


class Trainer(transformers.Trainer):
    """With a learning rate of its own for the head."""

    rates: tuple[float, float]
    asked: Asked

    def prediction_step(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Loss, the two logits as they are read in use, and labels.

        Args:
            model: The network.
            inputs: A batch.
            args: Not used.
            kwargs: Not used.
        """
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
            logits = self.asked.two_logits(model, inputs)
        return loss.detach(), logits.float(), inputs["labels"]

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """AdamW, no weight decay on biases and norms, as the ``Trainer`` does it."""
        if getattr(self, "optimizer", None) is None:
            target = self.model if model is None else model
            decays = set(self.get_decay_parameter_names(target))
            groups: dict[tuple[bool, bool], list[Any]] = {}
            for name, parameter in target.named_parameters():
                if parameter.requires_grad:
                    of_head = name.removeprefix("module.").startswith("head.")
                    groups.setdefault((of_head, name in decays), []).append(parameter)
            made, options = self.get_optimizer_cls_and_kwargs(self.args, target)
            self.optimizer = made(
                [
                    {
                        "params": parameters,
                        "lr": self.rates[of_head],
                        "weight_decay": self.args.weight_decay if decaying else 0.0,
                    }
                    for (of_head, decaying), parameters in groups.items()
                ],
                **options,
            )
        return self.optimizer


class Told(transformers.TrainerCallback):
    """Says in one line what each look at the held-out pairs found."""

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Print it.

        Args:
            args: Of the training.
            state: Of the training.
            control: Of the training.
            metrics: What was found.
            kwargs: Not used.
        """
        if state.is_world_process_zero and metrics and "eval_accuracy" in metrics:
            losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
            loss = f", loss in training {losses[-1]:.4f}" if losses else ""
            best = max([metrics["eval_accuracy"], state.best_metric or 0.0])
            from tqdm import tqdm

            tqdm.write(
                f"update {state.global_step:,} of {state.max_steps:,}: held-out accuracy "
                f"{metrics['eval_accuracy']:.4f} (best {best:.4f}), loss {metrics['eval_loss']:.4f}{loss}"
            )


class Progress(transformers.trainer_callback.ProgressCallback):
    """The ``Trainer``'s progress bar, without the dictionaries that it writes between."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Write nothing.

        Args:
            args: Of the training.
            state: Of the training.
            control: Of the training.
            logs: What is not written.
            kwargs: Not used.
        """


def _arguments(settings: Settings, folder: Path, updates: int) -> transformers.TrainingArguments:
    every = min(settings.evaluate_every or math.ceil(updates / 20), updates)
    own = {
        "output_dir": str(folder),
        "seed": settings.seed,
        "data_seed": settings.seed,
        "num_train_epochs": settings.epochs,
        "max_steps": settings.max_steps,
        "per_device_train_batch_size": settings.batch_size,
        "gradient_accumulation_steps": settings.accumulate,
        "learning_rate": settings.body_rate,
        "eval_strategy": "steps",
        "save_strategy": "steps",
        "eval_steps": every,
        "save_steps": every,
        "load_best_model_at_end": True,
        "metric_for_best_model": "accuracy",
        "greater_is_better": True,
        "restore_callback_states_from_checkpoint": True,
        "remove_unused_columns": False,
        "label_names": ["labels"],
    }
    changeable = {
        "per_device_eval_batch_size": 2 * (settings.batch_size or 1),
        "lr_scheduler_type": "cosine_with_restarts",
        "lr_scheduler_kwargs": {"num_cycles": settings.cycles},
        "warmup_steps": math.ceil(0.01 * updates),
        "max_grad_norm": 1.0,
        "weight_decay": 0.0,
        "save_total_limit": 2,
        "disable_tqdm": False,
        "logging_steps": every,
        "report_to": "none",
        "dataloader_pin_memory": torch.cuda.is_available(),
    }
    taken = sorted(_OWN & set(settings.trainer))
    if taken:
        raise BiasError(f"--trainer {taken[0]}: is set by this command, by a flag of its own where it can be chosen")
    try:
        return transformers.TrainingArguments(**{**changeable, **settings.trainer, **own})
    except (TypeError, ValueError, ImportError, RuntimeError) as error:
        raise BiasError(f"--trainer: {one_line(error)}") from error


def _complete(folder: Path) -> Path | None:
    """The last whole checkpoint; what a stop left half-written is removed."""
    found = None
    for path in sorted(folder.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2])):
        try:
            json.loads((path / _NEEDED[0]).read_text(encoding="utf-8"))
            whole = all((path / name).is_file() for name in _NEEDED)
        except (OSError, ValueError):
            whole = False
        if whole:
            found = path
        else:
            shutil.rmtree(path)
    return found


def _claim(folder: Path, asked: Mapping[str, Any]) -> None:
    """Take a working folder for these settings.

    Raises:
        BiasError: Training with others was begun in it.
    """
    path = folder / "settings.json"
    wanted = json.loads(json.dumps(asked))
    if path.is_file():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BiasError(f"{path}: damaged: delete {folder} to begin anew") from error
        different = sorted(key for key in {*wanted, *before} if wanted.get(key) != before.get(key))
        if different:
            raise BiasError(
                f"{folder}: training was begun in it with {different[0]} {before.get(different[0])!r}, now it is "
                f"{wanted.get(different[0])!r}: go on with the same, delete the folder, or name another --output"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(wanted, indent=2) + "\n").encode())


def accuracy(right: np.ndarray[Any, Any], articles: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Share of pairs that were told right, with an interval that takes an article's pairs to hang together.

    Args:
        right: Whether each was, ``[pairs]``.
        articles: The articles of the contexts, ``[pairs]``.

    Returns:
        ``accuracy`` (0..1, chance 0.5), ``stderr`` (CR1, clustered by article), the 95% ``interval`` (Student's t with
        the effective number of articles), ``pairs`` and ``articles``.
    """
    mean = float(right.mean())
    clusters = articles.tolist()
    stderr = clustered_stderr((right - mean) / len(right), clusters)
    margin = t_factor(effective_clusters(clusters) - 1) * stderr
    return {
        "accuracy": mean,
        "stderr": stderr,
        "interval": [max(0.0, mean - margin), min(1.0, mean + margin)],
        "pairs": len(right),
        "articles": len(set(clusters)),
    }


def train(
    corpora: list[Corpus],
    settings: Settings,
    output: Path,
    held_out: float = 0.05,
    most: int | None = None,
    most_held_out: int = 2_000,
    finish: bool = False,
) -> dict[str, Any]:
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
        raise BiasError(f"--output {output} exists: name another folder")
    work = output.with_name(f"{output.name}.work")
    made = {"corpora": [dataclasses.asdict(c) for c in corpora], "held_out": held_out, "pairs": most,
            "held-out pairs": most_held_out, **dataclasses.asdict(settings)}  # fmt: skip
    transformers.set_seed(settings.seed)
    asked = Asked(settings.model, settings.longest, settings.revision, settings.gguf_file)
    settings = settings.filled(asked.family)
    if settings.layers is not None:
        asked.freeze(settings.layers)
    with _state(settings).main_process_first():
        _claim(work, made)
        folder = work / "pairs"
        if not folder.is_dir():
            sentence_pairs.build(corpora, folder, settings.seed, held_out, most, most_held_out)
    found = sentence_pairs.load(folder)
    count = found.about["pairs"]["train"]["pairs"]
    devices = _state(settings).num_processes
    at_once = (settings.batch_size or 1) * (settings.accumulate or 1) * devices
    updates = settings.max_steps if settings.max_steps > 0 else math.ceil(settings.epochs * math.ceil(count / at_once))
    trainer = _trainer(asked, found, _arguments(settings, work / "checkpoints", updates), settings)
    _say(trainer, asked, found, settings, updates, at_once)
    last = _complete(work / "checkpoints") if trainer.is_world_process_zero() else None
    trainer.accelerator.wait_for_everyone()
    last = last or _complete(work / "checkpoints")
    try:
        if finish:
            _restore(trainer, last, work)
        else:
            trainer.train(resume_from_checkpoint=str(last) if last else None)
    except torch.cuda.OutOfMemoryError as error:
        raise BiasError(
            f"out of GPU memory at --batch_size {settings.batch_size}: make it smaller and --accumulate larger (work "
            f"so far is kept in {work})"
        ) from error
    steps = trainer.state.global_step
    stopped = "held-out accuracy had settled" if steps < updates else "all updates were made"
    told = _told(trainer, asked, found, settings, made, "ended by hand" if finish else stopped, at_once)
    if trainer.is_world_process_zero():
        config = dataclasses.replace(asked.settings, training=told)
        nsp_checkpoint.save(output, asked.body, asked.tokenizer, config, asked.head, nsp_card.markdown(told))
        shutil.rmtree(work)
    return told


def _restore(trainer: Trainer, last: Path | None, work: Path) -> None:
    """Have the best weights of a training that was stopped.

    Raises:
        BiasError: It had not come to its first look at the held-out pairs.
    """
    if last is None:
        raise BiasError(f"--finish: {work} holds no checkpoint yet: train on without it")
    trainer.state = transformers.TrainerState.load_from_json(str(last / _NEEDED[0]))
    best = last.with_name(f"checkpoint-{trainer.state.best_global_step}")
    trainer.state.best_model_checkpoint = str(best)
    trainer._load_best_model()


def _state(settings: Settings) -> Any:
    import accelerate

    return accelerate.PartialState(cpu=bool(settings.trainer.get("use_cpu", False)))


def _trainer(asked: Asked, found: sentence_pairs.Pairs, arguments: Any, settings: Settings) -> Trainer:
    def measured(outcome: Any) -> dict[str, float]:
        right = outcome.predictions.argmax(-1) == asked.follows(outcome.label_ids)
        return {"accuracy": float(np.mean(right))}

    trainer = Trainer(
        model=asked.network,
        args=arguments,
        data_collator=asked.collate,
        train_dataset=Rows(found, "train", asked),
        eval_dataset=Rows(found, "held_out", asked),
        compute_metrics=measured,
        callbacks=[transformers.EarlyStoppingCallback(settings.patience, settings.gain), Told()],
    )
    trainer.asked = asked
    trainer.rates = (float(settings.body_rate or 0.0), settings.head_rate)
    trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
    if trainer.pop_callback(transformers.trainer_callback.ProgressCallback) is not None:
        trainer.add_callback(Progress)
    return trainer


def _say(
    trainer: Trainer, asked: Asked, found: sentence_pairs.Pairs, settings: Settings, updates: int, at_once: int
) -> None:
    if not trainer.is_world_process_zero():
        return
    about = found.about
    trained = sum(p.numel() for p in asked.network.parameters() if p.requires_grad)
    every = sum(p.numel() for p in asked.network.parameters())
    counts = ", ".join(f"{about['pairs'][part]['pairs']:,} {name}" for part, name in
                       (("train", "to train on"), ("held_out", "to stop by"), ("test", "to test")))  # fmt: skip
    rates = f"{settings.body_rate:g}" + (f" (head {settings.head_rate:g})" if asked.family == "causal" else "")
    print(
        f"{about['articles']:,} articles, {about['sentences']:,} sentences ({about['repeated']:,} repeated); pairs: "
        f"{counts}\n{settings.model} ({asked.family}): {trained:,} of {every:,} parameters are trained, learning rate "
        f"{rates}; {at_once} pairs an update, {updates:,} updates at most, a look at the held-out pairs every "
        f"{trainer.args.eval_steps:,.0f}",
        flush=True,
    )


def _told(
    trainer: Trainer,
    asked: Asked,
    found: sentence_pairs.Pairs,
    settings: Settings,
    made: Mapping[str, Any],
    stopped: str,
    at_once: int,
) -> dict[str, Any]:
    """What the card says of a trained model; the test pairs are looked at here, once."""
    measured = {}
    for part in sentence_pairs.PARTS[1:]:
        outcome = trainer.predict(Rows(found, part, asked))
        right = np.asarray(outcome.predictions.argmax(-1) == asked.follows(outcome.label_ids))
        measured[part] = accuracy(right, found.articles(part))
    steps = trainer.state.global_step
    looks = [
        {"update": entry["step"], "accuracy": entry["eval_accuracy"], "loss": entry["eval_loss"]}
        for entry in trainer.state.log_history
        if "eval_accuracy" in entry
    ]
    packages = ("torch", "transformers", "accelerate", "tokenizers", "datasets", "sentencex")
    return {
        "base": settings.model,
        "family": asked.family,
        "test": measured["test"],
        "held_out": measured["held_out"],
        "looks": looks,
        "updates": steps,
        "examples": min(steps * at_once, math.ceil(settings.epochs * found.about["pairs"]["train"]["pairs"]))
        if settings.max_steps < 0
        else steps * at_once,
        "best_update": trainer.state.best_global_step,
        "stopped": stopped,
        "data": found.about,
        "settings": {**made, **dataclasses.asdict(settings), "schedule": str(trainer.args.lr_scheduler_type.value)},
        "versions": {"lm-eval-bias": __version__, **{name: importlib.metadata.version(name) for name in packages}},
    }
