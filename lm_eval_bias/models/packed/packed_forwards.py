"""A causal model's scores at the needed places of rows: only these are projected to the vocabulary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from lm_eval_bias.models.prefix_trie import Ints


def _integers(array: npt.NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy an array to a device as 64-bit integers, without synchronising a GPU."""
    integers = torch.from_numpy(array.astype(np.int64, copy=False))
    return integers.to(device, non_blocking=device.type == "cuda")


@dataclass
class Network:
    """A causal model and how to call it.

    Attributes:
        model: The transformers model, perhaps with an adapter.
        call: Runs it without gradients on keyword arguments; returns what the model returns.
        device: Of its inputs.
        dtype: Of its activations.
        attention_cost: What a token's attention to another costs, in a token's matrix products.
        vocabulary: Number of logits a position has.
    """

    model: PreTrainedModel
    call: Callable[..., ModelOutput]
    device: torch.device
    dtype: torch.dtype
    attention_cost: float
    vocabulary: int

    def tensor(self, array: npt.NDArray[np.generic]) -> Tensor:
        """Copy an array to the device, as 64-bit integers."""
        return _integers(array, self.device)

    def forward(
        self, ids: Ints, nodes: Ints, places: Ints, tokens: int, **inputs: object
    ) -> ForwardOutput:
        """Run the model on rows of ids; project only the places of nodes, in the flattened rows, to the vocabulary."""
        at = self.tensor(places)
        picked = []

        def pick(
            module: torch.nn.Module, inputs: tuple[Tensor, ...]
        ) -> tuple[Tensor, ...]:
            hidden = inputs[0]
            if hidden.dim() != 3 or hidden.shape[1] != ids.shape[1]:
                return inputs
            picked.append(hidden.flatten(0, 1)[at.to(hidden.device)])
            # what follows the projection (soft-caps, scales) is untouched
            return picked[0][None], *inputs[1:]

        head = self.model.get_output_embeddings()
        hook = contextlib.nullcontext()
        if head is not None:
            hook = head.register_forward_pre_hook(pick)
        with hook:
            logits = self.call(input_ids=self.tensor(ids), **inputs).logits
        chosen = logits[0] if picked else logits.flatten(0, 1)[at.to(logits.device)]
        return ForwardOutput(nodes, chosen, tokens)


@dataclass
class ForwardOutput:
    """The outcome of one forward.

    Attributes:
        nodes: The nodes that it has logits of, shape (n,).
        logits: Their logits, shape (n, vocabulary).
        tokens: How many tokens were run, padding aside.
    """

    nodes: Ints
    logits: Tensor
    tokens: int

    def score(
        self, places: Ints, targets: Ints
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Compute log-probabilities of tokens (nats), in float32, and whether each token is the likeliest.

        Args:
            places: The row of ``logits`` that each token is predicted at, shape (n,).
            targets: The tokens, shape (n,).
        """
        logits = self.logits.float()
        at = _integers(places, logits.device)
        tokens = _integers(targets, logits.device)
        values = logits[at, tokens] - logits.logsumexp(-1)[at]
        is_likeliest = logits.argmax(-1)[at] == tokens
        return values.cpu().double().numpy(), is_likeliest.cpu().numpy()
