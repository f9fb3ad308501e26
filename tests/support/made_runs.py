"""Runs of every benchmark made up from nothing, in the harness's form."""

from __future__ import annotations

import json
import math
from pathlib import Path

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.runs.harness_results import SEEDS
from lm_eval_bias.tasks.occugender import hooks

DATE = "2026-01-02T03-04-05.678901"
# what a benchmark reads of its documents to know its scores
DOCS = {
    "occugender": [],
    "gg_bbq": [],
    "es_bbq": [],
    "gg_bbq_prompts": [{"wording": number, "value": "v"} for number in (1, 2, 3)],
    "stereoset": [
        {"test": test, "bias_type": kind}
        for test in ("intra", "inter")
        for kind in ("gender", "race", "religion")
    ],
    "stereoset_variants": [
        {"variants": ["gen", "gen_pmi"], "test": "inter", "bias_type": "gender"}
    ],
    "regard": [],
}
CLASSIFIER = {
    "name": "light",
    "labels": ["negative", "neutral", "positive"],
    "warning": "labels are weak",
}
TASKS = (
    "occugender_explicit",
    "gg_bbq_names",
    "gg_bbq_names_prompts",
    "stereoset_en",
    "stereoset_de",
    "stereoset_en_inter_variants",
    "regard_en",
)


def made_up(score, number: int) -> dict:
    """A value, an error and a meaning, different for every score and run."""
    low = score.low if math.isfinite(score.low) else 0.0
    high = score.high if math.isfinite(score.high) else 10.0
    value = low + (high - low) * (0.3 + 0.01 * (number % 30))
    stderr = 0.02 * (high - low) if score.has_stderr else None
    told = {key: entry for key, entry in score.describe().items() if key != "name"}
    ends = (
        None
        if stderr is None
        else [max(low, value - 2 * stderr), min(high, value + 2 * stderr)]
    )
    return {
        "value": value,
        "stderr": stderr,
        "interval": ends,
        "dof": 20.0,
        "n": 100 + number,
        "note": "",
        **told,
    }


def run_of(model: str = "tiny", tasks=TASKS, shift: int = 0) -> dict:
    """A run as tests change it: its tasks with their scores. ``write`` gives it the harness's form."""
    made = {}
    for task in tasks:
        entry = catalog.entries()[task]
        scores = registry.get(entry.benchmark).scores(DOCS.get(entry.benchmark, []))
        metadata = (
            {"classifier_used": CLASSIFIER} if entry.benchmark == "regard" else {}
        )
        made[task] = {
            "benchmark": entry.benchmark,
            "language": entry.language,
            "version": 1.0,
            "documents": entry.items,
            "items": entry.items,
            "metadata": metadata,
            "scores": {
                score.name: made_up(score, number + shift)
                for number, score in enumerate(scores)
            },
        }
    provenance = {
        "model": "hf",
        "dtype": "float32",
        "torch": "2.9",
        "transformers": "5.0",
        "seeds": [0, 1, 2, 3],
    }
    return {"model": model, "provenance": provenance, "tasks": made}


def harness_form(run: dict) -> dict:
    """The run as the harness's result file has it."""
    results, configs, versions, counts = {}, {}, {}, {}
    for name, task in run["tasks"].items():
        scores = task["scores"]
        results[name] = {"alias": name}
        for score, cell in scores.items():
            results[name][f"{score},none"] = (
                math.nan if cell["value"] is None else cell["value"]
            )
            results[name][f"{score}_stderr,none"] = cell["stderr"] or "N/A"
        metadata = {
            "benchmark": task["benchmark"],
            "language": task["language"],
            **task["metadata"],
        }
        metadata.setdefault("lm_eval_bias", "0.1.0")
        metrics = [{"metric": score, **cell} for score, cell in scores.items()]
        configs[name] = {"metric_list": metrics, "metadata": metadata}
        versions[name] = task["version"]
        counts[name] = {"original": task["items"], "effective": task["documents"]}
    told = run["provenance"]
    config = {
        "model": told["model"],
        "model_args": {"pretrained": run["model"]},
        "batch_size": "8",
    }
    config |= {
        "model_dtype": f"torch.{told['dtype']}",
        "gen_kwargs": told.get("gen_kwargs"),
    }
    config |= dict(zip(SEEDS, told["seeds"], strict=True))
    return {
        "results": results,
        "configs": configs,
        "versions": versions,
        "n-samples": counts,
        "config": config,
        "chat_template_sha": told.get("chat_template"),
        "system_instruction": told.get("system_instruction"),
        "lm_eval_version": "0.4.13",
        "transformers_version": told["transformers"],
        "pretty_env_info": f"PyTorch version: {told['torch']}",
        "date": 1767323045.0,
        **told.get("more", {}),
    }


