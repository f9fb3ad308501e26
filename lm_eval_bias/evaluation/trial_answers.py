"""What ``doctor`` reads of a task: its file, its documents, and answers to the first of them without a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lm_eval_bias.core import Facts
from lm_eval_bias.core.benchmark import REQUIRED, options_for
from lm_eval_bias.core.catalog import Entry, entry_of, packaged
from lm_eval_bias.core.errors import BiasError, kind_of
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import Value, values_of
from lm_eval_bias.custom_metrics.score import Answers, Record, Score
from lm_eval_bias.harness import internals
from lm_eval_bias.harness.score_aggregation import in_table
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.models.dial import DialLM

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import Requests
    from lm_eval_bias.harness.task import BiasTask

DOCUMENTS = 120  # of a task that are answered, where its scores don't need more
STRENGTHS = (0.4, -0.4)  # of the bias that is simulated, either way


@contextmanager
def trying(what: str) -> Iterator[None]:
    """Describe an error of a benchmark's own code."""
    try:
        yield
    except BiasError:
        raise
    except Exception as error:
        raise BiasError(f"{what} failed ({kind_of(error)})") from error


class ChoosingLM(ChanceLM):
    """A model that chooses one choice of every document; without a choice it gives empty texts and nan."""

    def __init__(self, choose: Callable[[Facts], str] = lambda doc: "") -> None:
        """Set the function that returns a document's choice."""
        super().__init__()
        self._choose = choose

    def generate_until(self, requests: Requests) -> list[str]:
        """Write the choice."""
        return [self._choose(request.doc) for request in requests]

    def loglikelihood(self, requests: Requests) -> list[tuple[float, bool]]:
        """Give the choice most of the probability."""
        pairs = zip(self.generate_until(requests), requests, strict=True)
        return [
            (-9.0 * (c != r.args[1].strip()) if c else math.nan, False)
            for c, r in pairs
        ]


class TrialAnswers(NamedTuple):
    """A model's answers to a task's documents, with their records and scores.

    Attributes:
        docs: The documents.
        answers: The filtered answers to each.
        records: What is kept of each.
        values: The scores by name, nan if they are undefined.
    """

    docs: Sequence[Facts]
    answers: Sequence[Answers]
    records: Sequence[Record]
    values: Mapping[str, Value]


def answered(task: BiasTask, what: str, model: ChanceLM) -> TrialAnswers:
    """Let a model answer a task's requests."""
    requests = sorted(task.instances, key=attrgetter("doc_id", "idx"))
    with trying(f"{what}: the requests"):
        for request in requests:
            request.resps, request.filtered_resps = [], {}
        # by document, as two that ask the same can have other synthetic answers
        kinds = [
            ((r.doc_id, r.request_type), r) for r in requests for _ in range(r.repeats)
        ]
        for (_, kind), asked in grouped(kinds).items():
            texts = getattr(model, kind)(asked)
            for request, text in zip(asked, texts, strict=True):
                request.resps.append(text)
        task.apply_filters()
        pairs = [(r.doc_id, a) for r in requests for a in r.filtered_resps.values()]
    answers = grouped(pairs)
    docs = [task.eval_docs[place] for place in answers]
    with trying(f"{what}: record()"):
        records = list(map(task.benchmark.record, docs, answers.values()))
    with trying(f"{what}: a score"):
        try:
            values = values_of(task.scores, records)
        except Exception:
            for score in task.scores:
                _check_parts(score, records)
            raise
    return TrialAnswers(docs, list(answers.values()), records, values)


def _check_parts(score: Score, records: Sequence[Record]) -> None:
    """Refuse a document's contribution outside of the score's range."""
    for part in filter(None, map(score.contribution, records)):
        if part < score.low or part > score.high:
            raise BiasError(
                f"{score.name}: a document adds {part:g}, outside of its range of {score.low:g} to {score.high:g}"
            )


@dataclass(frozen=True)
class Trial:
    """A task or group under test, without a model.

    Attributes:
        path: Its YAML.
    """

    path: Path

    @cached_property
    def entry(self) -> Entry:
        """The YAML's catalogue entry."""
        return entry_of(self.path)

    @property
    def runs(self) -> bool:
        """Whether it is a known task that needs no file of the user's."""
        is_task = self.entry.name in packaged() and not self.entry.members
        return is_task and not options_for(self.entry.definition, REQUIRED)

    def build(self) -> BiasTask:
        """Build the task."""
        name = self.entry.name
        manager = internals.task_manager([self.path.parent])
        return manager.load([name])["tasks"][name]

    @cached_property
    def task(self) -> BiasTask:
        """The task with its requests."""
        task = self.build()
        limit = max(DOCUMENTS, self.entry.smallest or 0)
        task.build_all_requests(rank=0, world_size=1, limit=limit)
        return task

    @property
    def main(self) -> list[Score]:
        """The main scores."""
        return in_table(self.task.scores, self.task.benchmark.main)

    def choices(self, doc: Facts) -> Sequence[str]:
        """List a document's choices, from the task or from the document."""
        if self.task.config.doc_to_choice is None:
            return doc.get("choices") or ()
        return self.task.doc_to_choice(doc)

    @cached_property
    def prompts(self) -> list[tuple[str, ...]]:
        """The prompts of each document."""
        parts = [(r.doc_id, a) for r in self.task.instances for a in r.args]
        texts = grouped(pair for pair in parts if isinstance(pair[1], str))
        return list(map(tuple, texts.values()))

    @cached_property
    def random(self) -> TrialAnswers:
        """Random answers."""
        return answered(self.task, "random answers", ChanceLM())

    @cached_property
    def silent(self) -> TrialAnswers:
        """Empty texts, and log-likelihoods that are no numbers."""
        return answered(self.task, "empty answers", ChoosingLM())

    @cached_property
    def synthetic(self) -> list[TrialAnswers]:
        """Answers with a synthetic bias, either way; none if the benchmark has none."""
        models = [DialLM(each, noise=0.0) for each in STRENGTHS]
        has_bias = self.entry.definition.synthetic_bias is not None
        return [answered(self.task, "synthetic answers", m) for m in models if has_bias]
