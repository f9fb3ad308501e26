"""The harness's ``vllm`` backend with common beginnings of requests served by the engine's prefix cache."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from lm_eval.models.vllm_causallms import VLLM

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.models import cached_prefixes
from lm_eval_bias.models.cached_prefixes import Ids, Plan, PrefixPrompt
from lm_eval_bias.models.packed import attention_masks
from lm_eval_bias.models.packed.method_trial import trial

logger = logging.getLogger("lm_eval.bias")
Request = tuple[
    tuple[str, str] | None, list[int], list[int]
]  # key in the cache, context, continuation
Answer = tuple[float, bool]
BLOCK_ON_CPU = 32  # tokens; the engine's own 128 there is longer than most prompts
# largest difference of a continuation's log-likelihood from the engine's own: in float32, and in less
EXACT, ROUGH = 1e-4, 0.2


class _Unanswered(Exception):
    """An answer lacks what was asked."""


class VLLMPacked(VLLM):
    """``--model vllm``, several times faster where requests begin alike; same arguments and answers.

    By itself the engine runs each request from its first token when log-probabilities of a prompt are wanted. Here each
    token of the requests' trie is scored once, by prompts that read the prefix cache (see :mod:`.cached_prefixes`). At
    load a small trie shows that this gives what the engine gives by itself; where it doesn't, or the engine caches
    nothing, requests go the ``vllm`` backend's own way, and a line says why.

    Attributes:
        why_not: Why they do; empty where they don't.
    """

    batch_size: Any
    takes_seeds = True  # with every request, as ``vllm`` does

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Load the model as ``vllm`` does, and find out whether its cache can be read.

        Args:
            args: The ``vllm`` backend's.
            kwargs: The ``vllm`` backend's; ``block_size`` is the shortest beginning that is shared (32 on a CPU,
                elsewhere vLLM's 16).
        """
        from vllm.platforms import current_platform

        kwargs.setdefault("enable_prefix_caching", True)
        if current_platform.is_cpu():
            kwargs.setdefault("block_size", BLOCK_ON_CPU)
        super().__init__(*args, **kwargs)
        self._prove(2 * self._block)

    def _prove(self, stem: int) -> None:
        """Find out whether beginnings of so many tokens can be shared, and say so where they can't."""
        self._tested = stem
        self.why_not = self._unfit() or self._trial(stem)
        if self.why_not:
            logger.warning(
                "vllm-packed: the vllm backend's own method (%s)", self.why_not
            )

    def _unfit(self) -> str:
        """Why the cache can't be read; empty if the engine may be tried."""
        if self.data_parallel_size > 1:
            return f"with data_parallel_size={self.data_parallel_size} each call loads the model again"
        config = self.model.llm_engine.vllm_config
        space = (
            config.cache_config.num_gpu_blocks or 0
        ) * config.cache_config.block_size
        if space < 2 * config.scheduler_config.max_num_batched_tokens:
            # a prompt that is put off in the middle would find its own first rows in the cache
            return f"memory for {space:,} tokens is too little to keep shared prefixes"
        return ""

    @property
    def _block(self) -> int:
        return int(self.model.llm_engine.vllm_config.cache_config.block_size)

    def _trial(self, stem: int) -> str:
        """Why a small trie's log-likelihoods aren't those of the engine's own way; empty if they are."""
        size = self.model.llm_engine.model_config.get_vocab_size()
        vocabulary = range(min(len(self.tokenizer), size))
        usable = set(vocabulary) - set(getattr(self.tokenizer, "all_special_ids", ()))
        drawn = trial(
            self.max_length - 3,
            stem,
            np.array(sorted(usable)),
        )
        requests: list[Request] = []
        for number, (ids, tail) in enumerate(zip(*drawn, strict=True)):
            # long continuations, and short ones of one token and of three
            requests += [
                (None, ids[:-tail], ids[-tail:]),
                (None, ids, ids[: 1 + 2 * (number % 2)]),
            ]
        try:
            own = super()._loglikelihood_tokens(requests, disable_tqdm=True)
            pairs = [
                (tuple(context), tuple(continuation))
                for _, context, continuation in requests
            ]
            # the second time the first's beginnings are in the cache
            answers, cached = [], 0
            for _ in range(2):
                values, cached = self._answers(
                    cached_prefixes.plan(pairs, self._block), True
                )
                answers += values
        except Exception as error:  # noqa: BLE001 (an engine that can't be asked so is left to the vllm backend)
            return f"a trial fails: {one_line(error)}"
        exact = str(self.model.llm_engine.model_config.dtype) == "torch.float32"
        difference = max(
            abs(one[0] - other[0])
            for one, other in zip(answers, [*own, *own], strict=True)
        )
        if not difference <= (EXACT if exact else ROUGH):
            return f"a trial differs by {difference:.1e} from the engine's own log-likelihoods"
        if not cached:
            return "the engine doesn't use its prefix cache"
        return ""

    def _loglikelihood_tokens(
        self, requests: Sequence[Request], disable_tqdm: bool = False
    ) -> list[Answer]:
        """Log-likelihoods of continuations, both given as ids, and whether each is the greedy one."""
        config = self.model.llm_engine.model_config.hf_config
        longest = max((len(one[1]) + len(one[2]) for one in requests), default=0)
        stem = attention_masks.beyond(config, self._tested, longest)
        if stem and not self.why_not:
            self._prove(stem)
        if self.why_not or not requests:
            return super()._loglikelihood_tokens(requests, disable_tqdm)
        pairs = [
            self._cut(context, continuation) for _, context, continuation in requests
        ]
        if cut := sum(
            len(request[1]) > len(pair[0])
            for request, pair in zip(requests, pairs, strict=True)
        ):
            logger.warning(
                "%s requests are longer than the model's limit of %s tokens: their beginnings are cut off",
                cut,
                self.max_length,
            )
        self.model.reset_prefix_cache()  # what was asked before would come from it, rows included
        answers, _ = self._answers(
            cached_prefixes.plan(pairs, self._block), disable_tqdm
        )
        for (key, _, _), answer in zip(requests, answers, strict=True):
            if key is not None:  # rolling ones are kept as a whole
                self.cache_hook.add_partial("loglikelihood", key, answer)
        return answers

    def _cut(
        self, context: Sequence[int], continuation: Sequence[int]
    ) -> tuple[Ids, Ids]:
        """Cut a request to what the engine takes: it has to write a token behind each prompt."""
        room = self.max_length - 1 - len(continuation)
        if room < 1 or not context or not continuation:
            raise BiasError(
                f"a request with {len(context)} context and {len(continuation)} continuation tokens; each needs at "
                f"least one, and the model reads at most {self.max_length - 1}"
            )
        return tuple(context[-room:]), tuple(continuation)

    def _answers(self, plan: Plan, silent: bool) -> tuple[list[Answer], int]:
        """The answers to a plan's requests, and how many tokens came from the cache."""
        answer_by_node: dict[int, Answer] = {}
        cached = 0
        # engines mix up what is asked where prompts of both kinds are in one batch: one kind after the other
        for kind in (True, False):
            prompts = [
                prompt for prompt in plan.prompts if bool(prompt.children) is kind
            ]
            for reads_cache in (True, False):
                again = []
                for prompt, output in zip(
                    prompts, self._outputs(prompts, silent, reads_cache), strict=True
                ):
                    cached += output.num_cached_tokens or 0
                    try:
                        answer_by_node.update(
                            zip(prompt.nodes, _read(prompt, output), strict=True)
                        )
                    except _Unanswered as error:
                        again.append((prompt, error))
                prompts = [prompt for prompt, _ in again]
            if again:
                text = f"vLLM gives no usable answer: {again[0][1]}; use --model vllm, which doesn't share prefixes"
                raise BiasError(text)
        answers = [[answer_by_node[i] for i in nodes] for nodes in plan.scored]
        return [
            (math.fsum(one[0] for one in of), all(one[1] for one in of))
            for of in answers
        ], cached

    def _outputs(
        self, prompts: Sequence[PrefixPrompt], silent: bool, read_cache: bool
    ) -> list[Any]:
        """Ask the engine for prompts."""
        from vllm import SamplingParams

        if not prompts:
            return []
        parameters = [
            SamplingParams(
                temperature=0,
                max_tokens=1,
                detokenize=False,
                skip_reading_prefix_cache=not read_cache,
                **(
                    {"logprob_token_ids": list(prompt.children)}
                    if prompt.children
                    else {"prompt_logprobs": 1}
                ),
            )
            for prompt in prompts
        ]
        batch_size = self.batch_size
        self.batch_size = 1 if silent else "auto"  # "auto" is what shows a progress bar
        try:
            return list(
                self._model_generate(
                    [list(prompt.tokens) for prompt in prompts], True, parameters
                )
            )
        finally:
            self.batch_size = batch_size


