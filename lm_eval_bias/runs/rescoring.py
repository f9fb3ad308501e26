"""Scores from saved answers."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lm_eval_bias import registry
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
        told: What the benchmark tells about how they came about.
    """

    part: Part
    documents: int
    scores: list[tuple[Score, Estimate]]
    told: dict[str, Any]


def rescore(
    paths: list[str],
    words: str | None = None,
    language: str | None = None,
    classifier: str | None = None,
    only: str | None = None,
) -> list[Rescored]:
    """Recompute every score of everything saved under the paths.

    Args:
        paths: Files or folders.
        words: OccuGender: another word set; other benchmarks' files are then refused.
        language: The language of files that don't say it: StereoSet predictions, labelled texts.
        classifier: Regard: classify the saved texts again; other benchmarks' files are then refused.
        only: Pass over all benchmarks but this one.

    Raises:
        BiasError: Files that cannot be read or scored; a word set that a log doesn't hold.
    """
    return saved_answers.each(paths, partial(_file, words=words, classifier=classifier, only=only), language)


def _file(
    samples: Iterable[Sample], words: str | None, classifier: str | None, only: str | None
) -> dict[Part, Rescored]:
    """The scores of a file's parts; of its documents no more than the records is kept."""
    kept: dict[Part, tuple[Mapping[str, Any], list[Record]]] = {}
    for part, doc, answers in samples if classifier is None else _reclassified(samples, classifier, only):
        if only not in (None, part.benchmark):
            return {}
        at = f"document {len(kept[part][1]) if part in kept else 0}"
        with _blamed(part, at):
            if words is not None:
                doc, answers = _hook(part, "rewrite", "--words is for OccuGender")(doc, answers, words)
            kept.setdefault(part, (doc, []))[1].append(registry.get(part.benchmark).record(doc, answers))
    rescored = {}
    for part, (first, records) in kept.items():
        with _blamed(part, "its scores"):
            scores = registry.get(part.benchmark).scores(records, detailed=True)
            estimates = [(score, score.compute(records)) for score in scores]
            told = registry.get(part.benchmark).provenance([first])
            json.dumps(told, allow_nan=False)
            rescored[part] = Rescored(part, len(records), estimates, told)
    return rescored


def _hook(part: Part, name: str, otherwise: str) -> Callable[..., Any]:
    hooks = importlib.import_module(registry.get(part.benchmark).hooks)
    function: Callable[..., Any] | None = getattr(hooks, name, None)
    if function is None:
        raise BiasError(f"{otherwise}, this is {part.benchmark}")
    return function


def _reclassified(samples: Iterable[Sample], classifier: str, only: str | None) -> Iterator[Sample]:
    """Saved texts with another classifier's labels, which sees all of a part at once."""
    for part, whole in sample_logs.collect(samples).items():
        if only in (None, part.benchmark):
            with _blamed(part, "its texts"):
                again = _hook(part, "reclassify", "--classifier is for regard")
                docs, results = again(whole.docs, whole.results, classifier)
            yield from replace(whole, docs=docs, results=results).samples()


@contextlib.contextmanager
def _blamed(part: Part, at: str) -> Iterator[None]:
    """Errors name the file and the place in it."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(part, error, at) from error
