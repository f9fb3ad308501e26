"""Every Eval Ever 0.3.0: a JSON per run, and a line per item and score where sample logs lie beside it."""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lm_eval_bias import __version__, registry
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.exports import directed_scores, logged_items
from lm_eval_bias.exports.directed_scores import Directed, LeftOut
from lm_eval_bias.exports.exporting import Export, Settings
from lm_eval_bias.report.numbers import few
from lm_eval_bias.report.parts import score_label
from lm_eval_bias.report.tables import json_text
from lm_eval_bias.runs.run_data import Problem, Run, TaskRun, Value, interval_of, readable

VERSION = "0.3.0"
_COLLECTION = "lm-eval-bias"
_PROJECT = "lm-eval-bias, with EleutherAI's lm-evaluation-harness"


def make(runs: Sequence[Run], problems: Sequence[Problem], settings: Settings) -> Export:
    """Make a file per run, and one with its items, laid out as the collection's own repository is."""
    files: dict[str, str] = {}
    number, left_out, remarks = 0, [], []
    runs_of: Counter[str] = Counter()
    for run in runs:
        sent, omitted = directed_scores.split(run, settings.main_only)
        left_out += omitted
        number += len(sent)
        identity = directed_scores.model_id(run, settings.name)
        runs_of[identity] += 1
        again = f"-{runs_of[identity]}" if runs_of[identity] > 1 else ""  # items are joined by it
        began = run.provenance.get("date") if run.began is None else f"{run.began:.0f}"
        evaluation = f"{_COLLECTION}/{identity}/{began or 'unknown'}{again}"
        content = _content(run, identity, evaluation, settings)
        content["source_metadata"]["additional_details"] |= _texts({"scores_left_out": list(map(_left_out, omitted))})
        content["evaluation_results"] = [_result(one) for one in sent]
        items, without = ([], []) if settings.no_items else logged_items.lines(sent, run, identity, evaluation)
        if without:
            remarks.append(f"No items of {few(without)}: not a mean over items")
        text = "".join(items)
        # the name follows from the content, but for the time: a second export replaces the first
        digest = hashlib.sha256(f"{json.dumps(content, sort_keys=True)}{text}".encode())
        path = f"{_folder(identity)}/{uuid.UUID(bytes=digest.digest()[:16], version=4)}"
        content["retrieved_timestamp"] = f"{settings.now:.0f}"
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


def _folder(identity: str) -> str:
    developer, slash, model = identity.rpartition("/")
    parts = (_COLLECTION, developer if slash else "unknown", model)
    return "/".join(["data", *map(directed_scores.path_part, parts)])


