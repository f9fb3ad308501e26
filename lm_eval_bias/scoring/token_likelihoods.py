"""Exact log-likelihoods of token ids on any backend of the harness that has log-likelihoods.

Between our questions and the harness's ``_loglikelihood_tokens``: each distinct pair of context and continuation is
asked once, ``--use_cache`` is honoured, ranks are evened out, and requests that the ``hf`` backend would mix up run
apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tqdm import tqdm

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.harness import (
    answer_checks,
    internals,
    servers,
    tokenization_boundary,
)
from lm_eval_bias.harness.answer_checks import Continuation

if TYPE_CHECKING:
    from lm_eval.api.model import LM, TemplateLM

T = TypeVar("T")
Ids = tuple[int, ...]
Likelihoods = list[tuple[float, bool]]
Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]
Places = list[int | None]  # of requests; None stands for any of them
RunBatch = Callable[[Places], Sequence[object]]
_PORTION = 2000  # requests: enough to keep every device busy


def mixes_up(model: LM, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> bool:
    """Return whether a backend would give some requests the log-likelihoods of others.

    The harness's ``hf`` backend (0.4.13, ``logits_cache``) runs requests together whose context and continuation, the
    last token aside, are the same tokens; where they are divided at different places, the shorter continuation gets the
    log-likelihood of other tokens.

    Args:
        model: The backend.
        pairs: Token ids of contexts and continuations.

    >>> from types import SimpleNamespace
    >>> mixes_up(SimpleNamespace(logits_cache=True), [([1], [2, 3]), ([1, 2], [4])])
    True
    >>> mixes_up(SimpleNamespace(logits_cache=True), [([1, 2], [3]), ([1, 2], [4])])
    False
    """
    if not getattr(model, "logits_cache", False):
        return False
    if getattr(model, "backend", "causal") != "causal":
        return False
    divided: dict[Ids, int] = {}
    for context, continuation in pairs:
        string = (*context, *continuation[:-1])
        if divided.setdefault(string, len(context)) != len(context):
            return True
    return False


def portions(model: LM, items: list[T]) -> list[list[T]]:
    """Split requests into calls: several for backends that return only complete calls, else one.

    A run that is stopped loses no more than the call that was under way.
    """
    size = getattr(model, "portion", None) or max(1, len(items))
    if internals.derives_from(type(model), "VLLM", "SGLangLM"):
        size = _PORTION
    return [items[start : start + size] for start in range(0, len(items), size)]


@contextlib.contextmanager
def float32_softmax(model: LM) -> Iterator[None]:
    """Make the ``hf`` backend take and sum log-probabilities in float32, as others do.

    By itself it does so in the model's dtype: a sum of bfloat16 numbers near -60 is rounded to a quarter, and different
    candidates come out equal. A ``softmax_dtype`` that the user chose stays.
    """
    if getattr(model, "softmax_dtype", "none of ours") is not None:
        yield
        return
    import torch

    with internals.shadowed(model, "softmax_dtype", torch.float32):
        yield


def max_over_ranks(model: LM, number: int) -> int:
    """Return the maximum of a number over all ranks."""
    if model.world_size == 1:
        return number
    import torch

    return int(model.all_gather(torch.tensor(number, device=model.device)).max().item())


def answer_cached(
    model: LM,
    kind: str,
    keys: Sequence[Sequence[object]],
    run_batch: RunBatch,
    tokens: Callable[[int], tuple[Sequence[int], Sequence[int]]] | None = None,
    title: str = "",
) -> list[Any]:
    """Return answers from ``--use_cache`` where possible; request the others and cache them at once.

    Args:
        model: The model; ranks ask as often and as much as the one with most to ask.
        kind: As which answers are kept.
        keys: How each request is named in the cache.
        run_batch: Gives the answers to the requests at some places; ``None`` stands for any request, to fill up.
        tokens: Gives context and continuation of the request at a place, as token ids, for backends that mix up some.
        title: Of a progress bar; none without it.
    """
    answers = servers.kept(model, kind, keys)
    missing = [i for i, answer in enumerate(answers) if answer is None]
    parts = portions(model, missing)
    is_silent = not title or model.rank != 0
    with (
        tqdm(total=len(missing), desc=title, disable=is_silent) as bar,
        float32_softmax(model),
        contextlib.ExitStack() as stack,
    ):
        if tokens is not None and mixes_up(model, map(tokens, missing)):
            stack.enter_context(internals.shadowed(model, "logits_cache", False))
        for number in range(max_over_ranks(model, len(parts))):
            part = parts[number] if number < len(parts) else []
            lacking = max_over_ranks(model, len(part)) - len(part)
            fresh = run_batch([*part, *[None] * lacking])
            for i, answer in zip(part, fresh, strict=False):
                answers[i] = answer
                model.cache_hook.add_partial(kind, keys[i], answer)
            servers.commit(model)
            bar.update(len(part))
    return answers


def checked(
    model: LM,
    keys: Sequence[Sequence[object]],
    pairs: Sequence[tuple[Hashable, Continuation]],
    run_batch: RunBatch,
    tokens: Callable[[int], tuple[Sequence[int], Sequence[int]]],
) -> Likelihoods:
    """Request log-likelihoods, and refuse impossible ones.

    Args:
        model: The model.
        keys: How each request is named in the cache.
        pairs: Context and continuation of each, as texts or tuples of token ids.
        run_batch: As for :func:`answer_cached`.
        tokens: As for :func:`answer_cached`.

    Raises:
        BiasError: No distribution has such log-likelihoods.
    """
    with servers.asking(model):
        answers = answer_cached(model, "loglikelihood", keys, run_batch, tokens)
    values = (
        (context, continuation, float(answer[0]))
        for (context, continuation), answer in zip(pairs, answers, strict=True)
    )
    kind = type(model).__name__
    problem = "" if kind == "DummyLM" else answer_checks.impossible_likelihoods(values)
    if problem:
        servers.forget(model, "loglikelihood", keys)
        raise BiasError(
            f"the model type {kind} gives {problem}: check it (no answer was kept or scored)"
        )
    return [(float(answer[0]), bool(answer[1])) for answer in answers]


def encode(model: TemplateLM, text: str) -> list[int]:
    """Encode a text as the harness does, special tokens as the backend adds them.

    Raises:
        BiasError: The backend has no tokenizer, so that tokens cannot be counted.
    """
    ids = model.tok_encode(text)
    if not isinstance(ids, (list, tuple)) or not all(isinstance(i, int) for i in ids):
        raise BiasError(
            f"the model type {type(model).__name__} gives no token ids, which a mean log-likelihood needs: "
            "name its tokenizer (--model_args tokenizer=..., tokenizer_backend=huggingface), or use hf or vllm"
        )
    return list(ids)


def prefix_ids(model: TemplateLM) -> list[int]:
    """Return the ids that a tokenizer puts before every text, usually none or a start token.

    Some backends (``local-completions``) leave it out; it stays the way in which the model was trained to begin.
    """
    tokenizer = internals.attribute(model, "tokenizer")
    try:
        return tokenization_boundary.added(tokenizer.encode, tokenizer)[0]
    except (TypeError, KeyError, AttributeError, NotImplementedError):
        return []


def _key(context: Ids, continuation: Ids) -> tuple[str, str]:
    """Name a request in the cache of ``--use_cache``."""
    return "token ids: " + " ".join(map(str, context)), " ".join(map(str, continuation))


def loglikelihoods(model: TemplateLM, pairs: Pairs) -> Likelihoods:
    """Compute log-likelihoods of continuations given contexts, both as token ids.

    Args:
        model: A ``TemplateLM`` of the harness.
        pairs: ``(context ids, continuation ids)``, none of them empty. For encoder-decoder models the context goes to
            the encoder.

    Returns:
        ``(log-likelihood in nats, is greedy)`` per pair.

    Raises:
        BiasError: The backend has no log-likelihoods, or such as no distribution has.
    """
    _refuse_long(model, pairs)
    distinct: dict[tuple[Ids, Ids], int] = {}
    places = [
        distinct.setdefault((tuple(c), tuple(k)), len(distinct)) for c, k in pairs
    ]
    inputs = list(distinct)
    filler = (model.prefix_token_id,)

    def run_batch(numbers: Places) -> Likelihoods:
        requests = []
        for i in numbers:
            context, continuation = (filler, filler) if i is None else inputs[i]
            key = _key(context, continuation)
            requests.append((key, list(context), list(continuation)))
        return internals.loglikelihood_tokens(model, requests)

    keys = [_key(*pair) for pair in inputs]
    try:
        answers = checked(model, keys, inputs, run_batch, inputs.__getitem__)
    except NotImplementedError as error:
        raise internals.no_loglikelihoods(type(model).__name__) from error
    return [answers[i] for i in places]


def _refuse_long(model: TemplateLM, pairs: Pairs) -> None:
    """Refuse a text that is longer than the model's window."""
    limit = internals.attribute(model, "max_length")
    if not isinstance(limit, int):
        return
    is_causal = internals.attribute(model, "backend", "causal") == "causal"
    longest = max(
        (len(c) + len(k) if is_causal else max(len(c), len(k)) for c, k in pairs),
        default=0,
    )
    if longest >= limit:  # some backends cut at the limit, others one token before it
        raise BiasError(
            f"a text of {longest} tokens; the model reads at most {limit} (--model_args max_length=... "
            "raises the limit)"
        )
