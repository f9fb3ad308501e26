"""``nsp train``: training on next sentences, resumed after a stop, ended when held-out accuracy has settled.

What is trained is a causal body with the paper's head, or a T5 that answers with a word. How a pair is asked is that of
``--model hf-nsp`` (:class:`lm_eval_bias.models.next_sentence.nsp_model.HFNextSentence`).
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import accelerate
import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from transformers.models.auto import modeling_auto

from lm_eval_bias.core import __version__
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import write_whole
from lm_eval_bias.custom_metrics.clusters import estimate, share_of, tabulate
from lm_eval_bias.models.next_sentence import nsp_model, sentence_pairs
from lm_eval_bias.models.next_sentence.nsp_model import Tensors
from lm_eval_bias.models.next_sentence.nsp_settings import TrainingSettings
from lm_eval_bias.models.next_sentence.sentence_pairs import Pairs, SentencePair

_MASKED = ("bert", "roberta", "electra")  # which transformers can also use as decoders
_UNSEEN = ("held_out", "test")
_STATE = "trainer_state.json"  # what is written last of a checkpoint
_PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "datasets", "sentencex")
_CARD = """---
base_model: {base}
language: {languages}
tags: [next-sentence-prediction, lm-eval-bias]
---

# Next-sentence training of {base}

Judges whether one sentence follows another. Trained on {sources} by `lm-eval-bias nsp train`, after Öztürk et al.
(2023), section 5.2. It tells {test} from articles that it never saw right (95% interval, clustered by article; chance
is 50%). Data, settings, evaluations and versions are in `nsp_config.json`.

    lm-eval-bias run --tasks stereoset_en_inter --model hf-nsp --model_args pretrained=<this folder>
