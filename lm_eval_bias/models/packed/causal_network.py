"""A causal language model as shared-prefix scoring calls it: logits at the needed places only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from lm_eval_bias.models.packed.trie_layout import Cost, Ints


@dataclass
class Network:
    """A causal model and how to call it.

    Attributes:
        model: The transformers model, perhaps with an adapter.
        call: Runs it without gradients on keyword arguments; returns what the model returns.
        device: Of its inputs.
        dtype: Of its activations.
        cost: What its tokens cost.
        vocabulary: Number of logits a position has.
    """

    model: PreTrainedModel
    call: Callable[..., Any]
    device: torch.device
    dtype: torch.dtype
    cost: Cost
    vocabulary: int

    def tensor(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """An array on the device; whole numbers of 64 bits."""
        return torch.from_numpy(array.astype(np.int64, copy=False)).to(self.device)

    def logits_at(self, places: Ints, ids: Ints, **inputs: Any) -> torch.Tensor:
        """Run the model on rows of ids and project some places of them, flattened, to the vocabulary."""
        at, width = self.tensor(places), ids.shape[1]
        with gathered(self.model, at, width) as projected:
            logits: torch.Tensor = self.call(input_ids=self.tensor(ids), **inputs).logits
        if projected:
            return logits[0]
        return logits[:, logits.shape[1] - width :].reshape(-1, logits.shape[-1])[at.to(logits.device)]


@contextlib.contextmanager
def gathered(model: PreTrainedModel, places: torch.Tensor, width: int) -> Iterator[list[bool]]:
    """Have the output projection run at some places only; what follows it (soft-caps, scales) is untouched.

    Places are indices into the flattened rows of ``width`` tokens; a model may put virtual ones in front. The list is
    no longer empty once the projection ran so.
    """
    projected: list[bool] = []

    def pick(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        hidden = inputs[0]
        if hidden.dim() != 3 or hidden.shape[1] < width:
            return inputs
        projected.append(True)
        indices = places.to(hidden.device)
        if hidden.shape[1] > width:
            indices = indices // width * hidden.shape[1] + indices % width + (hidden.shape[1] - width)
        return hidden.reshape(-1, hidden.shape[-1])[indices][None], *inputs[1:]

    head = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(pick) if head is not None else contextlib.nullcontext()
    with handle:
        yield projected
