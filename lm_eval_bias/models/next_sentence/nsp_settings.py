"""How a model is trained on next sentences: what users choose, the paper's values, and the ``Trainer``'s arguments."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import torch
import transformers

from lm_eval_bias.errors import BiasError, one_line

PAPER: dict[str, dict[str, float]] = {  # section 5.2
    "causal": {"batch_size": 4, "accumulate": 16, "body_rate": 5e-6},
    "seq2seq": {"batch_size": 8, "accumulate": 8, "body_rate": 1e-4},
}


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
        """With the paper's values where there are none."""
        missing: dict[str, Any] = {name: value for name, value in PAPER[family].items() if getattr(self, name) is None}
        return dataclasses.replace(self, **missing)

    def pairs_per_update(self, devices: int) -> int:
        """How many pairs an update sees on so many devices."""
        return (self.batch_size or 1) * (self.accumulate or 1) * devices

    def updates(self, pairs: int, devices: int) -> int:
        """How many updates so many pairs make on so many devices, at most."""
        if self.max_steps > 0:
            return self.max_steps
        return math.ceil(self.epochs * math.ceil(pairs / self.pairs_per_update(devices)))

    def arguments(self, folder: Path, updates: int) -> transformers.TrainingArguments:
        """Arguments of the ``Trainer`` for so many updates, with checkpoints in a folder.

        Raises:
            BiasError: More of them that aren't the user's to choose, or make no sense.
        """
        interval = min(self.evaluate_every or math.ceil(updates / 20), updates)
        changeable = {
            "per_device_eval_batch_size": 2 * (self.batch_size or 1),
            "lr_scheduler_type": "cosine_with_restarts",
            "lr_scheduler_kwargs": {"num_cycles": self.cycles},
            "warmup_steps": math.ceil(0.01 * updates),
            "max_grad_norm": 1.0,
            "weight_decay": 0.0,
            "save_total_limit": 2,
            "disable_tqdm": False,
            "logging_steps": interval,
            "report_to": "none",
            "dataloader_pin_memory": torch.cuda.is_available(),
        }
        fixed = {
            "output_dir": str(folder),
            "resume_from_checkpoint": None,
            "seed": self.seed,
            "data_seed": self.seed,
            "num_train_epochs": self.epochs,
            "max_steps": self.max_steps,
            "per_device_train_batch_size": self.batch_size,
            "gradient_accumulation_steps": self.accumulate,
            "learning_rate": self.body_rate,
            "eval_strategy": "steps",
            "save_strategy": "steps",
            "eval_steps": interval,
            "save_steps": interval,
            "load_best_model_at_end": True,
            "metric_for_best_model": "accuracy",
            "greater_is_better": True,
            "remove_unused_columns": False,
            "label_names": ["labels"],
        }
        conflicts = sorted(fixed.keys() & self.trainer.keys())
        if conflicts:
            raise BiasError(
                f"--trainer {conflicts[0]}: this command sets it itself; use the command's own flag where there is one"
            )
        options = {**changeable, **self.trainer, **fixed, "restore_callback_states_from_checkpoint": True}
        try:
            return transformers.TrainingArguments(**options)
        except (TypeError, ValueError, ImportError, RuntimeError) as error:
            raise BiasError(f"--trainer: {one_line(error)}") from error
