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
    chunk = _CHUNK if logits.device.type == "cpu" else 16 * _CHUNK
    for some in logits.split(chunk):
        some = some.float()
        norms.append(torch.logsumexp(some, -1))
        best.append(some.argmax(-1))
    at = torch.from_numpy(places).to(logits.device)
    wanted = torch.from_numpy(targets).to(logits.device)
    logprobs = logits[at, wanted].float() - torch.cat(norms)[at]
    greedy = torch.cat(best)[at] == wanted
    return logprobs.cpu().double().numpy(), greedy.cpu().numpy()
