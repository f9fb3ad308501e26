"""The task class of all our YAMLs: metrics from the score table, standard errors in the harness's own column."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from lm_eval_bias import __version__, _registry, benchmarks
from lm_eval_bias.custom_metrics._score import Estimate, Record, Score
from lm_eval_bias.errors import BiasError
from lm_eval_bias.scoring import generated, texts
from lm_eval_bias.suites import warm_up

logger = logging.getLogger("lm_eval.bias")  # a child of the harness's, for its format


class Scored(float):
    """A document's own contribution to a score, which carries the whole record to the aggregation.

    It is a plain number in sample logs; it survives pickling, so that the harness can gather it from several ranks.
    """

    record: Record

    def __new__(cls, value: float, record: Record) -> Scored:
        """A float with a record."""
        made = super().__new__(cls, value)
        made.record = record
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Scored, (float(self), self.record)


class Documents(list[dict[str, Any]]):
    """The documents of a split: a list with the one attribute that the harness reads of a ``datasets.Dataset``.

    The harness goes through a task's documents several times, and a ``Dataset`` would decode each anew every time.
    """

    @property
    def features(self) -> dict[str, None]:
        """The names of the documents' fields."""
        return dict.fromkeys(self[0] if self else ())


class Notes:
    """Collects why scores are ``nan`` and says it once a reason, when the task's last score is done."""

    def __init__(self, task: str, expected: int) -> None:
        """Notes of the task of that name, which has ``expected`` scores."""
        self._task = task
        self._expected = expected
        self._seen = 0
        self._by_reason: dict[tuple[str, str], list[str]] = {}

    def add(self, score: Score, found: Estimate) -> None:
        """Take note of one score's estimate."""
        self._seen += 1
        if found.reason:
            missing_error = score.has_stderr and math.isnan(found.stderr)
            what = "nan" if math.isnan(found.value) else "no standard error" if missing_error else "beware"
            self._by_reason.setdefault((what, found.reason), []).append(score.name)
        if self._seen == self._expected:
            for (kind, reason), names in self._by_reason.items():
                more = f" and {len(names) - 6} more" if len(names) > 6 else ""
                logger.warning("%s: %s (%s): %s%s", self._task, kind, reason, ", ".join(names[:6]), more)
            self._seen, self._by_reason = 0, {}


class Aggregation:
    """A score's value and standard error over all documents, as two functions for the harness."""

    def __init__(self, score: Score, notes: Notes, listed: dict[str, Any]) -> None:
        """Aggregate ``score``; leave its reasons in ``notes``, its degrees of freedom in the result file's entry."""
        self._score = score
        self._notes = notes
        self._listed = listed
        self._records: list[Record] = []
        self._estimate: Estimate | None = None

    def _compute(self, values: Sequence[Any]) -> Estimate:
        records = [v.record for v in values if isinstance(v, Scored)]
        same = len(records) == len(self._records) and all(map(operator.is_, records, self._records))
        if self._estimate is None or not same:
            self._estimate, self._records = self._score.compute(records), records
        return self._estimate

    def value(self, values: Sequence[Any]) -> float:
        """The score; why it or its standard error is ``nan`` goes to the log."""
        found = self._compute(values)
        self._notes.add(self._score, found)
        self._listed["dof"] = found.dof if math.isfinite(found.dof) else None
        if found.interval is not None:
            self._listed["interval"] = list(found.interval)
        if found.reason:
            self._listed["note"] = found.reason
        return found.value

    def stderr(self, values: Sequence[Any]) -> float:
        """Its standard error."""
        return self._compute(values).stderr


