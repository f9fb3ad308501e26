"""What one process (rank) does for all those that share a run's documents."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from lm_eval_bias.core.errors import BiasError


def first() -> bool:
    """Whether this process is the one that prints and writes."""
    return (
        os.environ.get("RANK", "0") == "0" and os.environ.get("LOCAL_RANK", "0") == "0"
    )


def filter_together(
    instances: list[Any], world_size: int, apply: Callable[[list[Any]], None]
) -> None:
    """Filter the answers of all ranks on the first one, in the order of the documents, as one process would.

    Args:
        instances: Of this rank; they get their ``filtered_resps``.
        world_size: Number of ranks, as the model tells it.
        apply: Sets ``filtered_resps`` of instances.

    Raises:
        BiasError: On every rank what ``apply`` raised on the first.
    """
    import torch.distributed as group

    if not (
        group.is_available()
        and group.is_initialized()
        and group.get_world_size() == world_size
    ):
        apply(instances)  # the model's processes know each other in a way of their own
        return
    is_first = group.get_rank() == 0
    gathered: list[Any] | None = [None] * world_size if is_first else None
    group.gather_object(instances, gathered, dst=0)
    share: list[Any] = [None]
    group.scatter_object_list(
        share, _filtered(gathered, apply) if gathered is not None else None, src=0
    )
    answers, problem = share[0]
    if problem:
        raise BiasError(problem)
    for instance, filtered in zip(instances, answers, strict=True):
        instance.filtered_resps = filtered


def _filtered(
    ranks: list[list[Any]], apply: Callable[[list[Any]], None]
) -> list[tuple[list[Any], str]]:
    """Filter on the first rank: each rank's answers, and what went wrong."""
    instances = sorted(
        (i for rank in ranks for i in rank), key=lambda i: (i.doc_id, i.idx)
    )
    try:
        apply(instances)
    except BiasError as error:
        return [([], str(error)) for _ in ranks]
    return [([i.filtered_resps for i in rank], "") for rank in ranks]
