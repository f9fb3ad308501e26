"""Finds out on the model itself whether rows of a trie give plain forwards' logits, and for how long sequences."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedTokenizerBase

from lm_eval_bias.core.errors import one_line
from lm_eval_bias.harness.internals import Ids
from lm_eval_bias.models.packed.network import Network
from lm_eval_bias.models.packed.rows import Ints, PackedRow
from lm_eval_bias.models.question_model import padded

STEM = 64  # tokens that the trial sequences have in common
_TAILS = (16, 12, 20, 8, 24)
EXACT = 1e-4  # largest deviation that counts as agreement in float32
ROUGHLY = 2.0  # below float32: as much of the deviation that padding alone makes
# of a model whose tokens see a part of what is before them, or may
_WINDOW_NAME = re.compile(r"window|chunk|local|block_size|block_length")


def reach(config: PretrainedConfig) -> int:
    """Return how long a sequence may be, in tokens: up to windows that the trial's sequences don't fill.

    Any integer whose name speaks of a window, a chunk or local attention counts. Where rotary positions depend on the
    input's length from some length on, longer sequences can't share a forward.
    """
    text = config.get_text_config()
    limits = [
        value
        for name, value in text.to_dict().items()
        if type(value) is int and value > STEM and _WINDOW_NAME.search(name)
    ]
    scaling = (
        getattr(text, "rope_parameters", None)
        or getattr(text, "rope_scaling", None)
        or {}
    )
    for kind in (
        scaling,
        *(part for part in scaling.values() if isinstance(part, Mapping)),
    ):
        if kind.get("rope_type", kind.get("type")) in ("dynamic", "longrope"):
            limits.append(
                kind.get("original_max_position_embeddings")
                or getattr(text, "original_max_position_embeddings", None)
                or getattr(text, "max_position_embeddings", None)
                or STEM
            )
    return min(limits, default=sys.maxsize)


def usable_ids(tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> Ints:
    """Return the ids that both tokenizer and model have, without special tokens."""
    ids = np.arange(min(len(tokenizer), vocabulary))
    return np.setdiff1d(ids, getattr(tokenizer, "all_special_ids", ()))


def sequences(limit: int, usable: Ints) -> tuple[list[Ids], list[int]]:
    """Draw sequences with common beginnings, and how many last tokens of each count.

    The last one is the beginning of the first. A model that sees what follows gives other logits for it.
    """
    rng = np.random.default_rng(20261122)
    tails = [min(tail, max(1, limit // 3)) for tail in _TAILS]
    stem = max(1, min(STEM, limit - max(tails)))

    def draw(n: int) -> Ids:
        return [int(i) for i in rng.choice(usable, n)]

    common = draw(stem)
    stems = [common, common, common[: (stem + 1) // 2], common[:1], common[:1]]
    drawn = [begin + draw(tail) for begin, tail in zip(stems, tails, strict=True)]
    return [*drawn, drawn[0][:-1]], [*tails, 1]


def _deviations(logits: Tensor, reference: Tensor) -> Tensor:
    """Return the root mean square difference of each position's logits over their spread, shape (positions,)."""
    differences = (logits - reference).pow(2).mean(-1).sqrt()
    spreads = reference.std(-1).clamp_min(1e-12)
    return (differences / spreads).nan_to_num(nan=math.inf)


def _plain(network: Network, given: Sequence[Ids], needed: Sequence[int]) -> Tensor:
    """Return the logits of the last tokens of sequences that are padded on the right."""
    inputs = padded(given).to(network.device)
    logits = network.call(input_ids=inputs, use_cache=False).logits
    chosen = [
        of_row[len(ids) - count : len(ids)]
        for of_row, ids, count in zip(logits, given, needed, strict=True)
    ]
    return torch.cat(chosen).float().cpu()


def _in_rows(network: Network, given: Sequence[Ids], counts: Sequence[int]) -> Tensor:
    """Return the logits of the last tokens of sequences as rows give them, two rows a forward."""
    order = sorted(range(len(given)), key=given.__getitem__)
    found: dict[int, Tensor] = {}
    for part in (order[:3], order[3:]):
        packed = [PackedRow([given[i] for i in some]) for some in (part[:2], part[2:])]
        everywhere = [np.arange(len(row.tokens)) for row in packed]
        logits = iter(network.logits(packed, everywhere).float().cpu())
        of_rows = [torch.stack([next(logits) for _ in nodes]) for nodes in everywhere]
        paths = [(row.paths, made) for row, made in zip(packed, of_rows, strict=True)]
        each = [made[path] for of_row, made in paths for path in of_row]
        found.update(zip(part, each, strict=True))
    return torch.cat([found[i][-count:] for i, count in enumerate(counts)])


def _size(deviations: Tensor) -> float:
    return float(deviations.pow(2).mean().sqrt())


def compare(
    network: Network, limit: int, usable: Ints, is_exact: bool
) -> tuple[bool, str]:
    """Compare the logits of rows with those of plain forwards.

    Args:
        network: The model.
        limit: Most tokens that it reads.
        usable: Token ids to draw from.
        is_exact: Whether the model computes in float32, where agreement must be close.

    Returns:
        Whether they agree, and one line about it.
    """
    given, needed = sequences(limit, usable)
    tolerance = EXACT
    try:
        # the reference: one sequence at a time
        pairs = zip(given, needed, strict=True)
        reference = torch.cat([_plain(network, [ids], [n]) for ids, n in pairs])
        if not is_exact:
            # how far padding alone moves the logits
            noise = _deviations(_plain(network, given, needed), reference)
            tolerance = ROUGHLY * (_size(noise) + 1e-3)
        deviations = _deviations(_in_rows(network, given, needed), reference)
    except Exception as error:  # noqa: BLE001 (models refuse masks and positions in many ways)
        return False, one_line(error)[:150]
    deviation = float(deviations.max()) if is_exact else _size(deviations)
    size = f"{_size(deviations):.0e} of the logits' spread"
    text = f"rows of shared beginnings differ from plain forward passes by {size}"
    return deviation <= tolerance, text
