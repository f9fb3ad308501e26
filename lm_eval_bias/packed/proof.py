"""Which way of sharing a model does right, found out on the model itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lm_eval_bias.errors import one_line
from lm_eval_bias.packed import masks, plan
from lm_eval_bias.packed.forwards import Cached, Network, Plain, Trie, Way
from lm_eval_bias.packed.plan import Ints

logger = logging.getLogger("lm_eval.bias")
STEM = 64  # tokens that the trial sequences have in common
_TAILS = (16, 12, 20, 8, 24)
EXACT, ROUGH = 2e-4, 0.05  # largest deviation that counts as agreement, in float32 and below


@dataclass
class Verdict:
    """What a trial found.

    Attributes:
        way: The first way that agrees with plain forwards, ``None`` if none does.
        why: One line about it and those before it.
        longest: Tokens of the longest sequence tried.
    """

    way: Way | None
    why: str
    longest: int


def trial(limit: int, stem: int, usable: Ints) -> tuple[list[list[int]], list[int]]:
    """Sequences with beginnings in common, and how many last tokens of each are compared.

    Args:
        limit: Most tokens of a sequence.
        stem: Tokens that most of them share, fewer where the limit is tight.
        usable: Token ids to draw from.
    """
    rng = np.random.default_rng(20261122)
    tails = [min(tail, max(1, limit // 3)) for tail in _TAILS]
    stem = max(1, min(stem, limit - max(tails)))

    def draw(n: int) -> list[int]:
        return [int(i) for i in rng.choice(usable, n)]

    common = draw(stem)
    made = [common + draw(tails[0]), common + draw(tails[1]), common[: (stem + 1) // 2] + draw(tails[2])]
    return [*made, draw(tails[3]), draw(tails[4])], tails


def _deviation(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Root mean square difference of a position's logits over their spread, at the worst position."""
    found, wanted = found.double().cpu(), wanted.double().cpu()
    spread = wanted.std(-1).clamp_min(1e-12)
    worst = ((found - wanted).pow(2).mean(-1).sqrt() / spread).max()
    return float(worst) if torch.isfinite(worst) else float("inf")


class Trial:
    """Plain forwards of trial sequences, one at a time, and how far a way is from them."""

    def __init__(self, network: Network, limit: int, stem: int, usable: Ints) -> None:
        """Run the sequences plainly.

        Args:
            network: The model.
            limit: Most tokens that it reads.
            stem: Tokens in common.
            usable: Token ids to draw from.
        """
        self.network = network
        inputs, tails = trial(limit, stem, usable)
        self.longest = max(map(len, inputs))
        self.sequences, order = plan.arrange(inputs)
        self.needed = np.zeros(len(self.sequences), np.int64)
        np.maximum.at(self.needed, order, np.array(tails))
        self.wanted = [self._alone(self.sequences.ids(k), int(n)) for k, n in enumerate(self.needed)]
        # how much the tokens before matter: a way that mixes them up must show
        k = int(order[0])
        other = self.sequences.ids(k).copy()
        before = len(other) - int(self.needed[k])
        other[:before] = other[:before][::-1]
        self.effect = _deviation(self._alone(other, int(self.needed[k])), self.wanted[k]) if before > 1 else 1.0

    def _alone(self, ids: np.ndarray, last: int) -> torch.Tensor:
        inputs = torch.from_numpy(ids.astype(np.int64))[None].to(self.network.device)
        logits: torch.Tensor = self.network.call(input_ids=inputs).logits
        return logits[0, -last:].float().cpu()

    def deviation(self, way: Way) -> float:
        """How far a way's logits are from plain ones, in units of their spread."""
        worst = 0.0
        seen = 0
        for part in way.parts(self.sequences, self.needed, 4 * int(self.sequences.lengths.sum()), 1 << 30):
            for k, places in part.nodes.items():
                worst = max(worst, _deviation(part.logits[torch.from_numpy(places)], self.wanted[k]))
                seen += 1
        return worst if seen == len(self.sequences) else float("inf")


def ways(network: Network) -> list[Callable[[], Way]]:
    """All ways, the one that shares most first."""
    made: list[Callable[[], Way]] = []
    for style in masks.styles(network.model.config):
        made.append(lambda style=style: Trie(network, style))  # type: ignore[misc]
    return [*made, lambda: Cached(network), lambda: Plain(network)]


def choose(
    network: Network,
    limit: int,
    stem: int,
    usable: Ints,
    exact: bool,
    candidates: Sequence[Callable[[], Way]] | None = None,
) -> Verdict:
    """The first way that gives the logits of plain forwards.

    Args:
        network: The model.
        limit: Most tokens that it reads.
        stem: Tokens that the trial sequences have in common.
        usable: Token ids to draw from.
        exact: Whether the model computes in float32, so that agreement is close.
        candidates: Ways to try; all by default.
    """
    try:
        tried = Trial(network, limit, stem, usable)
    except Exception as error:  # noqa: BLE001 (a model that can't be asked so is left to the hf backend)
        return Verdict(None, f"plain forwards of trial sequences fail ({one_line(error)})", 0)
    allowed = min(EXACT if exact else ROUGH, max(tried.effect / 4, 1e-6))
    failed: list[str] = []
    for make in candidates if candidates is not None else ways(network):
        way = make()
        try:
            found = tried.deviation(way)
        except Exception as error:  # noqa: BLE001 (models refuse masks and caches in many ways: the next one then)
            failed.append(f"{way.name}: {one_line(error)[:150]}")
            continue
        if found <= allowed:
            why = f"{way.what}; agrees with plain forwards to {found:.0e} of the logits' spread"
            return Verdict(way, "; ".join([why, *failed]), tried.longest)
        failed.append(f"{way.name}: differs from plain forwards by {found:.0e}")
    return Verdict(None, "; ".join(failed), tried.longest)
