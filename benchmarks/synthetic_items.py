"""Synthetic items for ``scale.py``: documents, sample logs and result files in any number.

The real tasks' documents and the log lines of one small run of the chance model, repeated with keys of their own: more
occupations, more quadruples, more ids. Groups, templates and target terms stay as many as they are.
"""

from __future__ import annotations

import json
import random
import subprocess  # noqa: S404
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TASKS = {
    "gg_bbq": "gg_bbq_group_terms",
    "stereoset": "stereoset_en",
    "occugender": "occugender_explicit",
}
DATE = "2026-01-01T00-00-00.000000"


def _renamed(doc: dict[str, Any], turn: int, number: int) -> dict[str, Any]:
    """A document as another item: of the ``turn``-th round through the real ones, at place ``number`` of all."""
    field = {"gg_bbq": "item", "stereoset": "id", "occugender": "item"}[
        doc["benchmark"]
    ]
    if doc["benchmark"] == "occugender":
        return {
            **doc,
            field: f"{doc[field]} {turn}",
        }  # the same name in each template: a full product
    return {
        **doc,
        field: number if isinstance(doc[field], int) else f"{doc[field]}-{turn}",
    }


def documents(benchmark: str, count: int) -> list[dict[str, Any]]:
    """That many documents of a benchmark, with 25 templates of OccuGender at every size."""
    from lm_eval_bias.tasks.gg_bbq import hooks as gg_bbq
    from lm_eval_bias.tasks.occugender import hooks as occugender
    from lm_eval_bias.tasks.stereoset import hooks as stereoset

    make: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "gg_bbq": lambda: gg_bbq.dataset("group_terms")["test"],
        "stereoset": lambda: stereoset.documents(
            {"language": "en", "tests": ["intra", "inter"]}
        ),
        "occugender": lambda: occugender.documents("explicit"),
    }
    real = make[benchmark]()
    if benchmark == "occugender" and count < len(real):
        raise SystemExit(f"sizes below {len(real)} are no full product of OccuGender")
    return [_renamed(real[i % len(real)], i // len(real), i) for i in range(count)]


def prototypes(folder: Path) -> None:
    """Two small real runs of the chance model, whose logs are repeated; made once."""
    if (folder / "real2").is_dir():
        return
    for seed in (1, 2):
        target = str(folder / f"real{seed}")
        command = [
            sys.executable,
            "-m",
            "lm_eval_bias",
            "run",
            "--tasks",
            ",".join(TASKS.values()),
            "--log_samples",
        ]
        command += [
            "--model",
            "bias-chance",
            "--model_args",
            f"seed={seed}",
            "--output_path",
            target,
        ]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603


def write_logs(folder: Path, benchmark: str, count: int) -> None:
    """Two runs' logs of that many items beside their result files, one line after another."""
    task = TASKS[benchmark]
    for seed in (1, 2):
        (results,) = (folder / f"real{seed}").rglob("results_*.json")
        (log,) = results.parent.glob(f"samples_{task}_*.jsonl")
        lines = [line for line in log.read_text(encoding="utf-8").split("\n") if line]
        target = folder / f"{benchmark}-{count}" / f"run{seed}"
        target.mkdir(parents=True)
        content = json.loads(results.read_text(encoding="utf-8"))
        kept = {
            key: {task: content[key][task]}
            for key in ("results", "configs", "versions", "n-samples")
        }
        kept["n-samples"][task] = {"original": count, "effective": count}
        kept["configs"][task]["metadata"].pop(
            "inputs"
        )  # hashes of the documents that are repeated here
        (target / f"results_{DATE}.json").write_text(
            json.dumps({**content, **kept}), encoding="utf-8"
        )
        marked = [_marked(json.loads(line)) for line in lines]
        with (target / f"samples_{task}_{DATE}.jsonl").open(
            "w", encoding="utf-8"
        ) as out:
            for i in range(count):
                text, key = marked[i % len(marked)]
                key = f"{key} {i // len(marked)}" if isinstance(key, str) else i
                out.write(
                    text.replace('"@ID@"', str(i), 1).replace(
                        '"@KEY@"', json.dumps(key), 1
                    )
                    + "\n"
                )


def _marked(sample: dict[str, Any]) -> tuple[str, Any]:
    """A log line with places for its number and its key, and the real key."""
    field = "id" if sample["doc"]["benchmark"] == "stereoset" else "item"
    key = sample["doc"][field]
    sample["doc"] = {**sample["doc"], field: "@KEY@"}
    return json.dumps({**sample, "doc_id": "@ID@"}, ensure_ascii=False), key


def write_results(folder: Path, count: int) -> None:
    """Result files of that many models, whose values differ at random."""
    (results,) = (folder / "real1").rglob("results_*.json")
    content = json.loads(results.read_text(encoding="utf-8"))
    draw = random.Random(1)  # noqa: S311
    for number in range(count):
        content["config"]["model_args"] = {"pretrained": f"someone/model-{number}"}
        for scores in content["results"].values():
            for key, value in scores.items():
                if isinstance(value, float) and "stderr" not in key:
                    scores[key] = value * (1 - 0.1 * draw.random())
        target = folder / f"models-{count}" / f"model-{number}"
        target.mkdir(parents=True)
        (target / f"results_{DATE}.json").write_text(
            json.dumps(content), encoding="utf-8"
        )
