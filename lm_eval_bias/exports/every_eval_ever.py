"""Every Eval Ever 0.3.0: a JSON per run, and a line per item and score where sample logs lie beside it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.core import __version__, registry
from lm_eval_bias.core.numbers import few
from lm_eval_bias.core.run_data import Problem, Run, readable
from lm_eval_bias.core.wording import score_label
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.data.sources import BASE_URL
from lm_eval_bias.exports import directed_scores
from lm_eval_bias.exports.directed_scores import Directed, Export, MeasureSettings, Omitted
from lm_eval_bias.report.tables import json_text
from lm_eval_bias.runs import contributions, sample_logs

VERSION = "0.3.0"
_COLLECTION = "lm-eval-bias"
_NO_RIGHT_ANSWER = "an item of this score has no right answer; is_correct is false because it needs a value"
_ON_HUB = re.compile(r"(?:^|,)(?:pretrained|model)=([\w.-]+/[\w.-]+)(?:,|$)")


def make(runs: Sequence[Run], problems: Sequence[Problem], settings: MeasureSettings) -> Export:
    """Make a file per run, and one with its items, laid out as the collection's own repository is."""
    files: dict[str, str] = {}
    number, left_out, remarks = 0, [], []
    runs_of: Counter[str] = Counter()
    for run in runs:
        sent, omitted = directed_scores.split(run, settings.scores)
        left_out += omitted
        number += len(sent)
        on_hub = _ON_HUB.search(str(run.provenance.get("model_args")))
        identity = settings.name or (on_hub[1] if on_hub else run.name)  # never a folder
        runs_of[identity] += 1
        again = f"-{runs_of[identity]}" if runs_of[identity] > 1 else ""  # items are joined by it
        began = run.provenance.get("date") if run.began is None else f"{run.began:.0f}"
        evaluation = f"{_COLLECTION}/{identity}/{began or 'unknown'}{again}"
        content = {
            "schema_version": VERSION,
            "evaluation_id": evaluation,
            **({"evaluation_timestamp": str(began)} if began else {}),
            **_about(run, identity, settings, omitted),
            "evaluation_results": [_result(one) for one in sent],
        }
        items, without = ([], []) if settings.no_items else _items(sent, run, identity, evaluation)
        if without:
            remarks.append(f"No items of {few(without)}: not a mean over items")
        text = "".join(items)
        # the name follows from the content, but for the time: a second export replaces the first
        digest = hashlib.sha256(f"{json.dumps(content, sort_keys=True)}{text}".encode())
        developer, _, model = identity.rpartition("/")
        parts = (re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.") or "unknown" for name in (developer, model))
        path = f"data/{_COLLECTION}/{'/'.join(parts)}/{uuid.UUID(bytes=digest.digest()[:16], version=4)}"
        content["retrieved_timestamp"] = f"{time.time():.0f}"
        if items:
            content["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{path}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(text.encode()).hexdigest(),
                "total_rows": len(items),
            }
            files[f"{path}_samples.jsonl"] = text
        files[f"{path}.json"] = json_text(content, indent=2)
        unlogged = [task.task for task in run.tasks.values() if task.samples is None]
        if unlogged and not settings.no_items:
            remarks.append(f"No items of {few(unlogged)}: no sample log beside the results (--log_samples)")
    return Export(files, number, left_out, remarks)


def _texts(**facts: Any) -> dict[str, str]:
    """Details as the schema has them, every value a text; what isn't known is left out."""
    known = directed_scores.plain(facts).items()
    return {key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in known}


def _about(run: Run, identity: str, settings: MeasureSettings, omitted: Sequence[Omitted]) -> dict[str, Any]:
    """What is said of a run as a whole, with the scores that have no place: nothing of them is lost."""
    backend = str(run.provenance.get("model") or "unknown")
    left_out = [
        {
            "task": one.task.task, "score": one.value.name, "reason": one.reason, "value": finite(one.value.value),
            "standard_error": finite(one.value.stderr), "interval": one.value.interval and list(one.value.interval),
        }
        for one in omitted
    ]  # fmt: skip
    known = {key: readable(value) for key, value in run.provenance.items() if value not in (None, "")}
    model = ("model_args", "model_revision", "parameters", "dtype", "model_files")
    return {
        "source_metadata": {
            "source_name": "lm-eval-bias, with EleutherAI's lm-evaluation-harness",
            "source_type": "evaluation_run",
            "source_organization_name": settings.organization,
            "evaluator_relationship": settings.relationship,
            "additional_details": _texts(
                export=f"lm-eval-bias {__version__}",
                reading="A neutral value is not a goal: a model that knows nothing can reach it, too. No score "
                "sums up bias across benchmarks.",
                scores_left_out=left_out,
            ),
        },
        "model_info": {
            "name": settings.name or run.name,
            "id": identity,
            "inference_engine": {"name": backend},
            "additional_details": {
                "deployment_type": "self_deployed" if backend.startswith(("hf", "vllm")) else "unknown",
                "model_availability": "unknown",
                **_texts(**{key: run.provenance.get(key) for key in model}),
            },
        },
        "eval_library": {
            "name": "lm-eval-bias",
            "version": str(run.provenance.get("lm-eval-bias") or "unknown"),
            "additional_details": _texts(**{**known, "command": run.command}),
        },
    }


def _result(one: Directed) -> dict[str, Any]:
    value, task = one.value, one.task
    files = directed_scores.data_files(task)
    urls = [f"{BASE_URL}/{name.replace('@', '/', 1)}" for name in files if directed_scores.PIN.match(name)]
    benchmark = registry.family(task.benchmark)
    options = benchmark.options if benchmark is not None else ()
    name = score_label(task.benchmark, value.name)
    description = f"Distance of {value.name} from {value.neutral:g}: {value.summary}" if one.is_distance else ""
    uncertainty: dict[str, Any] = {}
    if not math.isnan(value.stderr):
        of = " of the signed score, and at least as large as that of its distance" if one.is_distance else ""
        method = f"{directed_scores.stderr_method(task) or 'not recorded'}{of}"
        uncertainty["standard_error"] = {"value": value.stderr, "method": method}
    if one.interval is not None:
        ends = ", given as the distances of its ends" if one.is_distance else ""
        uncertainty["confidence_interval"] = {
            "lower": one.interval[0],
            "upper": one.interval[1],
            "confidence_level": 0.95,
            "method": f"the score's own: Student's t, Wilson, Newcombe or bootstrap, cut to its range{ends}",
        }
    return {
        "evaluation_result_id": f"{one.task.task}/{one.name}",
        "evaluation_name": task.task,
        "source_data": {
            "dataset_name": directed_scores.title(task),
            **({"source_type": "url", "url": urls} if urls else {"source_type": "other"}),
            "additional_details": _texts(
                sha256=files,
                licence=benchmark.card.licence if benchmark is not None and benchmark.card else "",
                documents_scored=task.documents,
                documents_of_the_task=task.items or None,
                documents_hash=task.inputs.get("scored") or task.inputs.get("documents"),
                task_version=task.version,
                options={key: task.metadata[key] for key in options if key in task.metadata},
            ),
        },
        "metric_config": {
            "evaluation_description": description or value.summary or value.name,
            "metric_id": f"{task.benchmark}.{one.name}",
            "metric_name": f"{name}, distance from {value.neutral:g}" if one.is_distance else name,
            **({"metric_unit": value.unit} if value.unit else {}),
            "lower_is_better": one.lower_is_better,
            "score_type": "continuous",
            "min_score": one.low if math.isfinite(one.low) else "-Infinity",
            "max_score": one.high if math.isfinite(one.high) else "Infinity",
            "additional_details": _texts(
                signed_score=value.name,
                neutral_value=value.neutral,
                signed_range=[finite(value.low), finite(value.high)],
                direction=value.direction,
                source=value.source,
                language=task.language,
            ),
        },
        "score_details": {
            "score": one.number,
            "details": _texts(
                signed_value=value.value,
                signed_interval=value.interval and list(value.interval),
                interval_for_the_items_as_given=value.fixed_interval and list(value.fixed_interval),
                degrees_of_freedom=finite(value.dof),
                note=value.note,
            ),
            **({"uncertainty": uncertainty} if uncertainty else {}),
        },
    }


def _items(sent: Sequence[Directed], run: Run, model: str, evaluation: str) -> tuple[list[str], list[str]]:
    """A line per item and main score that is the mean of its items' parts; and the names of those that aren't.

    A correlation, a ratio or ICAT has no part that would be an item's own.
    """
    texts: list[str] = []
    without: list[str] = []
    for name, task in run.tasks.items():
        own = [one for one in sent if one.task is task and directed_scores.is_main(task, one.value.name)]
        if not own or task.samples is None or task.benchmark not in registry.by_name():
            continue
        samples, benchmark = list(sample_logs.first_filter(task.samples)), registry.get(task.benchmark)
        records = [benchmark.record(sample.doc, sample.answers) for sample in samples]
        scores = {score.name: score for score in benchmark.scores(records)}
        parts: dict[str, dict[int, float]] = {}
        for one in own:
            found = contributions.own_parts(scores[one.value.name], records) if one.value.name in scores else []
            if found and contributions.is_mean(found, one.value.value):
                parts[one.value.name] = dict(found)
            else:
                without.append(f"{name} {one.value.name}")
        for place, sample in enumerate(samples):
            prompt, choices = contributions.prompts(sample.requests)
            raw = prompt or "\n".join(choices)
            texts_read = [text for text, _ in sample.written]
            filtered = [a if isinstance(a, str) else json.dumps(a, ensure_ascii=False) for a in sample.answers]
            item: dict[str, Any] = {
                "evaluation_id": evaluation,
                "model_id": model,
                "schema_version": VERSION,
                "evaluation_name": task.task,
                "sample_id": "/".join(benchmark.key(sample.doc)),
                "sample_hash": hashlib.sha256(raw.encode("utf-8", "backslashreplace")).hexdigest(),
                "interaction_type": "single_turn",
                "input": {"raw": raw, "reference": [], "choices": choices if len(choices) > 1 else None},
                "output": {"raw": texts_read or filtered},
                "messages": None,
                "answer_attribution": [],
            }
            for one in own:
                if place in parts.get(one.value.name, ()):
                    part = _part(one, parts[one.value.name][place])
                    # texts of models hold anything: escaped, they survive any reader
                    texts.append(json.dumps({**item, **part}, allow_nan=False) + "\n")
    return texts, without


def _part(one: Directed, part: float) -> dict[str, Any]:
    metadata = {"score_is": f"the item's part of {one.value.name}, which is their mean"}
    if one.is_distance:
        metadata["score_is"] += ", with its sign: the result is the mean's distance from the neutral value"
    if one.value.higher_is_better is None:
        metadata["is_correct"] = _NO_RIGHT_ANSWER
    best = {True: one.value.high, False: one.value.low, None: math.nan}[one.value.higher_is_better]
    return {
        "evaluation_result_id": f"{one.task.task}/{one.name}",
        "evaluation": {"score": part, "is_correct": part == best},
        "metadata": metadata,
    }
