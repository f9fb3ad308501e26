"""A causal model's logits at some places of rows: only these are projected to the vocabulary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from lm_eval_bias.models.packed import rows
from lm_eval_bias.models.packed.rows import Ints, PackedRow


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

    def logits(self, packed: Sequence[PackedRow], wanted: Sequence[Ints]) -> Tensor:
        """Run the model on rows; return the logits at the wanted places of each row, (places, vocabulary)."""
        ids, depths, visible = rows.layout_of(packed)
        width = ids.shape[1]
        places = [row * width + inside for row, inside in enumerate(wanted)]
        at = torch.from_numpy(np.concatenate(places)).to(self.device)
        seen = torch.from_numpy(visible[:, None]).to(self.device)
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
                input_ids=torch.from_numpy(ids).to(self.device),
                position_ids=torch.from_numpy(depths).to(self.device),
                attention_mask=mask.masked_fill_(~seen, torch.finfo(self.dtype).min),
                use_cache=False,
            ).logits
        return logits[0] if picked else logits.flatten(0, 1)[at.to(logits.device)]
