"""Finds out on the model itself whether it can walk the trie, and with which masks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from lm_eval_bias.core.errors import one_line
from lm_eval_bias.harness.internals import Ids
from lm_eval_bias.models.packed.packed_forwards import Network
from lm_eval_bias.models.packed.trie_walk import Walk, strands_of
from lm_eval_bias.models.prefix_trie import Ints, Trie
from lm_eval_bias.models.question_model import padded

STEM = 64  # tokens that the trial sequences have in common
_TAILS = (16, 12, 20, 8, 24)
_LATER = 3  # sequences of a later trial, whose stem is beyond a window
EXACT = 1e-4  # largest deviation that counts as agreement in float32
ROUGHLY = 2.0  # below float32: as much of the deviation that padding alone makes


@dataclass
class MethodChoice:
    """The outcome of a trial.

    Attributes:
        method: The first walk that agrees with plain forwards, ``None`` if none does.
        why: One line about this walk and those that failed before it.
        longest: Length of the longest sequence tried, in tokens.
    """

    method: Walk | None
    why: str
    longest: int


def usable_ids(tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> Ints:
    """Return the ids that both tokenizer and model have, without special tokens."""
    ids = np.arange(min(len(tokenizer), vocabulary))
    return np.setdiff1d(ids, getattr(tokenizer, "all_special_ids", ()))


def trial(
    limit: int, stem: int, usable: Ints, count: int = len(_TAILS)
) -> tuple[list[Ids], list[int]]:
    """Draw sequences with common beginnings of up to ``stem`` tokens, and how many last tokens of each count.

    If all are drawn, the last one is the beginning of the first. A model that sees what follows gives other logits for
    it.
    """
    rng = np.random.default_rng(20261122)
    tails = [min(tail, max(1, limit // 3)) for tail in _TAILS[:count]]
    stem = max(1, min(stem, limit - max(tails)))

    def draw(n: int) -> Ids:
        return [int(i) for i in rng.choice(usable, n)]

    common = draw(stem)
    stems = [common, common, common[: (stem + 1) // 2], common[:1], common[:1]]
    sequences = [begin + draw(tail) for begin, tail in zip(stems, tails, strict=False)]
    if count < len(_TAILS):
        return sequences, tails
    return [*sequences, sequences[0][:-1]], [*tails, 1]


def _deviations(logits: Tensor, reference: Tensor) -> Tensor:
    """Return the root mean square difference of each position's logits over their spread, shape (positions,)."""
    differences = (logits - reference).pow(2).mean(-1).sqrt()
    spreads = reference.std(-1).clamp_min(1e-12)
    return (differences / spreads).nan_to_num(nan=math.inf)


def _plain(network: Network, rows: Sequence[Ids], needed: Sequence[int]) -> Tensor:
    """Return the logits of the last tokens of rows that are padded on the right."""
    inputs = padded(rows).to(network.device)
    width = inputs.shape[1]
    # the first and the last needed token of each row, as the padded row's end counts them
    ends = [len(ids) - width for ids in rows]
    starts = [end - count for end, count in zip(ends, needed, strict=True)]
    keeps = "logits_to_keep" in inspect.signature(network.model.forward).parameters
    options = {"logits_to_keep": -min(starts)} if keeps else {}
    logits = network.call(input_ids=inputs, use_cache=False, **options).logits
    chosen = [
        of_row[start : end or None]
        for of_row, start, end in zip(logits, starts, ends, strict=True)
    ]
    return torch.cat(chosen).float().cpu()


def _walked(walk: Walk, rows: Sequence[Ids], needed: Sequence[int]) -> Tensor:
    """Return the logits of the last tokens of rows as a walk computes them."""
    trie = Trie(rows)
    nodes = trie.tails(needed)
    logits: dict[int, Tensor] = {}
    # two strands, windows that end within sequences, and places in a row that are never the token's depth
    layout = strands_of(trie, 2, 24)
    apart = sum(map(len, trie.paths))
    for output in walk.outputs(trie, nodes, layout, apart):
        of_nodes = output.logits.float().cpu()
        logits.update(zip(output.nodes.tolist(), of_nodes, strict=True))
    return torch.stack([logits[node] for node in nodes.tolist()])


def _size(deviations: Tensor) -> float:
    return float(deviations.pow(2).mean().sqrt())


def choose(
    network: Network,
    limit: int,
    stem: int,
    usable: Ints,
    exact: bool,
    proven: Walk | None,
) -> MethodChoice:
    """Find the masks with which a walk gives plain forwards' logits.

    Args:
        network: The model.
        limit: Most tokens that it reads.
        stem: Tokens that the trial sequences have in common.
        usable: Token ids to draw from.
        exact: Whether the model computes in float32, where agreement must be close.
        proven: What an earlier trial with a shorter stem has found: it alone is tried, on fewer sequences.
    """
    tolerance = EXACT
    try:
        count = _LATER if proven else len(_TAILS)
        rows, needed = trial(limit, stem, usable, count)
        # the reference: one sequence at a time
        pairs = zip(rows, needed, strict=True)
        reference = torch.cat([_plain(network, [ids], [n]) for ids, n in pairs])
        if not exact:
            # how far padding alone moves the logits
            noise = _deviations(_plain(network, rows, needed), reference)
            tolerance = ROUGHLY * (_size(noise) + 1e-3)
    except Exception as error:  # noqa: BLE001 (a model that can't be asked so is left to the hf backend)
        return MethodChoice(
            None, f"plain forward passes fail on trial sequences ({one_line(error)})", 0
        )
    failures = []
    longest = max(map(len, rows))
    by_type = getattr(network.model.config.get_text_config(), "layer_types", None)
    styles = ["by_type", "single"] if by_type else ["single"]  # the likelier first
    for style in [proven.style] if proven else styles:
        walk = Walk(network, style)
        try:
            deviations = _deviations(_walked(walk, rows, needed), reference)
        except Exception as error:  # noqa: BLE001 (models refuse masks and caches in many ways: the next one then)
            failures.append(one_line(error)[:150])
            continue
        differs = f"differs from plain forward passes by {_size(deviations):.0e} of the logits' spread"
        deviation = float(deviations.max()) if exact else _size(deviations)
        if deviation <= tolerance:  # nothing but rounding
            why = "; ".join([f"every shared token runs once; {differs}", *failures])
            return MethodChoice(walk, why, longest)
        failures.append(f"a walk {differs}")
    return MethodChoice(None, "; ".join(failures), longest)
