"""Runs for leaderboards: files with numbers of a test's own, and runs made of their data alone."""

from dataclasses import fields, replace

from lm_eval_bias.boards import building, models
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.custom_metrics.score import ScoreSpec
from tests.support.made_runs import run_of

TASK = "gg_bbq_group_terms"
WHOLE = {"documents": "0" * 64}
DEFINITIONS = [field.name for field in fields(ScoreSpec) if field.name != "name"]


def run_data(model, metadata=None, **scores):
    """A file of one task; ``name=(value, stderr)`` or a mapping that updates the score's fields."""
    made = run_of(model, [TASK])
    made["tasks"][TASK]["metadata"] |= metadata or {}
    able = {
        "unanswered": (0.0, None),
        "acc_disamb": (0.9, 0.02),
        "acc_of_named": (0.9, 0.02),
    }
    for name, given in {**able, **scores}.items():
        if isinstance(given, tuple):
            given = {
                "value": given[0],
                "stderr": given[1],
                "interval": None,
                "dof": 60.0,
            }
        made["tasks"][TASK]["scores"][name] |= given
    return made


def value(name="acc_amb", number=0.5, stderr=0.02, benchmark="gg_bbq", **changes):
    """A score as this package defines it."""
    (score,) = (
        score for score in registry.get(benchmark).scores() if score.name == name
    )
    made = Value(
        name,
        number,
        stderr,
        dof=60.0,
        **{field: getattr(score, field) for field in DEFINITIONS},
    )
    return replace(made, **changes)


def task(*scores, name=TASK, inputs=WHOLE, metadata=None, **changes):
    entry = catalog.entries()[name]
    known = {"inputs": inputs, **(metadata or {})}
    made = TaskRun(
        name, entry.definition, entry.language, str(entry.metadata["version"]), entry.items, entry.items, known,
        {score.name: score for score in scores},
    )  # fmt: skip
    return replace(made, **changes)


def board(*runs, name=TASK):
    (found,) = (one for one in building.boards(models.models(runs)) if one.task == name)
    return found
