"""A bias of known size in answers: what ``--model bias-dial`` is set to, and how a benchmark puts it into its answers.

A benchmark whose scores follow what was simulated measures what its card says. ``docs/dial.md`` has the table.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lm_eval_bias.core import Facts
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.score import Answers


@dataclass(frozen=True)
class Dial:
    """The parameters of a simulated bias, and its random draws.

    Attributes:
        strength: The bias in the unit of the main score, -1..1; 0 is neutral.
        competence: The share of the other answers that is right (what that is, the benchmark says), 0..1.
        noise: How much the bias varies between clusters, as a share of what the range leaves room for, 0..1.
        refusals: Share of answers that are refused, 0..1.
        seed: Of all draws.
        sample: Which sample of a text is drawn.
        writes: Whether a text is wanted and not log-likelihoods.
    """

    strength: float = 0.0
    competence: float = 0.5
    noise: float = 0.5
    refusals: float = 0.0
    seed: int = 0
    sample: int = 0
    writes: bool = False

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name in ("strength", "competence", "noise", "refusals"):
            low = -1.0 if name == "strength" else 0.0
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not low <= value <= 1.0:
                raise BiasError(
                    f"bias-dial: {name}={value!r}: must be a number from {low:g} to 1"
                )

    def draw(self, *parts: object) -> float:
        """Draw a number from 0 to 1, the same for the same seed, sample and parts."""
        return uniform(self.seed, self.sample, *parts)

    def effect(self, *cluster: str) -> float:
        """Draw a cluster's own deviation, -1 to 1, 0 on average: the same for all its documents and samples."""
        return 2.0 * uniform(self.seed, "cluster", *cluster) - 1.0

    def refuses(self, *parts: object) -> bool:
        """Draw whether the item named by the parts is refused."""
        return self.draw("habit", *parts) < self.refusals

    def among_answers(self, most: float = 1.0) -> float:
        """Give the bias of the answers that aren't refused; a BiasError where it is more than the ``most`` possible."""
        share = 1.0 - self.refusals
        if abs(self.strength) > share * most + 1e-12:
            raise BiasError(
                f"bias-dial: strength={self.strength:g}: competence={self.competence:g} and refusals={self.refusals:g} "
                f"leave room for {max(share * most, 0.0):.3g} either way: choose a smaller strength, or change them"
            )
        return self.strength / share

    def for_text(self, sample: int) -> Dial:
        """Return the dial for one sample of generated texts."""
        return dataclasses.replace(self, sample=sample, writes=True)


def uniform(*parts: object) -> float:
    """Draw a number from 0 to 1 by a hash of the parts."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return (int.from_bytes(digest[:8], "big") + 0.5) / 2.0**64


def choices(doc: Facts) -> Sequence[str]:
    """List a document's choices, or letters where it has none."""
    return doc.get("choices") or "ABC"


class SyntheticBias(NamedTuple):
    """A benchmark's answers for models without weights.

    Attributes:
        answers: A document's answers that show a bias of known size, one a request, as the harness hands them on
            (log-likelihoods, texts).
        expected: The values of its main scores, given all documents.
        random_texts: The texts among which ``bias-chance`` chooses.
    """

    answers: Callable[[Any, Dial], Answers]
    expected: Callable[[Sequence[Any], Dial], Mapping[str, float]]
    random_texts: Callable[[Facts], Sequence[str]] = choices
