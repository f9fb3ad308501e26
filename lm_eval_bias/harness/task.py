"""The task class of all our YAMLs: metrics from the score table, standard errors in the harness's own column."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from lm_eval_bias.core import __version__, benchmark, content_hashes, files, registry
from lm_eval_bias.core.benchmark import SAMPLES_BY_DEFAULT, samples_texts
from lm_eval_bias.core.errors import BiasError, fault, kind_of
from lm_eval_bias.core.questions import (
    EXACT,
    GENERATED,
    WITH_LENGTH,
    WITH_LENGTH_IF_KNOWN,
)
from lm_eval_bias.custom_metrics.score import Record, Score
from lm_eval_bias.harness import distributed, internals, registration, run_inputs
from lm_eval_bias.harness.score_aggregation import (
    Aggregation,
    CarriedRecord,
    TaskRecords,
)

UNITS = (
    "percent",
    "proportion",
    "difference",
    "correlation",
    "percent (SE)",
    "count",
    "nats",
)
# A text ends where the model ends it: a stop string can stand within thoughts, and would cut off the answer. GG-BBQ's
# authors allow 1,024 new tokens.
WRITTEN = {"until": [], "max_gen_toks": 1024}
BEGINNING = "answer_beginning"  # in a task's metadata: how the beginning of an answer was asked for


class Documents(list[dict[str, Any]]):
    """The documents of a split: a list with the one attribute that the harness reads of a ``datasets.Dataset``.

    The harness goes through a task's documents several times, and a ``Dataset`` would decode each anew every time.
    """

    @property
    def features(self) -> dict[str, None]:
        """The names of the documents' fields."""
        return dict.fromkeys(self[0] if self else ())


def _by_name(value: Any) -> Any:
    """A value in which functions are replaced by their names: their addresses would differ in every run."""
    if isinstance(value, dict):
        return {key: _by_name(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_by_name(entry) for entry in value]
    return (
        f"{value.__module__}.{value.__qualname__}"
        if inspect.isfunction(value)
        else value
    )


def _lets_begin(chat_template: Callable[..., Any], prefix: str) -> bool:
    """Whether a chat template makes a text that ends with the beginning of an answer."""
    turns = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": prefix},
    ]
    try:
        text = chat_template(turns, add_generation_prompt=False)
    except Exception:  # noqa: BLE001 (templates are other people's programs)
        return False
    return isinstance(text, str) and text.endswith(prefix)