def _texts(facts: dict[str, Any]) -> dict[str, str]:
    """Details as the schema has them, every value a text; what isn't known is left out."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in facts.items()
        if value not in (None, "", [], {})
    }


def _content(run: Run, identity: str, evaluation: str, settings: Settings) -> dict[str, Any]:
    """All that is said of a run as a whole."""
    backend = str(run.provenance.get("model") or "unknown")
    began = run.provenance.get("date") if run.began is None else f"{run.began:.0f}"
    return {
        "schema_version": VERSION,
        "evaluation_id": evaluation,
        **({"evaluation_timestamp": str(began)} if began else {}),
        "source_metadata": {
            "source_name": _PROJECT,
            "source_type": "evaluation_run",
            "source_organization_name": settings.organization,
            "evaluator_relationship": settings.relationship,
            "additional_details": _texts(
                {
                    "export": f"lm-eval-bias {__version__}",
                    "reading": "A neutral value is not a goal: a model that knows nothing can reach it, too. No score "
                    "sums up bias across benchmarks.",
                }
            ),
        },
        "model_info": {
            "name": settings.name or run.name,
            "id": identity,
            "inference_engine": {"name": backend},
            "additional_details": {
                "deployment_type": "self_deployed" if backend.startswith(("hf", "vllm")) else "unknown",
                "model_availability": "unknown",
                **_texts(
                    {
                        key: run.provenance.get(key)
                        for key in ("model_args", "model_revision", "parameters", "dtype", "model_files")
                    }
                ),
            },
        },
        "eval_library": {
            "name": "lm-eval-bias",
            "version": str(run.provenance.get("lm-eval-bias") or "unknown"),
            "additional_details": _texts({**_provenance_lines(run), "command": run.command}),
        },
    }


def _left_out(one: LeftOut) -> dict[str, Any]:
    """A score without a place: nothing of it is lost."""
    value = one.value
    return {
        "task": one.task.task, "score": value.name, "reason": one.reason, "value": finite(value.value),
        "standard_error": finite(value.stderr), "interval": value.interval and list(value.interval),
    }  # fmt: skip


def _source(task: TaskRun) -> dict[str, Any]:
    files = directed_scores.data_files(task)
    urls = [address for address in map(directed_scores.address, files) if address]
    benchmark = registry.family(task.benchmark)
    card = benchmark.card if benchmark is not None else None
    details = _texts(
        {
            "sha256": files,
            "licence": card.licence if card is not None else "",
            "documents_scored": task.documents,
            "documents_of_the_task": task.items or None,
            "documents_hash": task.inputs.get("scored") or task.inputs.get("documents"),
            "task_version": task.version,
            "options": {key: task.metadata[key] for key in benchmark.options if key in task.metadata}
            if benchmark is not None
            else {},
        }
    )
    name = (benchmark.title or benchmark.name) if benchmark is not None else task.benchmark
    if urls:
        return {"dataset_name": name, "source_type": "url", "url": urls, "additional_details": details}
    return {"dataset_name": name, "source_type": "other", "additional_details": details}


def _bound(end: float) -> float | str:
    return end if math.isfinite(end) else "Infinity" if end > 0 else "-Infinity"


def _result(one: Directed) -> dict[str, Any]:
    value, task = one.value, one.task
    name = score_label(task.benchmark, value.name)
    description = f"Distance of {value.name} from {value.neutral:g}: {value.summary}" if one.is_distance else ""
    return {
        "evaluation_result_id": f"{one.task.task}/{one.name}",
        "evaluation_name": task.task,
        "source_data": _source(task),
        "metric_config": {
            "evaluation_description": description or value.summary or value.name,
            "metric_id": f"{task.benchmark}.{one.name}",
            "metric_name": f"{name}, distance from {value.neutral:g}" if one.is_distance else name,
            **({"metric_unit": value.unit} if value.unit else {}),
            "lower_is_better": one.lower_is_better,
            "score_type": "continuous",
            "min_score": _bound(one.low),
            "max_score": _bound(one.high),
            "additional_details": _texts(
                {
                    "signed_score": value.name,
                    "neutral_value": value.neutral,
                    "signed_range": [finite(value.low), finite(value.high)],
                    "direction": value.direction,
                    "source": value.source,
                    "language": task.language,
                }
            ),
        },
        "score_details": {
            "score": one.number,
            "details": _texts(
                {
                    "signed_value": value.value,
                    "signed_interval": value.interval and list(value.interval),
                    "interval_for_the_items_as_given": value.fixed_interval and list(value.fixed_interval),
                    "degrees_of_freedom": finite(value.dof),
                    "note": value.note,
                }
            ),
            **_uncertainty(one),
        },
    }


def _uncertainty(one: Directed) -> dict[str, Any]:
    value = one.value
    parts: dict[str, Any] = {}
    if not math.isnan(value.stderr):
        method = directed_scores.stderr_method(one.task, value)
        of = " of the signed score, and at least as large as that of its distance" if one.is_distance else ""
        parts["standard_error"] = {"value": value.stderr, "method": f"{method or 'not recorded'}{of}"}
    if one.interval is not None:
        ends = ", given as the distances of its ends" if one.is_distance else ""
        parts["confidence_interval"] = {
            "lower": one.interval[0],
            "upper": one.interval[1],
            "confidence_level": 0.95,
            "method": f"{_interval_method(value)}{ends}",
        }
    return {"uncertainty": parts} if parts else {}


def _interval_method(value: Value) -> str:
    """How a score's interval follows from its error, found by computing it anew."""
    plain = interval_of(value.value, value.stderr, value.dof, value.low, value.high)
    if plain is None or value.interval is None:
        return "computed by the score itself (Wilson, Newcombe or bootstrap)"
    if all(abs(a - b) <= 1e-9 * max(1.0, abs(b)) for a, b in zip(plain, value.interval, strict=True)):
        quantile = "normal" if value.dof == float("inf") else f"Student's t, {value.dof:.4g} degrees of freedom"
        return f"{quantile}, cut to the score's range"
    return "computed by the score itself (Wilson, Newcombe or bootstrap)"


def _provenance_lines(run: Run) -> dict[str, str]:
    """What a run's file says about all that would change its numbers, as text, what it doesn't say left out."""
    return {str(key): readable(value) for key, value in run.provenance.items() if value is not None and value != ""}
