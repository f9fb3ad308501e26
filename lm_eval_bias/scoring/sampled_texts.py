"""Texts that models write, kept so that a run that was cut short goes on with what it has.

The harness keeps no sampled text (``--use_cache``), and draws all of a run's samples from one stream of random numbers:
after a stop everything would be another text. Here the samples of a prompt are drawn in parts, each from a seed of its
own, made of the run's seed, the prompt, the options and the part's place. A part is kept once it is whole; what another
run, task, limit or number of processes asks beside it does not change it. Backends that take a seed with a request get
one per text, so that a server that would answer equal seeds alike gives other texts; for the others torch is seeded
per batch.

A batch is a part, or where a part leaves most of a batch empty, the parts of several prompts of one task. These depend
on each other, so that their prompts are in the seed and in the name of what is kept: the same command gives the same
texts, stopped or not, and another limit draws the last of them again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lm_eval_bias.core import Data
from lm_eval_bias.core.answers import Text, apart, with_finish
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.questions import GENERATED
from lm_eval_bias.harness import internals, servers, tokenization_boundary
from lm_eval_bias.harness.internals import shadowed
from lm_eval_bias.scoring import token_likelihoods
from lm_eval_bias.scoring.free_answers import marks_thoughts, opening_of_thoughts

if TYPE_CHECKING:
    from lm_eval.api.model import LM
    from vllm import RequestOutput

    from lm_eval_bias.harness.internals import Instance, Requests

_PLAIN = "generate_until"
# the harness's whose requests carry a seed, those of servers and all; classes derived from them may refuse one
_SERVED = {
    "LocalCompletionsAPI",
    "LocalChatCompletion",
    "OpenAICompletionsAPI",
    "OpenAIChatCompletion",
    "AzureOpenaiChatCompletionsLM",
}
_SEEDED = _SERVED | {"VLLM"}


@dataclasses.dataclass(frozen=True)
class TextBatch:
    """Samples of one prompt that are drawn together.

    Attributes:
        places: Which requests they answer.
        context: The prompt.
        options: Of the generation, without a seed.
        start: How many samples of the prompt lie before.
        base: The run's seed, ``None`` where none is to be sent.
        beside: The prompts of all parts of its batch, where it isn't drawn alone.
    """

    places: tuple[int, ...]
    context: str
    options: Data
    start: int
    base: int | None
    beside: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """The 31-bit seed of this part, or of the batch that it starts."""
        drawn = (self.context, self.options, self.base, self.start, *self.beside)
        return int(internals.request_key(GENERATED, drawn)[:8], 16) >> 1

    def key(self, place: int) -> tuple[object, ...]:
        """Name the text at a place of this part in the cache of ``--use_cache``."""
        return (
            self.context,
            self.options,
            self.base,
            self.start,
            len(self.places),
            place,
            *self.beside,
        )


Batch = list[TextBatch]
PartTexts = tuple[TextBatch, list[str]]


def seeded(kind: type[LM]) -> bool:
    """Return whether a model type takes a seed with every request."""
    return (
        getattr(kind, "takes_seeds", False) or getattr(kind, "__name__", "") in _SEEDED
    )


def parts(requests: Requests, size: int, run_seed: int) -> list[TextBatch]:
    """Divide the samples of each prompt into parts of ``size``, in the order of the requests.

    Args:
        requests: Instances with ``(context, options)``; as many equal ones as samples are wanted.
        size: Samples that are drawn together.
        run_seed: Taken where the options name no ``seed``.
    """
    keys = (internals.request_key(GENERATED, request.args) for request in requests)
    all_parts = []
    for places in grouped(zip(keys, itertools.count(), strict=False)).values():
        context, request_options = requests[places[0]].args
        options = dict(request_options)
        base = options.pop("seed", run_seed)
        for start in range(0, len(places), size):
            drawn = tuple(places[start : start + size])
            all_parts.append(TextBatch(drawn, context, options, start, base))
    return all_parts


def batches(alone: Sequence[TextBatch], requests: Requests, size: int) -> list[Batch]:
    """Group parts to draw together: up to ``size`` samples, of a task's neighbouring prompts with equal options.

    Args:
        alone: Parts of at most ``size`` samples (:func:`parts`).
        requests: Those that the parts answer.
        size: Samples that are drawn together.
    """
    joined: list[Batch] = []
    last = None
    room = 0
    for part in alone:
        kind = requests[part.places[0]].task_name, part.options, part.base
        if kind != last or len(part.places) > room:
            joined.append([])
            last = kind
            room = size
        joined[-1].append(part)
        room -= len(part.places)
    for batch in joined:
        if len(batch) > 1:
            prompts = tuple(part.context for part in batch)
            batch[:] = [dataclasses.replace(part, beside=prompts) for part in batch]
    return joined


def _size(model: LM) -> int | None:
    """Return the number of samples drawn together; ``None`` if the model chooses it."""
    batch = str(internals.attribute(model, "batch_size", 1))
    return (
        int(batch) * internals.concurrency(model)
        if batch.isdigit() and int(batch)
        else None
    )


@contextlib.contextmanager
def _detecting_once(model: LM) -> Iterator[None]:
    """Detect the batch size of ``batch_size=auto`` once, not before every part."""
    detect = getattr(model, internals.DETECT_BATCH_SIZE, None)
    if detect is None:
        yield
        return
    with shadowed(
        model, internals.DETECT_BATCH_SIZE, functools.lru_cache(maxsize=None)(detect)
    ):
        yield


def _request(
    requests: Requests, part: TextBatch, place: int, **options: object
) -> Instance:
    """Make a part's request to the backend for the text at a place, with further options."""
    arguments = (part.context, {**part.options, **options})
    return dataclasses.replace(requests[place], arguments=arguments)


