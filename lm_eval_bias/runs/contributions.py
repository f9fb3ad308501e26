"""What each logged document adds to one score of a run: the way from a score to its items."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.score import Record, Score
from lm_eval_bias.runs import sample_logs

_DIGITS = 6  # of a part that is a derivative


class Parts(NamedTuple):
    """What documents add to a score.

    Attributes:
        by_place: Places of documents, and what each adds.
        are_averaged: Whether these are the documents' own values, whose mean is the score. Else a part is the score
            plus what the document's weight moves it by, times the number of documents.
    """

    by_place: list[tuple[int, float]]
    are_averaged: bool


class Log:
    """A sample log that tells which of its items make up a score."""

    def __init__(self, path: Path) -> None:
        """Read a log.

        Raises:
            BiasError: A damaged log.
        """
        samples = list(sample_logs.first_filter(path))
        self.path = path
        self.benchmark = registry.get(samples[0].part.benchmark)
        self.docs = [sample.doc for sample in samples]
        self.answers = [sample.answers for sample in samples]
        self.requests = [sample.requests for sample in samples]
        self.written = [sample.written for sample in samples]
        self.records = [self.benchmark.record(sample.doc, sample.answers) for sample in samples]
        self.scores = {score.name: score for score in self.benchmark.scores(self.records, detailed=True)}

    def moving(self, score: Value) -> Parts:
        """List the documents that enter a score and what each adds, those that move it most first.

        They move it away from its neutral value, in the direction in which it is off; without a neutral value, the
        first are those furthest from the mean. Documents that add the same are sorted by name.

        Args:
            score: The score, as the results have it.

        Returns:
            Documents and their parts; none where the score can't be divided among them.

        Raises:
            BiasError: There is no such score.
        """
        if score.name not in self.scores:
            raise BiasError(f"{self.path}: no score named {score.name!r}.{did_you_mean(score.name, self.scores)}")
        parts, neutral = self.parts(score), score.neutral
        mean = average(parts.by_place)
        sign = 1.0 if neutral is None or mean >= neutral else -1.0
        distance = (lambda value: abs(value - mean)) if neutral is None else (lambda value: sign * (value - neutral))
        ordered = sorted(parts.by_place, key=lambda part: (-distance(part[1]), self.name(part[0])))
        return parts._replace(by_place=ordered)

    def parts(self, score: Value) -> Parts:
        """The places of the documents that enter a score and what they add; none where it can't be divided."""
        scored = self.scores[score.name]
        own = own_parts(scored, self.records)
        # a prompt none of whose answers can be read has no value of its own, and enters a ratio all the same
        places = [place for place, record in enumerate(self.records) if scored.sample(record) is not None]
        influences = _influences(scored, self.records, places)
        if not influences:
            return Parts(own, True) if is_mean(own, score.value) else Parts([], False)
        same = [math.isclose(part, other, abs_tol=1e-5) for (_, part), other in zip(own, influences, strict=False)]
        if len(own) == len(places) and all(same):
            return Parts(own, True)
        return Parts(list(zip(places, influences, strict=True)), False)

    def name(self, place: int) -> str:
        """What makes a document the same item in another run."""
        return " / ".join(self.benchmark.key(self.docs[place]))


def own_parts(score: Score[Record], records: Sequence[Record]) -> list[tuple[int, float]]:
    """The places of the records that enter a score, with their own values of it."""
    values = [(place, score.sample(record)) for place, record in enumerate(records)]
    return [(place, float(value)) for place, value in values if value is not None and math.isfinite(value)]


def is_mean(parts: Sequence[tuple[int, float]], value: float) -> bool:
    """Whether a score is the mean of its records' own values."""
    return math.isclose(average(parts), value, rel_tol=1e-9, abs_tol=1e-9)


def _influences(score: Score[Record], records: Sequence[Record], places: Sequence[int]) -> list[float]:
    """What records add to a score, whatever it is: a mean, a difference or product of means, a correlation.

    Empty where the score has no form that tells.
    """
    from lm_eval_bias.custom_metrics.clusters import Clusters
    from lm_eval_bias.custom_metrics.crossed import Cells

    form = score.table(records) if score.table is not None else ""
    if isinstance(form, str):
        return []
    if isinstance(form, Cells):
        rows, columns = ({name: k for k, name in enumerate(names)} for names in (form.items, form.templates))
        prompts = [(str(records[place]["item"]), str(records[place]["template"])) for place in places]
        parts = [float(form.cells[rows[item], columns[template]]) for item, template in prompts]
    else:
        assert isinstance(form, Clusters)  # there is no third form
        parts = list(map(float, form.parts()))
        if len(parts) == len(records):  # also of those that have no value of their own
            parts = [parts[place] for place in places]
    # 0.0 is added so that no part is -0.0
    return [round(part, _DIGITS) + 0.0 for part in parts] if len(parts) == len(places) else []


def average(parts: Sequence[tuple[int, float]]) -> float:
    """The mean of what documents add; ``nan`` of none."""
    return math.fsum(value for _, value in parts) / len(parts) if parts else math.nan


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
