"""The benchmarks: how a document and a model's answers become a record, and which scores its records have.

A new benchmark is an entry here, a file in ``custom_metrics`` and a folder in ``tasks``; the harness's task class and
``rescore`` read this table alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

from lm_eval_bias.custom_metrics.score import Record, Score
from lm_eval_bias.errors import BiasError


def plain_answer(raw: Any) -> Any:
    """Numbers of a tuple, or a text, as the model gave them.

    >>> plain_answer(["-1.5", "False"]), plain_answer(["0.25", "3"]), plain_answer("Die Frau")
    ((-1.5, False), (0.25, 3), 'Die Frau')
    """
    return tuple(_number(str(part)) for part in raw) if isinstance(raw, list) else str(raw)


def _number(text: str) -> bool | int | float:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else float(text)


@lru_cache
def _module(name: str) -> ModuleType:
    """A module by name; asked for several times a document."""
    return importlib.import_module(name)


@dataclass(frozen=True)
class Command:
    """A command of the command line that serves one benchmark.

    Attributes:
        name: As it is typed.
        help: What it does, in one line.
        module: The module with its ``add_arguments(parser)`` and ``run(arguments)``, imported when it is called.
    """

    name: str
    help: str
    module: str


@dataclass(frozen=True)
class Benchmark:
    """One benchmark's functions, named and imported only when used.

    Attributes:
        name: The ``benchmark`` field of its documents and of its YAMLs' metadata.
        hooks: Module with ``record(doc, results)``, ``key(doc)`` and, where needed, ``questions(doc)``,
            ``provenance(docs)``, ``read_answer(raw)`` and, for ``rescore``, ``rewrite(doc, answers, words)`` or
            ``reclassify(docs, results, classifier)``.
        scores_in: ``module:function`` that gives its scores from its documents.
        options: ``--metadata`` keys that its tasks understand.
        main: The scores that findings rest on: what runs are compared and ranked by.
        detail: The key among them that adds the full breakdown of the scores to a run's own table.
    """

    name: str
    hooks: str
    scores_in: str
    options: tuple[str, ...]
    main: tuple[str, ...]
    detail: str = ""

    def record(self, doc: Mapping[str, Any], results: Sequence[Any]) -> Record:
        """The record of a document and the model's (filtered) answers to its requests."""
        found: Record = _module(self.hooks).record(doc, results)
        return found

    def key(self, doc: Mapping[str, Any]) -> tuple[str, ...]:
        """What makes a document the same item in another run, in another language or under another instruction."""
        found: tuple[str, ...] = _module(self.hooks).key(doc)
        return found

    def questions(self, doc: Mapping[str, Any]) -> list[Any]:
        """The questions of a document to the model, where the benchmark asks some (see ``scoring.questions``)."""
        ask = getattr(_module(self.hooks), "questions", None)
        return list(ask(doc)) if ask is not None else []

    def provenance(self, docs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What a result file says about how the scores of these documents came about, beside their metadata."""
        tell = getattr(_module(self.hooks), "provenance", None)
        return dict(tell(docs)) if tell is not None else {}

    def read_answer(self, raw: Any) -> Any:
        """An answer from a sample log, in which the harness has written every number as text.

        Raises:
            ValueError: It is no answer.
        """
        read = getattr(_module(self.hooks), "read_answer", None)
        return read(raw) if read is not None else plain_answer(raw)

    def detailed(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a task's metadata asks for the full breakdown.

        Raises:
            BiasError: The key holds neither true nor false.
        """
        value = metadata.get(self.detail, False) if self.detail else False
        if not isinstance(value, bool):
            raise BiasError(f"--metadata {self.detail}={value!r}: must be true or false")
        return value

    def scores(self, docs: Sequence[Mapping[str, Any]], detailed: bool = False) -> list[Score]:
        """The scores of a task with these documents, on request with the full breakdown where there is one."""
        module, _, function = self.scores_in.partition(":")
        make: Callable[..., list[Score]] = getattr(_module(module), function)
        return make(docs, detailed=True) if detailed and self.detail else make(docs)
