"""What an export is before it is written, and what every format asks about a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lm_eval_bias import catalog, registry
from lm_eval_bias.data.sources import BASE_URL, hashes
from lm_eval_bias.errors import BiasError
from lm_eval_bias.exports.directions import LeftOut
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Problem, Run, TaskRun, Value, interval_of

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
_CHECKPOINT = re.compile(r"(?:^|,)(?:pretrained|model)=([^,]+)")
_PIN = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{40})/(.+)")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class Settings(NamedTuple):
    """What the user says beyond the run.

    Attributes:
        name: The model's name; ``None`` takes each run's own.
        main_only: Whether the main scores alone go out.
        with_items: Whether records of single items go out.
        organization: Who ran the evaluation.
        relationship: What they are to the model's developer, one of :data:`RELATIONSHIPS`.
        dataset: Hub data set whose leaderboard results are for; empty where none was named.
        now: When the export is made, in seconds since 1970.
    """

    name: str | None = None
    main_only: bool = False
    with_items: bool = True
    organization: str = ""
    relationship: str = "other"
    dataset: str = ""
    now: float = 0.0


@dataclass(frozen=True)
class Bundle:
    """What an export writes.

    Attributes:
        files: Texts by their path below the output; the one under the empty path is the output itself.
        scores: How many scores go out.
        left_out: Those that don't, and why.
        remarks: What else to know of it, a sentence each.
        store: Writes into a folder what other people's libraries write themselves.
        shown: What a preview shows beside the files, by headings.
        lacking: Those that go out without a value, and why they have none.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    scores: int = 0
    left_out: Sequence[LeftOut] = ()
    remarks: Sequence[str] = ()
    store: Callable[[Path], None] | None = None
    shown: Mapping[str, str] = field(default_factory=dict)
    lacking: Sequence[LeftOut] = ()


Maker = Callable[[Sequence[Run], Sequence[Problem], Settings], Bundle]


def one_model(runs: Sequence[Run], settings: Settings, form: str) -> str:
    """The name of the one model that runs are of.

    Raises:
        BiasError: They may be of several.
    """
    if settings.name is not None:
        return settings.name
    if len(runs) > 1:
        raise BiasError(
            f"{form} describes one model, but there are {len(runs)} runs ({', '.join(run.name for run in runs)}): name "
            "one of them, or give --name NAME if all are runs of that one model"
        )
    return runs[0].name


def model_id(run: Run, name: str | None) -> str:
    """A model's name on the hub where the run was of one, else what people call it.

    A folder of this machine is nothing to others, and isn't named.
    """
    if name is not None:
        return name
    checkpoint = _CHECKPOINT.search(str(run.provenance.get("model_args") or ""))
    return checkpoint[1] if checkpoint and _HUB_NAME.fullmatch(checkpoint[1]) else run.name


def path_part(text: str) -> str:
    """A text as a part of a path: plain letters, nothing that leads elsewhere.

    >>> path_part("../a b/ü"), path_part("...")
    ('a-b', 'unknown')
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "unknown"


def data_files(task: TaskRun) -> dict[str, str]:
    """SHA-256 of the files of data that a task read, as its run's file says; else of those that this version pins.

    None where its data are the package's own or the user's.
    """
    if "files" in task.inputs:
        return {str(name): str(digest) for name, digest in task.inputs["files"].items()}
    entry = catalog.entries().get(task.base)
    return hashes(entry.data) if entry is not None and "dataset_used" not in task.metadata else {}


def address(pin: str) -> str:
    """Where a pinned file can be had; empty where its name is none of ``owner/name@commit/path``.

    >>> address("a/b@0123456789012345678901234567890123456789/c.csv").partition("/a/b/")[2]
    '0123456789012345678901234567890123456789/c.csv'
    """
    match = _PIN.fullmatch(pin)
    return f"{BASE_URL}/{match[1]}/{match[2]}/{match[3]}" if match else ""


def stderr_method(task: TaskRun, value: Value) -> str:
    """How a score's standard error was computed, as its benchmark says; empty where that isn't known."""
    benchmark = registry.by_name().get(task.benchmark)
    return benchmark.stderr_method(value.name) if benchmark is not None else ""


def interval_method(value: Value) -> str:
    """How a score's interval follows from its error, found by computing it anew."""
    plain = interval_of(value.value, value.stderr, value.dof, value.low, value.high)
    if plain is None or value.interval is None:
        return "computed by the score itself (Wilson, Newcombe or bootstrap)"
    if all(abs(a - b) <= 1e-9 * max(1.0, abs(b)) for a, b in zip(plain, value.interval, strict=True)):
        quantile = "normal" if value.dof == float("inf") else f"Student's t, {value.dof:.4g} degrees of freedom"
        return f"{quantile}, cut to the score's range"
    return "computed by the score itself (Wilson, Newcombe or bootstrap)"


def provenance_lines(run: Run) -> dict[str, str]:
    """What a run's file says about all that would change its numbers, as text, what it doesn't say left out."""
    return {
        str(key): printable_runs.one_line(printable_runs.readable(value))
        for key, value in run.provenance.items()
        if value is not None and value != ""
    }
