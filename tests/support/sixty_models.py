"""A folder as a leaderboard meets it: sixty models on ``quick``, re-runs, chat variants, whole sets, thirty languages.

``python -m tests.support.sixty_models FOLDER [MODELS]`` writes it; scores are simulated, one strength of bias a model.
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

from lm_eval_bias.core import catalog
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.runs import harness_results
from tests.support.made_runs import harness_form, run_of
from tests.support.places import ROOT

QUICK = ROOT / "results" / "runs" / "smollm2-135m-instruct-quick"
MODELS = 60
SIZES = (0.1e9, 0.4e9, 1e9, 3e9, 8e9, 14e9, 32e9, 70e9, 120e9)


# what tells whether a model knows the answers
TELLING = ("acc_of_named", "acc_disamb", "control/acc_of_named", "lms")


def template() -> tuple[dict, Run]:
    """A result of ``quick`` and its run: the file that this project measured."""
    (path,) = QUICK.glob("results_*.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    return content, harness_results.read(path, content)


def simulated(content: dict, run: Run, name: str, number: int, seed: int = 0) -> dict:
    """The same with scores of another model: drawn around its bias with each score's own error."""
    draw = random.Random(f"{name} {seed}")  # noqa: S311 (no secret)
    made = json.loads(json.dumps(content))
    lean = (number % 7 - 3) / 4
    for task, config in made["configs"].items():
        values = run.tasks[task].scores
        for metric in config["metric_list"]:
            value = values[metric["metric"]]
            if math.isnan(value.value) or not value.stderr > 0:
                continue
            moved = value.value + draw.gauss(0, 1) * value.stderr
            if value.higher_is_better is None:
                moved += 4 * lean * value.stderr
            if value.name in TELLING and number % 5:
                moved = 0.9 * value.high
            moved = min(max(moved, value.low), value.high)
            ends = [moved - 2 * value.stderr, moved + 2 * value.stderr]
            metric["value"] = moved
            metric["interval"] = [max(value.low, ends[0]), min(value.high, ends[1])]
            made["results"][task][f"{value.name},none"] = moved
    made["config"]["model_args"] = {"pretrained": name}
    made["config"]["model_num_parameters"] = int(SIZES[number % len(SIZES)])
    for facts in (
        made.get("provenance") or {},
        (made.get("provenance") or {}).get("model") or {},
    ):
        for key in ("pretrained files", "pretrained commit", "name", "command"):
            facts.pop(key, None)
    made["model_name"] = name
    return made


def make(folder: Path, models: int = MODELS) -> list[str]:
    """Write the folder; return the models' names."""
    content, run = template()
    names = [f"org-{number % 11}/model-{number:03d}" for number in range(models)]
    day = 0
    for number, name in enumerate(names):
        runs = [simulated(content, run, name, number)]
        if number % 3 == 0:  # run again
            runs.append(simulated(content, run, name, number, 1))
        if number % 10 == 0:  # a whole set beside the suite
            whole = run_of(name, ["gg_bbq_names", "occugender_explicit"], number)
            runs.append(harness_form(whole))
        if number % 20 == 0:  # all languages
            tasks = [
                e.name
                for e in catalog.entries().values()
                if e.benchmark == "eurogest" and e.kind == "task"
            ]
            runs.append(harness_form(run_of(name, tasks, number)))
        for one in runs:
            day += 1
            place = folder / name.replace("/", "__")
            place.mkdir(parents=True, exist_ok=True)
            stamp = f"2026-01-02T{day // 3600:02d}-{day // 60 % 60:02d}-{day % 60:02d}.000000"
            (place / f"results_{stamp}.json").write_text(
                json.dumps(one), encoding="utf-8"
            )
    return names


if __name__ == "__main__":
    made = make(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else MODELS)
    print(f"{sys.argv[1]}: {len(made)} models")
