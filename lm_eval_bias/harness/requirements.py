"""What documents and scores need so that a run of them can be read later: checked before a model is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lm_eval_bias.core.benchmark import Benchmark
from lm_eval_bias.core.errors import kind_of
from lm_eval_bias.custom_metrics.score import Score

UNITS = ("percent", "proportion", "difference", "correlation", "percent (SE)", "count", "nats")


def of_documents(benchmark: Benchmark, docs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What documents lack, a line each."""
    for place, doc in enumerate(docs):
        if doc.get("benchmark") != benchmark.name:
            found = repr(doc["benchmark"]) if "benchmark" in doc else "missing"
            yield f"document {place}: its field 'benchmark' is {found}: it must be {benchmark.name!r}, as in the YAML"
        try:
            benchmark.key(doc)
        except Exception as error:  # other people's code can fail in any way
            field = f"the field {error} is missing" if isinstance(error, KeyError) else kind_of(error)
            yield f"document {place}: it can't be named: {field} (Benchmark.key)"


def of_scores(scores: Sequence[Score]) -> Iterator[str]:
    """What scores don't say of themselves, or say wrongly, a line each."""
    names = [score.name for score in scores]
    for score in scores:
        neutral = score.neutral
        wrong = {
            "its name holds a comma, which the harness's files divide names by": "," in score.name,
            "another score of the task has this name, too": names.count(score.name) > 1,
            f"its unit is {score.unit!r}: it must be one of {', '.join(UNITS)}": score.unit not in UNITS,
            f"its range is {score.low:g} to {score.high:g}": not score.low <= score.high,
            f"its neutral value {neutral} is outside of its range {score.low:g} to {score.high:g}": (
                neutral is not None and not score.low <= neutral <= score.high
            ),
            "its direction is empty, though it has a neutral value": neutral is not None and not score.direction,
            "its summary is empty": not score.summary,
        }
        yield from (f"{score.name or 'a score without a name'}: {text}" for text, is_so in wrong.items() if is_so)
