"""A causal model's logits at the needed places of many token sequences, and methods to get them.

Here is the one that knows no trie. ``Plain``: every sequence by itself, as the ``hf`` backend runs it; right for every
model. All methods project only what is needed to the vocabulary.

A *slot* is a needed token of a sequence: the last ones of each, numbered through all sequences.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from lm_eval_bias.models.prefix_trie import Ints, Sequences, ranges

NO_LIMIT = 1 << 30
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
        """An array on the device; whole numbers of 64 bits."""
        return torch.from_numpy(array.astype(np.int64, copy=False)).to(self.device)

    def forward(self, ids: Ints, slots: Ints, places: Ints, tokens: int, **inputs: Any) -> ForwardOutput:
        """Run the model on rows of ids, and project the places of slots, in the flattened rows, to the vocabulary."""
        needed, rows = np.unique(places, return_inverse=True)
        at, width = self.tensor(needed), ids.shape[1]
        with gathered(self.model, at, width) as projected:
            logits: torch.Tensor = self.call(input_ids=self.tensor(ids), **inputs).logits
        if projected:
            return ForwardOutput(slots, rows, logits[0], tokens)
        logits = logits[:, logits.shape[1] - width :].reshape(-1, logits.shape[-1])[at.to(logits.device)]
        return ForwardOutput(slots, rows, logits, tokens)


@contextlib.contextmanager
def gathered(model: PreTrainedModel, places: torch.Tensor, width: int) -> Iterator[list[bool]]:
    """Run the output projection at some places only; what follows it (soft-caps, scales) is untouched.

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


def score(logits: torch.Tensor, places: Ints, targets: Ints) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Log-probabilities of tokens, and whether each is the likeliest.

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
    """What one forward gave.

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


def _padded(sequences: Sequences, needed: Ints, runs: Sequence[tuple[int, int]]) -> tuple[Ints, Ints, Ints]:
    """Pad rows on the right; return them, their slots, and where these stand in the flattened rows.

    A row is the last sequence of a run ``(first, last)``, in which each begins the next one.
    """
    lengths = sequences.lengths
    width = max(int(lengths[last]) for _, last in runs)
    ids = np.zeros((len(runs), width), np.int64)
    for row, (_, last) in enumerate(runs):
        ids[row, : lengths[last]] = sequences.ids(last)
    members = np.concatenate([np.arange(first, last + 1) for first, last in runs])
    rows = np.repeat(np.arange(len(runs)), [last + 1 - first for first, last in runs])
    counts = needed[members]
    return ids, slots_of(needed, members), ranges(rows * width + lengths[members] - counts, counts)


def slots_of(needed: Ints, members: Ints) -> Ints:
    """The slots of some sequences, of which each has so many ``needed`` tokens."""
    return ranges((np.cumsum(needed) - needed)[members], needed[members])


class Method(ABC):
    """A method of running sequences: its name and what it does, for the log."""

    name = ""
    description = ""

    def __init__(self, network: Network) -> None:
        self.network = network

    @abstractmethod
    def outputs(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[ForwardOutput]:
        """Run sequences, each in one forward.

        Args:
            sequences: What to run.
            needed: How many last tokens of each sequence need logits.
            budget: Tokens of a forward.
            most: Needed tokens of a forward, as far as one row allows.
        """

    def trial_outputs(self, sequences: Sequences, needed: Ints) -> Iterator[ForwardOutput]:
        """Run sequences laid out as the method is most likely to go wrong."""
        return self.outputs(sequences, needed, trial_size(sequences), NO_LIMIT)


def trial_size(sequences: Sequences) -> int:
    """Tokens of a forward that has room for trial sequences, however they are laid out."""
    return 8 * int(sequences.lengths.sum())


class Plain(Method):
    """Each sequence by itself, right-padded; one that another goes on from is read off the longer one."""

    name = "rows"
    description = "logits only where needed, nothing shared"

    def __init__(self, network: Network, alone: bool = False) -> None:
        """Run on this network; ``alone`` gives each sequence a forward of its own."""
        super().__init__(network)
        self.alone = alone

    def outputs(self, sequences: Sequences, needed: Ints, budget: int, most: int) -> Iterator[ForwardOutput]:
        """See :meth:`Method.outputs`."""
        lengths = sequences.lengths
        # the sequence after it begins with all of it
        inside = np.zeros(len(sequences), bool)
        if not self.alone:
            inside[:-1] = sequences.shared[1:] == lengths[:-1]
        last = np.flatnonzero(~inside)
        first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
        order = np.lexsort((last, -lengths[last]))
        runs = list(zip(first[order].tolist(), last[order].tolist(), strict=True))
        counts = [int(needed[low : high + 1].sum()) for low, high in runs]
        for batch in batches(lengths[last[order]].tolist(), counts, 1 if self.alone else budget, most):
            batch_runs = [runs[i] for i in batch]
            ids, slots, places = _padded(sequences, needed, batch_runs)
            tokens = sum(int(lengths[high]) for _, high in batch_runs)
            yield self.network.forward(ids, slots, places, tokens, use_cache=False)


def batches(sizes: Sequence[int], counts: Sequence[int], budget: int, most: int) -> Iterator[list[int]]:
    """Group neighbours, longest first, up to a budget of tokens with padding and ``most`` needed ones."""
    batch: list[int] = []
    width = count = 0
    for i, size in enumerate(sizes):
        if batch and (width * (len(batch) + 1) > budget or count + counts[i] > most):
            yield batch
            batch = []
        if not batch:
            width, count = size, 0
        batch.append(i)
        count += counts[i]
    if batch:
        yield batch
