"""The items of a task as its sample log has them: what was asked, as it was sent, and what was answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lm_eval_bias.core import Facts
from lm_eval_bias.core.answers import SavedSample, errors_in, requests_of
from lm_eval_bias.core.benchmark import facets_of
from lm_eval_bias.core.errors import BadOption, BiasError, did_you_mean
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.custom_metrics.score import Answers
from lm_eval_bias.runs import logged_texts, sample_logs


@dataclass(frozen=True)
class Item:
    """A document with its answer.

    Attributes:
        key: What names it, in another run, too.
        facets: What ``rescore --by`` breaks scores down by.
        prompt: The text in front of the answers, as it was sent; the first of several texts.
        asked: Each text that was scored behind the prompt, or against others, with its log-likelihood or the like.
        written: Each text that the model wrote, with what is read from it today.
        record: What its benchmark makes of the answer.
        contributions: By score what the item adds to it, in its unit.
        doc: The document.
    """

    key: str
    facets: Mapping[str, str]
    prompt: str
    asked: Sequence[tuple[str, str]]
    written: Sequence[tuple[str, str]]
    record: Facts
    contributions: Mapping[str, float]
    doc: Facts


def of_task(run: Run, name: str) -> TaskRun:
    """Return a task of a run that has a sample log.

    Raises:
        BiasError: The run has no such task, or no log of it.
    """
    if name not in run.tasks:
        hint = did_you_mean(name, run.tasks)
        raise BadOption("task", name, f"{run.name} has no such task.{hint}")
    task = run.tasks[name]
    if task.samples is None:
        raise BiasError(f"{name} has no sample log: run with --log_samples")
    return task


def items(task: TaskRun) -> Iterator[Item]:
    """Yield a task's items, from its sample log.

    Raises:
        BiasError: The log is damaged.
    """
    assert task.samples is not None
    for place, sample in enumerate(sample_logs.first_filter(task.samples)):
        with errors_in(sample.saved_task, f"document {place}"):
            item = _item(task, logged_texts.read_again(sample))
        yield item


def _item(task: TaskRun, sample: SavedSample) -> Item:
    benchmark = sample.saved_task.definition
    requests = requests_of(sample.logged)
    contributions = {}
    for name in task.scores:
        value = sample.logged.get(name)
        if isinstance(value, float):
            contributions[name] = value
    return Item(
        " / ".join(benchmark.key(sample.doc)),
        facets_of(benchmark, sample.doc),
        str(requests[0][0]) if requests else "",
        [] if sample.written else _asked(requests, sample.answers),
        sample.written,
        benchmark.record(sample.doc, sample.answers),
        contributions,
        sample.doc,
    )


def _asked(
    requests: Sequence[Sequence[object]], answers: Answers
) -> list[tuple[str, str]]:
    """Pair each request's scored text with its answer."""
    prompts = {str(arguments[0]) for arguments in requests}
    place = 1 if len(prompts) == 1 else 0
    found = []
    for arguments, answer in zip(requests, answers, strict=False):
        text = str(arguments[min(place, len(arguments) - 1)])
        number = answer[0] if isinstance(answer, list | tuple) else answer
        shown = f"{number:.4f}" if isinstance(number, float) else str(number)
        found.append((text, shown))
    return found
