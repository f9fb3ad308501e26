"""How a network with next-sentence training answers, in training and in use alike."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel


def by_head(head: torch.nn.Module, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The two logits of a head, which reads the mean of the last hidden states over real tokens, ``[pairs, 2]``.

    The head is in float32; the mask, ``[pairs, tokens]``, is 1 for real tokens.
    """
    real = mask.unsqueeze(-1).float()
    return head((states.float() * real).sum(1) / real.sum(1))


def by_word(body: PreTrainedModel, inputs: dict[str, torch.Tensor], labels: Sequence[int], step: int) -> torch.Tensor:
    """The logits of two tokens at a decoder step of a T5, after what the decoder says by itself, ``[pairs, 2]``."""
    mask = inputs["attention_mask"]
    encoded = body.get_encoder()(input_ids=inputs["input_ids"], attention_mask=mask)
    decoded = torch.full((len(mask), 1), body.config.decoder_start_token_id, device=mask.device)
    for number in range(1, step + 1):
        logits = body(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=decoded).logits[:, -1]
        if number < step:
            decoded = torch.cat([decoded, logits.argmax(-1, keepdim=True)], dim=1)
    return logits[:, list(labels)]
