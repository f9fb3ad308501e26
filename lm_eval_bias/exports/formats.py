"""The formats of ``lm-eval-bias export``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lm_eval_bias.benchmark import deferred
from lm_eval_bias.exports import directions
from lm_eval_bias.exports.bundle import Bundle, Maker, Settings
from lm_eval_bias.runs.run_data import Problem, Run


class Format(NamedTuple):
    """A format.

    Attributes:
        name: For ``--to``.
        help: What it is, in one line.
        make: The export of some runs.
        is_folder: Whether it writes a folder, and not one file.
        main_only: Whether the main scores alone go out unless all are asked for.
        takes: The command's options that mean something for it.
    """

    name: str
    help: str
    make: Maker
    is_folder: bool = False
    main_only: bool = False
    takes: Sequence[str] = ()


def _csv(runs: Sequence[Run], problems: Sequence[Problem], settings: Settings) -> Bundle:
    """The report's CSV: nothing stands where there is no number, and the note beside it says why."""
    from lm_eval_bias.report import run_reports

    parts = [directions.with_value(run, False) for run in runs]
    lacking = [one for _, without in parts for one in without]
    scores = sum(len(sent) for sent, _ in parts) + len(lacking)
    return Bundle({"": run_reports.render("csv", runs, problems)}, scores, lacking=lacking)


_EEE = "lm_eval_bias.exports.every_eval_ever"
_HUB = "lm_eval_bias.exports.hub_metadata"
_TRACKERS = "lm_eval_bias.exports.trackers"
FORMATS = (
    Format(
        "eee", "Every Eval Ever 0.3.0, with items where there are sample "
        "logs", deferred(f"{_EEE}:make"), is_folder=True,
        takes=("name", "scores", "no_items", "organization", "relationship"),
    ),
    Format(
        "model-card", "a section for a model card, with the Hub's model-index", deferred(f"{_HUB}:model_card"),
        main_only=True, takes=("name", "scores"),
    ),
    Format(
        "hf-eval-results", "the Hub's .eval_results/*.yaml", deferred(f"{_HUB}:eval_results"),
        main_only=True, takes=("name", "scores", "dataset"),
    ),
    Format("csv", "one row per run, task and score", _csv),
    Format(
        "wandb", "Weights & Biases, offline", deferred(f"{_TRACKERS}:wandb"), is_folder=True, takes=("name", "scores")
    ),
    Format(
        "mlflow", "MLflow, a database in one file", deferred(f"{_TRACKERS}:mlflow"), is_folder=True,
        takes=("name", "scores"),
    ),
    Format(
        "evidence", "for auditors: results, provenance, limits, related clauses, hashes",
        deferred("lm_eval_bias.exports.evidence:make"), is_folder=True, takes=("organization",),
    ),
)  # fmt: skip
BY_NAME = {one.name: one for one in FORMATS}
