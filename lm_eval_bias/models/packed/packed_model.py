"""The harness's ``hf`` backend with every common beginning of a run's requests computed once."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from lm_eval.models.huggingface import HFLM
from tqdm import tqdm
from transformers.utils import ModelOutput

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.harness.internals import Ids, Pair
from lm_eval_bias.models.packed import method_trial, rows
from lm_eval_bias.models.packed.network import Network

logger = logging.getLogger("lm_eval.bias")
# key in the cache, context, continuation
Request = tuple[tuple[str, str] | None, Ids, Ids]
Likelihood = tuple[float, bool]  # and whether the continuation is greedy
Likelihoods = list[Likelihood]
_TOKENS_ON_CPU = 2048
_TOKENS_ELSEWHERE = 16384  # of a forward


def fitted(requests: Sequence[Request], limit: int) -> list[Pair]:
    """Cut the beginnings of contexts that, with their continuations, are longer than a model's limit, and warn of it.

    Args:
        requests: The requests.
        limit: Most tokens that the model reads; a request's last one needn't be read.

    Raises:
        BiasError: A request without a context or continuation, or without room for a context.
    """
    pairs = []
    cut = 0
    for _, context, continuation in requests:
        room = limit + 1 - len(continuation)
        if room < 1 or not context or not continuation:
            raise BiasError(
                f"a request with {len(context)} context and {len(continuation)} continuation tokens; each needs at "
                f"least one, and the model reads at most {limit}"
            )
        if len(context) > room:
            context = context[-room:]
            cut += 1
        pairs.append((context, continuation))
    if cut:
        logger.warning(
            "%s requests are longer than the model's limit of %s tokens: their beginnings are cut off",
            cut,
            limit,
        )
    return pairs


class HFPacked(HFLM):
    """``--model hf`` for causal models, several times faster where requests begin alike; same arguments and answers.

    All requests of a call form one trie over token ids. It is run as a few rows in which each token sees its ancestors.
    At load the model is tried on a small trie; where its logits aren't those of plain forwards, requests are left to
    the ``hf`` backend.

    Log-probabilities are taken in float32 whatever the model's dtype. ``batch_size`` serves generated texts only.

    Attributes:
        network: Runs rows of sequences; ``None`` leaves them to the ``hf`` backend.
    """

    softmax_dtype: torch.dtype | None

    def __init__(
        self, *args: object, tokens_per_forward: int | None = None, **kwargs: object
    ) -> None:
        """Load the model as ``hf`` does, and find out which beginnings can be shared.

        Args:
            args: The ``hf`` backend's.
            tokens_per_forward: Most tokens of a forward; by default 2,048 on a CPU, 16,384 elsewhere, halved where
                memory runs out.
            kwargs: The ``hf`` backend's.

        Raises:
            BiasError: An encoder-decoder model.
        """
        super().__init__(*args, **kwargs)
        # the hf backend's cache mixes up texts divided at several places
        self.logits_cache = False
        on_cpu = self.device.type == "cpu"
        default = _TOKENS_ON_CPU if on_cpu else _TOKENS_ELSEWHERE
        self._budget = max(1, tokens_per_forward or default)
        self.network = self._proven()
        self._reach = method_trial.reach(self.model.config)
        # of what is left to the hf backend
        self.softmax_dtype = self.softmax_dtype or torch.float32

    def _get_backend(self, *args: object, **kwargs: object) -> None:
        super()._get_backend(*args, **kwargs)
        if self.backend != "causal":
            raise BiasError(
                "--model hf-packed is for causal language models: run this encoder-decoder with --model hf"
            )

    def _call(self, **inputs: object) -> ModelOutput:
        dtype = self.mixed_precision_dtype
        with (
            torch.no_grad(),
            torch.autocast(self.device.type, dtype, enabled=dtype is not None),
        ):
            return self.model(**inputs)

    def _network(self) -> Network:
        embeddings = self.model.get_input_embeddings().weight
        text = self.model.config.get_text_config()
        is_float = embeddings.dtype.is_floating_point
        dtype = embeddings.dtype if is_float else torch.float16
        parameters = sum(p.numel() for p in self.model.parameters())
        width = getattr(text, "hidden_size", 1024)
        layers = getattr(text, "num_hidden_layers", 12)
        # attention kernels reach two thirds of the speed of matrix products
        pair = 3.0 * width * layers / max(1, parameters - embeddings.numel())
        return Network(
            self.model,
            self._call,
            self.device,
            self.mixed_precision_dtype or dtype,
            pair,
            int(embeddings.shape[0]),
        )

    def _proven(self) -> Network | None:
        """Return the network if its rows give plain forwards' logits."""
        network = self._network()
        is_right, why = False, self._unfit()
        if not why:
            usable = method_trial.usable_ids(self.tokenizer, network.vocabulary)
            logger.info(
                "hf-packed: checking shared beginnings against plain forward passes"
            )
            quantisation = getattr(self.model.config, "quantization_config", None)
            is_exact_dtype = network.dtype in (torch.float32, torch.float64)
            is_right, why = method_trial.compare(
                network,
                self.max_length,
                usable,
                is_exact_dtype and quantisation is None,
            )
        if not is_right:
            logger.warning("hf-packed: the hf backend's own method (%s)", why)
            return None
        logger.info("hf-packed: %s", why)
        return network

    def _unfit(self) -> str | None:
        """Explain why requests must go to the ``hf`` backend; ``None`` if the model may be tried."""
        accelerator = getattr(self, "accelerator", None)
        if accelerator is not None and str(accelerator.distributed_type).endswith(
            "FSDP"
        ):
            return "a model sharded over several processes needs the same forward passes on each"
        if self.softmax_dtype not in (None, torch.float32):
            return f"softmax_dtype={self.softmax_dtype} was requested"
        return None

    def _loglikelihood_tokens(
        self,
        requests: Sequence[Request],
        disable_tqdm: bool = False,
        override_bs: int | None = None,
    ) -> Likelihoods:
        """Return log-likelihoods of continuations, all given as token ids, and whether each is greedy."""
        pairs = fitted(requests, self.max_length)
        inputs = [context + continuation[:-1] for context, continuation in pairs]
        if self.network is None:
            return super()._loglikelihood_tokens(requests, disable_tqdm, override_bs)
        packed = [i for i, ids in enumerate(inputs) if len(ids) <= self._reach]
        others = [i for i, ids in enumerate(inputs) if len(ids) > self._reach]
        answers = self._packed(self.network, requests, inputs, packed, disable_tqdm)
        if others:
            unpacked = super()._loglikelihood_tokens(
                [requests[i] for i in others], disable_tqdm, override_bs
            )
            answers.update(zip(others, unpacked, strict=True))
        return [answers[i] for i in range(len(requests))]

    def _packed(
        self,
        network: Network,
        requests: Sequence[Request],
        inputs: Sequence[Ids],
        chosen: Sequence[int],
        silent: bool,
    ) -> dict[int, Likelihood]:
        """Compute some requests' likelihoods by rows of their trie, in smaller forwards where memory runs out."""
        run = 0
        answers = dict[int, Likelihood]()
        silent = silent or self.rank != 0
        title = "Running loglikelihood requests"
        with tqdm(total=len(chosen), desc=title, disable=silent) as bar:
            while missing := [i for i in chosen if i not in answers]:
                try:
                    for tokens, found in self._forwards(
                        network, requests, inputs, missing
                    ):
                        run += tokens
                        answers |= found
                        bar.update(len(found))
                        for i, answer in found.items():
                            key = requests[i][0]
                            if key is not None:  # rolling ones are kept as a whole
                                self.cache_hook.add_partial(
                                    "loglikelihood", key, answer
                                )
                except Exception as error:
                    self._halve(error)
        if len(chosen) > 1 and not silent:
            asked = sum(len(inputs[i]) for i in chosen)
            shared = 100 * (1 - run / asked)
            logger.info(
                f"hf-packed: {asked:,} tokens requested, {run:,} run ({shared:.0f}% shared)"
            )
        return answers

    def _halve(self, error: Exception) -> None:
        """Halve the forwards where memory ran out.

        Raises:
            Exception: It was another error.
            BiasError: They can't be halved.
        """
        if not isinstance(error, MemoryError) and not should_reduce_batch_size(error):
            raise error
        if self._budget < 2:
            raise BiasError(
                f"not enough memory for a single sequence ({one_line(error)}): use a smaller model or a larger device"
            ) from error
        self._budget //= 2
        logger.warning(
            "hf-packed: out of memory, continuing with %s tokens per forward pass",
            self._budget,
        )
        clear_device_cache(garbage_collection=True)

    def _forwards(
        self,
        network: Network,
        requests: Sequence[Request],
        inputs: Sequence[Ids],
        chosen: Sequence[int],
    ) -> Iterator[tuple[int, dict[int, Likelihood]]]:
        """Yield the number of tokens of each forward, padding aside, and the likelihoods of the requests in it."""
        asking = grouped((tuple(inputs[i]), i) for i in chosen)
        sequences = list(map(list, sorted(asking)))
        for part in rows.lay_out(sequences, self._budget, network.attention_cost):
            asked: list[int] = []
            wanted: list[rows.Ints] = []
            places = []
            for first, row in part:
                tails = []
                for sequence, path in zip(
                    sequences[first : first + len(row.paths)], row.paths, strict=True
                ):
                    for i in asking[tuple(sequence)]:
                        asked.append(i)
                        tails.append(path[-len(requests[i][2]) :])
                nodes, inverse = np.unique(np.concatenate(tails), return_inverse=True)
                places.append(inverse + sum(map(len, wanted)))
                wanted.append(nodes)
            packed = [row for _, row in part]
            logits = network.logits(packed, wanted).float()
            continuations = [requests[i][2] for i in asked]
            targets = torch.tensor(list(chain.from_iterable(continuations)))
            at = torch.from_numpy(np.concatenate(places)).to(logits.device)
            tokens = targets.to(logits.device)
            values = logits[at, tokens] - logits.logsumexp(-1)[at]
            is_likeliest = logits.argmax(-1)[at] == tokens
            starts = np.cumsum([0, *map(len, continuations[:-1])])
            sums = np.add.reduceat(values.cpu().double().numpy(), starts)
            greedy = np.logical_and.reduceat(is_likeliest.cpu().numpy(), starts)
            found = zip(sums.tolist(), greedy.tolist(), strict=True)
            yield (
                sum(len(row.tokens) for row in packed),
                dict(zip(asked, found, strict=True)),
            )
