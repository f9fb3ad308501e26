"""A causal model's logits at the needed places of rows: only these are projected to the vocabulary.

A *slot* is a needed token of a sequence: the last ones of each, numbered through all sequences.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from lm_eval_bias.models.prefix_trie import Ints

_AT_ONCE = 1024  # positions whose logits are made float32 together


@dataclass
class Network:
    """A causal model and how to call it.

    Attributes:
        model: The transformers model, perhaps with an adapter.
        call: Runs it without gradients on keyword arguments; returns what the model returns.
        device: Of its inputs.
        dtype: Of its activations.
        pair: What a token's attention to another costs, in a token's matrix products.
        vocabulary: Number of logits a position has.
    """

    model: PreTrainedModel
    call: Callable[..., Any]
    device: torch.device
    dtype: torch.dtype
    pair: float
    vocabulary: int

    def tensor(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """Copy an array to the device, as 64-bit integers."""
        return torch.from_numpy(array.astype(np.int64, copy=False)).to(self.device)

    def forward(
        self, ids: Ints, slots: Ints, places: Ints, tokens: int, **inputs: Any
    ) -> ForwardOutput:
        """Run the model on rows of ids; project only the places of slots, in the flattened rows, to the vocabulary."""
        needed, rows = np.unique(places, return_inverse=True)
        at = self.tensor(needed)
        with gathered(self.model, at, ids.shape[1]) as projected:
            logits: torch.Tensor = self.call(
                input_ids=self.tensor(ids), **inputs
            ).logits
        if projected:
            return ForwardOutput(slots, rows, logits[0], tokens)
        chosen = logits.flatten(0, 1)[at.to(logits.device)]
        return ForwardOutput(slots, rows, chosen, tokens)


@contextlib.contextmanager
def gathered(
    model: PreTrainedModel, places: torch.Tensor, width: int
) -> Iterator[list[bool]]:
    """Run the output projection at some places only; what follows it (soft-caps, scales) is untouched.

    Places are indices into the flattened rows of ``width`` tokens. The yielded list is filled once the projection has
    run this way.
    """
    projected: list[bool] = []

    def pick(
        module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, ...]:
        hidden = inputs[0]
        if hidden.dim() != 3 or hidden.shape[1] != width:
            return inputs
        projected.append(True)
        chosen = hidden.flatten(0, 1)[places.to(hidden.device)]
        return chosen[None], *inputs[1:]

    head = model.get_output_embeddings()
    handle = (
        head.register_forward_pre_hook(pick)
        if head is not None
        else contextlib.nullcontext()
    )
    with handle:
        yield projected


def score(
    logits: torch.Tensor, places: Ints, targets: Ints
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Compute log-probabilities of tokens, and whether each token is the likeliest.

    Args:
        logits: Shape (positions, vocabulary), any floating dtype; the log-softmax is taken in float32.
        places: The position that each token is predicted at, shape (n,).
        targets: The tokens, shape (n,).

    Returns:
        Nats and booleans, both of shape (n,).
    """
    norms, best = [], []
    for rows in logits.split(_AT_ONCE):
        rows = rows.float()
        norms.append(torch.logsumexp(rows, -1))
        best.append(rows.argmax(-1))
    at = torch.from_numpy(places).to(logits.device)
    token_ids = torch.from_numpy(targets).to(logits.device)
    logprobs = logits[at, token_ids].float() - torch.cat(norms)[at]
    greedy = torch.cat(best)[at] == token_ids
    return logprobs.cpu().double().numpy(), greedy.cpu().numpy()


@dataclass
class ForwardOutput:
    """The outcome of one forward.

    Attributes:
        slots: The slots that it answers, shape (n,).
        rows: The row of ``logits`` of each, same shape.
        logits: Shape (rows, vocabulary).
        tokens: How many tokens were run, padding aside.
    """

    slots: Ints
    rows: Ints
    logits: torch.Tensor
    tokens: int
