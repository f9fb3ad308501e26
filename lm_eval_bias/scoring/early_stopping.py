"""Ends the likeliest texts of a model that runs here where nothing that follows would be read.

The harness (0.4.13) writes on until all texts of a batch have met the same stop string, or are as long as they may be,
and cuts them at their stop strings then. Here each text ends at its own; and once its benchmark has read an answer that
no continuation could change (:meth:`lm_eval_bias.Benchmark.is_settled`). Tokens that are written are the same ones, in
the same batches, so that what is read is, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import registry
from lm_eval_bias.harness.internals import derives_from, shadowed
from lm_eval_bias.scoring.free_answers import opening_of_thoughts

if TYPE_CHECKING:
    import torch

    from lm_eval_bias.harness.internals import Instance


def _stops(request: Instance) -> list[str]:
    until = request.args[1].get("until") or []
    return [stop for stop in ([until] if isinstance(until, str) else until) if stop]


def _certain(text: str, stops: Sequence[str]) -> str:
    r"""A text without what may begin a stop string, or a letter, at its end.

    >>> _certain("Die Frau\nTe", ["\nText:"]), _certain("Die Frau\nTee", ["\nText:"])
    ('Die Frau', 'Die Frau\nTee')
    """
    text = text.rstrip("\N{REPLACEMENT CHARACTER}")
    begun = [n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])]
    return text[: len(text) - max(begun, default=0)]


def ends(text: str, request: Instance) -> bool:
    """Whether nothing that follows a text would be read.

    Args:
        text: What was written for a request so far.
        request: The request, of a document that names its benchmark.
    """
    stops = _stops(request)
    if any(stop in text for stop in stops):
        return True
    if opening_of_thoughts(request.args[0]):  # what is read follows them
        return False
    benchmark = registry.by_name().get(str(request.doc.get("benchmark")))
    return benchmark is not None and benchmark.is_settled(request.doc, _certain(text, stops))


class _Ends:
    """A stopping criterion of transformers: which texts of a batch have ended."""

    def __init__(self, model: Any, batch: Sequence[Sequence[Instance]]) -> None:
        """The texts of a batch are to answer these requests, those with the same prompt together."""
        self._model = model
        self._batch = batch
        self._done = [False] * len(batch)
        self._start = 0

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """Called after every token."""
        import torch

        rows = input_ids.tolist()
        self._start = self._start or len(rows[0]) - 1
        if len(rows) != len(self._batch):  # beams
            return torch.zeros(len(rows), dtype=torch.bool, device=input_ids.device)
        for i, (row, requests) in enumerate(zip(rows, self._batch, strict=True)):
            if requests and not self._done[i]:  # of other prompts nothing is known
                text = self._model.tok_decode(row[self._start :])
                self._done[i] = all(ends(text, request) for request in requests)
        return torch.tensor(self._done, device=input_ids.device)


@contextlib.contextmanager
def early(model: Any, requests: Sequence[Instance]) -> Iterator[None]:
    """Let texts that a model of transformers writes for these requests end early while the context lasts.

    Not those of a model that reasons first: what is read of them is what follows that.
    """
    if not derives_from(type(model), "HFLM") or getattr(model, "think_end_token", None) is not None:
        yield
        return
    from transformers import StoppingCriteriaList

    by_prompt: dict[Any, list[Instance]] = {}
    for request in requests:
        by_prompt.setdefault(request.args[0], []).append(request)
    encode, network = model.tok_batch_encode, model.model
    generate = network.generate
    batch: list[Sequence[Instance]] = []

    def noted(strings: Sequence[str], *args: Any, **kwargs: Any) -> Any:
        batch[:] = [by_prompt.get(string, []) for string in strings]
        return encode(strings, *args, **kwargs)

    def ending(*args: Any, stopping_criteria: Any = None, **kwargs: Any) -> Any:
        criteria = StoppingCriteriaList([*(stopping_criteria or []), _Ends(model, list(batch))])
        return generate(*args, stopping_criteria=criteria, **kwargs)

    with shadowed(model, "tok_batch_encode", noted), shadowed(network, "generate", ending):
        yield