def _repeats(value: Any) -> int:
    """The number of samples per prompt that ``--metadata`` asks for.

    Raises:
        BiasError: It is no positive whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BiasError(f"--metadata repeats={value!r}: must be a whole number of 1 or more")
    return value


def _seed_rank(rank: int) -> None:
    """Let every rank draw other random numbers: the harness seeds all alike, which would tie their samples together."""
    import torch

    if rank:
        torch.manual_seed((torch.initial_seed() + rank * 0x9E3779B97F4A7C15) % 2**63)


class BiasTask(ConfigurableTask):
    """A harness task whose metrics are the scores of the benchmark that its ``metadata`` names."""

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Build the task from its YAML's keys.

        Raises:
            BiasError: The data cannot be had, or ``--metadata`` asks for something that isn't there.
        """
        _registry.register()
        settings = {key: value for key, value in (config or {}).items() if key != "class"}
        settings["metric_list"] = []
        given = settings.get("metadata") or {}
        if "repeats" in given and "repeats" in benchmarks.get(str(given.get("benchmark"))).options:
            settings["repeats"] = _repeats(given["repeats"])  # not of the other tasks of the run
        super().__init__(config=settings, **kwargs)
        metadata = self.config.metadata or {}
        self.benchmark = benchmarks.get(str(metadata.get("benchmark")))
        self.scores = self.benchmark.scores(self.eval_docs, detailed=self.benchmark.detailed(metadata))
        metadata.update(self.benchmark.provenance(self.eval_docs), lm_eval_bias=__version__)
        self._add_metrics()

    def _add_metrics(self) -> None:
        listed = []
        notes = Notes(str(self.config.task), len(self.scores))
        for score in self.scores:
            entry = {"metric": score.name, **{k: v for k, v in score.describe().items() if k != "name"}}
            listed.append(entry)
            for name, function in self._columns(score, Aggregation(score, notes, entry)):
                self._metric_fn_list[name] = None
                self._metric_fn_kwargs[name] = {}
                self._aggregation_list[name] = function
                self._higher_is_better[name] = score.higher_is_better if name == score.name else None
        self.config.metric_list = listed

    @staticmethod
    def _columns(score: Score, aggregation: Aggregation) -> list[tuple[str, Callable[[Sequence[Any]], float]]]:
        """The metrics that a score is: its value, and what the harness shows in its Stderr column."""
        value = (score.name, aggregation.value)
        return [value, (f"{score.name}_stderr", aggregation.stderr)] if score.has_stderr else [value]

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Build the documents from the YAML's ``custom_dataset`` and the metadata."""
        build = self.config.custom_dataset
        if not callable(build):
            raise BiasError(f"{self.config.task}: the YAML names no custom_dataset function")
        made = build(**(self.config.metadata or {}), **(dataset_kwargs or {}))
        self.dataset = {split: Documents(docs) for split, docs in made.items()}

    def doc_to_target(self, doc: Mapping[str, Any], doc_to_target: Any = None) -> Any:
        """The harness's; an empty template is empty text (the harness would compile it for every document)."""
        template = self.config.doc_to_target if doc_to_target is None else doc_to_target
        return "" if template == "" and self.prompt is None else super().doc_to_target(doc, doc_to_target)

    def build_all_requests(self, *, tokenizer_name: str = "", **kwargs: Any) -> None:
        """The harness's, with a key for ``--cache_requests`` that changes with the documents.

        The harness keys that cache by the task's name, so that other ``--metadata`` or ``--samples`` would get the old
        prompts; the tokenizer's name is the part of the key that a task can add to.
        """
        self._refuse_prompts(kwargs.get("apply_chat_template"), kwargs.get("system_instruction"))
        if self.config.repeats > 1:
            _seed_rank(kwargs.get("rank", 0))
        if kwargs.get("cache_requests"):
            content = json.dumps(
                [self.eval_docs, kwargs.get("samples"), __version__], ensure_ascii=False, sort_keys=True
            )
            tokenizer_name += f"-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        super().build_all_requests(tokenizer_name=tokenizer_name, **kwargs)
        self._even_out_kinds(kwargs.get("limit"), kwargs.get("samples"), kwargs.get("world_size", 1))
        warm_up.join(self)

    def _even_out_kinds(self, limit: Any, samples: Any, world_size: int) -> None:
        """Give every rank every kind of question, in the same order.

        The harness waits for all ranks after each kind that a rank has; a rank without one would leave the others
        waiting for ever. What fills the gap belongs to no document of the rank and enters no score.
        """
        if world_size == 1 or not self.config.metadata.get("asks"):
            return
        filled: dict[str, Any] = {}
        for doc_id, doc in self.doc_iterator(limit=limit, samples=samples):
            for number, question in enumerate(self.benchmark.questions(doc)):
                filler = Instance(question.kind, doc, question.arguments, number, (self.config.task, -1 - doc_id, 1))
                filled.setdefault(question.kind, filler)
        own = {instance.request_type for instance in self._instances}
        self._instances += [filler for kind, filler in filled.items() if kind not in own]
        order = list(filled)
        self._instances.sort(key=lambda instance: order.index(instance.request_type))

    def _refuse_prompts(self, chat_template: Any, system: Any) -> None:
        """Refuse what puts text around a question to which nothing belongs but its own sentences."""
        given = {"--apply_chat_template": chat_template, "--system_instruction": system}
        given["--num_fewshot"] = self.config.num_fewshot
        used = [flag for flag, value in given.items() if value]
        if used and self.config.metadata.get("asks"):
            raise BiasError(f"{self.config.task} scores plain sentences: run it without {used[0]}")

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> Any:
        """The document's questions where its benchmark asks some, else the harness's requests."""
        asked = self.benchmark.questions(doc)
        if asked:
            unused = ("apply_chat_template", "chat_template")
            rest = {key: value for key, value in kwargs.items() if key not in unused}
            return [Instance(q.kind, doc, q.arguments, i, **rest) for i, q in enumerate(asked)]
        requests = super().construct_requests(doc, ctx, **kwargs)
        if self.OUTPUT_TYPE == "multiple_choice":
            counted = doc.get("word_probability") == "geometric_mean"
            for request in requests:
                request.request_type = texts.WITH_LENGTH if counted else texts.EXACT
        if self.OUTPUT_TYPE == "generate_until":
            requests.request_type = generated.GENERATED
        return requests

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """One number per score for the log, each with the record that the aggregation needs."""
        if "bypass" in self._metric_fn_list:  # --predict_only
            return {"bypass": 999}  # the harness's own placeholder
        record = self.benchmark.record(doc, results)
        metrics: dict[str, Any] = {}
        for score in self.scores:
            own = score.sample(record)
            value = None if own is None else Scored(own, record)
            metrics[score.name] = value
            if score.has_stderr:
                metrics[f"{score.name}_stderr"] = value
        return metrics
