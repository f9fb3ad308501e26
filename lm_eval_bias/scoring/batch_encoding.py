"""Texts encoded once for a call, many together where the tokenizer gives the same ids so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_bias.harness.internals import shadowed

if TYPE_CHECKING:
    from lm_eval.api.model import TemplateLM

_COMPARED = 16  # texts that are encoded both ways before many are encoded together


@contextlib.contextmanager
def encoded_once(model: TemplateLM, pairs: Sequence[tuple[str, str]]) -> Iterator[None]:
    """While the context lasts, a model's ``tok_encode`` gives the ids that texts were found to have before.

    Encoding is most of the time before a small model's first forward pass, and requests often share their context.

    Args:
        model: A model of the harness.
        pairs: Contexts and continuations that are going to be encoded, as the harness's ``_encode_pair`` does it.
    """
    texts = [text for context, continuation in pairs if context for text in (context.rstrip(), context + continuation)]
    encode = model.tok_encode
    ids_by_text: dict[tuple[str, bool | None], list[int]] = {
        (text, None): ids for text, ids in encoded_together(model, texts).items()
    }

    def tok_encode(string: str, add_special_tokens: bool | None = None, **options: Any) -> list[int]:
        key = string, add_special_tokens
        ids = None if options else ids_by_text.get(key)
        if ids is None:
            ids = encode(string, add_special_tokens=add_special_tokens, **options)
            if not options:
                ids_by_text[key] = ids
        return list(ids)

    with shadowed(model, "tok_encode", tok_encode):
        yield


def encoded_together(model: TemplateLM, texts: Sequence[str]) -> dict[str, list[int]]:
    """The ids of texts, if encoding them together gives what encoding them one by one does; empty where it doesn't."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    if not getattr(tokenizer, "is_fast", False):
        return {}
    start = tokenizer.decode(model.prefix_token_id) if model.prefix_token_id is not None else ""
    bos = getattr(model, "add_bos_token", None)
    default_options = {} if bos is None else {"add_special_tokens": bool(bos)}
    with_start = [text for text in dict.fromkeys(texts) if start and text.startswith(start)]
    plain = [text for text in dict.fromkeys(texts) if not (start and text.startswith(start))]
    ids: dict[str, list[int]] = {}
    # a text that brings its start token gets no other
    for group, options in ((with_start, {"add_special_tokens": False}), (plain, default_options)):
        compared = group[:: max(1, len(group) // _COMPARED)]
        if len(group) > _COMPARED and (
            tokenizer(compared, **options)["input_ids"] == [model.tok_encode(text) for text in compared]
        ):
            ids.update(zip(group, tokenizer(group, **options)["input_ids"], strict=True))
    return ids
