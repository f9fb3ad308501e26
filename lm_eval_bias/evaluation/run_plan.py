"""A suite before its run: which of its tasks fit the model, which items are taken, how many requests that makes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.errors import BiasError
from lm_eval_bias.evaluation import preflight
from lm_eval_bias.evaluation.suites import Suite, load

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import EvaluatorConfig

# what kinds of requests are called, for people
KIND_LABELS = {
    "loglikelihood": "log-likelihoods",
    "generate_until": "generated texts",
    "cloze": "blanks",
    "next_sentence": "next sentences",
    "sentence_likelihoods": "sentence likelihoods",
}


@dataclass(frozen=True)
class Selection:
    """A suite as it fits a model.

    Attributes:
        suite: The suite.
        left_out: Tasks that the model can't answer, and why not.
    """

    suite: Suite
    left_out: Mapping[str, str] = field(default_factory=dict)


def apply(config: EvaluatorConfig, name: str, entries: Mapping[str, catalog.Entry]) -> Selection:
    """Name the tasks of a suite in a configuration, without those that the model can't answer.

    Args:
        config: Of the run.
        name: The suite's.
        entries: The tasks that are known.

    Raises:
        BiasError: No such suite, flags that would change its items, or a model that fits none of its tasks.
    """
    suite = load(name)
    for flag, value in (
        ("--tasks", bool(preflight.split_tasks(config.tasks or []))),
        ("--limit", config.limit is not None),
        ("--samples", bool(config.samples)),
    ):
        if value:
            raise BiasError(f"{flag} with --suite {name}: a suite already chooses the items: leave out one of the two")
    preflight.check_model(config)
    preflight.check_model_arguments(config)
    reasons: dict[tuple[str, tuple[str, ...]], str] = {}
    left_out = {}
    for task in suite.parts:
        entry = entries[task]
        kind = (entry.benchmark, entry.asks)
        if kind not in reasons:
            reasons[kind] = str(preflight.misfit(config, [entry]) or "")
        if reasons[kind]:
            left_out[task] = reasons[kind]
    config.tasks = [task for task in suite.parts if task not in left_out]
    if not config.tasks:
        reason = next(iter(left_out.values()))
        raise BiasError(f"--suite {name}: --model {config.model} can answer none of its tasks ({reason})")
    return Selection(suite, left_out)


def choose_items(config: EvaluatorConfig, selection: Selection, tasks: Mapping[str, Any]) -> None:
    """Put the suite's items into the configuration, as ``--samples`` would, and its name into the tasks' metadata.

    Args:
        config: Of the run.
        selection: The suite.
        tasks: The built tasks by name.
    """
    samples = {}
    for name, task in tasks.items():
        indices = selection.suite.choose(name, task.eval_docs)
        if indices is not None:
            samples[name] = indices
        task.config.metadata["suite"] = selection.suite.label(name, task.eval_docs, sorted(selection.left_out))
    config.samples = samples or None


def _size(documents: int, limit: float | None) -> int:
    """How many documents the harness takes under ``--limit``."""
    if limit is None:
        return documents
    return min(documents, math.ceil(documents * limit) if limit < 1 else int(limit))


def requests(task: Any, indices: Sequence[int] | None, limit: float | None = None) -> tuple[int, Counter[str]]:
    """Number of documents and of requests by kind that a run of a task makes.

    Args:
        task: A task of ours.
        indices: Its documents, ``None`` for all.
        limit: The harness's ``--limit``.
    """
    docs = task.eval_docs if indices is None else [task.eval_docs[i] for i in indices]
    docs = docs[: _size(len(docs), limit)]
    counts: Counter[str] = Counter()
    for doc in docs:
        questions = registry.get(task.config.metadata["benchmark"]).questions(doc)
        if questions:
            counts.update(question.kind for question in questions)
        elif task.OUTPUT_TYPE == "multiple_choice":
            counts["loglikelihood"] += len(task.doc_to_choice(doc))
        else:
            counts[task.OUTPUT_TYPE] += 1
    return len(docs), Counter({kind: count * task.config.repeats for kind, count in counts.items()})


def in_words(counts: Mapping[str, int]) -> str:
    """Numbers of requests for people.

    >>> in_words({"loglikelihood": 1200, "cloze": 30})
    '1,200 log-likelihoods, 30 blanks'
    """
    return ", ".join(f"{count:,} {KIND_LABELS.get(kind, kind)}" for kind, count in counts.items())


def table(config: EvaluatorConfig, tasks: Mapping[str, Any], selection: Selection | None) -> str:
    """What is going to be run: tasks, items and requests by kind, and what is not."""
    from lm_eval_bias.report.tables import Column, grid

    rows = []
    total: Counter[str] = Counter()
    for name, task in tasks.items():
        documents, counts = requests(task, (config.samples or {}).get(name), config.limit)
        total.update(counts)
        rows.append([name, f"{documents:,}", f"{len(task.eval_docs):,}", in_words(counts)])
    lines = []
    if selection is not None:
        suite = selection.suite
        lines += [f"Suite {suite.name} (version {suite.version}): {suite.purpose}.", f"Not in it: {suite.leaves_out}."]
    reasons: dict[str, list[str]] = {}
    for task, reason in (selection.left_out if selection else {}).items():
        reasons.setdefault(reason, []).append(task)
    lines += [
        f"Left out, because they don't fit this model or these flags: {', '.join(t)} ({w})" for w, t in reasons.items()
    ]
    lines.append(grid(["Task", Column("Items", True), Column("of", True), "Requests"], rows))
    lines.append(f"{sum(total.values()):,} requests in all: {in_words(total)}.")
    return "\n".join(lines)
