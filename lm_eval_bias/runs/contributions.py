"""What each logged document adds to one score of a run: the way from a score to its items."""

from __future__ import annotations

import json
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


class Log:
    """A sample log whose scores can be followed to their items."""

    def __init__(self, path: Path) -> None:
        """Read a log.

        Raises:
            BiasError: A damaged log.
        """
        rows = list(sample_logs.with_requests(path))
        self.path = path
        self.benchmark = registry.get(rows[0][0].part.benchmark)
        self.docs = [sample.doc for sample, _ in rows]
        self.answers = [sample.answers for sample, _ in rows]
        self.requests = [requests for _, requests in rows]
        self.records = [self.benchmark.record(sample.doc, sample.answers) for sample, _ in rows]
        self.scores = {score.name: score for score in self.benchmark.scores(self.records, detailed=True)}

    def moving(self, score: str, neutral: float | None = None) -> list[tuple[int, float]]:
        """The places of the documents that enter a score and what they add, from that which moves it most.

        They move it away from its neutral value, in the direction in which it is off. Of documents that add the same,
        those come first whose names sort first: nothing is drawn at random.

        Args:
            score: The score's name.
            neutral: The score's neutral value; without one, items are those furthest from the mean.

        Raises:
            BiasError: There is no such score.
        """
        if score not in self.scores:
            raise BiasError(f"{self.path}: no score named {score!r}.{did_you_mean(score, self.scores)}")
        values = [(place, self.scores[score].sample(record)) for place, record in enumerate(self.records)]
        parts = [(place, value) for place, value in values if value is not None and not math.isnan(value)]
        mean = average(parts)
        sign = 1.0 if neutral is None or mean >= neutral else -1.0
        distance = (lambda value: abs(value - mean)) if neutral is None else (lambda value: sign * (value - neutral))
        return sorted(parts, key=lambda part: (-distance(part[1]), self.name(part[0])))

    def name(self, place: int) -> str:
        """What makes a document the same item in another run."""
        return " / ".join(self.benchmark.key(self.docs[place]))

    def item(self, place: int, part: float) -> Item:
        """A document with its part in a score."""
        return Item(self.name(place), part, self.requests[place], list(self.answers[place]))


def average(parts: Sequence[tuple[int, float]]) -> float:
    """The mean of what documents add; ``nan`` of none."""
    return math.fsum(value for _, value in parts) / len(parts) if parts else math.nan


def strongest(path: Path, score: str, number: int, neutral: float | None = None) -> Contributions:
    """The documents that move a score most (:meth:`Log.moving`).

    Args:
        path: A sample log.
        score: The score's name.
        number: How many items are wanted.
        neutral: The score's neutral value.

    Raises:
        BiasError: A damaged log, or one without that score.
    """
    log = Log(path)
    parts = log.moving(score, neutral)
    return Contributions(len(parts), average(parts), [log.item(place, value) for place, value in parts[:number]])


def prompts(requests: Sequence[Sequence[Any]]) -> tuple[str, list[str]]:
    """The prompt that requests have in common, and what each adds to it; the prompt is empty where they have none.

    >>> prompts([["Q: A vet?", " He", {}], ["Q: A vet?", " She", {}]])
    ('Q: A vet?', [' He', ' She'])
    >>> prompts([[['[{"role": "user", "content": "A vet?"}]'], {"until": []}]])  # as clients of servers are asked
    ('A vet?', [''])
    """
    texts = [[text for text in map(_words, request) if text is not None] for request in requests]
    common = {own[0] if own else "" for own in texts}
    if len(common) == 1:
        return common.pop(), [" ".join(own[1:]) for own in texts]
    return "", [" … ".join(own) for own in texts]


def _words(part: Any) -> str | None:
    r"""An argument of a request if it is text, or a conversation, which the harness logs as JSON in a list of its own.

    >>> _words(['[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A vet?"}]'])
    'system: Be brief.\nuser: A vet?'
    >>> _words(["a candidate"])
    """
    if isinstance(part, str):
        return part
    if not (isinstance(part, list) and len(part) == 1 and isinstance(part[0], str)):
        return None
    try:
        turns = json.loads(part[0])
        said = [(turn["role"], turn["content"]) for turn in turns]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return str(said[0][1]) if len(said) == 1 else "\n".join(f"{role}: {content}" for role, content in said)
