"""The processes (ranks) that share a run's documents."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from lm_eval_bias.core.errors import BiasError

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

    from lm_eval_bias.custom_metrics.score import Answers


T = TypeVar("T")


def first() -> bool:
    """Return whether this process prints and writes."""
    return (
        os.environ.get("RANK", "0") == "0" and os.environ.get("LOCAL_RANK", "0") == "0"
    )


def filter_together(
    instances: list[Instance], world_size: int, apply: Callable[[list[Instance]], None]
) -> None:
    """Filter the answers of all ranks on the first rank, in document order.

    Args:
        instances: Those of this rank; they get their ``filtered_resps``.
        world_size: Number of ranks, as the model tells it.
        apply: Sets ``filtered_resps`` of instances.

    Raises:
        BiasError: What ``apply`` raised on the first rank, on every rank.
    """
    import torch.distributed as group

    if not _are_connected(world_size):
        apply(instances)
        return
    rank = group.get_rank()
    gathered: list[Any] | None = [None] * world_size if rank == 0 else None
    group.gather_object(instances, gathered, dst=0)
    outcome: list[Any] = [gathered and _filtered(gathered, apply)]
    group.broadcast_object_list(outcome, src=0)
    answers_by_rank, problem = outcome[0]
    if problem:
        raise BiasError(problem)
    for instance, filtered in zip(instances, answers_by_rank[rank], strict=True):
        instance.filtered_resps = filtered


def gathered(value: T, world_size: int) -> list[T]:
    """Return the values of all ranks, on every rank; only this rank's if they aren't connected."""
    import torch.distributed as group

    if not _are_connected(world_size):
        return [value]
    values = [value] * world_size
    group.all_gather_object(values, value)
    return values


def _are_connected(world_size: int) -> bool:
    """Return whether the ranks are connected by torch."""
    import torch.distributed as group

    is_group = group.is_available() and group.is_initialized()
    return is_group and group.get_world_size() == world_size


def _filtered(
    ranks: list[list[Instance]], apply: Callable[[list[Instance]], None]
) -> tuple[list[list[Answers]], str]:
    """Filter on the first rank; return each rank's answers and any error."""
    instances = itertools.chain.from_iterable(ranks)
    try:
        apply(sorted(instances, key=operator.attrgetter("doc_id", "idx")))
    except BiasError as error:
        return [], str(error)
    answers = []
    for rank in ranks:
        answers.append([instance.filtered_resps for instance in rank])
    return answers, ""
