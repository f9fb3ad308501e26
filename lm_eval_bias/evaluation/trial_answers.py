"""Answers to a task's first documents without a model, and what a benchmark makes of them: what ``doctor`` looks at."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from lm_eval_bias.core import Facts
from lm_eval_bias.core.answers import SavedSample, SavedTask
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.page_parts import ReportTask
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.custom_metrics.score import (
    OUTSIDE,
    Answers,
    Estimate,
    ImpossibleEstimate,
    Record,
    Score,
    Undefined,
    undefined,
)
from lm_eval_bias.harness import internals
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.runs import sample_logs
from lm_eval_bias.runs.soundness import is_close

if TYPE_CHECKING:
    from lm_eval.api.model import LM

    from lm_eval_bias.harness.internals import Instance, Requests
    from lm_eval_bias.harness.task import BiasTask


AnswersByDocument = Mapping[int, Answers]  # of a task, by document
Choose = Callable[[Facts], str]
Naming = Callable[[Facts], Sequence[str]]  # of each choice of a document, a name
WIDE = 100.0  # a range from which on values within ±1 are a mistake of scale


class ChoosingLM(ChanceLM):
    """A model that takes one choice of every document: it shows which way a score points."""

    def __init__(self, choose: Choose) -> None:
        """Take what the function chooses of a document."""
        super().__init__()
        self._choose = choose

    def loglikelihood(self, requests: Requests) -> list[tuple[float, bool]]:
        """Give nearly all of the probability to the choice."""
        return [
            (
                -0.1 if request.args[1].strip() == self._choose(request.doc) else -9.0,
                False,
            )
            for request in requests
        ]

    def generate_until(self, requests: Requests) -> list[str]:
        """Write the choice."""
        return [self._choose(request.doc) for request in requests]


class NumberlessLM(ChanceLM):
    """A model whose log-likelihoods are no numbers, as those of a broken one."""

    def loglikelihood(self, requests: Requests) -> list[tuple[float, bool]]:
        """Give nan for each request."""
        return [(math.nan, False)] * len(requests)


def opposites(
    task: BiasTask, docs: Sequence[Facts], favours: Sequence[str]
) -> dict[str, Choose]:
    """Return two ways to choose that are opposite, by name; none where a task's documents have no choices.

    Choices are named alike in all documents by their texts, a field with a group for each, a field that is one of them
    or their places: in the first way that a score's words for either side speak of, else in the first way.
    """
    texts = partial(_texts, task)
    namings: list[Naming] = [texts]
    for field in docs[0]:
        namings.append(partial(_listed, field))
        namings.append(partial(_one_of, texts, field))
    namings.append(lambda doc: [f"choice {n}" for n in range(1, len(texts(doc)) + 1)])
    found: dict[str, Choose] = {}
    for naming in namings:
        names = [naming(doc) for doc in docs]
        kinds = {tuple(sorted(each)) for each in names}
        count = len(set(names[0]))
        if len(kinds) == 1 and count > 1 and all(count == len(texts(d)) for d in docs):
            sides = sides_in(favours, names[0])
            if sides or not found:
                chosen = sides or sorted(names[0])[:2]
                found = {n: partial(_named, texts, naming, n) for n in chosen}
            if sides:
                break
    return found


def _texts(task: BiasTask, doc: Facts) -> list[str]:
    return list(map(str.strip, choices_of(task, doc)))


def _listed(field: str, doc: Facts) -> Sequence[str]:
    """Return a field that is a list of texts."""
    names = doc.get(field)
    is_list = isinstance(names, list) and all(isinstance(n, str) for n in names)
    return names if names and is_list else [""]


def _one_of(texts: Naming, field: str, doc: Facts) -> list[str]:
    """Tell the choice that a field is from another one."""
    return [field if text == doc.get(field) else "another" for text in texts(doc)]


def _named(texts: Naming, naming: Naming, name: str, doc: Facts) -> str:
    """Return the choice of a document that has a name."""
    return texts(doc)[list(naming(doc)).index(name)]


def choices_of(task: BiasTask, doc: Facts) -> Sequence[str]:
    """List a document's choices, which a task of written answers may have in its documents."""
    if task.config.doc_to_choice is not None:
        found: Sequence[str] = task.doc_to_choice(doc)
        return found
    return doc.get("choices") or ()


def sides_in(favours: Sequence[str], names: Sequence[str]) -> list[str]:
    """Name the choices that a score's words above, and below, its neutral value speak of; none where that isn't clear.

    Words are the same that begin alike.

    >>> sides_in(("takes the old for it", "takes the young for it"), ["a young one.", "an old one."])
    ['an old one.', 'a young one.']
    >>> sides_in(("invites women", "invites men"), ["another", "woman"])
    ['woman', 'another']
    """
    words = [_stems(name) for name in names]
    own = [each.difference(*words[:i], *words[i + 1 :]) for i, each in enumerate(words)]
    sides = [
        [name for name, each in zip(names, own, strict=True) if _stems(text) & each]
        for text in favours
    ]
    above, below = sides or ([], [])
    others = [name for name in names if name not in (*above, *below)]
    found = [*(above or others[:1]), *(below or others[:1])]
    is_clear = bool(above or below) and len(found) == 2
    return found if is_clear and len(set(found)) == 2 else []


def _stems(text: str) -> set[str]:
    """Return how the words of a text begin."""
    return {word[:3] for word in re.findall(r"\w{3,}", text.casefold())}


def ask(task: BiasTask, model: LM) -> AnswersByDocument:
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


def _by_document(
    task: BiasTask, values: Callable[[Instance], Iterable[object]]
) -> AnswersByDocument:
    requests = sorted(task.instances, key=attrgetter("doc_id", "idx"))
    return grouped((request.doc_id, *values(request)) for request in requests)


def records(task: BiasTask, answers: AnswersByDocument) -> list[Record]:
    """Make the records of answered documents."""
    docs = task.eval_docs
    return [
        task.benchmark.record(docs[place], given) for place, given in answers.items()
    ]


def logged(
    task: BiasTask, given: AnswersByDocument, filter_name: str
) -> Iterator[SavedSample]:
    """Yield answered documents as they are read from a run's sample log."""
    part = SavedTask(Path("its log"), task.config.task, filter_name, task.benchmark)
    texts = _by_document(task, lambda request: [request.resps])
    for place, answers in given.items():
        doc, saved = internals.as_logged(task.eval_docs[place], answers)
        _, written = internals.as_logged(doc, texts[place])
        read = list(map(sample_logs.read_answer, saved))
        yield SavedSample(part, doc, read, {"doc_id": place, "resps": written})


def estimated(score: Score, made: Sequence[Record]) -> Estimate:
    """Estimate a score, nan where it is undefined.

    Raises:
        ImpossibleEstimate: It has a value that it can't have.
    """
    try:
        return score.estimated(made)
    except ImpossibleEstimate:
        raise
    except Undefined as error:
        return undefined(str(error), len(made))


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


def parts_of_page(shown: TaskRun) -> dict[str, Callable[[], object]]:
    """Return what makes the parts of a page that a benchmark brings, by name."""
    presentation = shown.definition.presentation
    run = Run("bias-chance", Path(), {shown.task: shown})
    on_page = ReportTask(run, shown, shown.task, 0, "0")
    return {
        "cautions": lambda: list(presentation.cautions(shown)),
        "withheld": lambda: presentation.withheld(shown),
        "figures": lambda: list(presentation.figures([on_page])),
    }
