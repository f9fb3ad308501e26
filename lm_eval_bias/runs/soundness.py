"""Whether a results file or a sample log is sound: ranges of scores, the documents' hash, and scores recomputed.

Files are believed as far as their form goes. Whoever doubts what they say recomputes it: ``check --strict``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lm_eval_bias.core import catalog, content_hashes, registry
from lm_eval_bias.core.answers import SavedSample
from lm_eval_bias.core.errors import BiasError, ask
from lm_eval_bias.core.run_data import Run, Value
from lm_eval_bias.custom_metrics.score import Score

ROUNDING = 1e-9  # relative, below 1 absolute: sums in another order, on another machine


def _problem(value: Value) -> str:
    """What is impossible about a score, by more than rounding; empty where nothing is."""
    low, high = (end + sign * ROUNDING * max(1.0, abs(end)) for sign, end in ((-1, value.low), (1, value.high)))
    span = f"range of {value.low:g} to {value.high:g}"
    if math.isinf(value.value) or value.value > high or value.value < low:
        return f"it is {value.value:g}, outside of its {span}"
    if value.stderr < 0 or math.isinf(value.stderr):
        return f"its standard error is {value.stderr:g}"
    for name, ends in (("interval", value.interval), ("interval of the items as given", value.fixed_interval)):
        if ends is not None and not low <= ends[0] <= ends[1] <= high:
            return f"its {name} [{ends[0]:g}, {ends[1]:g}] is none, or exceeds its {span}"
    return ""


def _largest(benchmark: str, name: str) -> float:
    """How far some models push a score above its range; -inf where none do."""
    own = registry.by_name().get(benchmark)
    scores: Sequence[Score] = ask((), own, own.scores) if own else ()
    return next((s.largest for s in scores if s.name == name and s.largest is not None), -math.inf)


def problem(benchmark: str, value: Value) -> str:
    """Say what is impossible about a score of a benchmark; empty where nothing is."""
    found = _problem(value)
    return "" if value.high < value.value <= _largest(benchmark, value.name) else found


def check_scores(benchmark: str, scores: Mapping[str, Value]) -> None:
    """Refuse scores that can't be.

    Args:
        benchmark: Whose they are.
        scores: By name.

    Raises:
        BiasError: The first one, and what is impossible about it.
    """
    for name, value in scores.items():
        if found := problem(benchmark, value):
            raise BiasError(f"{name}: {found}")


def check(run: Run) -> None:
    """Refuse a run with scores that can't be.

    Raises:
        BiasError: The first task and score, and what is impossible about it.
    """
    for task in run.tasks.values():
        try:
            check_scores(task.benchmark, task.scores)
        except BiasError as error:
            raise BiasError(
                f"{task.task}: {error}: damaged, or not a result of this package: rescore its samples, or run the "
                "task again"
            ) from error


class LoggedDocuments:
    """The documents and prompts of a log, by their hashes, against the hash in the results file beside it.

    Nothing is known of them where the results file has no hash; nor where prompts have examples, a chat template or a
    system instruction, with which logs have them and the hash hasn't.
    """

    def __init__(self, task: str, results: Mapping[str, Any]) -> None:
        """Of a task's log, beside the content of its results file; empty where there is none."""
        self._hashes: list[str] = []
        self._config = results.get("configs", {}).get(task, {})
        inputs = (self._config.get("metadata") or {}).get("inputs") or {}
        counts = results.get("n-samples", {}).get(task, {})
        self._expected = inputs.get("scored")
        if self._expected is None and counts.get("effective") == counts.get("original"):
            self._expected = inputs.get("documents")
        entry = catalog.entries().get(task)
        around = (inputs.get("chat_template"), inputs.get("num_fewshot"), results.get("system_instruction"))
        if any(around) or (entry is not None and entry.path is None):  # a task of the harness's own has no hash
            self._expected = None

    def add(self, sample: SavedSample) -> None:
        """Take note of a document.

        Raises:
            IndexError, TypeError, ValueError: Its requests aren't such.
        """
        if self._expected is None:
            return
        # a log has a task's description and the answer's beginning too, which are hashed apart or not at all
        description = self._config.get("description") or ""
        prefix = sample.doc.get(str(self._config.get("gen_prefix")))
        texts = slice(1) if self._config.get("output_type") == "generate_until" else slice(None)
        asked = [arguments[texts] for arguments in sample.requests]
        if description or isinstance(prefix, str):
            asked = [[prompt.removeprefix(description).removesuffix(f" {prefix}"), *more] for prompt, *more in asked]
        self._hashes.append(content_hashes.of_document(sample.doc, [description, *asked]))

    @property
    def are_others(self) -> bool:
        """Whether they are known to be others than were scored."""
        return self._expected is not None and content_hashes.of_all(self._hashes) != self._expected


def _numbers(value: Value) -> Iterator[tuple[str, float]]:
    """All that is told of a score in numbers; ``nan`` for what it doesn't have."""
    yield "value", value.value
    yield "standard error", value.stderr
    yield "degrees of freedom", value.dof if not math.isnan(value.stderr) else math.nan
    for name, ends in (("interval", value.interval), ("interval of the items as given", value.fixed_interval)):
        low, high = ends or (math.nan, math.nan)
        yield f"{name}'s lower end", low
        yield f"{name}'s upper end", high


def _difference(given: Value, computed: Value) -> str:
    """The first number that differs; empty where none does."""
    for (what, own), (_, other) in zip(_numbers(given), _numbers(computed), strict=True):
        both_nan = math.isnan(own) and math.isnan(other)
        if not both_nan and not math.isclose(own, other, rel_tol=ROUNDING, abs_tol=ROUNDING):
            return f"{given.name} has the {what} {own:.10g}, but from its samples {other:.10g}"
    return ""


def differences(given: Mapping[str, Value], computed: Mapping[str, Value]) -> list[str]:
    """In what the scores of a results file differ from those that its samples give, a line a score."""
    lines = [_difference(value, computed[name]) for name, value in given.items() if name in computed]
    # of a part of the items, a breakdown by what that part doesn't hold is in the file as nan
    valued = [name for name, value in given.items() if not math.isnan(value.value)]
    lines += [f"{name} is not a score of its samples" for name in valued if name not in computed]
    lines += [f"{name} is not in the file" for name in computed if name not in given]
    return [line for line in lines if line]
