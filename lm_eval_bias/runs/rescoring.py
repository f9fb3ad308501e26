"""Scores from saved answers."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lm_eval_bias import registry
from lm_eval_bias.benchmark import Rewriting
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import sample_logs, saved_answers
from lm_eval_bias.runs.sample_logs import DAMAGE, Part, Sample, damaged


@dataclass(frozen=True)
class Rescored:
    """The scores of one saved task.

    Attributes:
        part: What was read.
        documents: How many there were.
        scores: Each score with its estimate.
        provenance: What the benchmark tells about how they came about.
    """

    part: Part
    documents: int
    scores: list[tuple[Score, Estimate]]
    provenance: dict[str, Any]


def rescore(
    paths: list[str],
    language: str | None = None,
    rewritings: Sequence[tuple[Rewriting, str]] = (),
    only: str | None = None,
) -> list[Rescored]:
    """Recompute every score of everything saved under the paths.

    Args:
        paths: Files or folders.
        language: The language of files that don't say it themselves.
        rewritings: Benchmarks' ways to score their saved answers otherwise, each with its value; files of other
            benchmarks are then refused.
        only: Pass over all benchmarks but this one.

    Raises:
        BiasError: Files that cannot be read or scored, or that cannot be rewritten so.
    """
    return saved_answers.gather(paths, partial(_file, rewritings=rewritings, only=only), language)


def _file(
    samples: Iterable[Sample], rewritings: Sequence[tuple[Rewriting, str]], only: str | None
) -> dict[Part, Rescored]:
    """The scores of a file's parts; of its documents no more than the records is kept."""
    parts: dict[Part, tuple[Mapping[str, Any], list[Record]]] = {}
    for rewriting, value in rewritings:
        samples = _rewritten(samples, rewriting, value, only)
    for part, doc, answers in samples:
        if only not in (None, part.benchmark):
            return {}
        with _blamed(part, f"document {len(parts[part][1]) if part in parts else 0}"):
            parts.setdefault(part, (doc, []))[1].append(registry.get(part.benchmark).record(doc, answers))
    rescored = {}
    for part, (first, records) in parts.items():
        with _blamed(part, "its scores"):
            scores = registry.get(part.benchmark).scores(records, detailed=True)
            estimates = [(score, score.compute(records)) for score in scores]
            facts = registry.get(part.benchmark).provenance([first])
            json.dumps(facts, allow_nan=False)
            rescored[part] = Rescored(part, len(records), estimates, facts)
    return rescored


def _rewritten(samples: Iterable[Sample], rewriting: Rewriting, value: str, only: str | None) -> Iterator[Sample]:
    """Saved documents and answers as a benchmark rewrites them: one by one, or all of a part at once."""

    def check(part: Part) -> None:
        benchmark = registry.family(part.benchmark)
        if benchmark is None or rewriting not in benchmark.rewritings:
            owner = rewriting.help.partition(":")[0]
            raise BiasError(f"{part.path}: --{rewriting.flag} is for {owner}, this is {part.benchmark}")

    if rewriting.each is not None:
        count: Counter[Part] = Counter()
        for part, doc, answers in samples:
            check(part)
            with _blamed(part, f"document {count[part]}"):
                new_doc, new_answers = rewriting.each(doc, answers, value)
            count[part] += 1
            yield Sample(part, dict(new_doc), list(new_answers))
    if rewriting.all is not None:
        for part, saved in sample_logs.collect(samples).items():
            if only in (None, part.benchmark):
                check(part)
                with _blamed(part, "its texts"):
                    docs, results = rewriting.all(saved.docs, saved.results, value)
                yield from replace(saved, docs=list(map(dict, docs)), results=list(map(list, results))).samples()


@contextlib.contextmanager
def _blamed(part: Part, at: str) -> Iterator[None]:
    """Errors name the file and the place in it."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(part, error, at) from error
