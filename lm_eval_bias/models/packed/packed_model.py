"""The harness's ``hf`` backend with every common beginning of a run's requests computed once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import chain, starmap

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from lm_eval.models.huggingface import HFLM
from scipy.sparse import csr_array
from tqdm import tqdm
from transformers.utils import ModelOutput

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.harness.internals import Ids
from lm_eval_bias.models.encoded_texts import EncodesOnce
from lm_eval_bias.models.packed import method_trial, rows
from lm_eval_bias.models.packed.packed_forwards import ForwardOutput, Network
from lm_eval_bias.models.prefix_trie import (
    Likelihood,
    Likelihoods,
    Request,
    Trie,
    fitted,
)

logger = logging.getLogger("lm_eval.bias")
_TOKENS_ON_CPU = 2048
_TOKENS_ELSEWHERE = 16384  # of a forward
_LOGITS_ON_CPU = 1 << 29
_LOGITS_ELSEWHERE = 1 << 31  # bytes of a forward's logits


class HFPacked(EncodesOnce, HFLM):
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
        self._on_cpu = self.device.type == "cpu"
        default = _TOKENS_ON_CPU if self._on_cpu else _TOKENS_ELSEWHERE
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
            why = f"rows of shared beginnings {why}"
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
        self.forget()
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
        size = _LOGITS_ON_CPU if self._on_cpu else _LOGITS_ELSEWHERE
        most = max(64, size // (4 * network.vocabulary))
        run = 0
        answers = dict[int, Likelihood]()
        silent = silent or self.rank != 0
        title = "Running loglikelihood requests"
        with tqdm(total=len(chosen), desc=title, disable=silent) as bar:
            while missing := [i for i in chosen if i not in answers]:
                sums = _Sums(
                    [inputs[i] for i in missing], [requests[i][2] for i in missing]
                )
                trie = sums.trie
                needed = np.zeros(len(trie), bool)
                needed[sums.needed] = True
                layout = rows.lay_out(
                    trie, needed, self._budget, most, network.attention_cost
                )
                runs = rows.forwards(trie, needed, layout, self._budget, most)
                outputs = starmap(partial(network.run, trie), runs)
                try:
                    for place, answer in chain.from_iterable(map(sums.add, outputs)):
                        key = requests[missing[place]][0]
                        answers[missing[place]] = answer
                        if key is not None:  # rolling ones are kept as a whole
                            self.cache_hook.add_partial("loglikelihood", key, answer)
                        bar.update()
                except Exception as error:
                    is_memory_error = isinstance(error, MemoryError)
                    if not is_memory_error and not should_reduce_batch_size(error):
                        raise
                    if self._budget < 2:
                        raise BiasError(
                            f"not enough memory for a single sequence ({one_line(error)}): use a smaller model "
                            "or a larger device"
                        ) from error
                    self._budget, most = self._budget // 2, max(1, most // 2)
                    logger.warning(
                        "hf-packed: out of memory, continuing with %s tokens per forward pass",
                        self._budget,
                    )
                run += sums.tokens
                if len(answers) < len(chosen):
                    clear_device_cache(garbage_collection=True)
        if len(chosen) > 1 and not silent:
            asked = sum(len(inputs[i]) for i in chosen)
            shared = 100 * (1 - run / asked)
            logger.info(
                f"hf-packed: {asked:,} tokens requested, {run:,} run ({shared:.0f}% shared)"
            )
        return answers


class _Sums:
    """Answers to requests, summed up token by token.

    Attributes:
        trie: What the model has to read.
        needed: Node of ``trie`` at which each token of the continuations is predicted.
        tokens: How many tokens were run, padding aside.
    """

    def __init__(self, inputs: list[Ids], continuations: list[Ids]) -> None:
        self.trie = Trie(inputs)
        counts = list(map(len, continuations))
        self.needed = self.trie.tails(counts)
        self.tokens = 0
        self._owners = np.repeat(np.arange(len(counts)), counts)
        self._targets = np.array(list(chain(*continuations)))
        numbers = np.arange(len(self.needed))
        ones = np.ones_like(numbers)
        self._predicted = csr_array((ones, (self.needed, numbers)))
        self._sums = np.zeros(len(inputs))
        self._greedy = np.ones(len(inputs), bool)
        self._left = np.array(counts)

    def add(self, output: ForwardOutput) -> list[tuple[int, Likelihood]]:
        """Add the outcome of a forward; return the completed requests with their answers."""
        self.tokens += output.tokens
        rows, predicted = self._predicted[output.nodes].nonzero()
        owners = self._owners[predicted]
        logprobs, greedy = output.score(rows, self._targets[predicted])
        np.add.at(self._sums, owners, logprobs)
        np.logical_and.at(self._greedy, owners, greedy)
        np.subtract.at(self._left, owners, 1)
        done = np.unique(owners[self._left[owners] == 0]).tolist()
        return [(i, (float(self._sums[i]), bool(self._greedy[i]))) for i in done]