def _keep(model: LM, written: Sequence[PartTexts]) -> None:
    """Write the texts of some parts into the file of ``--use_cache``, and wait until they are on the disk."""
    for part, texts in written:
        for i, text in enumerate(texts):
            model.cache_hook.add_partial(GENERATED, part.key(i), text)
    servers.commit(model)


def _seeded_texts(
    model: LM, batched: list[Batch], requests: Requests, _: Instance
) -> Iterator[PartTexts]:
    """Draw samples from a backend that takes a seed with every request: as many at once as it can take."""
    missing = [part for (part,) in batched]

    def write(batch: Batch) -> list[PartTexts]:
        asked = [
            _request(requests, part, part.places[0], seed=part.seed) for part in batch
        ]
        texts = internals.generate_silently(model, asked)
        written = [(part, [text]) for part, text in zip(batch, texts, strict=True)]
        _keep(model, written)  # at once, whatever is still written beside it
        return written

    if type(model).__name__ not in _SERVED:
        for batch in token_likelihoods.portions(model, missing):
            yield from write(batch)
        return
    # the harness sends only requests with equal options, and so with one seed, at the same time
    pool = ThreadPoolExecutor(max_workers=internals.concurrency(model))
    try:
        for texts in pool.map(write, [[part] for part in missing]):
            yield from texts
    finally:
        pool.shutdown(cancel_futures=True)


def _torch_texts(
    model: LM,
    batched: list[Batch],
    requests: Requests,
    filler: Instance,
) -> Iterator[PartTexts]:
    """Draw samples from a backend that draws with torch here, or that is to get no seed."""
    import torch

    # a server may want to be told that there is none; other backends would not know the option
    unseeded = {"seed": None} if internals.is_client(model) else {}
    # sharded models have to run in step
    for number in range(token_likelihoods.max_over_ranks(model, len(batched))):
        if number >= len(batched):
            internals.generate_silently(model, [filler])
            continue
        batch = batched[number]
        torch.manual_seed(batch[0].seed)
        asked = []
        for part in batch:
            more = unseeded if part.base is None else {}
            asked += [_request(requests, part, i, **more) for i in part.places]
        texts = iter(internals.generate_silently(model, asked))
        written = [
            (part, list(itertools.islice(texts, len(part.places)))) for part in batch
        ]
        _keep(model, written)
        yield from written


def _sampled(model: LM, requests: Requests, filler: Instance) -> list[str]:
    """Draw samples; fillers keep this rank in step with others."""
    import torch

    takes_seeds = seeded(type(model)) and all(
        request.args[1].get("seed", 0) is not None for request in requests
    )
    texts: list[Any] = [None] * len(requests)
    size = 1 if takes_seeds else _size(model)
    alone = parts(requests, size or len(requests), torch.initial_seed())
    batched = batches(alone, requests, size) if size else [[part] for part in alone]
    for part in itertools.chain.from_iterable(batched):
        keys = map(part.key, range(len(part.places)))
        kept = servers.kept(model, GENERATED, keys)
        for place, text in zip(part.places, kept, strict=True):
            texts[place] = text
    lacking = {place for place, text in enumerate(texts) if text is None}
    missing = [
        batch
        for batch in batched
        if any(not lacking.isdisjoint(part.places) for part in batch)
    ]
    draw = _seeded_texts if takes_seeds else _torch_texts
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with (
        torch.random.fork_rng(devices=devices),
        _detecting_once(model),
        internals.no_client_bars(model),  # there is one around all samples
        tqdm(
            total=sum(len(part.places) for batch in missing for part in batch),
            desc="Sampling texts",
            disable=model.rank != 0,
        ) as bar,
    ):
        for part, part_texts in draw(model, missing, requests, filler):
            for place, text in zip(part.places, part_texts, strict=True):
                texts[place] = text
            bar.update(len(part_texts))
    return texts


