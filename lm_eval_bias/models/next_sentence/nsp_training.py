"""``nsp train``: transformers' ``Trainer`` with the recipe of Öztürk et al. (2023), section 5.2.

The trained model is a causal body with the paper's head, or a T5 that answers with a word. It is asked as by
``--model hf-nsp`` (:class:`lm_eval_bias.models.next_sentence.nsp_model.HFNextSentence`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import datasets
import numpy as np
import pandas
import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint

from lm_eval_bias.core import Data
from lm_eval_bias.core.csv_text import csv_text
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import writing
from lm_eval_bias.custom_metrics.intervals import wilson
from lm_eval_bias.models.next_sentence import nsp_model, sentence_pairs
from lm_eval_bias.models.next_sentence.nsp_model import Tensors
from lm_eval_bias.models.next_sentence.nsp_settings import TrainingSettings
from lm_eval_bias.models.next_sentence.sentence_pairs import Ints
from lm_eval_bias.models.question_model import padded_inputs

# columns of the training's log, in two plots
PLOTTED = [("loss", "eval_loss"), ("eval_accuracy",)]
# pairs at a time, learning rate of the body (section 5.2; that of T5 isn't printed: mT5's)
PAPER = {"causal": (4, 5e-6), "seq2seq": (8, 1e-4), "t5": (24, 1e-4)}
_PAIRS_AN_UPDATE = 64
_GAIN = 0.002  # the smallest improvement in held-out accuracy that counts
_MASKED = ("bert", "roberta", "electra")  # which transformers can also use as decoders


class _Classifier:
    """A network to train in float32, with its tokenizer and its encoding of pairs."""

    def __init__(self, settings: TrainingSettings) -> None:
        name = settings.model
        options = {"revision": settings.revision or "main"}
        try:
            config = transformers.AutoConfig.from_pretrained(name, **options)
            kind = nsp_model.body_class(config.is_encoder_decoder)
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
            self.body: transformers.PreTrainedModel = kind.from_pretrained(
                name, dtype=torch.float32, **options
            )
        except Exception as error:  # a checkpoint can be damaged in many ways, each with an error of its own
            raise BiasError(f"--model {name}: {one_line(error)[:300]}") from error
        positions = getattr(config, "max_position_embeddings", None)
        self._longest = min(settings.max_length, positions or settings.max_length)
        self.network: torch.nn.Module = self.body
        self.head: torch.nn.Sequential | None = None
        if config.is_encoder_decoder:
            self._choose_words()
        elif (
            config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
            and config.model_type not in _MASKED
        ):
            self.network = nsp_model.CausalNetwork(self.body)
            self.head = self.network.head
            self.config = nsp_model.NSPConfig("causal")
        else:
            raise BiasError(
                f"--model {name}: {config.model_type} is neither a causal model nor a T5: see --model hf-mlm"
            )

    def _choose_words(self) -> None:
        """Find the labels' tokens, and the decoder step at which they differ."""
        labels = nsp_model.LABELS
        self._targets = [
            self.tokenizer(text_target=word)["input_ids"] for word in labels
        ]
        words = [
            self.tokenizer.encode(word, add_special_tokens=False) for word in labels
        ]
        if len(words[0]) > 2 or words[0][:-1] != words[1][:-1]:
            raise BiasError(
                f"the tokenizer makes {words} of {labels}: they must differ in one token"
            )
        self.words = [word[-1] for word in words]
        prefix = nsp_model.prefix_of(self.body.config)
        self.config = nsp_model.NSPConfig(
            "seq2seq", prefix=prefix, read_step=len(words[0])
        )

    def _encode(
        self, context: str, candidate: str, follows: int
    ) -> tuple[list[int], int | list[int]]:
        """Make token ids and label; contexts that are too long lose their beginning, candidates their end."""
        if self.head is None:
            prefixed = f"{self.config.prefix}{context}"
            encoded = self.tokenizer(
                prefixed, candidate, truncation=True, max_length=self._longest
            )
            return encoded["input_ids"], self._targets[follows]
        first, second = (
            self.tokenizer.encode(text, add_special_tokens=False)
            for text in (context, candidate)
        )
        first = first[-max(self._longest - len(second), self._longest // 2) :]
        return [*first, *second[: self._longest - len(first)]], follows

    def collate(self, sentences: datasets.Dataset, pairs: Sequence[Ints]) -> Tensors:
        """Make a batch, padded on the right; labels are 0 or 1, or the tokens of a T5's answer."""
        first, second, follows = np.transpose(pairs).tolist()
        texts = (sentences[rows]["text"] for rows in (first, second))
        encoded, labels = zip(*map(self._encode, *texts, follows), strict=True)
        inputs = padded_inputs(encoded, self.tokenizer)
        return {**inputs, "labels": torch.tensor(labels)}

    def optimizer(
        self, arguments: transformers.TrainingArguments, head_rate: float
    ) -> torch.optim.Optimizer:
        """Make the optimizer that the arguments name; the head has a learning rate of its own."""
        kind, options = transformers.Trainer.get_optimizer_cls_and_kwargs(arguments)
        groups: list[Data] = [{"params": list(self.body.parameters())}]
        if self.head is not None:
            groups.append({"params": list(self.head.parameters()), "lr": head_rate})
        options = {"weight_decay": arguments.weight_decay, **options}
        return kind(groups, **options)


class _PairTrainer(transformers.Trainer):
    """A ``Trainer`` that measures accuracy from answers as ``hf-nsp`` reads them."""

    classifier: _Classifier

    def prediction_step(
        self, model: torch.nn.Module, inputs: Tensors, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, ...]:
        """Compute the loss, the two logits, and labels of 0 and 1."""
        loss, logits, labels = super().prediction_step(model, inputs, *args, **kwargs)
        classifier = self.classifier
        if classifier.head is None:
            words = classifier.words
            step = classifier.config.read_step
            labels = (labels[:, step - 1] == words[1]).long()
            inputs = self._prepare_inputs(inputs)
            with torch.no_grad():
                logits = nsp_model.by_word(classifier.body, inputs, words, step)
        return loss, logits.float(), labels


def _accuracy(outcome: transformers.EvalPrediction) -> dict[str, float]:
    """Compute the share of pairs that are answered right, from two logits and the label of each."""
    right = np.equal(outcome.predictions.argmax(-1), outcome.label_ids)
    return {"accuracy": float(right.mean())}


def _arguments(
    settings: TrainingSettings, family: str, folder: Path
) -> transformers.TrainingArguments:
    """Make the arguments of the ``Trainer``, with checkpoints in a folder."""
    batch, rate = PAPER[family]
    batch = settings.batch_size or batch
    interval = settings.trainer.get("eval_steps", 0.05)  # of all updates
    # what a share of all updates is called before transformers 5, and from then on
    warmup = (
        "warmup_ratio"
        if hasattr(transformers.TrainingArguments, "warmup_ratio")
        else "warmup_steps"
    )
    changeable = {
        "num_train_epochs": 1,
        "gradient_accumulation_steps": max(1, round(_PAIRS_AN_UPDATE / batch)),
        "per_device_eval_batch_size": 2 * batch,
        "lr_scheduler_type": "cosine_with_restarts",
        warmup: 0.01,
        "eval_steps": interval,
        "save_steps": interval,
        "logging_steps": interval,
        "save_total_limit": 2,
        "disable_tqdm": False,
        "report_to": "none",
        **settings.trainer,
    }
    return transformers.TrainingArguments(
        output_dir=str(folder),
        seed=settings.seed,
        data_seed=settings.seed,
        per_device_train_batch_size=batch,
        learning_rate=settings.body_rate or rate,
        eval_strategy="steps",
        save_strategy="steps",
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        remove_unused_columns=False,
        restore_callback_states_from_checkpoint=True,
        **changeable,
    )


def _draw_curve(curve: pandas.DataFrame, path: Path) -> None:
    """Draw losses and held-out accuracy by update, as Figs. 1 and 2 of Öztürk et al. do."""
    columns = [name for names in PLOTTED for name in names]
    # a training without a look has no such columns
    table = curve.reindex(columns=columns).astype(float).rename_axis("updates")
    axes = table.plot(subplots=PLOTTED, layout=(1, 2), marker=".", figsize=(8, 3))
    axes[0, 0].figure.savefig(path)


def _trainer(
    settings: TrainingSettings,
    classifier: _Classifier,
    collate: Callable[[Sequence[Ints]], Tensors],
    pairs: Mapping[str, Ints],
    checkpoints: Path,
) -> _PairTrainer:
    try:
        family = "t5" if classifier.config.prefix else classifier.config.family
        arguments = _arguments(settings, family, checkpoints)
        trainer = _PairTrainer(
            model=classifier.network,
            args=arguments,
            data_collator=collate,
            train_dataset=pairs["train"],
            eval_dataset=pairs["held_out"],
            compute_metrics=_accuracy,
            optimizers=(classifier.optimizer(arguments, settings.head_rate), None),
            callbacks=[transformers.EarlyStoppingCallback(settings.patience, _GAIN)],
        )
    except (TypeError, ValueError, ImportError, RuntimeError) as error:
        # such as report_to=wandb without wandb
        raise BiasError(f"--trainer: {one_line(error)[:300]}") from error
    trainer.classifier = classifier
    return trainer


def train(settings: TrainingSettings, output: Path) -> Data:
    """Train a model and save it in a new folder for ``--model hf-nsp``; the same call resumes a stopped training.

    Until the model is saved, sentences and checkpoints lie in a folder beside it that is named after the settings.

    Returns:
        Facts about the model, which are also in the ``training`` field of its ``nsp_config.json``.

    Raises:
        BiasError: The model or the corpus can't be had, or the settings are bad.
    """
    if output.exists():
        raise BiasError(f"--output {output} exists already: name another folder")
    digest = hashlib.sha256(repr(settings).encode()).hexdigest()[:8]
    work = output.with_name(f"{output.name}.{digest}.work")
    transformers.set_seed(settings.seed)
    classifier = _Classifier(settings)
    sentences = sentence_pairs.sentences(settings, work / "sentences")
    pairs = sentence_pairs.draw(sentences, settings)
    collate = partial(classifier.collate, sentences)
    trainer = _trainer(settings, classifier, collate, pairs, work / "checkpoints")
    for checkpoint in (work / "checkpoints").glob("checkpoint-*"):
        if not (checkpoint / TRAINER_STATE_NAME).exists():  # it is written last
            shutil.rmtree(checkpoint)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(work / "checkpoints"))
    right = trainer.predict(pairs["test"]).metrics["test_accuracy"]
    tested = len(pairs["test"])
    record = {
        "base": settings.model,
        "test": {
            "accuracy": right,
            "interval": list(wilson(round(right * tested), tested)),
            "pairs": tested,
        },
        "updates": trainer.state.global_step,
        "best_update": trainer.state.best_global_step,
        "pairs": {part: len(rows) for part, rows in pairs.items()},
        "settings": dataclasses.asdict(settings),
    }
    if trainer.is_world_process_zero():
        config = dataclasses.replace(classifier.config, training=record)
        nsp_model.save(
            output, classifier.body, classifier.tokenizer, config, classifier.head
        )
        curve = pandas.DataFrame(trainer.state.log_history).groupby("step").first()
        with writing(output):
            table = csv_text(["step", *curve], curve.itertuples())
            (output / "curve.csv").write_text(table, encoding="utf-8")
            _draw_curve(curve, output / "curve.svg")
            shutil.rmtree(work)
    return record
