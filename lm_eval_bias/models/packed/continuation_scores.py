"""From logits to log-likelihoods."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from lm_eval_bias.models.packed.trie_layout import Ints

_CHUNK = 64  # positions at a time: their logits stay in the processor's cache


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
    size = _CHUNK if logits.device.type == "cpu" else 16 * _CHUNK
    for rows in logits.split(size):
        rows = rows.float()
        norms.append(torch.logsumexp(rows, -1))
        best.append(rows.argmax(-1))
    at = torch.from_numpy(places).to(logits.device)
    token_ids = torch.from_numpy(targets).to(logits.device)
    logprobs = logits[at, token_ids].float() - torch.cat(norms)[at]
    greedy = torch.cat(best)[at] == token_ids
    return logprobs.cpu().double().numpy(), greedy.cpu().numpy()