def _greedy(model: LM, requests: Requests, filler: Instance) -> list[str]:
    """Generate greedy texts as the harness does."""

    def write(places: token_likelihoods.Places) -> list[str]:
        return model.generate_until(
            [filler if i is None else requests[i] for i in places]
        )

    return token_likelihoods.answer_cached(
        model, _PLAIN, [request.args for request in requests], write
    )


@contextlib.contextmanager
def _telling_ends(model: LM, tells_ends: bool) -> Iterator[None]:
    """Attach finish reasons to texts where a server's client or vLLM knows them."""
    name = "marks"
    change: object = tells_ends
    if internals.derives_from(type(model), "VLLM") and tells_ends:
        name = internals.MODEL_GENERATE
        write = getattr(model, name)

        def change(*args: object, **options: object) -> Sequence[RequestOutput]:
            written = write(*args, **options)
            for output in written if options.get("generate") else ():
                for text in output.outputs:
                    text.text = with_finish(text.text, text.finish_reason)
            return written

    with shadowed(model, name, change):
        yield


@contextlib.contextmanager
def _keeping_marks(model: LM, tells_ends: bool) -> Iterator[None]:
    """Keep special tokens around thoughts in the texts of the harness's ``hf``.

    It drops all of them, so that the thoughts of gpt-oss or Gemma 4 would run into the answer. Other model types keep
    them by themselves (vLLM), or get texts whose thoughts a server has cut. Texts may also carry why they ended: one
    without an end token was cut, unless a stop string is in it, which the harness takes off with all behind it.
    """
    if not internals.derives_from(type(model), "HFLM"):
        yield
        return
    ends = internals.end_tokens(model) if tells_ends else set()
    tokens = getattr(model.tokenizer, "added_tokens_decoder", {}).values()
    special = [
        re.escape(token.content)
        for token in tokens
        if token.special and not marks_thoughts(token.content)
    ]
    last = re.compile(rf"(?:\s*(?:{'|'.join(special) or '(?!)'}))+\s*\Z")
    decode = model.tok_decode

    def decode_with_marks(
        tokens: Sequence[int], skip_special_tokens: bool = True
    ) -> str:
        text = decode(tokens, skip_special_tokens=skip_special_tokens)
        if not skip_special_tokens:
            return text
        marked = last.sub("", decode(tokens, skip_special_tokens=False))
        text = marked if marks_thoughts(marked) else text
        if not ends:
            return text
        return with_finish(text, "length" if ends.isdisjoint(tokens) else "stop")

    with shadowed(model, "tok_decode", decode_with_marks):
        yield


def _generated(self: LM, requests: Requests) -> list[str]:
    """Answer ``(context, options)`` requests; equal ones that sample (``do_sample``) are further samples.

    Returns:
        One text a request, which knows why it ended in a run of this package's command. Answers come from the cache of
        ``--use_cache`` where it has them and go into it. Where a prompt opens the model's thoughts, the text begins
        with that, so that thoughts that never end can be told.
    """
    texts: list[Any] = [None] * len(requests)
    tokenization_boundary.find_cut(self, requests)
    with (
        # only then the log has it, too: what is read must be what is read again
        servers.asking(self) as tells_ends,
        _telling_ends(self, tells_ends),
        _keeping_marks(self, tells_ends),
    ):
        for sampling, answer in ((True, _sampled), (False, _greedy)):
            places = [
                i
                for i, request in enumerate(requests)
                if bool(request.args[1].get("do_sample")) is sampling
            ]
            if token_likelihoods.max_over_ranks(self, len(places)):
                for i, text in zip(
                    places,
                    answer(self, [requests[i] for i in places], requests[0]),
                    strict=True,
                ):
                    written = apart(text)
                    opening = opening_of_thoughts(requests[i].args[0])
                    texts[i] = Text(opening + written, written.finish)
    return texts


METHODS = {GENERATED: _generated}  # for the harness's model base class
