"""Token ids of texts: each distinct text is encoded once, in batches, and looked up when the harness asks for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from lm_eval_bias.harness.internals import Ids
from lm_eval_bias.models.prefix_trie import Likelihoods

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import Requests


_AT_ONCE = 1000  # texts
_ENCODING = ("__call__", "_encode_plus", "_batch_encode_plus")
# a text, and whether special tokens were asked for with it
Key: TypeAlias = "tuple[str, bool | None]"


def encoded(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], **options: bool
) -> list[Ids]:
    """Encode texts as calling the tokenizer does, without the offsets and words that it finds beside the ids."""
    fast: Any = getattr(tokenizer, "backend_tokenizer", None)
    adds_nothing = all(
        getattr(type(tokenizer), name, None)
        is getattr(PreTrainedTokenizerFast, name, None)
        for name in _ENCODING
    )
    if not adds_nothing or not hasattr(fast, "encode_batch_fast"):
        return tokenizer(texts, **options)["input_ids"]
    tokenizer(texts[:1], **options)  # ends truncation and padding of earlier calls
    return [encoding.ids for encoding in fast.encode_batch_fast(texts, **options)]


def _texts(pairs: Iterable[tuple[str, str]]) -> Iterable[Key]:
    """Yield the texts that the harness encodes to split pairs into tokens."""
    for context, continuation in pairs:
        if context:
            # spaces at its end become the continuation's
            yield context.rstrip(), None
            yield context + continuation, None
        else:
            yield continuation, False


class EncodesAhead:
    """A mixin for the harness's backends that encodes the texts of many requests in advance."""

    _known: dict[Key, Ids] = {}

    def encode_ahead(self: Any, pairs: Iterable[tuple[str, str]]) -> None:
        """Encode the texts of ``(context, continuation)`` pairs in one batch, and drop earlier ones.

        A text alone is a context without a continuation.
        """
        start = self.tokenizer.decode(self.prefix_token_id)
        known = {}
        batches = defaultdict(list)
        for key in dict.fromkeys(_texts(pairs)):
            text, special = key
            if key in self._known:
                known[key] = self._known[key]
            elif special is None and text.startswith(start):
                batches[False].append(key)
            else:
                batches[self.add_bos_token if special is None else special].append(key)
        self.forget()
        for special, keys in batches.items():
            options = {} if special is None else {"add_special_tokens": special}
            bar = tqdm(total=len(keys), desc="Encoding texts", disable=self.rank != 0)
            for first in range(0, len(keys), _AT_ONCE):
                part = keys[first : first + _AT_ONCE]
                ids = encoded(self.tokenizer, [text for text, _ in part], **options)
                # a tokenizer that encodes texts otherwise when they are many
                if ids[0] == self.tok_encode(*part[0]):
                    known.update(zip(part, ids, strict=True))
                bar.update(len(part))
            bar.close()
        self._known = known

    def forget(self) -> None:
        """Drop all encoded texts."""
        self._known = {}

    def tok_encode(
        self,
        string: str | list[str],
        add_special_tokens: bool | None = None,
        **options: object,
    ) -> Ids:
        """Encode a text as the backend does, or look it up."""
        if isinstance(string, str) and not options:
            known = self._known.get((string, add_special_tokens))
            if known is not None:
                return known
        return super().tok_encode(string, add_special_tokens, **options)  # type: ignore[misc]

    def loglikelihood(
        self, requests: Requests, disable_tqdm: bool = False
    ) -> Likelihoods:
        """Return log-likelihoods of continuations given contexts, and whether each is greedy."""
        self.encode_ahead(request.args for request in requests)
        return super().loglikelihood(requests, disable_tqdm)  # type: ignore[misc]
