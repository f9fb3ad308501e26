"""The task class of all our YAMLs: metrics from the score table, standard errors in the harness's own column."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from lm_eval_bias.core import (
    Data,
    Facts,
    __version__,
    answers,
    benchmark,
    catalog,
    content_hashes,
    files,
    registry,
)
from lm_eval_bias.core.benchmark import (
    SAMPLES_BY_DEFAULT,
    STRUCTURED,
    samples_texts,
)
from lm_eval_bias.core.errors import BiasError, fault, kind_of
from lm_eval_bias.core.questions import (
    EXACT,
    GENERATED,
    KINDS,
    WITH_LENGTH,
    WITH_LENGTH_IF_KNOWN,
)
from lm_eval_bias.custom_metrics.score import Answers, Record, Score, finite
from lm_eval_bias.harness import (
    distributed,
    internals,
    registration,
    run_inputs,
    servers,
    tokenization_boundary,
)
from lm_eval_bias.harness.score_aggregation import (
    Aggregation,
    Recorded,
    carrying,
    in_table,
)

# not below ours: as the harness says what it passes over; `run` says it of all tasks at once
logger = logging.getLogger("lm_eval.task")
_FOR_CHATS = ("apply_chat_template", "system_instruction")
UNITS = (
    "percent",
    "proportion",
    "difference",
    "correlation",
    "percent (SE)",
    "ratio",
    "count",
    "nats",
)
# A text ends where the model ends it: a stop string can stand within thoughts, and would cut off the answer. 128 tokens
# kept every answer of a model that doesn't think (docs/chat_models.md); one that thinks needs more.
WRITTEN = {"until": [], "max_gen_toks": 128}
Doc = Data
ChatTemplate = Callable[..., str]
# keys of the harness's YAMLs that nothing here reads
_NOT_USED = ("metric_list", "process_results", "dataset_path", "dataset_name")
BEGINNING = "answer_beginning"  # in a task's metadata: how the beginning of an answer was asked for


class Documents(list[Doc]):
    """The documents of a split: a list with the attribute ``features``, which the harness reads.

    The harness goes through a task's documents several times, and a ``Dataset`` would decode each anew every time.
    """

    @property
    def features(self) -> dict[str, None]:
        """The names of the documents' fields."""
        return dict.fromkeys(self[0] if self else ())


def _by_name(value: object) -> object:
    """Replace functions in a value by their names, since their addresses differ between runs."""
    if isinstance(value, dict):
        return {key: _by_name(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_by_name(entry) for entry in value]
    if inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return value


def _whole_metadata(settings: Facts) -> Data:
    """Merge a task's metadata with those of its included YAMLs, which the harness would drop.

    Raises:
        BiasError: They name no benchmark.
    """
    metadata = settings.get("metadata") or {}
    source = Path(str(metadata.get("config_source")))
    if source.is_file():
        metadata = {**(catalog.read_yaml(source).get("metadata") or {}), **metadata}
    if not metadata.get("benchmark"):
        raise BiasError(
            f"{settings.get('task')}: its YAML's metadata name no benchmark: write metadata: {{benchmark: NAME}}, or "
            "include one of this package's YAMLs"
        )
    return metadata


def _lets_begin(chat_template: ChatTemplate, prefix: str) -> bool:
    """Return whether a chat template can end with the beginning of an answer."""
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
    family: benchmark.Benchmark, docs: Sequence[Doc]
) -> Iterator[str]:
    """Yield the faults of documents, one line each."""
    for place, doc in enumerate(docs):
        if doc.get("benchmark") != family.name:
            given = repr(doc["benchmark"]) if "benchmark" in doc else "missing"
            yield f"document {place}: its field 'benchmark' is {given}: it must be {family.name!r}, as in the YAML"
        try:
            family.key(doc)
        except KeyError as error:
            yield f"document {place}: it can't be named: the field {error} is missing (Benchmark.key)"
        except Exception as error:  # other people's code can fail in any way
            yield f"document {place}: it can't be named: {kind_of(error)} (Benchmark.key)"


