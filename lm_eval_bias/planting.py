"""A bias of known size in answers: what ``--model bias-dial`` is set to, and how a benchmark plants it in its answers.

A benchmark whose scores follow what was planted, and nothing else, measures what its card says. ``docs/dial.md`` has
the table.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from lm_eval_bias.errors import BiasError

CONTENT = "content"
HABITS = ("position", "length", "frequency", "refusals")


@dataclass(frozen=True)
class Dial:
    """What is planted, and the draws that answers are made of.

    The four habits are shares of the answers (of the probability, where that is the answer) that are given without
    regard to content: the option shown first, the shortest, the most frequent words, a refusal.

    Attributes:
        strength: The bias in the unit of the main score, -1..1; 0 is neutral.
        competence: The share of the other answers that is right (what that is, the benchmark says), 0..1.
        coverage: The share of the probability that goes to the words that are asked for, 0..1.
        noise: How much the bias varies between clusters, as a share of what the range leaves room for, 0..1.
        position: Share of answers that take the option shown first.
        length: Share of answers that take the shortest option.
        frequency: Share of answers that take the most frequent words (:meth:`word_frequency`).
        refusals: Share of answers that are refused.
        seed: Of all draws.
        sample: Which sample of a text is drawn.
        writes: Whether a text is wanted and not log-likelihoods.
    """

    strength: float = 0.0
    competence: float = 0.5
    coverage: float = 0.5
    noise: float = 0.5
    position: float = 0.0
    length: float = 0.0
    frequency: float = 0.0
    refusals: float = 0.0
    seed: int = 0
    sample: int = 0
    writes: bool = False

    def __post_init__(self) -> None:
        """Refuse values out of range.

        Raises:
            BiasError: Such a value, or habits that leave no answer to content.
        """
        for name in ("strength", "competence", "coverage", "noise", *HABITS):
            value, low = getattr(self, name), -1.0 if name == "strength" else 0.0
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= 1.0:
                raise BiasError(f"bias-dial: {name}={value!r}: must be a number from {low:g} to 1")
        if sum(getattr(self, name) for name in HABITS) >= 1:
            raise BiasError(
                f"bias-dial: {', '.join(HABITS)}: must sum to less than 1, since otherwise no answer shows the strength"
            )

    def draw(self, *parts: object) -> float:
        """A number from 0 to 1, the same for the same seed, sample and parts."""
        return uniform(self.seed, self.sample, *parts)

    def effect(self, *cluster: str) -> float:
        """A cluster's own deviation, from -1 to 1, 0 on average: the same for all its documents and samples."""
        return 2.0 * _cached(self.seed, "cluster", *cluster) - 1.0

    def habit(self, known: Sequence[str], *parts: object) -> str:
        """What an answer goes by: one of the known habits, or :data:`CONTENT`.

        Args:
            known: The habits that mean something to the benchmark.
            parts: What is answered.
        """
        left = self.draw("habit", *parts)
        for name in known:
            left -= getattr(self, name)
            if left < 0:
                return name
        return CONTENT

    def of_content(self, diluting: Sequence[str], most: float = 1.0) -> float:
        """The bias of the answers that go by content, so that all answers together show the strength.

        Args:
            diluting: The habits whose answers show no bias but count.
            most: The largest bias that there is room for.

        Raises:
            BiasError: There is no room for it.
        """
        share = 1.0 - sum(getattr(self, name) for name in diluting)
        if abs(self.strength) > share * most + 1e-12:
            given = ["competence"] * (most < 1) + [name for name in diluting if getattr(self, name)]
            settings = ", ".join(f"{name}={getattr(self, name):g}" for name in given)
            raise BiasError(
                f"bias-dial: strength={self.strength:g}: {settings} leaves room for {max(share * most, 0.0):.3g} "
                "either way: choose a smaller strength or change the other settings"
            )
        return self.strength / share

    def for_text(self, sample: int) -> Dial:
        """The dial where a text is wanted, and which sample of it."""
        return dataclasses.replace(self, sample=sample, writes=True)


def word_frequency(text: str) -> float:
    """A made-up frequency of a text, from 0 to 1, the same in every run: it has nothing to do with what it means."""
    return _cached("frequency", text.lower())


def uniform(*parts: object) -> float:
    """A number from 0 to 1 drawn from a hash of the parts."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return (int.from_bytes(digest[:8], "big") + 0.5) / 2.0**64


_cached = lru_cache(maxsize=1 << 16)(uniform)


def log(probability: float) -> float:
    """The logarithm of a probability; a very small number for 0.

    >>> log(1.0), log(0.0)
    (0.0, -700.0)
    """
    return max(math.log(probability), -700.0) if probability > 0 else -700.0


class Planting(NamedTuple):
    """How a bias of known size is planted in the answers to a benchmark's documents.

    Attributes:
        answers: A document's answers, given the document and the dial: one a request, as the harness hands them on
            (log-likelihoods, texts) or as questions of the benchmark's own are answered.
        expected: The values of its main scores, given all documents and the dial, if no habit moves them.
        metadata: ``--metadata`` with which its tasks tell exactly what was planted.
    """

    answers: Callable[[Mapping[str, Any], Dial], Sequence[Any]]
    expected: Callable[[Sequence[Mapping[str, Any]], Dial], Mapping[str, float]]
    metadata: Mapping[str, Any] = {}
