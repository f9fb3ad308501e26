"""What each logged document adds to one score of a run: the way from a score to its items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_bias import registry
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.runs import sample_logs


class Item(NamedTuple):
    """A document's part in a score.

    Attributes:
        name: What makes it the same item in another run.
        part: What it adds, in the score's unit.
        requests: What the model was asked: the arguments of each request.
        answers: The model's answer to each.
    """

    name: str
    part: float
    requests: list[list[Any]]
    answers: list[Any]


class Contributions(NamedTuple):
    """All documents that enter a score.

    Attributes:
        documents: How many enter it.
        mean: Of what they add.
        items: Those that move it most, the strongest first.
    """

    documents: int
    mean: float
    items: list[Item]


def strongest(log: Path, score: str, number: int, neutral: float | None = None) -> Contributions:
    """The documents that move a score away from its neutral value most, in the direction in which it is off.

    Of documents that add the same, those come first whose names sort first: nothing is drawn at random.

    Args:
        log: A sample log.
        score: The score's name.
        number: How many items are wanted.
        neutral: The score's neutral value; without one, items are those furthest from the mean.

    Raises:
        BiasError: A damaged log, or one without that score.
    """
    parts: list[tuple[float, int, str]] = []
    rows = list(sample_logs.first_filter(log))
    benchmark = registry.get(rows[0].part.benchmark)
    records = [benchmark.record(doc, answers) for _, doc, answers in rows]
    by_name = {one.name: one for one in benchmark.scores(records, detailed=True)}
    if score not in by_name:
        raise BiasError(f"{log}: no score named {score!r}.{did_you_mean(score, by_name)}")
    for place, record in enumerate(records):
        value = by_name[score].sample(record)
        if value is not None and not math.isnan(value):
            parts.append((value, place, " / ".join(benchmark.key(rows[place].doc))))
    if not parts:
        return Contributions(0, math.nan, [])
    mean = math.fsum(value for value, _, _ in parts) / len(parts)
    sign = 1.0 if neutral is None or mean >= neutral else -1.0
    distance = (lambda value: abs(value - mean)) if neutral is None else (lambda value: sign * (value - neutral))
    chosen = sorted(parts, key=lambda part: (-distance(part[0]), part[2]))[:number]
    requests = sample_logs.requests_at(log, [place for _, place, _ in chosen])
    return Contributions(
        len(parts),
        mean,
        [Item(name, value, requests[place], list(rows[place].answers)) for value, place, name in chosen],
    )


def prompts(requests: Sequence[Sequence[Any]]) -> tuple[str, list[str]]:
    """The prompt that requests have in common, and what each adds to it; the prompt is empty where they have none.

    >>> prompts([["Q: A vet?", " He", {}], ["Q: A vet?", " She", {}]])
    ('Q: A vet?', [' He', ' She'])
    """
    texts = [[part for part in request if isinstance(part, str)] for request in requests]
    common = {own[0] if own else "" for own in texts}
    if len(common) == 1:
        return common.pop(), [" ".join(own[1:]) for own in texts]
    return "", [" … ".join(own) for own in texts]
