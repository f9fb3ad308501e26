"""Where a classifier runs: on the GPU if there is one with room beside the evaluated model, else on the CPU."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import nn

logger = logging.getLogger("lm_eval.bias")
T = TypeVar("T")


def on_best_device(model: nn.Module, work: Callable[[str], T]) -> T:
    """Do the work on ``cuda`` where there is one, again on ``cpu`` where its memory is too small.

    Args:
        model: Is moved to the device before, and back to the CPU afterwards.
        work: Takes the device's name.
    """
    import torch

    if torch.cuda.is_available():
        try:
            model.to("cuda")
            return work("cuda")
        except torch.OutOfMemoryError:
            logger.warning("no GPU memory is left for the regard classifier: running it on the CPU")
        finally:
            model.to("cpu")
            torch.cuda.empty_cache()
    return work("cpu")
