"""Where a classifier runs: on the GPU if there is one with room beside the evaluated model, else on the CPU."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

logger = logging.getLogger("lm_eval.bias")
T = TypeVar("T")


def on_best_device(work: Callable[[str], T]) -> T:
    """Do the work on ``cuda`` where there is one, again on ``cpu`` where its memory is too small.

    Args:
        work: Takes the device's name; must move what it needs there itself.
    """
    import torch

    if torch.cuda.is_available():
        try:
            return work("cuda")
        except torch.OutOfMemoryError:
            logger.warning("no GPU memory is left for the regard classifier: it runs on the CPU")
            torch.cuda.empty_cache()
    return work("cpu")