def _faults_of_documents(
    own: benchmark.Benchmark, docs: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """What documents lack, one line each."""
    for place, doc in enumerate(docs):
        if doc.get("benchmark") != own.name:
            found = repr(doc["benchmark"]) if "benchmark" in doc else "missing"
            yield f"document {place}: its field 'benchmark' is {found}: it must be {own.name!r}, as in the YAML"
        try:
            own.key(doc)
        except Exception as error:  # other people's code can fail in any way
            field = (
                f"the field {error} is missing"
                if isinstance(error, KeyError)
                else kind_of(error)
            )
            yield f"document {place}: it can't be named: {field} (Benchmark.key)"


def _faults_of_scores(scores: Sequence[Score]) -> Iterator[str]:
    """What scores state wrongly or not at all, one line each."""
    names = [score.name for score in scores]
    for score in scores:
        neutral = score.neutral
        wrong = {
            "its name holds a comma, which the harness's files divide names by": ","
            in score.name,
            "another score of the task has this name, too": names.count(score.name) > 1,
            f"its unit is {score.unit!r}: it must be one of {', '.join(UNITS)}": score.unit
            not in UNITS,
            f"its range is {score.low:g} to {score.high:g}": not score.low
            <= score.high,
            f"its neutral value {neutral} is outside of its range {score.low:g} to {score.high:g}": (
                neutral is not None and not score.low <= neutral <= score.high
            ),
        }
        yield from (
            f"{score.name or 'a score without a name'}: {text}"
            for text, is_so in wrong.items()
            if is_so
        )


class BiasTask(ConfigurableTask):
    """A harness task whose metrics are the scores of the benchmark that its ``metadata`` names."""

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Build the task from its YAML's keys.

        Raises:
            BiasError: The data cannot be had, ``--metadata`` asks for something that isn't there, or the YAML asks for
                metrics of its own or several filters.
        """
        registration.register()
        settings = {
            key: value for key, value in (config or {}).items() if key != "class"
        }
        metadata = settings.get("metadata") or {}
        if settings.get("metric_list"):
            raise BiasError(
                f"{settings.get('task')}: its YAML has a metric_list, but its metrics are the scores of "
                f"{metadata.get('benchmark')}: leave out metric_list"
            )
        filters = settings.get("filter_list")
        if isinstance(filters, list) and len(filters) > 1:
            raise BiasError(
                f"{settings.get('task')}: its YAML's filter_list names {len(filters)} filters, but a score has one "
                "value and one interval: keep one filter, and write a separate task for each of the others"
            )
        settings["metric_list"] = []
        if settings.get("output_type") == "generate_until":
            given = settings.get("generation_kwargs") or {}
            # the given ones first and in their order: it is in the seeds of sampled texts
            settings["generation_kwargs"] = {**given, **WRITTEN, **given}
        repeats = benchmark.repeats(
            registry.get(str(metadata.get("benchmark"))), metadata
        )
        settings |= (
            {} if repeats is None else {"repeats": repeats}
        )  # not of the other tasks of the run
        self._only_predicts = False
        self._world_size = 1
        self._places: dict[int, int] = {}
        self._failures: set[str] = set()
        with files.recorded() as read:
            super().__init__(config=settings, **kwargs)
        metadata = self.config.metadata or {}
        self.benchmark = registry.get(str(metadata.get("benchmark")))
        metadata["inputs"] = run_inputs.of_task(
            self.benchmark, config or {}, metadata, read
        )
        self.scores = self.benchmark.scores(
            self.eval_docs, detailed=benchmark.detailed(self.benchmark, metadata)
        )
        wrong = itertools.chain(
            _faults_of_documents(self.benchmark, self.eval_docs),
            _faults_of_scores(self.scores),
        )
        if first := next(wrong, ""):
            raise BiasError(f"{self.config.task}: {first}")
        metadata.update(
            self.benchmark.provenance(self.eval_docs), lm_eval_bias=__version__
        )
        metadata["distribution"] = registry.distribution(self.benchmark.name)
        self._add_metrics()

    def _add_metrics(self) -> None:
        records = TaskRecords()
        self._aggregations: dict[str, Callable[[Sequence[Any]], float]] = {}
        self._directions: dict[str, bool | None] = {}
        self.config.metric_list = []
        for score in self.scores:
            entry = {
                "metric": score.name,
                **{k: v for k, v in score.describe().items() if k != "name"},
            }
            self.config.metric_list.append(entry)
            aggregation = Aggregation(score, records, str(self.config.task), entry)
            self._aggregations[score.name] = aggregation.value
            self._directions[score.name] = score.higher_is_better
            if score.has_stderr:  # what the harness shows in its Stderr column
                self._aggregations[f"{score.name}_stderr"] = aggregation.stderr
                self._directions[f"{score.name}_stderr"] = None

    def override_metric(self, metric_name: str) -> None:
        """The harness's, with which ``--predict_only`` takes the place of all metrics."""
        super().override_metric(metric_name)
        self._only_predicts = True

    def aggregation(self) -> dict[str, Any]:
        """Functions from all values of a metric to its number: a score's, and its standard error's."""
        functions: dict[str, Any] = (
            super().aggregation() if self._only_predicts else self._aggregations
        )
        return functions

    def higher_is_better(self) -> dict[str, Any]:
        """Which metrics have a better end; ``None`` for those that have none."""
        directions: dict[str, Any] = (
            super().higher_is_better() if self._only_predicts else self._directions
        )
        return directions

    def download(
        self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Build the documents from the YAML's ``custom_dataset`` and the metadata."""
        build = self.config.custom_dataset
        if not callable(build):
            raise BiasError(
                f"{self.config.task}: the YAML names no custom_dataset function"
            )
        splits = build(**(self.config.metadata or {}), **(dataset_kwargs or {}))
        self.dataset = {split: Documents(docs) for split, docs in splits.items()}
        fields = self.dataset.get(str(self.config.test_split), Documents()).features
        for key in ("doc_to_text", "doc_to_choice"):
            field = getattr(self.config, key)
            if (
                isinstance(field, str)
                and field.isidentifier()
                and fields
                and field not in fields
            ):
                text = f"its YAML's {key} names the field {field!r}, which document 0 doesn't have"
                raise BiasError(f"{self.config.task}: {text}")

    def doc_to_target(self, doc: Mapping[str, Any], doc_to_target: Any = None) -> Any:
        """The harness's; an empty template is empty text (the harness would compile it for every document)."""
        template = self.config.doc_to_target if doc_to_target is None else doc_to_target
        return (
            ""
            if template == "" and self.prompt is None
            else super().doc_to_target(doc, doc_to_target)
        )

    def build_all_requests(self, *, tokenizer_name: str = "", **kwargs: Any) -> None:
        """The harness's, with a key for ``--cache_requests`` that changes with the documents.

        The harness keys that cache by the task's name, so that other ``--metadata`` or ``--samples`` would get the old
        prompts; the tokenizer's name is the part of the key that a task can add to.
        """
        if self.config.num_fewshot:
            raise BiasError(
                f"{self.config.task} has no examples in its prompts: run it without --num_fewshot"
            )
        flags = {
            f"--{name}": kwargs.get(name)
            for name in ("apply_chat_template", "system_instruction")
        }
        misplaced = [flag for flag, value in flags.items() if value]
        if misplaced and self.config.metadata.get(
            "asks"
        ):  # nothing belongs to its questions but their own sentences
            raise BiasError(
                f"{self.config.task} scores plain sentences: run it without {misplaced[0]}"
            )
        options, may_sample = (
            self.config.generation_kwargs,
            samples_texts(self.benchmark) == SAMPLES_BY_DEFAULT,
        )
        if (
            self.OUTPUT_TYPE == "generate_until"
            and may_sample
            and internals.is_greedy(options)
        ):
            options |= {"do_sample": False, "temperature": 0.0}
            self.config.repeats = 1  # the likeliest text will do
        self._choose_beginning(
            kwargs.get("chat_template") if kwargs.get("apply_chat_template") else None
        )
        self._record_inputs(
            kwargs.get("limit"),
            kwargs.get("samples"),
            bool(kwargs.get("apply_chat_template")),
        )
        if kwargs.get("cache_requests"):
            beginning = self.config.metadata.get(BEGINNING)
            content = json.dumps(
                [
                    self.eval_docs,
                    kwargs.get("samples"),
                    __version__,
                    *([beginning] if beginning else []),
                ],
                ensure_ascii=False,
                sort_keys=True,
            )
            tokenizer_name += f"-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        self._world_size = kwargs.get("world_size", 1)
        self._places = (
            {id(doc): i for i, doc in enumerate(self.eval_docs)}
            if self._world_size > 1
            else {}
        )
        order = (
            self._kinds_of_ranks(kwargs.get("limit"), kwargs.get("samples"))
            if self._world_size > 1
            else []
        )
        super().build_all_requests(tokenizer_name=tokenizer_name, **kwargs)
        if order:
            self._instances.sort(
                key=lambda instance: order.index(instance.request_type)
            )

    def _choose_beginning(self, chat_template: Callable[..., Any] | None) -> None:
        """Choose how to ask for texts with a given beginning (``gen_prefix``), and record it.

        In a conversation the sentence is the beginning of the assistant's turn; where the template changes it, or a
        server gets messages and isn't told to go on with the last one (``continue_final_message``), the prompt says it.
        """
        doc = next(iter(self.eval_docs), None)
        prefix = (
            self.doc_to_prefix(doc)
            if doc and self.OUTPUT_TYPE == "generate_until"
            else None
        )
        if not doc or not prefix:
            return
        way = "in the prompt"
        if chat_template is not None:
            continued = self.config.generation_kwargs.get("continue_final_message")
            asked = (
                self.benchmark.asking(doc).begins_by_instruction is not None
                and not continued
            )
            way = (
                "by instruction"
                if asked and not _lets_begin(chat_template, prefix)
                else "in the answer"
            )
        self.config.metadata[BEGINNING] = way

    def fewshot_context(self, doc: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The harness's; where an answer can't be begun, its document asks for the beginning."""
        if self.config.metadata.get(BEGINNING) == "by instruction":
            doc = dict(self.benchmark.asking(doc).begins_by_instruction or doc)
            kwargs["gen_prefix"] = None
        return super().fewshot_context(doc, *args, **kwargs)

    def _record_inputs(self, limit: Any, samples: Any, chat_template: bool) -> None:
        """Record which documents are run, what is asked of them, and what is put around that."""
        docs, inputs = self.eval_docs, self.config.metadata["inputs"]
        scored = (
            sorted(set(samples))
            if samples
            else range(min(int(limit or len(docs)), len(docs)))
        )
        asked = (
            content_hashes.of_document(docs[place], self._asked(docs[place]))
            for place in scored
        )
        for name in ("documents", "scored"):
            inputs.pop(name, None)
        inputs["scored" if len(scored) < len(docs) else "documents"] = (
            content_hashes.of_all(asked)
        )
        if chat_template:
            inputs["chat_template"] = True

    def _asked(self, doc: dict[str, Any]) -> list[Any]:
        """What is asked of a document, but for the arguments of a generation, which the result file has anyway."""
        requests = self.construct_requests(doc, self.doc_to_text(doc))
        texts = slice(1) if self.OUTPUT_TYPE == "generate_until" else slice(None)
        arguments = [
            list(one.arguments[texts])
            for one in (requests if isinstance(requests, list) else [requests])
        ]
        return [self.config.description, *arguments]

    def apply_filters(self) -> None:
        """The harness's; texts of all ranks together, since a classifier should be run once and see what one would.

        The harness evens out the ranks by asking the last request again; those answers are one too many.
        """
        for instance in self._instances:
            del instance.resps[instance.repeats :]
        if self._world_size > 1 and self.OUTPUT_TYPE == "generate_until":
            distributed.filter_together(self._instances, self._world_size, self._filter)
        else:
            super().apply_filters()

    def _filter(self, instances: list[Instance]) -> None:
        for ensemble in self._filters:
            ensemble.apply(instances)

    def _kinds_of_ranks(self, limit: Any, samples: Any) -> list[str]:
        """List the kinds of questions, in the order in which every rank is to ask them.

        The harness waits for all ranks after each kind that a rank has, and has each say something about a document.

        Raises:
            BiasError: A rank without documents, or without one of the kinds.
        """
        docs = [doc for _, doc in self.doc_iterator(limit=limit, samples=samples)]
        by_document = [
            [question.kind for question in self.benchmark.asking(doc).questions]
            for doc in docs
        ]
        kinds = list(dict.fromkeys(itertools.chain.from_iterable(by_document)))
        for rank in range(self._world_size):
            own = by_document[rank :: self._world_size]
            if not own or set(kinds) - set(itertools.chain.from_iterable(own)):
                text = f"{len(docs)} documents are too few for {self._world_size} processes"
                raise BiasError(
                    f"{self.config.task}: {text}: use fewer processes or a larger --limit"
                )
        return kinds

    def dump_config(self) -> dict[str, Any]:
        """The harness's, with functions by name."""
        dumped: dict[str, Any] = super().dump_config()
        values = {key: getattr(self.config, key, None) for key in dumped}
        functions = {
            key: value for key, value in values.items() if inspect.isfunction(value)
        }
        content: dict[str, Any] = _by_name({**dumped, **functions})
        return content

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> Any:
        """The document's questions where its benchmark asks some, else the harness's requests."""
        asking = self.benchmark.asking(doc)
        if asking.questions:
            unused = ("apply_chat_template", "chat_template")
            options = {key: value for key, value in kwargs.items() if key not in unused}
            return [
                Instance(q.kind, doc, q.arguments, i, **options)
                for i, q in enumerate(asking.questions)
            ]
        requests = super().construct_requests(doc, ctx, **kwargs)
        if self.OUTPUT_TYPE == "multiple_choice":
            kind = WITH_LENGTH if asking.counts_tokens else EXACT
            kind = WITH_LENGTH_IF_KNOWN if asking.counts_tokens is None else kind
            for request in requests:
                request.request_type = kind
        if self.OUTPUT_TYPE == "generate_until":
            requests.request_type = GENERATED
        return requests

    def process_results(
        self, doc: Mapping[str, Any], results: Sequence[Any]
    ) -> dict[str, Any]:
        """Return each score's contribution for the log, and with one metric the record that the aggregation needs."""
        if self._only_predicts:
            return {"bypass": 999}  # the harness's own placeholder
        metrics: dict[str, Any] = dict.fromkeys(self._aggregations)
        carrier = self.scores[0].name  # which the harness aggregates first
        place = self._places.get(id(doc), 0)
        try:
            record = self.benchmark.record(doc, results)
        except Exception as error:  # other people's code can fail in any way; the run's answers must not be lost
            metrics[carrier] = CarriedRecord(
                None, {}, place, self._failed(doc, "record", error)
            )
            return metrics
        metrics |= {
            score.name: self._contribution(score, record, doc) for score in self.scores
        }
        metrics[carrier] = CarriedRecord(metrics[carrier], record, place)
        return metrics

    def _contribution(
        self, score: Score, record: Record, doc: Mapping[str, Any]
    ) -> float | None:
        """Return a document's part in a score, for the log."""
        try:
            return score.contribution(record)
        except Exception as error:  # other people's code can fail in any way
            self._failed(doc, score.name, error)
            return None

    def _failed(self, doc: Mapping[str, Any], what: str, error: Exception) -> str:
        """Note what failed on a document, once for each thing that fails."""
        text = f"document {', '.join(self.benchmark.key(doc))}: {what} failed ({kind_of(error)})"
        if what not in self._failures:
            self._failures.add(what)
            fault(f"{self.config.task}: {text}")
        return text
