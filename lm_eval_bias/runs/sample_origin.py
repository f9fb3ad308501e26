"""Whether a logged sample can be of the task that its log is named after, and its answers those that the model gave."""

from __future__ import annotations

from functools import cache
from typing import Any

from lm_eval_bias import catalog


def of_another_task(entry: catalog.Entry | None, benchmark: str, doc: dict[str, Any]) -> str:
    """Why a document can't be of the task that its log is named after; empty where it may be."""
    if entry is None or entry.path is None:  # of somebody's own, or of the harness
        return ""
    if benchmark != entry.benchmark:
        return f"a sample of {benchmark} in a log of {entry.name}, which is of {entry.benchmark}"
    language = doc.get("language")
    if isinstance(language, str) and entry.language and language != entry.language:
        return f"a sample in the language {language!r:.20} in a log of {entry.name}, which is in {entry.language!r}"
    for key, (own, others) in _distinctions(entry.name).items():
        if (value := doc.get(key)) in others:
            return f"a sample of the {key} {value!r} in a log of {entry.name}, whose {key} is {own!r}"
    return ""


@cache
def _distinctions(task: str) -> dict[str, tuple[str, list[str]]]:
    """The words in a packaged task's metadata that set it apart, each with those of the benchmark's other tasks."""
    entry = catalog.entries()[task]
    alike = [other for other in catalog.entries().values() if other.benchmark == entry.benchmark and not other.members]
    words = {key: own for key, own in entry.metadata.items() if isinstance(own, str)}
    values = {key: [other.metadata.get(key) for other in alike] for key in words}
    return {key: (own, [v for v in values[key] if isinstance(v, str) and v != own]) for key, own in words.items()}


def of_another_filter(entry: catalog.Entry | None, name: str, first: str) -> str:
    """Why a sample under a filter can't be of a task, which has one; empty where it may be.

    Args:
        entry: The task, as far as it is known.
        name: The filter.
        first: That of the log's first sample.
    """
    if entry is not None and name != entry.filter:
        return f"a sample with the filter {name!r:.40}, but the task's is {entry.filter!r}: edited, or another task's"
    return f"a sample with the filter {name!r:.40} after those with {first!r:.40}" if name != first else ""


def takes_first(sample: dict[str, Any]) -> bool:
    """Whether filtered answers are the first ones of a model, as far as the log has these."""
    if "resps" not in sample:
        return True
    resps = sample["resps"] if isinstance(sample["resps"], list) else []
    firsts = [answers[0] for answers in resps if isinstance(answers, list) and answers]
    return bool(firsts == sample["filtered_resps"])
