"""The tokenization boundary: how a model's tokenizer begins and ends a text, looked at once when it is loaded.

Tokenizers and templates are other people's programs: a token that one of them adds silently moves every score. Faults
that can be set right are set right and reported; the others are refused, with the setting to change.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.harness import internals
from lm_eval_bias.harness.internals import Ids, Pair

if TYPE_CHECKING:
    from lm_eval.api.model import LM, TemplateLM
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from lm_eval_bias.harness.internals import Requests


logger = logging.getLogger("lm_eval.bias")
SAMPLE = "hello world"
_CHECKED = "_lm_eval_bias_border"  # on a model that was checked: the sentences
_RECURRENT = (
    "rwkv",
    "mamba",
    "falcon_mamba",
    "recurrent_gemma",
)  # beginnings of model types


def check_tokenizer(
    model: LM, given: Container[str] = (), prompt: str = ""
) -> list[str]:
    """Check and correct the tokens that a model of log-likelihoods really gets.

    Args:
        model: As the harness built it.
        given: Names of the arguments that the user gave for it.
        prompt: One of the prompts, in its chat template if there is one: it may begin with a start token of its own.

    Returns:
        Sentences for people about what was found, also logged; the same ones for the same model later.

    Raises:
        BiasError: The model would be sent another text, or none; with the setting to change.
    """
    if _CHECKED in vars(model):
        return vars(model)[_CHECKED]
    sentences = [*_tokens(model, given, prompt), *_of_the_harness(model, given)]
    for sentence in sentences:
        logger.warning("%s", sentence)
    setattr(model, _CHECKED, sentences)
    return sentences


def check_prompt(prompt: object, parts: Iterable[str]) -> None:
    """Refuse a prompt that lacks a text it should contain: the harness drops what a chat template refuses.

    Args:
        prompt: As the model is sent it; turns that a server puts into its own template can't be looked at.
        parts: Texts of the system's turn.

    Raises:
        BiasError: One isn't in it.
    """
    for part in parts:
        if isinstance(prompt, str) and part.strip() not in prompt:
            raise BiasError(
                f"the chat template leaves out the system's turn ({part.strip()[:60]!r}), which no model would read: "
                "leave out --system_instruction, or use a model whose template takes one"
            )


def notes(model: LM) -> list[str]:
    """Return the findings about a checked model, as sentences."""
    return list(vars(model).get(_CHECKED, ()))


def _tokens(model: LM, given: Container[str], prompt: str) -> list[str]:
    """Check the tokenizer of a causal model; refuse one without a token that can start a text."""
    is_causal = (
        internals.derives_from(type(model), "TemplateLM")
        and internals.attribute(model, "backend", "causal") == "causal"
    )
    tokenizer = internals.attribute(model, "tokenizer") if is_causal else None
    if not callable(tokenizer) or not hasattr(tokenizer, "get_vocab"):
        return []
    if internals.attribute(model, "prefix_token_id") is None:
        # the harness would fail on it after hours
        option = "prefix_token_id"
        if internals.is_client(model):
            option = "custom_prefix_token_id"
        raise BiasError(
            f"the tokenizer has neither a start nor an end token, so that no text can begin: --model_args {option}=0 "
            "names one to begin with (0 is mostly right)"
        )
    return [
        *_start(model, tokenizer, given, prompt),
        *_end(model, tokenizer),
        *_round_trip(tokenizer),
    ]


def find_cut(model: LM, requests: Requests) -> None:
    """Mark requests that are longer than a causal model's context window, which cuts their beginning.

    They get an attribute ``cut``: how many tokens they have, and how many of these are read.
    """
    window = internals.window(model)
    for request in () if window is None else requests:
        context, more = request.args
        room = window or 0
        if not isinstance(more, str):
            room = model.max_length - int(more.get("max_gen_toks", 0))
            more = ""
        # there are no more tokens than bytes, but for some around them
        if not isinstance(context, str) or len(f"{context}{more}".encode()) + 8 <= room:
            continue
        length = len(model.tok_encode(context))
        if more:
            length = sum(map(len, internals.encode_pair(model, context, more)))
        if length > room:
            request.cut = length, room


def added(encode: Callable[[str], Ids], tokenizer: PreTrainedTokenizerBase) -> Pair:
    """Return the tokens that an encoding adds before and after a text."""
    encoded = encode("a")
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    if not bare or bare[0] not in encoded:
        return [], []
    place = encoded.index(bare[0])
    return encoded[:place], encoded[place + len(bare) :]


def _end(model: TemplateLM, tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Remove the end token after each text from requests, since continuations would follow it.

    Questions about sentences (StereoSet) keep it, as their authors' code does.
    """
    _, behind = added(model.tok_encode, tokenizer)
    if not behind:
        return []
    pair = getattr(model, internals.ENCODE_PAIR)
    texts = internals.attribute(model, "tok_batch_encode")

    def without(ids: Ids) -> Ids:
        return ids[: -len(behind)] if list(ids[-len(behind) :]) == behind else ids

    def encode_pair(context: str, continuation: str) -> Pair:
        encode = model.tok_encode
        with internals.shadowed(
            model, "tok_encode", lambda *args, **more: without(encode(*args, **more))
        ):
            return pair(context, continuation)

    def encode_texts(*args: object, **more: object) -> tuple[Tensor, Tensor]:
        ids, mask = texts(*args, **more)  # padded in front
        if all(row[-len(behind) :] == behind for row in ids.tolist()):
            return ids[:, : -len(behind)], mask[:, : -len(behind)]
        return ids, mask

    setattr(model, internals.ENCODE_PAIR, encode_pair)
    if texts is not None:
        model.tok_batch_encode = encode_texts
    return [
        f"the tokenizer puts {tokenizer.decode(behind)} behind every text: left out of prompts and continuations"
    ]


