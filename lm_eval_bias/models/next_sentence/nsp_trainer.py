"""The ``Trainer`` of next sentences: pairs as they are asked in use, a learning rate of its own for the head."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from tqdm import tqdm
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from lm_eval_bias.errors import BiasError
from lm_eval_bias.models.next_sentence.pair_classifier import Example, PairClassifier, Tensors
from lm_eval_bias.models.next_sentence.sentence_pairs import Pairs

_STATE = "trainer_state.json"
_NEEDED = (_STATE, "optimizer.pt", "scheduler.pt")  # the first is written last


class Examples(torch.utils.data.Dataset[Example]):
    """The pairs of one part as the network wants them."""

    def __init__(self, pairs: Pairs, part: str, classifier: PairClassifier) -> None:
        """Encode the pairs of a part when they are asked for."""
        self._pairs, self._rows, self._classifier = pairs, pairs.rows(part), classifier

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> Example:
        return self._classifier.encode(self._pairs.pair(self._rows[number]))


class EvaluationLine(transformers.TrainerCallback):
    """One line about each look at the held-out pairs."""

    def on_evaluate(
        self,
        args: transformers.TrainingArguments,
        state: transformers.TrainerState,
        control: transformers.TrainerControl,
        metrics: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Print it."""
        if state.is_world_process_zero and metrics and "eval_accuracy" in metrics:
            losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
            loss = f", loss in training {losses[-1]:.4f}" if losses else ""
            best = max(metrics["eval_accuracy"], state.best_metric or 0.0)
            tqdm.write(
                f"update {state.global_step:,} of {state.max_steps:,}: held-out accuracy "
                f"{metrics['eval_accuracy']:.4f} (best {best:.4f}), loss {metrics['eval_loss']:.4f}{loss}"
            )


class _Bar(ProgressCallback):
    """The ``Trainer``'s progress bar, without the dictionaries that it writes between."""

    def on_log(self, *args: Any, **kwargs: Any) -> None:
        pass


class PairTrainer(transformers.Trainer):
    """A ``Trainer`` of a pair classifier, which stops when held-out accuracy has settled."""

    def __init__(
        self,
        classifier: PairClassifier,
        pairs: Pairs,
        arguments: transformers.TrainingArguments,
        head_rate: float,
        stopping: transformers.EarlyStoppingCallback,
    ) -> None:
        """Train on the pairs of the part ``train``; the arguments' learning rate is the body's."""
        self.classifier, self.pairs, self.head_rate = classifier, pairs, head_rate
        super().__init__(
            model=classifier.network,
            args=arguments,
            data_collator=classifier.collate,
            train_dataset=Examples(pairs, "train", classifier),
            eval_dataset=Examples(pairs, "held_out", classifier),
            compute_metrics=lambda outcome: {"accuracy": float(np.mean(self._right(outcome)))},
            callbacks=[stopping, EvaluationLine()],
        )
        self.remove_callback(PrinterCallback)
        if self.pop_callback(ProgressCallback) is not None:
            self.add_callback(_Bar)

    def _right(self, outcome: Any) -> NDArray[np.bool_]:
        return np.equal(outcome.predictions.argmax(-1), self.classifier.follows(outcome.label_ids))

    def right(self, part: str) -> NDArray[np.bool_]:
        """Whether the network is right about each pair of a part, ``[pairs]``."""
        return self._right(self.predict(Examples(self.pairs, part, self.classifier)))

    def prediction_step(
        self, model: torch.nn.Module, inputs: Tensors, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Loss, the two logits as they are read in use, and labels."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
            logits = self.classifier.two_logits(model, inputs)
        return loss.detach(), logits.float(), inputs["labels"]

    def create_optimizer(self, *args: Any) -> torch.optim.Optimizer:
        """The ``Trainer``'s own, the head's parameters in groups with a learning rate of their own."""
        if self.optimizer is not None:
            return self.optimizer
        optimizer = super().create_optimizer(*args)
        parameters = (args[0] if args else self.model).named_parameters()
        head_ids = {id(parameter) for name, parameter in parameters if name.removeprefix("module.").startswith("head.")}
        for group in list(optimizer.param_groups):
            head_parameters = [parameter for parameter in group["params"] if id(parameter) in head_ids]
            if head_parameters:
                group["params"] = [parameter for parameter in group["params"] if id(parameter) not in head_ids]
                optimizer.add_param_group({**group, "params": head_parameters, "lr": self.head_rate})
        return optimizer

    def restore_best(self, last: Path | None) -> None:
        """Have the best weights and the state of a training that was stopped.

        Args:
            last: Its last whole checkpoint.

        Raises:
            BiasError: There is none: it had not come to its first look at the held-out pairs.
        """
        if last is None:
            work = Path(self.args.output_dir).parent
            raise BiasError(f"--finish: {work} holds no checkpoint yet: train further without --finish")
        self.state = transformers.TrainerState.load_from_json(str(last / _STATE))
        self.state.best_model_checkpoint = str(last.with_name(f"checkpoint-{self.state.best_global_step}"))
        self._load_best_model()


def had_ended(checkpoint: Path) -> bool:
    """Whether training was over at a checkpoint: ``Trainer`` would make one update more."""
    state = json.loads((checkpoint / _STATE).read_text(encoding="utf-8"))
    control = state.get("stateful_callbacks", {}).get("TrainerControl", {}).get("args", {})
    return bool(control.get("should_training_stop")) or state["global_step"] >= state["max_steps"]


def last_whole_checkpoint(folder: Path) -> Path | None:
    """The last whole checkpoint in a folder; what a stop left half-written is removed."""
    last = None
    for path in sorted(folder.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2])):
        try:
            json.loads((path / _STATE).read_text(encoding="utf-8"))
            complete = all((path / name).is_file() for name in _NEEDED)
        except (OSError, ValueError):
            complete = False
        if complete:
            last = path
        else:
            shutil.rmtree(path)
    return last