def _read(prompt: PrefixPrompt, output: Any) -> list[Answer]:
    """The log-likelihood of each node of a prompt, and whether it is the greedy one.

    Raises:
        _Unanswered: One isn't there, is no log-likelihood, or may be that of another token.
    """
    if list(output.prompt_token_ids) != list(prompt.tokens):
        raise _Unanswered("an answer to another prompt")
    if prompt.children:
        (written,) = output.outputs
        rows, tokens = (
            [written.logprobs[0] if written.logprobs else {}] * len(prompt.children),
            prompt.children,
        )
    else:
        if not (
            output.num_cached_tokens is not None
            and output.num_cached_tokens < prompt.first
        ):
            raise _Unanswered(
                f"{output.num_cached_tokens} tokens of a prompt came from the cache"
            )
        rows, tokens = (
            (output.prompt_logprobs or [])[prompt.first :],
            prompt.tokens[prompt.first :],
        )
        if len(rows) != len(tokens):
            raise _Unanswered(
                f"{len(rows)} rows of log-probabilities for {len(tokens)} tokens"
            )
    answers = []
    for row, token in zip(rows, tokens, strict=True):
        if token not in (row or {}):
            raise _Unanswered("no log-probability of a token that was asked for")
        value = float(row[token].logprob)
        if not (math.isfinite(value) and value <= 1e-3):
            raise _Unanswered(f"{value} in place of a log-probability")
        answers.append((value, value >= max(entry.logprob for entry in row.values())))
    return answers
