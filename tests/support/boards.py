"""Runs for leaderboards: a good file of results/runs with other numbers, and runs made of their data alone."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path

from lm_eval_bias.boards import building
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from tests.support.places import ROOT

SOURCE = json.loads((ROOT / "results" / "runs" / "smollm2-135m-instruct.json").read_text(encoding="utf-8"))


def run_data(model, task="gg_bbq_group_terms", metadata=None, version=None, **scores):
    """A run of one task; ``name=(value, stderr)`` or a mapping that updates the score's fields."""
    made = copy.deepcopy({key: value for key, value in SOURCE.items() if key != "tasks"})
    made["model"] = model
    made["tasks"] = {task: copy.deepcopy(SOURCE["tasks"][task])}
    made["tasks"][task]["metadata"].pop("inputs", None)  # of documents that a test says are others
    made["tasks"][task]["metadata"].update(metadata or {})
    made["tasks"][task]["version"] = version or str(catalog.entries()[task].metadata["version"])
    for name, given in scores.items():
        cell = made["tasks"][task]["scores"][name]
        if isinstance(given, tuple):
            value, stderr = given
            given = {"value": value, "stderr": stderr, "interval": None, "dof": 60.0}
        cell.update(given)
    return made


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


# names that are markup, formulas or commands in some format
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><h1>x",
    "a|b\n# c",
    "[x](javascript:alert(1))",
    "*b* _c_ `d` ~~e~~ https://a.org www.b.org $1$",
    r"50% \input{/etc/passwd} #1 & $x_1^2$ ~{}",
    "[1ex] x",
    '=HYPERLINK("http://a.org")',
    "+1",
    "-1",
    "@SUM(A1)",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "a\x1b[31mred.exe",
    "1. x",
]


def safe(name):
    """A name as it may be shown: on one line, what can't be seen replaced."""
    return " ".join(re.sub("[\x00-\x08\x0b-\x1f]", "\ufffd", name).split())


TASK = "gg_bbq_group_terms"
WHOLE = {"documents": "0" * 64}
DEFINITIONS = ("low", "high", "neutral", "direction", "unit", "summary", "source", "higher_is_better")


def value(name="acc_amb", number=0.5, stderr=0.02, benchmark="gg_bbq", **changes):
    """A score as this package defines it."""
    (score,) = (score for score in registry.get(benchmark).scores() if score.name == name)
    made = Value(name, number, stderr, dof=60.0, **{field: getattr(score, field) for field in DEFINITIONS})
    return replace(made, **changes)


def task(*scores, name=TASK, inputs=WHOLE, metadata=None, **changes):
    entry = catalog.entries()[name]
    known = {"inputs": inputs, **(metadata or {})}
    made = TaskRun(
        name, entry.benchmark, entry.language, str(entry.metadata["version"]), entry.items, entry.items, known,
        {score.name: score for score in scores},
    )  # fmt: skip
    return replace(made, **changes)


def run(name, *tasks, **provenance):
    return Run(name, Path(f"{name}.json"), provenance, "", {one.task: one for one in tasks})


def board(*runs, name=TASK):
    (found,) = (one for one in building.boards(runs) if one.task == name)
    return found
