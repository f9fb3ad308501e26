"""Answers to a task's first documents without a model, and what a benchmark makes of them: what ``doctor`` looks at."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from lm_eval_bias.core import Facts
from lm_eval_bias.core.answers import SavedSample, SavedTask
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.page_parts import ReportTask
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.custom_metrics.score import (
    OUTSIDE,
    Record,
    Score,
    Undefined,
)
from lm_eval_bias.harness import internals
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.runs import sample_logs
from lm_eval_bias.runs.soundness import is_close

AnswersByDocument = Mapping[int, list[Any]]  # of a task, by document
Choose = Callable[[Facts], str]
WIDE = 100.0  # a range from which on values within ±1 are a mistake of scale


class ChoosingLM(ChanceLM):
    """A model that takes one choice of every document: it shows which way a score points."""

    def __init__(self, choose: Choose) -> None:
        """Take what the function chooses of a document."""
        super().__init__()
        self._choose = choose

    def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
        """Give nearly all of the probability to the choice."""
        return [
            (
                -0.1 if request.args[1].strip() == self._choose(request.doc) else -9.0,
                False,
            )
            for request in requests
        ]

    def generate_until(self, requests: Any) -> list[str]:
        """Write the choice."""
        return [self._choose(request.doc) for request in requests]


class NumberlessLM(ChanceLM):
    """A model whose log-likelihoods are no numbers, as those of a broken one."""

    def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
        """Give nan for each request."""
        return [(math.nan, False)] * len(requests)


def opposites(task: Any, docs: Sequence[Facts]) -> dict[str, Choose]:
    """Return two ways to choose that are opposite, by name; none where a task's documents have no choices.

    Where all documents have the same choices these are the first two texts, else the first place and the last.
    """
    choices = [list(map(str.strip, choices_of(task, doc))) for doc in docs]
    if not choices or min(map(len, choices)) < 2:
        return {}
    first, second, *_ = sorted(choices[0])
    if all(sorted(of_one) == sorted(choices[0]) for of_one in choices):
        return {repr(first): lambda doc: first, repr(second): lambda doc: second}
    return {
        "the first choice": lambda doc: choices_of(task, doc)[0].strip(),
        "the last choice": lambda doc: choices_of(task, doc)[-1].strip(),
    }


def choices_of(task: Any, doc: Facts) -> Sequence[str]:
    """List a document's choices, which a task of written answers may have in its documents."""
    if task.config.doc_to_choice is not None:
        found: Sequence[str] = task.doc_to_choice(doc)
        return found
    return doc.get("choices") or ()


def sides_in(favours: Sequence[str], names: Sequence[str]) -> list[str]:
    """Name the choices that a score's words above, and below, its neutral value speak of; none where that isn't clear.

    >>> sides_in(("takes the old for it", "takes the young for it"), ["a young one.", "an old one."])
    ['an old one.', 'a young one.']
    """
    words = [set(re.findall(r"\w+", name.casefold())) for name in names]
    own = [
        of_one.difference(*words[:i], *words[i + 1 :]) for i, of_one in enumerate(words)
    ]
    sides = []
    for text in favours:
        told = set(re.findall(r"\w+", text.casefold()))
        sides += [
            name for name, of_one in zip(names, own, strict=True) if told & of_one
        ]
    return sides if len(sides) == len(set(sides)) == 2 else []


def ask(task: Any, model: Any) -> AnswersByDocument:
    """Answer a task's requests by a model, document by document; return the filtered answers."""
    for requests in grouped((each.doc_id, each) for each in task.instances).values():
        asked_of = []
        for request in requests:
            request.resps, request.filtered_resps = [], {}
            asked_of += [(request.request_type, request)] * request.repeats
        for kind, asked in grouped(asked_of).items():
            for request, answer in zip(asked, getattr(model, kind)(asked), strict=True):
                request.resps.append(answer)
    task.apply_filters()
    return _by_document(task, lambda request: request.filtered_resps.values())


def _by_document(task: Any, values: Callable[[Any], Any]) -> AnswersByDocument:
    requests = sorted(task.instances, key=attrgetter("doc_id", "idx"))
    return grouped((request.doc_id, *values(request)) for request in requests)


def records(task: Any, answers: AnswersByDocument) -> list[Record]:
    """Make the records of answered documents."""
    docs = task.eval_docs
    return [
        task.benchmark.record(docs[place], given) for place, given in answers.items()
    ]


def logged(
    task: Any, given: AnswersByDocument, filter_name: str
) -> Iterator[SavedSample]:
    """Yield answered documents as they are read from a run's sample log."""
    part = SavedTask(Path("its log"), task.config.task, filter_name, task.benchmark)
    texts = _by_document(task, lambda request: [request.resps])
    for place, answers in given.items():
        doc, saved = internals.as_logged(task.eval_docs[place], answers)
        _, written = internals.as_logged(doc, texts[place])
        read = list(map(sample_logs.read_answer, saved))
        yield SavedSample(part, doc, read, {"doc_id": place, "resps": written})


def doubts(score: Score, made: Sequence[Record], estimate: Value) -> Iterator[str]:
    """Yield what is wrong with a score of some records, though it has a value that it can have."""
    value = estimate.value
    again = score.compute(made[::-1]).value
    if not is_close(value, again):
        yield f"it is {value:g}, and {again:g} of the same documents in another order: it must not depend on it"
    low, high = estimate.interval or (value, value)
    if value < low - OUTSIDE or value > high + OUTSIDE:
        yield f"it is {value:g}, outside of its own interval from {low:g} to {high:g}"
    if score.design and score.statistic and not math.isnan(value):
        try:
            designed = score.design(made).value
        except Undefined:
            return
        if not is_close(value, designed):
            yield f"its statistic gives {value:g}, its design {designed:g}: compare would test another number"


def is_of_other_scale(score: Score, values: Sequence[float]) -> bool:
    """Tell whether a score's values and its documents' parts in it all lie within ±1, though its range is wide."""
    sizes = [abs(value) for value in values if not math.isnan(value)]
    return score.high - score.low >= WIDE and 0 < max(sizes, default=0) <= 1


def parts_of_page(shown: TaskRun) -> dict[str, Callable[[], Any]]:
    """Return what makes the parts of a page that a benchmark brings, by name."""
    presentation = shown.definition.presentation
    run = Run("bias-chance", Path(), {shown.task: shown})
    on_page = ReportTask(run, shown, shown.task, 0, "0")
    return {
        "sentences": lambda: [
            list(presentation.sentences(shown, beside)) for beside in (True, False)
        ],
        "cautions": lambda: list(presentation.cautions(shown)),
        "withheld": lambda: presentation.withheld(shown),
        "figures": lambda: list(presentation.figures([on_page])),
    }
