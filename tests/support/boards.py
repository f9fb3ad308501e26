"""Runs for leaderboards: files with numbers of a test's own, runs made of their data alone, and very many models."""

import math
from dataclasses import replace

from lm_eval_bias.boards import building
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.report import board_reports
from tests.support import made_runs
from tests.support.made_runs import DOCS, made_up, run_file
from tests.support.toy import run_of as run

TASK = "gg_bbq_group_terms"
WHOLE = {"documents": "0" * 64}
DEFINITIONS = ("low", "high", "neutral", "direction", "unit", "summary", "source", "higher_is_better")
MODELS = 100
TASKS = ("occugender_implicit", TASK, "stereoset_fr", "stereoset_es", "stereoset_tr", "regard_de", *made_runs.TASKS)


def run_data(model, metadata=None, **scores):
    """A file of one task; ``name=(value, stderr)`` or a mapping that updates the score's fields."""
    made = run_file(model, [TASK])
    made["tasks"][TASK]["metadata"] |= metadata or {}
    able = {"unanswered": (0.0, None), "acc_disamb": (0.9, 0.02)}
    for name, given in {**able, **scores}.items():
        if isinstance(given, tuple):
            given = {"value": given[0], "stderr": given[1], "interval": None, "dof": 60.0}
        made["tasks"][TASK]["scores"][name] |= given
    return made


def value(name="acc_amb", number=0.5, stderr=0.02, benchmark="gg_bbq", **changes):
    """A score as this package defines it."""
    (score,) = (score for score in registry.get(benchmark).scores() if score.name == name)
    return replace(_value(score, number, stderr), **changes)


def _value(score, number, stderr):
    return Value(score.name, number, stderr, dof=60.0, **{field: getattr(score, field) for field in DEFINITIONS})


def task(*scores, name=TASK, inputs=WHOLE, metadata=None, **changes):
    entry = catalog.entries()[name]
    known = {"inputs": inputs, **(metadata or {})}
    made = TaskRun(
        name, entry.benchmark, entry.language, str(entry.metadata["version"]), entry.items, entry.items, known,
        {score.name: score for score in scores},
    )  # fmt: skip
    return replace(made, **changes)


def board(*runs, name=TASK):
    (found,) = (one for one in building.boards(runs) if one.task == name)
    return found


def hundred_models() -> str:
    """A page as large as leaderboards get."""
    runs = [run(f"an-organisation/family-{number}.5B-pretraining-instruct") for number in range(MODELS)]
    for name in TASKS:
        benchmark = catalog.entries()[name].benchmark
        scores = registry.get(benchmark).scores(DOCS[benchmark])
        for number, one in enumerate(runs):
            cells = [(score, made_up(score, number + place)) for place, score in enumerate(scores)]
            values = [_value(score, cell["value"], cell["stderr"] or math.nan) for score, cell in cells]
            one.tasks[name] = task(*values, name=name)
    boards = building.boards(runs)
    own = [replace(one, rows=[row for row in one.rows if row.kind == building.RUN]) for one in boards]
    return board_reports.render("html", own, runs, [])
