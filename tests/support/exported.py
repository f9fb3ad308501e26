"""What the tests of exports share: runs to send, and scores by name."""

from __future__ import annotations

import json

from lm_eval_bias.cli.main import main
from tests.support.made_runs import run_file, write

TASKS = ("occugender_explicit", "gg_bbq_names", "stereoset_en", "regard_en")
NAN = "nothing could be told"


def a_run(folder, tasks=TASKS):
    """A run file with every kind of score, of which two have no value."""
    content = run_file(tasks=tasks)
    content["provenance"]["model_args"] = "pretrained=owner/tiny,dtype=float32"
    for task, score in (("stereoset_en", "ss"), ("gg_bbq_names", "acc_amb")):
        if task in content["tasks"]:
            cell = content["tasks"][task]["scores"][score]
            cell |= {"value": None, "stderr": None, "interval": None, "note": NAN}
    return write(folder / "tiny.json", content), content


def exported(capsys, *arguments, status=0):
    capsys.readouterr()
    assert main(["export", *map(str, arguments)]) == status
    return capsys.readouterr()


def cells(content):
    """Scores of a run file by task and name."""
    return {(task, name): cell for task, own in content["tasks"].items() for name, cell in own["scores"].items()}


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