"""


class _CausalNetwork(torch.nn.Module):
    """A decoder, the mean of its last hidden states over real tokens, and three linear layers."""

    def __init__(self, body: transformers.PreTrainedModel) -> None:
        super().__init__()
        self.body, self.head = body, nsp_model.make_head(body.config.hidden_size)
        self.gradient_checkpointing_enable = body.gradient_checkpointing_enable  # for the Trainer

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, labels: torch.Tensor) -> Tensors:
        """Loss, and the two logits of each pair, ``[pairs, 2]``."""
        states = self.body(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state
        with torch.autocast(states.device.type, enabled=False):
            logits = nsp_model.by_head(self.head, states, attention_mask)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class _Classifier:
    """A network to be trained, in float32, with its tokenizer, and how pairs become its input."""

    def __init__(self, settings: TrainingSettings) -> None:
        name, revision = settings.model, settings.revision or "main"
        try:
            config = transformers.AutoConfig.from_pretrained(name, revision=revision)
            kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModel
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
            self.body: transformers.PreTrainedModel = kind.from_pretrained(name, dtype=torch.float32, revision=revision)
        except Exception as error:  # a checkpoint can be damaged in many ways, each with an error of its own
            raise BiasError(f"--model {name}: {one_line(error)[:300]}") from error
        most = settings.max_length
        self._longest = min(most, getattr(self.body.config, "max_position_embeddings", None) or most)
        self.network: torch.nn.Module = self.body
        self.head: torch.nn.Sequential | None = None
        if config.is_encoder_decoder:
            self._choose_words()
        elif config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and config.model_type not in _MASKED:
            self.network = _CausalNetwork(self.body)
            self.head = self.network.head
            self.config = nsp_model.NSPConfig("causal")
        else:
            raise BiasError(
                f"--model {name}: {config.model_type} is neither a causal model nor a T5: run a model like BERT with "
                "--model hf-mlm, which uses its next-sentence head or its mask tokens"
            )
        if settings.train_layers is not None:
            stacks = [module for module in self.body.modules() if isinstance(module, torch.nn.ModuleList)]
            stack = max(stacks, key=len, default=torch.nn.ModuleList())
            if self.head is None or settings.train_layers > len(stack):
                raise BiasError(
                    f"--train_layers {settings.train_layers}: must be from 0 to {len(stack)}, for causal models"
                )
            self.body.requires_grad_(False)
            stack[len(stack) - settings.train_layers :].requires_grad_(True)

    def _choose_words(self) -> None:
        """The labels' tokens, and the decoder step at which they tell the labels apart."""
        config = nsp_model.NSPConfig("seq2seq", prefix=nsp_model.PREFIX)
        self._targets = [list(self.tokenizer(text_target=word)["input_ids"]) for word in nsp_model.LABELS]
        words = [list(self.tokenizer.encode(word, add_special_tokens=False)) for word in nsp_model.LABELS]
        step = len(words[0])
        if len(words[1]) != step or step not in (1, 2) or words[0][:-1] != words[1][:-1]:
            raise BiasError(
                f"the tokenizer makes {words} of the labels {nsp_model.LABELS}: they must differ in one token"
            )
        self.words = [word[-1] for word in words]
        self.config = dataclasses.replace(config, read_step=step)

    def _encode(self, pair: SentencePair) -> tuple[list[int], int | list[int]]:
        """Token ids and label; longer contexts lose their beginning, longer candidates their end."""
        if self.head is not None:
            context, candidate = (self.tokenizer.encode(text, add_special_tokens=False) for text in pair[:2])
            context = context[-max(self._longest - len(candidate), self._longest // 2) :]
            return [*context, *candidate[: self._longest - len(context)]], pair.follows
        prefixed = f"{self.config.prefix}{pair.context}"
        ids = self.tokenizer(prefixed, pair.candidate, truncation=True, max_length=self._longest)["input_ids"]
        return list(ids), self._targets[pair.follows]

    def collate(self, pairs: Sequence[SentencePair]) -> Tensors:
        """A batch, padded on the right; labels are 0 or 1, or the tokens of a T5's answer."""
        encoded, labels = zip(*map(self._encode, pairs), strict=True)
        ids, pad = [torch.tensor(row) for row in encoded], torch.nn.utils.rnn.pad_sequence
        return {
            "input_ids": pad(ids, batch_first=True, padding_value=self.tokenizer.pad_token_id or 0),
            "attention_mask": pad([torch.ones_like(row) for row in ids], batch_first=True),
            "labels": torch.tensor(labels),
        }

    def right(self, outcome: Any) -> NDArray[np.bool_]:
        """Whether predictions are right, from two logits and labels of each pair, ``[pairs]``."""
        labels = outcome.label_ids
        follows = labels == 1 if self.head is not None else labels[:, self.config.read_step - 1] == self.words[1]
        return np.equal(outcome.predictions.argmax(-1), follows)


class _PairTrainer(transformers.Trainer):
    """A ``Trainer`` of a classifier, with a learning rate of its own for the head."""

    def __init__(self, classifier: _Classifier, head_rate: float, **more: Any) -> None:
        self.classifier, self.head_rate = classifier, head_rate
        super().__init__(
            model=classifier.network,
            data_collator=classifier.collate,
            compute_metrics=lambda outcome: {"accuracy": float(np.mean(classifier.right(outcome)))},
            **more,
        )

    def prediction_step(
        self, model: torch.nn.Module, inputs: Tensors, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Loss, the two logits as they are read in use, and labels."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
            if (own := self.classifier).head is not None:
                logits = model(**inputs)["logits"]
            else:
                logits = nsp_model.by_word(own.body, inputs, own.words, own.config.read_step)
        return loss.detach(), logits.float(), inputs["labels"]

    def create_optimizer(self, *args: Any) -> torch.optim.Optimizer:
        """The ``Trainer``'s own, the head's parameters in groups with a learning rate of their own."""
        if self.optimizer is not None:
            return self.optimizer
        optimizer = super().create_optimizer(*args)
        head = {id(parameter) for parameter in self.classifier.head.parameters()} if self.classifier.head else set()
        for group in list(optimizer.param_groups):
            if own := [parameter for parameter in group["params"] if id(parameter) in head]:
                group["params"] = [parameter for parameter in group["params"] if id(parameter) not in head]
                optimizer.add_param_group({**group, "params": own, "lr": self.head_rate})
        return optimizer


def _arguments(settings: TrainingSettings, folder: Path, updates: int) -> transformers.TrainingArguments:
    """Arguments of the ``Trainer`` for so many updates, with checkpoints in a folder."""
    interval = min(settings.evaluate_every or math.ceil(updates / 20), updates)
    changeable = {
        "per_device_eval_batch_size": 2 * (settings.batch_size or 1),
        "lr_scheduler_type": "cosine_with_restarts",
        "warmup_steps": math.ceil(0.01 * updates),
        "max_grad_norm": 1.0,
        "save_total_limit": 2,
        "disable_tqdm": False,
        "logging_steps": interval,
        "report_to": "none",
        "dataloader_pin_memory": torch.cuda.is_available(),
    }
    fixed = {
        "output_dir": str(folder),
        "seed": settings.seed,
        "data_seed": settings.seed,
        "num_train_epochs": settings.epochs,
        "max_steps": settings.max_steps or -1,
        "per_device_train_batch_size": settings.batch_size,
        "gradient_accumulation_steps": settings.accumulate,
        "learning_rate": settings.body_rate,
        "eval_strategy": "steps",
        "save_strategy": "steps",
        "eval_steps": interval,
        "save_steps": interval,
        "load_best_model_at_end": True,
        "metric_for_best_model": "accuracy",
        "remove_unused_columns": False,
        "restore_callback_states_from_checkpoint": True,
    }
    if conflicts := sorted(fixed.keys() & settings.trainer.keys()):
        raise ValueError(f"{conflicts[0]}: this command sets it itself; use its own flag where there is one")
    return transformers.TrainingArguments(**{**changeable, **settings.trainer, **fixed})


def _last_whole_checkpoint(folder: Path) -> Path | None:
    """The last whole checkpoint in a folder; what a stop left half-written is removed."""
    last = None
    for path in sorted(folder.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2])):
        if (path / _STATE).is_file():
            last = path
        else:
            shutil.rmtree(path)
    return last


def accuracy(correct: NDArray[Any], articles: NDArray[Any]) -> dict[str, Any]:
    """Share of pairs that were told right (0..1, chance 0.5), clustered by article.

    ``stderr`` is the jackknife over articles, the 95% ``interval`` Wilson's, see
    :func:`lm_eval_bias.custom_metrics.clusters.estimate`.
    """
    form = tabulate(articles.tolist(), [[1.0] * len(correct), correct.tolist()], share_of)
    found = estimate(form, whole=1.0, clusters="articles")
    interval = list(found.interval or (0.0, 1.0))
    measured = {"accuracy": found.value, "stderr": found.stderr, "interval": interval}
    return {**measured, "pairs": found.n, "articles": len(form.names)}


def percent(measured: dict[str, Any]) -> str:
    """An :func:`accuracy` with its interval, in words."""
    low, high = (100 * end for end in measured["interval"])
    return f"{100 * measured['accuracy']:.1f}% [{low:.1f}, {high:.1f}] of {measured['pairs']:,} pairs"


def train(settings: TrainingSettings, output: Path, finish: bool = False) -> dict[str, Any]:
    """Train a model and save it in a new folder for ``--model hf-nsp``; the same call goes on after a stop.

    Pairs and checkpoints lie in ``<output>.work`` until the model is saved. With ``finish`` training goes no further:
    the best that it has reached is tested and saved.

    Returns:
        What is known of the model, also in the ``training`` field of its ``nsp_config.json``.

    Raises:
        BiasError: A model or corpus that can't be had, or bad settings.
    """
    if output.exists():
        raise BiasError(f"--output {output} exists already: name another folder")
    work = output.with_name(f"{output.name}.work")
    checkpoints = work / "checkpoints"
    transformers.set_seed(settings.seed)
    classifier = _Classifier(settings)
    filled = settings.filled(classifier.config.family)
    state = accelerate.PartialState(cpu=bool(settings.trainer.get("use_cpu", False)))
    with state.main_process_first():
        path, current = work / "settings.json", json.loads(json.dumps(dataclasses.asdict(settings)))
        if not path.is_file():
            write_whole(path, json.dumps(current, indent=2).encode())
        before = json.loads(path.read_text(encoding="utf-8"))
        if changed := [name for name in current if current[name] != before.get(name)]:
            raise BiasError(
                f"{work}: its training was started with {changed[0]} {before.get(changed[0])!r}, now it is "
                f"{current[changed[0]]!r}: resume with the same value, delete the folder, or name another --output"
            )
        if not (work / "pairs").is_dir():
            sentence_pairs.build(settings, work / "pairs")
    data = json.loads((work / "pairs" / sentence_pairs.ABOUT).read_text(encoding="utf-8"))
    pairs = {part: Pairs(work / "pairs", part) for part in sentence_pairs.PARTS}
    at_once = (filled.batch_size or 1) * (filled.accumulate or 1) * state.num_processes
    updates = settings.max_steps or math.ceil(settings.epochs * math.ceil(len(pairs["train"]) / at_once))
    try:
        trainer = _PairTrainer(
            classifier,
            settings.head_rate,
            args=_arguments(filled, checkpoints, updates),
            train_dataset=pairs["train"],
            eval_dataset=pairs["held_out"],
            callbacks=[transformers.EarlyStoppingCallback(settings.patience, settings.gain)],
        )
    except (TypeError, ValueError, ImportError, RuntimeError) as error:  # such as report_to=wandb without wandb
        raise BiasError(f"--trainer: {one_line(error)[:300]}") from error
    if trainer.is_world_process_zero():
        counts = ", ".join(f"{len(own):,} {part}" for part, own in pairs.items())
        print(f"{data['articles']:,} articles, {data['sentences']:,} sentences, pairs: {counts}; {updates:,} updates")
        _last_whole_checkpoint(checkpoints)
    trainer.accelerator.wait_for_everyone()
    last = _last_whole_checkpoint(checkpoints)
    if finish and last is None:
        raise BiasError(f"--finish: {work} holds no checkpoint yet: train further without --finish")
    try:
        reached = transformers.TrainerState.load_from_json(str(last / _STATE)) if last else trainer.state
        control = reached.stateful_callbacks.get("TrainerControl", {}).get("args", {})
        # training that was over is not resumed: it would make one update more
        is_over = bool(control.get("should_training_stop")) or reached.global_step >= reached.max_steps
        if last is not None and (finish or is_over):
            trainer.state = reached
            best = last.with_name(f"checkpoint-{trainer.state.best_global_step}")
            trainer.state.best_model_checkpoint = str(best)
            trainer._load_best_model()
        else:
            trainer.train(resume_from_checkpoint=str(last) if last else None)
    except torch.cuda.OutOfMemoryError as error:
        raise BiasError(
            f"out of GPU memory at --batch_size {filled.batch_size}: make it smaller and --accumulate larger (the "
            f"work so far is kept in {work})"
        ) from error
    record = {
        "base": settings.model,
        **{part: accuracy(classifier.right(trainer.predict(pairs[part])), pairs[part].articles()) for part in _UNSEEN},
        "looks": [[look["step"], look["eval_accuracy"]] for look in trainer.state.log_history if "eval_loss" in look],
        "updates": trainer.state.global_step,
        "best_update": trainer.state.best_global_step,
        "data": data,
        "settings": dataclasses.asdict(filled),
        "versions": {"lm-eval-bias": __version__, **{name: importlib.metadata.version(name) for name in _PACKAGES}},
    }
    if trainer.is_world_process_zero():
        card = _CARD.format(
            base=settings.model,
            languages=sorted({corpus.language for corpus in settings.corpora}),
            sources=", ".join(f"{corpus.source} ({corpus.language})" for corpus in settings.corpora),
            test=percent(record["test"]),
        )
        config = dataclasses.replace(classifier.config, training=record)
        nsp_model.save(output, classifier.body, classifier.tokenizer, config, classifier.head, card)
        shutil.rmtree(work)
    return record
