"""Finds out on the model itself which method of sharing it does right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from lm_eval_bias.core.errors import one_line
from lm_eval_bias.models.packed.packed_forwards import Method, Network, Plain
from lm_eval_bias.models.packed.trie_walk import Walk
from lm_eval_bias.models.prefix_trie import Ints, arrange

STEM = 64  # tokens that the trial sequences have in common
_TAILS = (16, 12, 20, 8, 24)
EXACT = 1e-4  # largest deviation that counts as agreement in float32
# below float32: as much of the deviation that padding alone makes, over all positions and over a sequence's
ROUGHLY, ROUGHLY_ONE = 2.0, 2.5


@dataclass
class MethodVerdict:
    """What a trial found.

    Attributes:
        method: The first method that agrees with plain forwards, ``None`` if none does.
        why: One line about it and those before it.
        longest: Tokens of the longest sequence tried.
    """

    method: Method | None
    why: str
    longest: int


def trial(limit: int, stem: int, usable: Ints) -> tuple[list[list[int]], list[int]]:
    """Draw sequences with common beginnings of up to ``stem`` tokens, and how many last tokens of each count.

    The last one is the beginning of the first: where a model sees what follows, it can't be read off that.
    """
    rng = np.random.default_rng(20261122)
    tails = [min(tail, max(1, limit // 3)) for tail in _TAILS]
    stem = max(1, min(stem, limit - max(tails)))

    def draw(n: int) -> list[int]:
        return [int(i) for i in rng.choice(usable, n)]

    common = draw(stem)
    stems = [common, common, common[: (stem + 1) // 2], common[:1], common[:1]]
    sequences = [begin + draw(tail) for begin, tail in zip(stems, tails, strict=True)]
    return [*sequences, sequences[0][:-1]], [*tails, 1]


def _deviations(logits: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Root mean square difference of each position's logits over their spread, shape (positions,)."""
    logits, reference = logits.cpu().double(), reference.cpu().double()
    spread = reference.std(-1).clamp_min(1e-12)
    return (logits - reference).pow(2).mean(-1).sqrt() / spread


class Trial:
    """Plain forwards of trial sequences, one at a time, and how far a method is from them.

    Attributes:
        longest: Tokens of the longest sequence.
        effect: How much the tokens before matter: a method that mixes them up must show.
    """

    def __init__(self, network: Network, limit: int, stem: int, usable: Ints) -> None:
        self.network = network
        inputs, tails = trial(limit, stem, usable)
        self.longest = max(map(len, inputs))
        self.sequences, order = arrange(inputs)
        self.needed = np.zeros(len(self.sequences), np.int64)
        np.maximum.at(self.needed, order, np.array(tails))
        self.reference = [self._alone(self.sequences.ids(k), int(n)) for k, n in enumerate(self.needed)]
        k = int(order[0])
        altered = self.sequences.ids(k).copy()
        before = len(altered) - int(self.needed[k])
        altered[:before] = altered[:before][::-1]
        changed = _deviations(self._alone(altered, int(self.needed[k])), self.reference[k])
        self.effect = float(changed.max()) if before > 1 else 1.0

    def _alone(self, ids: np.ndarray, last: int) -> torch.Tensor:
        logits: torch.Tensor = self.network.call(input_ids=self.network.tensor(ids)[None]).logits
        return logits[0, -last:].float().cpu()

    def deviations(self, method: Method) -> list[torch.Tensor]:
        """How far a method's logits are from plain ones, in units of their spread, per sequence and position."""
        reference = torch.cat(self.reference)
        found = torch.full((len(reference),), math.nan, dtype=torch.float64)
        for output in method.trial_outputs(self.sequences, self.needed):
            if not len(output.slots):
                continue
            slots, rows = torch.from_numpy(output.slots), torch.from_numpy(output.rows)
            found[slots] = _deviations(output.logits[rows], reference[slots])
        return list(found.nan_to_num(nan=math.inf).split(self.needed.tolist()))

    @cached_property
    def noise(self) -> list[torch.Tensor]:
        """What padding alone makes of the logits."""
        return self.deviations(Plain(self.network))


def _agrees(deviations: list[torch.Tensor], noise: list[torch.Tensor] | None, effect: float) -> bool:
    """Whether deviations are nothing but rounding."""
    largest = float(torch.cat(deviations).max())
    if noise is None:
        return largest <= min(EXACT, max(effect / 4, 1e-6))
    unavoidable = _size(torch.cat(noise)) + 1e-3
    return (
        _size(torch.cat(deviations)) <= min(ROUGHLY * unavoidable, effect / 4)
        and max(_size(ours) / (_size(padded) + unavoidable) for ours, padded in zip(deviations, noise, strict=True))
        <= ROUGHLY_ONE
    )


def _size(deviations: torch.Tensor) -> float:
    return float(deviations.pow(2).mean().sqrt())


def choose(network: Network, limit: int, stem: int, usable: Ints, exact: bool) -> MethodVerdict:
    """Find the first method that gives plain forwards' logits.

    Args:
        network: The model.
        limit: Most tokens that it reads.
        stem: Tokens that the trial sequences have in common.
        usable: Token ids to draw from.
        exact: Whether the model computes in float32, so that agreement is close.
    """
    try:
        probe = Trial(network, limit, stem, usable)
    except Exception as error:  # noqa: BLE001 (a model that can't be asked so is left to the hf backend)
        return MethodVerdict(None, f"plain forward passes fail on trial sequences ({one_line(error)})", 0)
    failures: list[str] = []
    by_type = getattr(network.model.config.get_text_config(), "layer_types", None)
    styles = ["by_type", "single"] if by_type else ["single"]  # the likelier first
    walks = [Walk(network, style) for style in styles]
    for method in (*walks, Plain(network)):  # the one that shares most first
        try:
            noise = None if exact else probe.noise
            deviations = probe.deviations(method)
        except Exception as error:  # noqa: BLE001 (models refuse masks and caches in many ways: the next one then)
            failures.append(f"{method.name}: {one_line(error)[:150]}")
            continue
        differs = f"differs from plain forward passes by {_size(torch.cat(deviations)):.0e} of the logits' spread"
        if _agrees(deviations, noise, probe.effect):
            padding = "" if noise is None else f", padding by {_size(torch.cat(noise)):.0e}"
            why = "; ".join([f"{method.description}; {differs}{padding}", *failures])
            return MethodVerdict(method, why, probe.longest)
        failures.append(f"{method.name}: {differs}")
    return MethodVerdict(None, "; ".join(failures), probe.longest)