def _start(
    model: TemplateLM,
    tokenizer: PreTrainedTokenizerBase,
    given: Container[str],
    prompt: str,
) -> list[str]:
    """Add the start token that the tokenizer's configuration asks for."""
    bos = getattr(tokenizer, "bos_token", None)
    if "add_bos_token" in given or (bos and prompt.startswith(bos)):
        return []
    front, _ = added(tokenizer.encode, tokenizer)
    wanted = getattr(tokenizer, "init_kwargs", {}).get("add_bos_token")
    if internals.is_client(model):
        if not front or model.add_bos_token:
            return []
        model.add_bos_token = True
        return [
            f"prompts begin with {tokenizer.decode(front)}, as the tokenizer has it (add_bos_token=True)"
        ]
    if wanted is True and not front and tokenizer.bos_token_id is not None:
        with contextlib.suppress(Exception):
            tokenizer.add_bos_token = True
        front, _ = added(tokenizer.encode, tokenizer)
        if not front:
            raise BiasError(
                "the tokenizer's configuration says add_bos_token=true, but it puts no start token in front of a text: "
                "use another release of transformers, or accept that with --model_args add_bos_token=False"
            )
        return [
            f"prompts begin with {tokenizer.decode(front)}, as the tokenizer's configuration says"
        ]
    if wanted is False and front:
        return [
            f"the tokenizer puts {tokenizer.decode(front)} in front of every text, though its configuration says "
            "add_bos_token=false: kept; --model_args add_bos_token=False leaves it out"
        ]
    return []


def _round_trip(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Report a tokenizer whose decoding differs from the text."""
    ids = tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]
    if getattr(tokenizer, "unk_token_id", None) in ids:
        return []
    back = tokenizer.decode(ids)
    if back.casefold().split() == SAMPLE.split():
        return []
    return [
        f"the tokenizer gives {SAMPLE!r} back as {back!r}: what the model reads is another text"
    ]


def _of_the_harness(model: LM, given: Container[str]) -> list[str]:
    """Report settings of the harness that change scores."""
    config = getattr(internals.attribute(model, "model"), "config", None)
    sentences = []
    if "delta" in given and getattr(config, "tie_word_embeddings", False):
        sentences.append(
            "delta= with tied embeddings: the harness adds their difference twice; merge the weights yourself instead"
        )
    if "peft" in given and config is not None:
        rows = model.model.get_input_embeddings().weight.shape[0]
        if rows == len(model.tokenizer):
            sentences.append(
                f"peft=: the harness has cut the embeddings to the tokenizer's {rows:,} tokens"
            )
    is_batched = str(internals.attribute(model, "batch_size", 1)) != "1"
    if getattr(config, "model_type", "").startswith(_RECURRENT) and is_batched:
        sentences.append(
            "a recurrent model reads the padding in front of shorter prompts when it writes texts: use --batch_size 1"
        )
    return sentences
