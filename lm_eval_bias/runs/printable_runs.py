"""Runs as they can be shown: whatever a file says becomes printable text and plain numbers."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lm_eval_bias import registry
from lm_eval_bias.runs.run_data import Run, TaskRun, Value

DEEPEST = 20
# no score is as large: what is, is damaged or made up, and would break the axes
LARGEST = 1e9
NO_REASON = "not a possible value of a score; the results file gives no reason"
# they can make a name read as another one, or hide what comes after it
_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def text(raw: object) -> str:
    r"""Text without control characters, lone surrogates and changes of direction, each shown as U+FFFD.

    >>> text("a\x00b\ud800\u202ec\nd") == "a\ufffdb\ufffd\ufffdc\nd"
    True
    """
    raw = str(raw)
    if raw.isascii() and raw.isprintable():  # most texts, of which large boards have hundreds of thousands
        return raw
    return "".join(
        "\ufffd"
        if (unicodedata.category(c) in ("Cc", "Cs", "Cn") and c not in "\n\t")
        or unicodedata.bidirectional(c) in _DIRECTIONS
        else c
        for c in raw
    )


def one_line(raw: object) -> str:
    r"""Text on one line.

    >>> one_line(" a\n b")
    'a b'
    """
    return " ".join(text(raw).split())


def plain(raw: Any, depth: int = 0) -> Any:
    """Data with tidy texts and without numbers that JSON doesn't have.

    >>> plain({"a": [float("nan"), 1]})
    {'a': [None, 1]}
    """
    if isinstance(raw, str):
        return text(raw)
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    if depth > DEEPEST:
        return "…"
    if isinstance(raw, Mapping):
        return {text(key): plain(value, depth + 1) for key, value in raw.items()}
    if isinstance(raw, (list, tuple)):
        return [plain(value, depth + 1) for value in raw]
    return raw


def readable(raw: Any) -> str:
    """A piece of provenance for people; an en dash where there is none."""
    if raw is None or raw == "":
        return "–"
    return text(raw) if isinstance(raw, (str, int, float)) else json.dumps(plain(raw), ensure_ascii=False)


def _sound(number: float | None) -> bool:
    return number is not None and abs(number) <= LARGEST  # which nan isn't


def _ends(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    return ends if ends is not None and all(map(_sound, ends)) and ends[0] <= ends[1] else None


def _value(value: Value) -> Value:
    finite = _sound(value.value)
    note = one_line(value.note)
    texts: dict[str, Any] = {
        name: one_line(getattr(value, name)) for name in ("name", "direction", "unit", "summary", "source")
    }
    return replace(
        value,
        value=value.value if finite else math.nan,
        stderr=value.stderr if _sound(value.stderr) and value.stderr >= 0 else math.nan,
        interval=_ends(value.interval) if finite else None,
        fixed_interval=_ends(value.fixed_interval) if finite else None,
        dof=math.inf if math.isnan(value.dof) else value.dof,
        note=note or ("" if finite else NO_REASON),
        low=value.low if _sound(value.low) else -math.inf,
        high=value.high if _sound(value.high) else math.inf,
        neutral=value.neutral if _sound(value.neutral) else None,
        **texts,
    )


def _task(task: TaskRun) -> TaskRun:
    return replace(
        task,
        task=one_line(task.task),
        language=one_line(task.language),
        version=one_line(task.version),
        metadata=plain(task.metadata),
        scores={one_line(name): _value(value) for name, value in task.scores.items()},
        extra=plain(task.extra),
    )


def runs(raw: Sequence[Run]) -> list[Run]:
    """Runs whose every text and number can be shown and written."""
    return [
        replace(
            run,
            name=one_line(run.name) or "model",
            provenance=plain(run.provenance),
            command=text(run.command).strip(),
            differs=one_line(run.differs),
            tasks={one_line(name): _task(task) for name, task in run.tasks.items()},
        )
        for run in raw
    ]


def presentable(raw: Sequence[Run]) -> list[Run]:
    """The same runs without the scores that their benchmarks withhold."""
    return [replace(run, tasks={name: _presentable(task) for name, task in run.tasks.items()}) for run in raw]


def _presentable(task: TaskRun) -> TaskRun:
    benchmark = registry.by_name().get(task.benchmark)
    return replace(task, scores={}) if benchmark is not None and benchmark.withheld(task) else task
