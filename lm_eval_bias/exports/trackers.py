"""Experiment trackers, each by its own library and in its own folder on this machine: Weights & Biases and MLflow."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.exports import bundle, directions
from lm_eval_bias.exports.bundle import Bundle, Settings
from lm_eval_bias.exports.directions import LeftOut
from lm_eval_bias.runs.run_data import Problem, Run

PROJECT = "lm-eval-bias"
# they would tell their makers that they are used
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "WANDB_ERROR_REPORTING": "false"}
_BATCH = 100  # tags that MLflow takes at once
_NAME = 250  # characters of a name
_LONGEST = 500  # characters of a tag or parameter that every version of MLflow takes


def metrics(run: Run, main_only: bool) -> tuple[dict[str, float], list[LeftOut]]:
    """Scores with a value, and their errors and intervals, by names that trackers take for paths."""
    sent, left_out = directions.with_value(run, main_only)
    numbers: dict[str, float] = {}
    for task, value in sent:
        name = f"{task.task}/{value.name}"
        low, high = value.interval or (math.nan, math.nan)
        parts = {name: value.value, f"{name}_stderr": value.stderr, f"{name}_low": low, f"{name}_high": high}
        numbers |= {key: number for key, number in parts.items() if math.isfinite(number)}
    return numbers, left_out


def _facts(run: Run, main_only: bool) -> dict[str, str]:
    """What was run, and how to read its scores: texts."""
    facts = {**bundle.provenance_lines(run), "command": run.command}
    for task, value in directions.values(run, main_only):
        neutral = "no neutral value" if value.neutral is None else f"neutral at {value.neutral:g}"
        missing = f"; no value: {value.note}" if math.isnan(value.value) else ""
        facts[f"reads/{task.task}/{value.name}"] = f"{value.direction or 'no direction'}; {neutral}{missing}"
    return facts


def _bundle(runs: Sequence[Run], settings: Settings, remark: str, store: Callable[[Path], None]) -> Bundle:
    number, left_out, shown = 0, [], {}
    for place, run in enumerate(runs, start=1):
        sent, omitted = directions.with_value(run, settings.main_only)
        number += len(sent)
        left_out += omitted
        numbers, _ = metrics(run, settings.main_only)
        shown[f"run {place}: {run.name}"] = "".join(f"{name} = {value!r}\n" for name, value in numbers.items())
    return Bundle({}, number, left_out, [remark], store, shown)


def _library(name: str) -> Any:
    try:
        with _environment(_QUIET):
            return importlib.import_module(name)
    except ImportError as error:
        raise BiasError(f"{name} can't be imported ({one_line(error)}): pip install {name}") from error


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Variables that a library reads, for as long as it is used."""
    before = {key: os.environ.get(key) for key in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def wandb(runs: Sequence[Run], problems: Sequence[Problem], settings: Settings) -> Bundle:
    """A run of Weights & Biases per run, made offline.

    Raises:
        BiasError: The library isn't installed.
    """
    library = _library("wandb")

    def store(folder: Path) -> None:
        # offline twice: whatever the user's own settings say, nothing is sent
        with _environment({**_QUIET, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DISABLE_GIT": "true"}):
            for run in runs:
                own = library.init(
                    project=PROJECT, name=settings.name or run.name, dir=str(folder), mode="offline",
                    config=_facts(run, settings.main_only),
                    settings=library.Settings(mode="offline", console="off", silent=True, save_code=False),
                )  # fmt: skip
                numbers, _ = metrics(run, settings.main_only)
                own.log(numbers)
                own.finish()

    return _bundle(
        runs,
        settings,
        "Nothing is uploaded: 'wandb sync FOLDER' would upload it, with what wandb records about this machine",
        store,
    )


def mlflow(runs: Sequence[Run], problems: Sequence[Problem], settings: Settings) -> Bundle:
    """A run of MLflow per run, in a data base of one file.

    Raises:
        BiasError: The library isn't installed.
    """
    library = _library("mlflow")
    _library("sqlalchemy")  # which mlflow-skinny lacks

    def store(folder: Path) -> None:
        # made elsewhere: SQLite leaves journals behind where it was disturbed
        with tempfile.TemporaryDirectory() as temporary, _environment(_QUIET):
            place = Path(temporary) / "mlflow.db"
            client = library.MlflowClient(tracking_uri=f"sqlite:///{place}")
            experiment = client.create_experiment(PROJECT, artifact_location="mlflow-artifacts:/")
            for run in runs:
                _log(library, client, experiment, run, settings)
            (folder / "mlflow.db").write_bytes(place.read_bytes())

    return _bundle(runs, settings, "'mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db' shows the result", store)


def _log(library: Any, client: Any, experiment: str, run: Run, settings: Settings) -> None:
    own = client.create_run(experiment, run_name=settings.name or run.name).info.run_id
    now = int(settings.now * 1000)
    numbers, _ = metrics(run, settings.main_only)
    entities = library.entities
    every = [entities.Metric(_allowed(name), number, now, 0) for name, number in numbers.items()]
    tags = [
        entities.RunTag(_allowed(name)[:_NAME], text[:_LONGEST])
        for name, text in _facts(run, settings.main_only).items()
    ]
    for start in range(0, max(len(every), len(tags)), _BATCH):
        client.log_batch(own, metrics=every[start : start + _BATCH], tags=tags[start : start + _BATCH])
    client.set_terminated(own)


def _allowed(name: str) -> str:
    """A name with the characters that MLflow allows, the others by their numbers.

    >>> _allowed("own_prompts/words/gap/group (1)+")
    'own_prompts/words/gap/group _28_1_29__2b_'
    """
    return "".join(c if (c.isalnum() and c.isascii()) or c in "_-. /" else f"_{ord(c):x}_" for c in name)
