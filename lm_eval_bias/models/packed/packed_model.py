"""The harness's ``hf`` backend with every common beginning of a run's requests computed once."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from lm_eval.models.huggingface import HFLM
from tqdm import tqdm

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.models.packed import attention_masks, method_trial
from lm_eval_bias.models.packed.layouts import Cost
from lm_eval_bias.models.packed.packed_forwards import ForwardOutput, Method, Network, Plain, score
from lm_eval_bias.models.packed.trie_walk import TrieMethod
from lm_eval_bias.models.prefix_trie import Ints, arrange
from lm_eval_bias.scoring.token_likelihoods import encoded_once

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import Instance

logger = logging.getLogger("lm_eval.bias")
_TOKENS_ON_CPU, _TOKENS_ELSEWHERE = 1024, 16384  # of a forward
_LOGITS_ON_CPU, _LOGITS_ELSEWHERE = 1 << 29, 1 << 31  # bytes of a forward's logits
_GROUPED = "TRANSFORMERS_SDPA_FORCE_GQA"
Request = tuple[tuple[str, str] | None, list[int], list[int]]  # key in the cache, context, continuation
Answer = tuple[float, bool]


class HFPacked(HFLM):
    """``--model hf`` for causal models, several times faster where requests begin alike; same arguments and answers.

    All requests of a call form one trie over token ids, which is run as few rows in which each token sees its
    ancestors. At load the model shows on a small trie that it gives the logits of plain forwards so; where it doesn't,
    a method that shares less is taken (see :mod:`.packed_forwards`), at last the ``hf`` backend's own.
    Log-probabilities are taken in float32 whatever the model's dtype. ``batch_size`` serves generated texts only.
    """

    def __init__(self, *args: Any, tokens_per_forward: int | None = None, **kwargs: Any) -> None:
        """Load the model as ``hf`` does, and find out what it can share.

        Args:
            args: The ``hf`` backend's.
            tokens_per_forward: Tokens of a forward; by default 1,024 on a CPU, 16,384 elsewhere, halved where memory
                does not suffice.
            kwargs: The ``hf`` backend's.

        Raises:
            BiasError: An encoder-decoder model, or a number of tokens that is none.
        """
        if tokens_per_forward is not None and (not str(tokens_per_forward).isdigit() or int(tokens_per_forward) < 1):
            raise BiasError(f"--model_args tokens_per_forward={tokens_per_forward}: must be a number above 0")
        super().__init__(*args, **kwargs)
        self.logits_cache = False  # of the hf backend; it mixes up texts divided at several places
        self._on_cpu = self.device.type == "cpu"
        self._budget = int(tokens_per_forward or (_TOKENS_ON_CPU if self._on_cpu else _TOKENS_ELSEWHERE))
        self._method: Method | None = None
        self._tested_length = 0
        self._prove(method_trial.STEM)

    def _get_backend(self, *args: Any, **kwargs: Any) -> None:
        super()._get_backend(*args, **kwargs)
        if self.backend != "causal":
            raise BiasError("--model hf-packed is for causal language models: run this encoder-decoder with --model hf")

    def _call(self, **inputs: Any) -> Any:
        # transformers copies heads' common keys for each head where there is a mask; on a GPU that pays
        grouped = self._on_cpu and _GROUPED not in os.environ
        if grouped:
            os.environ[_GROUPED] = "1"
        dtype = self.mixed_precision_dtype
        try:
            with torch.no_grad(), torch.autocast(self.device.type, dtype, enabled=dtype is not None):
                return self.model(**inputs)
        finally:
            if grouped:
                del os.environ[_GROUPED]

    def _network(self) -> Network:
        model = self.model
        embeddings = model.get_input_embeddings().weight
        head = model.get_output_embeddings()
        tables = {id(embeddings), id(getattr(head, "weight", None))}
        size = sum(p.numel() for p in model.parameters() if id(p) not in tables)
        text = model.config.get_text_config()
        width, layers = getattr(text, "hidden_size", 1024), getattr(text, "num_hidden_layers", 12)
        dtype = embeddings.dtype if embeddings.dtype.is_floating_point else torch.float16
        # attention kernels reach two thirds of the speed of matrix products
        cost = Cost(token=2.0 * size, pair=6.0 * width * layers)
        return Network(
            model, self._call, self.device, self.mixed_precision_dtype or dtype, cost, int(embeddings.shape[0])
        )

    def _prove(self, stem: int) -> None:
        """Find the first method that agrees with plain forwards on sequences longer than ``stem`` tokens."""
        if self._method is None and self._tested_length:
            return
        unfit = self._unfit()
        if unfit:
            verdict = method_trial.MethodVerdict(None, unfit, sys.maxsize)
        else:
            network = self._network()
            special = np.array(self.tokenizer.all_special_ids, np.int64)
            token_ids = np.arange(min(network.vocabulary, len(self.tokenizer)))
            usable = np.setdiff1d(token_ids, special) if len(token_ids) > len(special) + 1 else token_ids
            logger.info("hf-packed: checking shared beginnings against plain forward passes")
            exact = network.dtype in (torch.float32, torch.float64) and not self._quantised()
            verdict = method_trial.choose(network, self.max_length, stem, usable, exact)
        self._method, self._tested_length = verdict.method, max(verdict.longest, 1)
        if self._method:
            self._method.limit(attention_masks.windows(self.model.config))
        name = self._method.name if self._method else "the hf backend's own method"
        level = logging.INFO if isinstance(self._method, TrieMethod) else logging.WARNING
        logger.log(level, "hf-packed: %s (%s)", name, verdict.why)

    def _quantised(self) -> bool:
        """Whether weights are kept in less than their dtype; those of a GGUF file are unpacked when it is loaded."""
        config = getattr(self.model.config, "quantization_config", None)
        method = config.get("quant_method") if isinstance(config, dict) else getattr(config, "quant_method", None)
        return config is not None and str(getattr(method, "value", method)) != "gguf"

    def _unfit(self) -> str | None:
        """Why only the ``hf`` backend's own way will do; ``None`` if the model may be tried."""
        accelerator = getattr(self, "accelerator", None)
        if accelerator is not None and str(accelerator.distributed_type).endswith("FSDP"):
            return "a model sharded over several processes needs the same forward passes on each"
        if self.softmax_dtype not in (None, torch.float32):
            return f"softmax_dtype={self.softmax_dtype} was requested"
        return None

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[Answer]:
        """See the ``hf`` backend's."""
        with encoded_once(self, [request.args for request in requests]):
            return super().loglikelihood(requests, disable_tqdm=disable_tqdm)

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """See the ``hf`` backend's; all windows go into one trie."""
        before = self.batch_size
        self.batch_size_per_gpu = sys.maxsize if self._method else before
        try:
            return super().loglikelihood_rolling(requests, disable_tqdm=disable_tqdm)
        finally:
            self.batch_size_per_gpu = before

    def _loglikelihood_tokens(
        self, requests: Sequence[Request], disable_tqdm: bool = False, override_bs: int | None = None
    ) -> list[Answer]:
        """Log-likelihoods of continuations, both given as ids, and whether each is the greedy one."""
        limit = self.max_length
        inputs = []
        truncated = 0
        for _, context, continuation in requests:
            if not context or not continuation or len(continuation) > limit:
                raise BiasError(
                    f"a request with {len(context)} context and {len(continuation)} continuation tokens; each needs at "
                    f"least one, and the model reads at most {limit}"
                )
            tokens = context + continuation
            truncated += len(tokens) > limit + 1
            inputs.append(tokens[-(limit + 1) :][:-1])
        if truncated:
            logger.warning(
                "%s requests are longer than the model's limit of %s tokens: their beginnings are cut off",
                truncated,
                limit,
            )
        longest = max(map(len, inputs), default=0)
        untested = [w for w in attention_masks.windows(self.model.config) if self._tested_length <= w < longest]
        if untested:
            self._prove(max(untested) + max(untested) // 4)  # so that what lies beyond matters
        if self._method is None:
            return super()._loglikelihood_tokens(requests, disable_tqdm, override_bs)
        answers: list[Answer | None] = [None] * len(requests)
        size, run = sum(map(len, inputs)), 0
        job = _SequenceRequests(requests, inputs)
        with tqdm(
            total=len(requests), desc="Running loglikelihood requests", disable=disable_tqdm or self.rank != 0
        ) as bar:
            alone = job.sequences.lengths > (attention_masks.long_from(self.model.config) or sys.maxsize)
            one_by_one = Plain(self._method.network, alone=True)  # where the length changes the model's positions
            for method, indices in ((self._method, np.flatnonzero(~alone)), (one_by_one, np.flatnonzero(alone))):
                for part_size, part_answers in self._run(method, job, indices):
                    run += part_size
                    for i, answer in part_answers:
                        answers[i] = answer
                        if requests[i][0] is not None:  # rolling ones are kept as a whole
                            self.cache_hook.add_partial("loglikelihood", requests[i][0], answer)
                    bar.update(len(part_answers))
        if requests and not disable_tqdm:
            logger.info(
                "hf-packed: %s tokens requested, %s run (%.0f%% shared)",
                f"{size:,}",
                f"{run:,}",
                100 * (1 - run / size),
            )
        return [answer for answer in answers if answer is not None]

    def _run(
        self, method: Method, job: _SequenceRequests, remaining: Ints
    ) -> Iterator[tuple[int, list[tuple[int, Answer]]]]:
        """Run sequences: tokens and answers of each forward; forwards shrink when memory runs out."""
        size = _LOGITS_ON_CPU if self._on_cpu else _LOGITS_ELSEWHERE
        most = max(64, size // (4 * method.network.vocabulary))
        while len(remaining):
            finished: list[int] = []
            try:
                sequences, needed = job.sequences.subset(remaining), job.needed[remaining]
                for output in method.outputs(sequences, needed, self._budget, most):
                    yield output.tokens, job.answers(output, remaining)
                    finished.extend(output.nodes)
            except Exception as error:
                if not (isinstance(error, MemoryError) or should_reduce_batch_size(error)):
                    raise
                if self._budget < 2:
                    raise BiasError(
                        f"not enough memory for a single sequence ({one_line(error)}): use a smaller model "
                        "or a larger device"
                    ) from error
                self._budget, most = self._budget // 2, max(1, most // 2)
                logger.warning("hf-packed: out of memory, continuing with %s tokens per forward pass", self._budget)
            remaining = np.delete(remaining, finished)
            if len(remaining):
                clear_device_cache(garbage_collection=True)


class _SequenceRequests:
    """Requests by the sequence that answers them."""

    def __init__(self, requests: Sequence[Request], inputs: list[list[int]]) -> None:
        self.requests = requests
        self.sequences, sequence_of = arrange(inputs)
        lengths = np.fromiter((len(continuation) for *_, continuation in requests), np.int64, len(requests))
        self.needed = np.zeros(len(self.sequences), np.int64)
        np.maximum.at(self.needed, sequence_of, lengths)
        self._order = np.argsort(sequence_of, kind="stable")
        self._starts = np.searchsorted(sequence_of[self._order], np.arange(len(self.sequences) + 1))

    def answers(self, output: ForwardOutput, remaining: Ints) -> list[tuple[int, Answer]]:
        """Answers to the requests of a forward's sequences, which it numbers among those that are left."""
        indices: list[int] = []
        places: list[Ints] = []
        targets: list[list[int]] = []
        for local, rows in output.nodes.items():
            k = int(remaining[local])
            for i in self._order[self._starts[k] : self._starts[k + 1]].tolist():
                continuation = self.requests[i][2]
                indices.append(i)
                places.append(rows[len(rows) - len(continuation) :])
                targets.append(continuation)
        counts = np.fromiter(map(len, targets), np.int64, len(targets))
        flat = np.fromiter((token for ids in targets for token in ids), np.int64, int(counts.sum()))
        logprobs, greedy = score(output.logits, np.concatenate(places), flat)
        heads = np.cumsum(counts) - counts
        sums = np.add.reduceat(logprobs, heads)
        all_greedy = np.logical_and.reduceat(greedy, heads)
        return [(i, (float(s), bool(g))) for i, s, g in zip(indices, sums, all_greedy, strict=True)]
