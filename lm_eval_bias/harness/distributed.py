"""The processes (ranks) that share a run's documents."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Callable
from typing import Any

from lm_eval_bias.core.errors import BiasError


def first() -> bool:
    """Tell whether this process is the one that prints and writes."""
    return (
        os.environ.get("RANK", "0") == "0" and os.environ.get("LOCAL_RANK", "0") == "0"
    )


def filter_together(
    instances: list[Any], world_size: int, apply: Callable[[list[Any]], None]
) -> None:
    """Filter the answers of all ranks on the first one, in the order of the documents, as one process would.

    Args:
        instances: Those of this rank; they get their ``filtered_resps``.
        world_size: Number of ranks, as the model tells it.
        apply: Sets ``filtered_resps`` of instances.

    Raises:
        BiasError: What ``apply`` raised on the first rank, on every rank.
    """
    import torch.distributed as group

    is_group = group.is_available() and group.is_initialized()
    if not is_group or group.get_world_size() != world_size:
        apply(instances)  # the model's processes are connected in another way
        return
    gathered: list[Any] | None = None
    answers_by_rank = None
    if group.get_rank() == 0:
        gathered = [None] * world_size
    group.gather_object(instances, gathered, dst=0)
    if gathered is not None:
        answers_by_rank = _filtered(gathered, apply)
    share: list[Any] = [None]
    group.scatter_object_list(share, answers_by_rank, src=0)
    answers, problem = share[0]
    if problem:
        raise BiasError(problem)
    for instance, filtered in zip(instances, answers, strict=True):
        instance.filtered_resps = filtered


def _filtered(
    ranks: list[list[Any]], apply: Callable[[list[Any]], None]
) -> list[tuple[list[Any], str]]:
    """Filter on the first rank; return each rank's answers, and what went wrong."""
    instances = itertools.chain.from_iterable(ranks)
    try:
        apply(sorted(instances, key=operator.attrgetter("doc_id", "idx")))
    except BiasError as error:
        return [([], str(error))] * len(ranks)
    filtered = []
    for rank in ranks:
        filtered.append(([instance.filtered_resps for instance in rank], ""))
    return filtered
