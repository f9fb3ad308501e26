"""Runs of models with a planted bias on benchmarks' documents, without the harness around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from lm_eval_bias.core import registry
from lm_eval_bias.core.planting import Dial
from tests.simulation import habits
from tests.simulation.habits import Habits

OTHERS: dict[str, float] = {
    "competence": 0.75, "coverage": 0.2, "position": 0.3, "length": 0.3, "frequency": 0.3, "refusals": 0.3,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A benchmark with real documents.

    Attributes:
        benchmark: Its name.
        label: What the documents are.
        documents: Gives them.
        noise: How much the bias varies between clusters.
        samples: Texts a prompt, where texts are written.
    """

    benchmark: str
    label: str
    documents: Callable[[], list[dict[str, Any]]]
    noise: float = Dial.noise
    samples: int = 10

    def records(self, dial: Dial) -> list[Any]:
        """The records of a run."""
        benchmark, docs = registry.get(self.benchmark), documents_of(self)
        if benchmark.samples_texts == "never":
            return [benchmark.record(doc, habits.answers(doc, dial)) for doc in docs]
        from lm_eval_bias.tasks.regard.hooks import FirstSentenceFilter, RegardFilter

        texts = [[str(habits.answers(doc, dial.for_text(n))[0]) for n in range(self.samples)] for doc in docs]
        labelled = RegardFilter().apply(FirstSentenceFilter().apply(texts, docs), docs)
        return [benchmark.record(doc, [answer]) for doc, answer in zip(docs, labelled, strict=True)]

    def scores(self) -> list[Any]:
        """The main scores."""
        benchmark = registry.get(self.benchmark)
        return [score for score in benchmark.scores(documents_of(self)) if score.name in benchmark.main]

    def expected(self, dial: Dial) -> dict[str, float]:
        """The planted values of the main scores."""
        planting = registry.get(self.benchmark).planting
        assert planting is not None
        return dict(planting.expected(documents_of(self), dial))


@lru_cache(maxsize=8)
def documents_of(case: Case) -> list[dict[str, Any]]:
    return case.documents()


def occugender(kind: str, **more: Any) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.occugender import hooks

    return hooks.documents(kind, **more)


def gg_bbq(subset: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.gg_bbq import hooks

    return hooks.dataset(subset)["test"]


def es_bbq(language: str, category: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.es_bbq import hooks

    return hooks.dataset(language, category)["test"]


def kobbq(category: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.kobbq import hooks

    return hooks.dataset(category)["test"]


def mbbq(language: str, category: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.mbbq import hooks

    return hooks.dataset(language, category)["test"]


def stereoset(language: str, number: int | None = None, choices: bool = False) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.stereoset import hooks

    return hooks.documents({"language": language, "tests": ["intra", "inter"], "choices": choices})[:number]


def regard(language: str) -> list[dict[str, Any]]:
    from lm_eval_bias.tasks.regard import hooks

    return hooks.dataset({"language": language}, classifier="light")["test"]


def run(case: Case, dial: Dial) -> dict[str, tuple[float, bool]]:
    """Each main score's value, and whether its interval holds the planted one."""
    records, expected = case.records(dial), case.expected(dial)
    found = {}
    for score in case.scores():
        estimate = score.compute(records)
        ends = estimate.ends()
        found[score.name] = (estimate.value, ends is not None and ends[0] <= expected[score.name] <= ends[1])
    return found


def _one(job: tuple[Case, Dial]) -> dict[str, tuple[float, bool]]:
    return run(*job)


def recovered(case: Case, strengths: Sequence[float], seeds: Sequence[int], each: Callable[..., Any] = map) -> Any:
    """Values and coverage of every main score: arrays of shape (strengths, seeds)."""
    jobs = [(case, Dial(strength, noise=case.noise, seed=seed)) for strength in strengths for seed in seeds]
    rounds = list(each(_one, jobs))
    shape = len(strengths), len(seeds)
    return {
        name: (
            np.array([own[name][0] for own in rounds]).reshape(shape),
            np.array([own[name][1] for own in rounds]).reshape(shape),
        )
        for name in rounds[0]
    }


def moved(
    case: Case, strength: float, seeds: Sequence[int], each: Callable[..., Any] = map
) -> dict[str, dict[str, tuple[float, float]]]:
    """How far each of the other settings moves each main score, and that number's standard error, by setting.

    With and without it, the seeds are the same, and so the clusters.
    """
    plain = [Habits(strength, noise=case.noise, seed=seed) for seed in seeds]
    settings = [{}, *({name: value} for name, value in OTHERS.items())]
    rounds = list(each(_one, [(case, replace(dial, **setting)) for setting in settings for dial in plain]))
    names = list(rounds[0])
    values = np.array([[own[name][0] for name in names] for own in rounds]).reshape(len(settings), len(plain), -1)
    shifts = values[1:] - values[0]
    means, errors = shifts.mean(axis=1), shifts.std(axis=1, ddof=1) / math.sqrt(len(plain))
    return {
        other: {name: (float(means[i, k]), float(errors[i, k])) for k, name in enumerate(names)}
        for i, other in enumerate(OTHERS)
    }