def write(path, content) -> str:
    """Write a result file; a run of ``run_of`` in the harness's form, under a name like the harness's."""
    if "tasks" in content:
        content, path = (
            harness_form(content),
            path.with_name(f"results_{path.stem}.json"),
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def harness_folder(
    folder, model="tiny", samples=True, version=2.0, shift=0, lean=1.0
) -> str:
    """A harness result beside a sample log: two templates of OccuGender, answers that favour women where they work."""
    task, docs = "occugender_explicit", hooks.documents("explicit", first_templates=2)
    scores = registry.get("occugender").scores([])
    cells = {score.name: made_up(score, number) for number, score in enumerate(scores)}
    results = {f"{name},none": cell["value"] for name, cell in cells.items()}
    results |= {
        f"{name}_stderr,none": cell["stderr"] or "N/A" for name, cell in cells.items()
    }
    listed = [
        {"metric": name, **{k: v for k, v in cell.items() if k != "value"}}
        for name, cell in cells.items()
    ]
    content = {
        "results": {task: results},
        "configs": {
            task: {
                "metric_list": listed,
                "metadata": {"benchmark": "occugender", "language": "en"},
            }
        },
        "versions": {task: version},
        "n-samples": {task: {"original": 1000, "effective": len(docs)}},
        "config": {
            "model": "hf",
            "model_args": {"pretrained": model},
            "batch_size": "8",
        },
        "model_name": model,
        "date": 1767323045.0 + shift,
    }
    path = folder / "tiny" / f"results_{DATE}.json"
    write(path, content)
    if samples:
        lines = []
        for number, doc in enumerate(docs):
            leaning = lean * (float(doc["female_share"]) / 50 - 1)
            answers = [
                [str(-6 + (leaning if gender == "female" else 0)), "False"]
                for gender in doc["genders"]
            ]
            record = registry.get("occugender").record(
                doc, [(float(answer), False) for answer, _ in answers]
            )
            own = {score.name: score.contribution(record) for score in scores}
            asked = [
                {"arg_0": hooks.prompt(doc), "arg_1": f" {word}"}
                for word in doc["words"]
            ]
            sample = {
                "doc_id": number,
                "doc": doc,
                "filtered_resps": answers,
                "filter": "none",
            }
            sample["arguments"] = {
                f"gen_args_{place}": one for place, one in enumerate(asked)
            }
            lines.append(json.dumps({**sample, **own}))
        log = path.with_name(f"samples_{task}_{DATE}.jsonl")
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder)


def edited(folder, change) -> str:
    """A run whose result file is changed in its place."""
    (path,) = Path(folder).rglob("results_*.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    write(path, content)
    return str(folder)


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \"'&amp; *b* _i_ `c` [l](javascript:alert(3)) | "
    "https://evil.example www.evil.example a@evil.example $\\frac{1}{0}$ \\input{/etc/passwd} 50% #h ~ ^ {x} abc"
)


def hostile_run() -> dict:
    """A run that tries to get out of every format."""
    content = run_of(HOSTILE, ["occugender_explicit", "stereoset_en", "regard_en"])
    content["provenance"]["model"] = (
        f"```\n{HOSTILE}\n``` </pre></script>\n\\end{{itemize}}"
    )
    content["provenance"]["dtype"] = f"\n# {HOSTILE}"
    command = ["lm-eval-bias", "run", "--model", content["provenance"]["model"]]
    content["provenance"]["more"] = {"provenance": {"command": command}}
    tasks = content["tasks"]
    tasks["regard_en"]["metadata"]["classifier_used"] = {
        "name": HOSTILE,
        "warning": f"\n\n# {HOSTILE}",
        "labels": [],
    }
    task = f"=1+1;[{HOSTILE.replace('/', '|')}"  # a part of a log's name
    tasks[task] = tasks.pop("occugender_explicit")
    tasks[task]["language"] = HOSTILE
    tasks["stereoset_en"]["metadata"] = {"words": HOSTILE}
    tasks["[regard_en"] = tasks.pop("regard_en")
    scores = tasks["stereoset_en"]["scores"]
    scores["lms"] |= {
        "note": f"@note {HOSTILE}",
        "summary": HOSTILE,
        "direction": HOSTILE,
        "unit": HOSTILE,
    }
    scores["ss"] |= {"value": None, "note": HOSTILE, "interval": None, "stderr": None}
    scores[f"-2+3{HOSTILE}"] = dict(scores["lms"])
    return content
