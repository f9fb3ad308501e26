"""A causal model's scores at the needed places of rows: only these are projected to the vocabulary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from lm_eval_bias.models.prefix_trie import Ints

_COLUMNS = 2048  # of the vocabulary, whose logits are computed together
# hidden states are projected together, so that the projection's weights are read less often: at least so many, or those
# of so many forwards, whose answers are lost where a run is stopped
_TOGETHER = 256
_FORWARDS = 8


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
        head: The output projection where it alone makes the logits (:meth:`find_head`), else ``None``.
    """

    model: PreTrainedModel
    call: Callable[..., ModelOutput]
    device: torch.device
    dtype: torch.dtype
    attention_cost: float
    vocabulary: int
    head: torch.nn.Module | None = None

    def tensor(self, array: npt.NDArray[np.generic]) -> Tensor:
        """Copy an array to the device, as 64-bit integers."""
        return _integers(array, self.device)

    def find_head(self, ids: Ints) -> None:
        """Check on some ids that logits equal the output projection exactly, without soft-caps or scales."""
        head = self.model.get_output_embeddings()
        given = []

        def note(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
            given.append(inputs[0])

        with contextlib.suppress(Exception):  # heads of other kinds
            with head.register_forward_pre_hook(note):
                logits = self.call(input_ids=self.tensor(ids[None])).logits
            projected = ForwardOutput(ids, given[0], 0, head).logits()
            if torch.equal(projected.float(), logits.float()):
                self.head = head

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
            some = picked[0] if self.head is None else picked[0][:0]
            return some[None], *inputs[1:]

        head = self.model.get_output_embeddings()
        hook = contextlib.nullcontext()
        if head is not None:
            hook = head.register_forward_pre_hook(pick)
        with hook:
            logits = self.call(input_ids=self.tensor(ids), **inputs).logits
        if not picked:
            chosen = logits.flatten(0, 1)[at.to(logits.device)]
            return ForwardOutput(nodes, chosen, tokens)
        states = logits[0] if self.head is None else picked[0]
        return ForwardOutput(nodes, states, tokens, self.head)


@dataclass
class ForwardOutput:
    """The outcome of one forward, or of some.

    Attributes:
        nodes: The nodes that it has logits of, shape (n,).
        states: Their logits, shape (n, vocabulary), or with a head the hidden states that it projects.
        tokens: How many tokens were run, padding aside.
        head: The output projection, which wasn't run.
    """

    nodes: Ints
    states: Tensor
    tokens: int
    head: torch.nn.Module | None = None

    @torch.no_grad()
    def logits(self, columns: slice = slice(None)) -> Tensor:
        """Return the logits of each node, or some columns of them."""
        if self.head is None:
            return self.states[:, columns]
        weight = self.head.weight
        bias = getattr(self.head, "bias", None)
        if bias is not None:
            bias = bias[columns]
        return torch.nn.functional.linear(self.states, weight[columns], bias)

    def score(
        self, places: Ints, targets: Ints
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Compute log-probabilities of tokens (nats), and whether each token is the likeliest.

        Logits and their log-softmax, which is taken in float32, are computed in parts of the vocabulary.

        Args:
            places: The row of ``states`` that each token is predicted at, shape (n,).
            targets: The tokens, shape (n,).
        """
        states = self.states
        width = states.shape[1] if self.head is None else len(self.head.weight)
        at = _integers(places, states.device)
        tokens = _integers(targets, states.device)
        largest = states.new_full((len(states),), -torch.inf, dtype=torch.float32)
        norms = largest
        values = largest[at]
        likeliest = torch.zeros_like(largest, dtype=torch.long)
        for first in range(0, width, _COLUMNS):
            part = self.logits(slice(first, first + _COLUMNS)).float()
            best, column = part.max(-1)
            likeliest = torch.where(best > largest, first + column, likeliest)
            largest = torch.maximum(best, largest)
            norms = torch.logaddexp(norms, part.logsumexp(-1))
            inside = (tokens >= first) & (tokens < first + part.shape[1])
            there = (tokens - first).clamp(0, part.shape[1] - 1)
            values = torch.where(inside, part[at, there], values)
        logprobs = (values - norms[at]).cpu().double().numpy()
        return logprobs, (likeliest[at] == tokens).cpu().numpy()


def collected(outputs: Iterable[ForwardOutput]) -> Iterator[ForwardOutput]:
    """Join the hidden states of some forwards; logits are passed on as they come."""
    waiting = []
    for output in outputs:
        if output.head is None:
            yield output
            continue
        waiting.append(output)
        rows = sum(len(one.states) for one in waiting)
        if rows >= _TOGETHER or len(waiting) == _FORWARDS:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(outputs: list[ForwardOutput]) -> ForwardOutput:
    return ForwardOutput(
        np.concatenate([output.nodes for output in outputs]),
        torch.cat([output.states for output in outputs]),
        sum(output.tokens for output in outputs),
        outputs[0].head,
    )
