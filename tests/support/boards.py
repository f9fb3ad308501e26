"""Run files made for a test: a good one of results/runs with other numbers."""

import copy
import json

from lm_eval_bias.core import catalog
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