def _faults_of_scores(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the faults of scores, one line each."""
    names = [score.name for score in scores]
    for score in scores:
        place = score.name or "a score without a name"
        if "," in score.name:
            yield f"{place}: its name holds a comma, which the harness's files divide names by"
        if names.count(score.name) > 1:
            yield f"{place}: another score of the task has this name, too"
        if score.unit not in UNITS:
            yield f"{place}: its unit is {score.unit!r}: it must be one of {', '.join(UNITS)}"
        for fault_of_range in _faults_of_range(score):
            yield f"{place}: {fault_of_range}"


def _faults_of_range(score: Score) -> Iterator[str]:
    """Yield contradictions between a score's range and its other fields."""
    low, high = score.low, score.high
    span = f"{low:g} to {high:g}"
    neutral = low if score.neutral is None else score.neutral
    if not low <= high:
        yield f"its range is {span}"
    stated = {"neutral value": neutral, "chance": score.chance, "floor": score.floor}
    for name, value in stated.items():
        if value is not None and not low <= value <= high:
            yield f"its {name} {value} is outside of its range {span}"
    if score.unit == "proportion" and (low < 0 or high > 1):
        yield f"its range is {span}, but a proportion goes from 0 to 1: divide, or take another unit"
    if score.unit == "percent" and high <= 1:
        yield f"its range is {span}, but its unit is percent: multiply by 100, or take proportion"
    if score.name == "unanswered" and (low, high) != (0, 1):
        yield f"its range is {span}, but unanswered is a share from 0 to 1 (unit proportion)"
    if score.favours and score.neutral is None:
        yield "it has favours, but no neutral value that they could be above and below of"
    if score.higher_is_better is not None and low < neutral < high:
        yield (
            f"its higher_is_better is {score.higher_is_better}, but its neutral value {neutral} lies within its "
            f"range {span}: leave higher_is_better out"
        )
    worst = low if score.higher_is_better else high
    if score.higher_is_better is not None and score.neutral == worst:
        yield f"its best value is {worst:g}, but its higher_is_better is {score.higher_is_better}"


class BiasTask(ConfigurableTask):
    """A harness task whose metrics are the scores of the benchmark that its ``metadata`` names."""

    def __init__(self, config: Data | None = None, **kwargs: object) -> None:
        """Build the task from its YAML's keys.

        Raises:
            BiasError: The data can't be had, ``--metadata`` asks for something that is missing, or the YAML has
                keys that nothing reads, or several filters.
        """
        registration.register()
        settings = {
            key: value for key, value in (config or {}).items() if key != "class"
        }
        metadata = settings["metadata"] = _whole_metadata(settings)
        for key in _NOT_USED:
            if settings.get(key):
                raise BiasError(
                    f"{settings.get('task')}: its YAML has a {key}, but its documents and metrics are those of "
                    f"{metadata.get('benchmark')}: leave out {key}"
                )
        filters = settings.get("filter_list")
        if isinstance(filters, list) and len(filters) > 1:
            raise BiasError(
                f"{settings.get('task')}: its YAML's filter_list names {len(filters)} filters, but a score has one "
                "value and one interval: keep one filter, and write a separate task for each of the others"
            )
        if settings.setdefault("num_fewshot", 0):
            raise BiasError(
                f"{settings.get('task')}: its YAML's num_fewshot is {settings['num_fewshot']}, but its prompts have no "
                "examples: write num_fewshot: 0"
            )
        settings["metric_list"] = []
        if settings.get("output_type") == "generate_until":
            given = settings.get("generation_kwargs") or {}
            # the given ones first and in their order, on which the seeds of sampled texts depend
            settings["generation_kwargs"] = {**given, **WRITTEN, **given}
        self.benchmark = registry.get(str(metadata.get("benchmark")))
        repeats = benchmark.repeats(self.benchmark, metadata)
        if repeats is not None:  # given for this task, not for others of the run
            settings["repeats"] = repeats
        self._only_predicts = False
        self._world_size = 1
        self._places: dict[int, int] = {}
        self._failures: set[str] = set()
        self._structured: object = False
        with files.recorded() as read:
            try:
                super().__init__(config=settings, **kwargs)
            except IndexError as error:
                raise BiasError(self._why_first_fails(error)) from error
        if self._structured:
            self._ask_for_form()
        metadata = self.config.metadata
        metadata["inputs"] = run_inputs.of_task(
            self.benchmark, config or {}, metadata, read
        )
        self.scores = self.benchmark.scores(self.eval_docs)
        faults = itertools.chain(
            _faults_of_documents(self.benchmark, self.eval_docs),
            _faults_of_scores(self.scores),
        )
        first = next(faults, "")
        if first:
            raise BiasError(f"{self.config.task}: {first}")
        metadata.update(
            self.benchmark.provenance(self.eval_docs), lm_eval_bias=__version__
        )
        metadata["distribution"] = registry.distribution(self.benchmark)
        self._add_metrics()

    def _ask_for_form(self) -> None:
        """Request structured answers: JSON with one of the prompt's letters.

        Raises:
            BiasError: The option isn't true, or answers to this task are no letters.
        """
        if self._structured is not True:
            raise BiasError(
                f"--metadata {STRUCTURED}={self._structured!r}: must be true or false"
            )
        readers = [part() for own in self._filters for part in own.filters]
        letters = [
            one.reader(self.eval_docs[0]).letters
            for one in readers
            if hasattr(one, "reader")
        ]
        if self.OUTPUT_TYPE != "generate_until" or not any(letters):
            raise BiasError(
                f"--metadata {STRUCTURED}: {self.config.task} isn't answered by writing a letter: leave it out, or run "
                "it separately"
            )
        answer = {"type": "string", "enum": list(letters[0])}
        schema = {
            "type": "object",
            "properties": {"answer": answer},
            "required": ["answer"],
            "additionalProperties": False,
        }
        form = {"name": "answer", "strict": True, "schema": schema}
        self.config.generation_kwargs[servers.FORM] = {
            "type": "json_schema",
            "json_schema": form,
        }

    def _why_first_fails(self, error: IndexError) -> str:
        """Explain an error in the first document, which the harness uses when it builds a task."""
        if not hasattr(self, "_splits"):
            return f"{self.config.task}: custom_dataset failed ({kind_of(error)})"
        docs = self.eval_docs
        if not docs:
            return f"{self.config.task}: its data set is empty"
        choices = self.doc_to_choice(docs[0])
        if "" in choices:
            return f"{self.config.task}: document 0 has an empty choice"
        number = self.doc_to_target(docs[0])
        return (
            f"{self.config.task}: its YAML's doc_to_target is choice {number} of document 0, "
            f"which has {len(choices)}: they count from 0"
        )

    def _add_metrics(self) -> None:
        self.config.metric_list = []
        entries = {}
        for score in self.scores:
            entry = entries[score.name] = {"metric": score.name, **score.describe()}
            del entry["name"]
            self.config.metric_list.append(entry)
        table = in_table(self.scores, self.benchmark.main)
        self.total = Aggregation(self.config.task, self.scores, table, entries)
        if not registry.is_own(self.benchmark):
            self.total.documents = len(self.eval_docs)
        self._table = table
        self._aggregations: Data = self.total.functions
        self._directions: Data = self.total.directions

    def override_metric(self, metric_name: str) -> None:
        """Override: replace all scores by the metric of ``--predict_only``."""
        super().override_metric(metric_name)
        self._only_predicts = True
        self._aggregations = super().aggregation()
        self._directions = super().higher_is_better()

    def aggregation(self) -> Data:
        """Return the aggregation functions of scores and standard errors."""
        return self._aggregations

    def higher_is_better(self) -> Data:
        """Return whether more of a metric is better; ``None`` for metrics without a better end."""
        return self._directions

    def download(self, dataset_kwargs: Data | None = None, **kwargs: object) -> None:
        """Build the documents from the YAML's ``custom_dataset`` and the metadata."""
        build = self.config.custom_dataset
        if not callable(build):
            raise BiasError(
                f"{self.config.task}: the YAML names no custom_dataset function"
            )
        metadata = {**self.config.metadata, **(dataset_kwargs or {})}
        self._structured = metadata.pop(STRUCTURED, False)
        splits = build(**metadata)
        self._splits = {split: Documents(docs) for split, docs in splits.items()}
        fields = self._splits.get(self.config.test_split, Documents()).features
        for key in ("doc_to_text", "doc_to_choice"):
            field = getattr(self.config, key)
            is_name = isinstance(field, str) and field.isidentifier()
            if is_name and fields and field not in fields:
                raise BiasError(
                    f"{self.config.task}: "
                    f"its YAML's {key} names the field {field!r}, which document 0 doesn't have"
                )

    @functools.cached_property
    def dataset(self) -> datasets.DatasetDict:
        """The documents by split as a ``DatasetDict``, made on first use."""
        made = {
            split: datasets.Dataset.from_list(docs)
            for split, docs in self._splits.items()
        }
        return datasets.DatasetDict(made)

    def test_docs(self) -> Sequence[Doc]:
        """Override: return the documents as a list."""
        docs = self._splits[self.config.test_split]
        process = self.config.process_docs
        return docs if process is None else process(docs)

    def doc_to_target(self, doc: Doc, doc_to_target: object = None) -> object:
        """Override: return an empty template unchanged, which the harness would compile for every document."""
        template = self.config.doc_to_target if doc_to_target is None else doc_to_target
        if template == "" and self.prompt is None:
            return ""
        return super().doc_to_target(doc, doc_to_target)

    def build_all_requests(self, *, tokenizer_name: str = "", **kwargs: Any) -> None:
        """Override: ignore chat flags where plain sentences are scored, and record the inputs.

        The key of ``--cache_requests`` has to change with the documents.

        The harness keys that cache by the task's name, so that other ``--metadata`` or ``--samples`` would get the old
        prompts. The tokenizer's name is the part of the key that a task can add to.
        """
        passed_over = []
        if set(self.asks) & set(KINDS):
            # a question consists of its own sentences alone
            passed_over = [flag for flag in _FOR_CHATS if kwargs.get(flag)]
            kwargs |= dict.fromkeys(passed_over)
        for flag in passed_over:
            logger.info(
                "%s scores plain sentences, to which --%s doesn't apply",
                self.config.task,
                flag,
            )
        limit = kwargs.get("limit")
        samples = kwargs.get("samples")
        uses_template = bool(kwargs.get("apply_chat_template"))
        options = self.config.generation_kwargs
        may_sample = samples_texts(self.benchmark) == SAMPLES_BY_DEFAULT
        writes = self.OUTPUT_TYPE == "generate_until"
        if writes and may_sample and internals.is_greedy(options):
            options |= {"do_sample": False, "temperature": 0.0}
            self.config.repeats = 1  # the likeliest text will do
        self._choose_beginning(kwargs.get("chat_template") if uses_template else None)
        self._record_inputs(limit, samples, uses_template)
        if passed_over:
            self.config.metadata["inputs"]["passed_over"] = passed_over
        if kwargs.get("cache_requests"):
            beginning = self.config.metadata.get(BEGINNING)
            content = json.dumps(
                [self.eval_docs, samples, __version__, beginning],
                ensure_ascii=False,
                sort_keys=True,
            )
            tokenizer_name += f"-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        self._world_size = kwargs.get("world_size", 1)
        self.total.records = []
        order = []
        if self._world_size > 1:
            self._places = {id(doc): i for i, doc in enumerate(self.eval_docs)}
            order = self._kinds_of_ranks(limit, samples)
        super().build_all_requests(tokenizer_name=tokenizer_name, **kwargs)
        if uses_template and not passed_over:
            self._check_prompt(kwargs.get("system_instruction"))
        if order:
            self._instances.sort(
                key=lambda instance: order.index(instance.request_type)
            )

    def _check_prompt(self, instruction: str | None) -> None:
        """Refuse a chat template that drops the system instruction or the task's description."""
        for request in self._instances[:1]:
            description = self.resolve_field(request.doc, self.config.description)
            parts = filter(None, [instruction, description])
            tokenization_boundary.check_prompt(request.arguments[0], parts)

    @property
    def asks(self) -> Sequence[str]:
        """The kinds of its requests: kinds of questions, ``loglikelihood`` or ``generate_until``."""
        writes = self.OUTPUT_TYPE == "generate_until"
        kind = "generate_until" if writes else "loglikelihood"
        return self.config.metadata.get("asks") or [kind]

    def _choose_beginning(self, chat_template: ChatTemplate | None) -> None:
        """Choose how to request texts with a given beginning (``gen_prefix``), and record the choice.

        In a conversation the beginning is put into the assistant's turn. Where the template changes it, or a server
        gets messages and isn't told to continue the last one (``continue_final_message``), the prompt asks for it.
        """
        if not self.eval_docs or self.OUTPUT_TYPE != "generate_until":
            return
        doc = self.eval_docs[0]
        prefix = self.doc_to_prefix(doc)
        if not prefix:
            return
        place = "in the prompt"
        if chat_template is not None:
            place = "in the answer"
            continued = self.config.generation_kwargs.get("continue_final_message")
            instruction = self.benchmark.asking(doc).begins_by_instruction
            can_ask = instruction is not None and not continued
            if can_ask and not _lets_begin(chat_template, prefix):
                place = "by instruction"
        self.config.metadata[BEGINNING] = place

    def fewshot_context(self, doc: Doc, *args: object, **kwargs: object) -> object:
        """Override: where an answer can't be prefilled, ask for its beginning in the prompt."""
        if self.config.metadata.get(BEGINNING) == "by instruction":
            doc = dict(self.benchmark.asking(doc).begins_by_instruction or doc)
            kwargs["gen_prefix"] = None
        return super().fewshot_context(doc, *args, **kwargs)

    def _record_inputs(
        self, limit: float | None, samples: Sequence[int] | None, chat_template: bool
    ) -> None:
        """Record the hashes of documents and prompts, and whether a chat template is used."""
        docs = self.eval_docs
        inputs = self.config.metadata["inputs"]
        scored = docs[: int(limit or len(docs))]
        if samples:
            scored = [docs[place] for place in sorted(set(samples))]
        for name in ("documents", "scored"):
            inputs.pop(name, None)
        name = "scored" if len(scored) < len(docs) else "documents"
        inputs[name] = self._hash(scored)
        asked = map(self._asked, scored)
        inputs["different_prompts"] = len(set(map(json.dumps, asked)))
        if chat_template:
            inputs["chat_template"] = True

    def asked(self, places: Iterable[int]) -> str:
        """Return one SHA-256 of the documents at some indices and their prompts."""
        docs = self.eval_docs
        return self._hash([docs[place] for place in places if place < len(docs)])

    def _hash(self, docs: Sequence[Doc]) -> str:
        asked = map(self._asked, docs)
        return content_hashes.of_all(map(content_hashes.of_document, docs, asked))

    def _asked(self, doc: Doc) -> list[object]:
        """Return the request texts of a document, without generation arguments (these are in the result file)."""
        requests = self.construct_requests(doc, self.doc_to_text(doc))
        if not isinstance(requests, list):
            requests = [requests]
        texts = slice(1) if self.OUTPUT_TYPE == "generate_until" else slice(None)
        arguments = [list(request.arguments[texts]) for request in requests]
        return [self.config.description, *arguments]

    def apply_filters(self) -> None:
        """Override: gather generated texts from all ranks, so that a classifier runs once.

        The harness evens out the ranks by asking the last request again; these surplus answers are dropped.
        """
        for instance in self._instances:
            del instance.resps[instance.repeats :]
        if self.OUTPUT_TYPE == "generate_until":
            distributed.filter_together(self._instances, self._world_size, self._filter)
        else:
            super().apply_filters()
        self._record_cut_prompts()

    def _filter(self, instances: list[Instance]) -> None:
        """Filter texts, and count their finish reasons."""
        for ensemble in self._filters:  # one
            ensemble.apply(instances)
            name = ensemble.name
            pairs = [(each.resps, each.filtered_resps[name]) for each in instances]
            self.config.metadata["texts"] = answers.endings(pairs)

    def _record_cut_prompts(self) -> None:
        """Record the number of truncated prompts over all ranks, and the longest prompt."""
        cut = [each for each in self._instances if hasattr(each, "cut")]
        documents = len({each.doc_id for each in cut})
        longest = max((each.cut for each in cut), default=(0, 0))
        found = distributed.gathered((longest, documents), self._world_size)
        (length, read), _ = max(found)
        if length:
            count = sum(documents for _, documents in found)
            facts = {"documents": count, "longest": length, "read": read}
            self.config.metadata["cut_prompts"] = facts

    def _kinds_of_ranks(
        self, limit: float | None, samples: Sequence[int] | None
    ) -> list[str]:
        """List the kinds of questions in the order that all ranks share.

        The harness waits for all ranks after each kind that a rank has, and needs a document on each.

        Raises:
            BiasError: A rank without documents, or without one of the kinds.
        """
        docs = [doc for _, doc in self.doc_iterator(limit=limit, samples=samples)]
        kinds: dict[str, set[int]] = {}  # with the ranks that have them
        for place, doc in enumerate(docs):
            for question in self.benchmark.asking(doc).questions:
                kinds.setdefault(question.kind, set()).add(place % self._world_size)
        for rank in range(self._world_size):
            has_all = all(rank in ranks for ranks in kinds.values())
            if rank >= len(docs) or not has_all:
                raise BiasError(
                    f"{self.config.task}: "
                    f"{len(docs)} documents are too few for {self._world_size} processes: "
                    "use fewer processes or a larger --limit"
                )
        return list(kinds)

    def dump_config(self) -> Data:
        """Override: dump functions by name."""
        config = self.config.to_dict(keep_callable=True)
        return {key: _by_name(value) for key, value in config.items()}

    def construct_requests(
        self, doc: Doc, ctx: object, **kwargs: object
    ) -> Instance | list[Instance]:
        """Override: make the requests of a document's questions, if its benchmark has any."""
        asking = self.benchmark.asking(doc)
        if asking.questions:
            unused = ("apply_chat_template", "chat_template")
            options = {key: value for key, value in kwargs.items() if key not in unused}
            return [
                Instance(question.kind, doc, question.arguments, i, **options)
                for i, question in enumerate(asking.questions)
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

    def process_results(self, doc: Doc, results: Answers) -> Data:
        """Record a document, and return its contribution to each metric for the log (``None`` without one).

        Between ranks one of them carries the record.
        """
        if self._only_predicts:
            return {"bypass": 999}  # the harness's own placeholder
        metrics = dict.fromkeys(self._aggregations)
        place = self._places.get(id(doc), len(self.total.records))
        try:
            recorded = Recorded(place, self.benchmark.record(doc, results))
        except Exception as error:  # other people's code can fail in any way; the run's answers must not be lost
            recorded = Recorded(place, {}, self._failed(doc, "record", error))
        else:
            for score in self._table:
                metrics[score.name] = self._contribution(score, recorded.record, doc)
        self.total.records.append(recorded)
        if self._world_size > 1:
            first = self._table[0].name
            metrics[first] = carrying(metrics[first], recorded)
        return metrics

    def _contribution(self, score: Score, record: Record, doc: Doc) -> float | None:
        """Compute a document's contribution to a score, for the log."""
        try:
            return finite(score.contribution(record))
        except Exception as error:  # other people's code can fail in any way
            self._failed(doc, score.name, error)
            return None

    def _failed(self, doc: Doc, what: str, error: Exception) -> str:
        """Record a fault on a document, once per kind; return its text."""
        text = f"document {', '.join(self.benchmark.key(doc))}: {what} failed ({kind_of(error)})"
        if what not in self._failures:
            self._failures.add(what)
            fault(f"{self.config.task}: {text}")
        return text
