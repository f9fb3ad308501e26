"""A causal model's scores at the needed places of rows: only these are projected to the vocabulary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from lm_eval_bias.models.packed import rows
from lm_eval_bias.models.prefix_trie import Ints, Trie


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

    def run(
        self, trie: Trie, nodes: Sequence[Ints], needed: Sequence[Ints]
    ) -> ForwardOutput:
        """Run the model on rows of nodes; only those at the needed places of each row have logits."""
        ids, depths, visible = rows.layout_of(trie, nodes)
        width = ids.shape[1]
        places = [row * width + inside for row, inside in enumerate(needed)]
        at = _integers(np.concatenate(places), self.device)
        seen = torch.from_numpy(visible[:, None]).to(self.device)
        lowest = torch.finfo(self.dtype).min
        mask = torch.zeros(seen.shape, dtype=self.dtype, device=self.device)
        picked = []

        def pick(
            module: torch.nn.Module, inputs: tuple[Tensor, ...]
        ) -> tuple[Tensor, ...]:
            hidden = inputs[0]
            if hidden.dim() != 3 or hidden.shape[1] != width:
                return inputs
            picked.append(hidden.flatten(0, 1)[at.to(hidden.device)])
            # what follows the projection (soft-caps, scales) is untouched
            return picked[0][None], *inputs[1:]

        head = self.model.get_output_embeddings()
        hook = contextlib.nullcontext()
        if head is not None:
            hook = head.register_forward_pre_hook(pick)
        with hook:
            logits = self.call(
                input_ids=_integers(ids, self.device),
                position_ids=_integers(depths, self.device),
                attention_mask=mask.masked_fill_(~seen, lowest),
                use_cache=False,
            ).logits
        chosen = logits[0] if picked else logits.flatten(0, 1)[at.to(logits.device)]
        answered = [row[inside] for row, inside in zip(nodes, needed, strict=True)]
        return ForwardOutput(np.concatenate(answered), chosen, sum(map(len, nodes)))


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
