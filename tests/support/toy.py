"""A benchmark of a few lines and runs of it, small enough to work out by hand what comparing them must give."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from lm_eval_bias.comparing.pairing import Pair, Side
from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import Benchmark, Condition, Options
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.custom_metrics.clusters import clustered_mean
from lm_eval_bias.custom_metrics.score import Score, undefined
from lm_eval_bias.runs import diagnostics, harness_results
from lm_eval_bias.runs.harness_results import SEEDS

TRAITS = "abcdefgh"


def _mean(name, *traits):
    def value(record):
        return record["value"] if not traits or record["trait"] in traits else 0.0

    return clustered_mean(
        name, value=value, cluster=lambda record: record["trait"], summary="", low=-9.0, high=9.0, neutral=0.0,
        direction="", unit="difference",
    )  # fmt: skip


def _level(task):
    stem, _, tone = task.task.partition("_tone_")
    return (stem, tone) if tone else None


class Toy(Benchmark):
    """The mean of what the model answered; an item is named by its trait and a number: ``a1``."""

    name = "toy"
    main = ("mean", "gone")
    options = Options(dict.fromkeys(("words", "dataset", "tone"), ""))
    extensions = (
        Condition("tone", "tones", "plain", "toy_plain,toy_rude", _level),
        Condition("mood", "moods", "calm", "toy_calm", lambda task: None),
    )

    def record(self, doc, answers):
        return {"trait": _trait(doc), "value": answers[0][0]}

    def scores(self, docs=()):
        kind = {"low": 0, "high": 1, "unit": "difference"}
        spread = Score(
            "spread",
            statistic=lambda rows: undefined("none"),
            contribution=lambda row: None,
            **kind,
        )
        parts = [
            _mean(f"{trait}/mean", trait)
            for trait in sorted({_trait(doc) for doc in docs})
        ]
        return [_mean("mean"), spread, *parts]


def _trait(doc):
    return doc["trait"] if "trait" in doc else doc["id"][0]


def spread_over(traits=TRAITS, values=(0.5,)):
    """An answer for each item: ``values`` for each trait's items 0, 1, ..."""
    return {
        f"{trait}{number}": value
        for trait in traits
        for number, value in enumerate(values)
    }


def log(folder, task, values, **fields):
    """A sample log with these answers by item; ``fields`` stand in every document."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_2026-01-01T00-00-00.jsonl"
    lines = [
        {"doc_id": number, "doc": {"benchmark": "toy", "id": item, **fields}, "filter": "none",
         "filtered_resps": [[str(value), "False"]]}
        for number, (item, value) in enumerate(values.items())
    ]  # fmt: skip
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return path


def task_run(task="toy", samples=None, scores=(), **changes):
    """A task of a run; ``scores`` are values with all that belongs to them."""
    usual = {
        "language": "en",
        "version": "1.0",
        "documents": 8,
        "items": 8,
        "metadata": {},
    }
    given = {**usual, **changes}
    return TaskRun(
        task,
        registry.of_run("toy"),
        scores={score.name: score for score in scores},
        samples=samples,
        **given,
    )


def record_of(**facts):
    """The record of a run with these facts, by the names that reports give them."""
    given = {
        "model": facts.get("model"), "model_args": facts.get("model_args"), "model_dtype": facts.get("dtype"),
        "model_revision": facts.get("model_revision"), "gen_kwargs": facts.get("gen_kwargs"),
        "limit": facts.get("limit"), "device": facts.get("device"), "batch_size": facts.get("batch_size"),
    }  # fmt: skip
    given |= dict(zip(SEEDS, facts.get("seeds") or (), strict=False))
    told = {"served": facts.get("served"), **facts.get("weights", {})}
    content = {
        "config": given,
        "chat_template_sha": facts.get("chat_template"),
        "system_instruction": facts.get("system_instruction"),
        "lm_eval_version": facts.get("lm_eval"),
        "transformers_version": facts.get("transformers"),
        "pretty_env_info": f"PyTorch version: {facts.get('torch', '')}",
        "provenance": {"model": told, "cache": facts.get("cache")},
    }
    return harness_results.record(content, facts.get("lm-eval-bias"))


def run_of(name, *tasks, **facts):
    """A run of tasks that were made by what is said of it."""
    made_by = replace(record_of(**facts), file=f"{name}.json")
    by_name = {task.task: replace(task, record=made_by) for task in tasks}
    return diagnostics.applied(Run(name, Path(f"{name}.json"), by_name))


def side(name, folder, values=None, fields=None, provenance=None, **changes):
    """One task of one run; with a sample log where there are values."""
    samples = (
        None if values is None else log(folder / name, "toy", values, **(fields or {}))
    )
    task = task_run(samples=samples, **changes)
    run = run_of(name, task, **(provenance or {}))
    return Side(name, run, run.tasks[task.task])


def pair(base, other):
    return Pair("toy", base, other)


def score(name="mean", value=0.5, stderr=0.1, **changes):
    return Value(name, value, stderr, n=7, **changes)
