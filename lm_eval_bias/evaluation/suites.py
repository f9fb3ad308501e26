"""The suites as they stand in their YAML files beside this module."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from lm_eval_bias import catalog, registry
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.evaluation.sampling import RULES

NAMES = ("quick", "standard", "full")


@dataclass(frozen=True)
class Part:
    """One task of a suite.

    Attributes:
        task: Task name.
        rule: Name of the function of :mod:`lm_eval_bias.evaluation.sampling` that chooses its items; empty for all.
        number: The rule's size.
        documents: How many items that are, of the released data.
        requests: How many requests they make.
    """

    task: str
    rule: str
    number: int
    documents: int
    requests: int


@dataclass(frozen=True)
class Suite:
    """A named set of tasks.

    Attributes:
        name: For ``--suite``.
        version: Goes up when other items are chosen.
        purpose: What it is for, in one line.
        leaves_out: Which tasks it does without, and why.
        seed: Of the choice of items.
        parts: By task.
    """

    name: str
    version: int
    purpose: str
    leaves_out: str
    seed: str
    parts: Mapping[str, Part]

    def choose(self, task: str, docs: Sequence[Mapping[str, Any]]) -> list[int] | None:
        """The indices of a task's items that belong to the suite, in order; ``None`` for all.

        Raises:
            BiasError: Documents without any that the rule could choose.
        """
        part = self.parts[task]
        if not part.rule:
            return None
        chosen = RULES[part.rule](docs, self.seed, part.number)
        if not chosen:
            raise BiasError(f"--suite {self.name}: {task} has no items to choose from: its data hold none")
        return chosen

    def label(self, task: str, docs: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> dict[str, Any]:
        """What a result file says about the suite: which one, which part of the items, what was left out.

        Args:
            task: Task name.
            docs: All documents of the task.
            left_out: Tasks of the suite that this run does without.
        """
        chosen = self.choose(task, docs)
        said: dict[str, Any] = {"name": self.name, "version": self.version, "tasks_left_out": list(left_out)}
        if chosen is not None:
            said |= {"documents": len(chosen), "of": len(docs), "rule": self.parts[task].rule, "seed": self.seed}
            said["items_sha256"] = fingerprint([docs[i] for i in chosen])
        return said


def fingerprint(docs: Sequence[Mapping[str, Any]]) -> str:
    """A hash of what documents are named by, in which two runs of the same items agree, also in two languages."""
    names = sorted(registry.get(str(doc["benchmark"])).key(doc) for doc in docs)
    return hashlib.sha256(json.dumps(names, ensure_ascii=False).encode()).hexdigest()[:16]


@cache
def load(name: str) -> Suite:
    """The suite of that name.

    Raises:
        BiasError: There is none.
    """
    if name not in NAMES:
        raise BiasError(f"--suite {name}: there is no such suite.{did_you_mean(name, NAMES)} Known: {', '.join(NAMES)}")
    text = resources.files("lm_eval_bias.evaluation").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    content = yaml.load(text, Loader=catalog.Loader)  # noqa: S506 (a SafeLoader)
    parts = {
        task: Part(task, given.get("rule", ""), given.get("number", 0), given["documents"], given["requests"])
        for task, given in content["tasks"].items()
    }
    return Suite(
        content["name"], content["version"], content["purpose"], content["leaves_out"], content.get("seed", ""), parts
    )


def listing() -> list[dict[str, Any]]:
    """All suites as plain data."""
    return [
        {
            "name": suite.name,
            "version": suite.version,
            "purpose": suite.purpose,
            "leaves_out": suite.leaves_out,
            "documents": sum(part.documents for part in suite.parts.values()),
            "requests": sum(part.requests for part in suite.parts.values()),
            "tasks": {
                task: {"documents": part.documents, "requests": part.requests, "rule": part.rule or None}
                for task, part in suite.parts.items()
            },
        }
        for suite in map(load, NAMES)
    ]
