"""How a model with next-sentence training lies on disk.

A folder that transformers can read (body, tokenizer), and beside it ``nsp_config.json`` (how to ask it and how it was
trained) and, for causal bodies, ``nsp_head.safetensors`` (three linear layers without activations between).
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import whole_folder, writing

CONFIG = "nsp_config.json"
HEAD = "nsp_head.safetensors"
PREFIX = "binary classification: "
UNITS = 300


@dataclass(frozen=True)
class NSPConfig:
    """How to ask a model whether a sentence follows another.

    Attributes:
        family: ``causal`` (body and head) or ``seq2seq`` (T5, answers with a word).
        format: Version of this layout.
        is_next: Class of the head that means "follows".
        prefix: Text before the context (T5).
        labels: The words for "doesn't follow" and "follows" (T5).
        read_step: Decoder step at which the labels' probabilities are read, 1 or 2 (the authors' is 2).
        training: What it was trained on and how, for people.
    """

    family: str
    format: int = 1
    is_next: int = 1
    prefix: str = ""
    labels: tuple[str, str] = ("0", "1")
    read_step: int = 2
    training: dict[str, Any] = field(default_factory=dict)

    def check(self, where: str) -> None:
        """Refuse values that cannot be meant.

        Raises:
            BiasError: The first of them.
        """
        for name, allowed in (
            ("format", (1,)),
            ("family", ("causal", "seq2seq")),
            ("is_next", (0, 1)),
            ("read_step", (1, 2)),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise BiasError(f"{where}: {name} is {value!r}: must be {' or '.join(map(str, allowed))}")


def make_head(hidden_size: int) -> torch.nn.Sequential:
    """The paper's head: ``hidden_size`` to 300 to 300 to 2 logits, all linear."""
    linear = torch.nn.Linear
    return torch.nn.Sequential(linear(hidden_size, UNITS), linear(UNITS, UNITS), linear(UNITS, 2))


def read_config(folder: Path) -> NSPConfig:
    """The configuration of a folder.

    Raises:
        BiasError: There is none, or it is damaged.
    """
    path = folder / CONFIG
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        config = NSPConfig(**{**raw, "labels": tuple(raw.get("labels", ("0", "1")))})
    except FileNotFoundError:
        raise BiasError(
            f"{folder} has no {CONFIG}: not a model trained with 'lm-eval-bias nsp train'; for the authors' weights, "
            "give the base model and the weights file: --model_args pretrained=gpt2,nsp_weights=FILE"
        ) from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BiasError(f"{path}: damaged: {one_line(error)}") from error
    config.check(str(path))
    return config


def save(
    folder: Path,
    body: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    config: NSPConfig,
    head: torch.nn.Module | None = None,
    card: str | None = None,
) -> None:
    """Write a model as such a folder, with the card as its ``README.md``; nothing half-written is left.

    Raises:
        BiasError: The folder exists.
    """
    from safetensors.torch import save_file

    if folder.exists():
        raise BiasError(f"{folder} exists already: name another folder")
    with writing(folder), whole_folder(folder) as temporary:
        body.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        text = json.dumps(dataclasses.asdict(config), indent=2, ensure_ascii=False)
        (temporary / CONFIG).write_text(text + "\n", encoding="utf-8")
        if head is not None:
            save_file({name: value.contiguous() for name, value in head.state_dict().items()}, temporary / HEAD)
        if card is not None:
            (temporary / "README.md").write_text(card, encoding="utf-8")


def load_head(folder: Path, hidden_size: int) -> torch.nn.Sequential:
    """The head of a folder.

    Raises:
        BiasError: There is none, or it doesn't fit the body.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    head = make_head(hidden_size)
    try:
        head.load_state_dict(load_file(folder / HEAD))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise BiasError(f"{folder / HEAD}: this head doesn't fit the body: {one_line(error)}") from error
    return head


def read_authors_weights(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Body and head from the layout of the paper's training script, without running anything from the file.

    ``core_model.*`` and ``nsp_head.*``, perhaps under ``model_state_dict`` and behind ``module.``. The buffers
    ``attn.bias`` and ``attn.masked_bias`` of old GPT-2 checkpoints are dropped.

    Raises:
        BiasError: The file holds anything but weights, or other weights.
    """
    if not path.is_file():
        raise BiasError(f"--model_args nsp_weights={path}: no such file")
    try:
        raw = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a hostile or damaged file can fail in any way
        problem = one_line(error).split(". ")[0][:160]
        raise BiasError(
            f"{path}: refused and not loaded: it holds more than weights, or is damaged ({problem}): if you trust it, "
            "save only its model_state_dict"
        ) from error
    if isinstance(raw, dict) and "model_state_dict" in raw:
        raw = raw["model_state_dict"]
    if not isinstance(raw, dict) or not all(isinstance(value, torch.Tensor) for value in raw.values()):
        raise BiasError(f"{path}: doesn't hold a state dictionary")
    body, head = {}, {}
    for name, value in raw.items():
        short = str(name).removeprefix("module.")
        if short.startswith("core_model."):
            if not short.endswith((".attn.bias", ".attn.masked_bias")):
                body[short.removeprefix("core_model.")] = value
        elif short.startswith("nsp_head."):
            head[short.removeprefix("nsp_head.")] = value
        else:
            raise BiasError(f"{path}: unknown weights {short}: the authors' files hold core_model.* and nsp_head.*")
    if not body or not head:
        raise BiasError(f"{path}: no {'core_model' if not body else 'nsp_head'} weights: not the authors' layout")
    return body, head
