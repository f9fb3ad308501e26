"""Runs that the harness itself makes and saves, of its own tasks over documents in their form."""

from __future__ import annotations

import json
from pathlib import Path

import lm_eval.tasks
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

from lm_eval_bias.core.synthetic_bias import uniform
from lm_eval_bias.models.chance import ChanceLM

CALLED = {
    "acc_ambig": "acc_amb",
    "acc_disambig": "acc_disamb",
    "bias_score_ambig": "diff_bias_amb",
    "bias_score_disambig": "diff_bias_disamb",
    "accuracy_amb": "acc_amb",
    "accuracy_disamb": "acc_disamb",
}

TASKS = Path(lm_eval.tasks.__file__).parent


class Answering(ChanceLM):
    """Log-likelihoods of the random model, and texts as a model would write them about BBQ's questions."""

    def generate_until(self, requests):
        return [self._text(request.doc) for request in requests]

    def _text(self, doc):
        people = [
            doc[f"ans{i}"]
            for i in range(3)
            if "unknown" not in doc["answer_info"][f"ans{i}"]
        ]
        told = [f"I'd say it was {person}." for person in people]
        odd = [
            f"One of them is {doc['ans0_groups'][0]}",
            f"{people[1]} or the low SES one, f",
            "The weather was fine",
            "",
        ]
        texts = [
            *people,
            *told,
            *odd,
            "It can't be determined from this.",
            "We do not know",
            "Undetermined!",
        ]
        draw = uniform(self._seed, "text", doc["context"], doc["question"])
        return texts[int(draw * len(texts))]


def run(folder: Path, tasks, model=None):
    """Evaluate tasks of the harness with its own code over these documents, and save results and logs as it does.

    Args:
        folder: Where to.
        tasks: By name of the task its YAML below the harness's ``tasks`` and its documents.
        model: The random model of that seed, or a model.

    Returns:
        The harness's results by task, without the filter's name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, (yaml, rows) in tasks.items():
        data = folder / f"{name}.json"
        data.write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
        (folder / f"{name}.yaml").write_text(
            f"include: {TASKS / yaml}\ntask: {name}\ndataset_path: json\ndataset_name: null\n"
            f"dataset_kwargs: {{data_files: {{test: {data}}}}}\n",
            encoding="utf-8",
        )
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    tracker = EvaluationTracker(output_path=str(folder / "out"))
    lm = (
        Answering(seed=model or 0) if model is None or isinstance(model, int) else model
    )
    results = simple_evaluate(
        lm,
        tasks=list(tasks),
        task_manager=manager,
        evaluation_tracker=tracker,
        log_samples=True,
        bootstrap_iters=0,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name, own in samples.items():
        tracker.save_results_samples(task_name=name, samples=own)
    return {
        task: {
            key.partition(",")[0]: value
            for key, value in own.items()
            if "," in key and "_stderr" not in key
        }
        for task, own in results["results"].items()
    }


def called(name):
    """What a score of the harness's BBQ, EsBBQ and CaBBQ is called here."""
    for theirs, ours in CALLED.items():
        name = name.replace(theirs, ours)
    return name
