"""The harness's ``vllm`` backend with common beginnings of requests served by the engine's prefix cache."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lm_eval.models.vllm_causallms import VLLM

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.models import cached_prefixes
from lm_eval_bias.models.cached_prefixes import Plan, PrefixPrompt
from lm_eval_bias.models.encoded_texts import EncodesOnce
from lm_eval_bias.models.packed import attention_masks
from lm_eval_bias.models.packed.method_trial import trial, usable_ids
from lm_eval_bias.models.prefix_trie import Likelihood, Likelihoods, Request, fitted

if TYPE_CHECKING:
    from vllm import RequestOutput


logger = logging.getLogger("lm_eval.bias")
BLOCK_ON_CPU = 32  # tokens; the engine's own 128 there is longer than most prompts
# largest difference of a continuation's log-likelihood from the engine's own: in float32, and in less
EXACT = 1e-4
ROUGH = 0.2


class _Unanswered(Exception):
    """Raised for an answer that lacks something that was asked for."""


class VLLMPacked(EncodesOnce, VLLM):
    """``--model vllm``, several times faster where requests begin alike; same arguments and answers.

    By itself the engine runs each request from its first token when log-probabilities of a prompt are wanted. Here each
    token of the requests' trie is scored once, by prompts that read the prefix cache (see :mod:`.cached_prefixes`). At
    load this is tried on a small trie. Where the answers aren't those of the engine alone, or nothing is cached,
    requests are left to the ``vllm`` backend, and a line says why.

    Attributes:
        why_not: Why requests are left to the ``vllm`` backend; empty if they aren't.
    """

    batch_size: int | str
    takes_seeds = True  # with every request, as ``vllm`` does

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Load the model as ``vllm`` does, and find out whether the engine's cache can be read.

        Args:
            args: The ``vllm`` backend's.
            kwargs: The ``vllm`` backend's. ``block_size`` is the length of the shortest beginning that is shared (32 on
                a CPU, elsewhere vLLM's 16).
        """
        from vllm.platforms import current_platform

        kwargs.setdefault("enable_prefix_caching", True)
        if current_platform.is_cpu():
            kwargs.setdefault("block_size", BLOCK_ON_CPU)
        super().__init__(*args, **kwargs)
        self._prove(2 * self._block)

    def _prove(self, stem: int) -> None:
        """Find out whether beginnings of ``stem`` tokens can be shared, and say so where they can't."""
        self._tested = stem
        self.why_not = self._unfit() or self._trial(stem)
        if self.why_not:
            logger.warning(
                "vllm-packed: the vllm backend's own method (%s)", self.why_not
            )

    def _unfit(self) -> str:
        """Explain why the cache can't be read; empty if the engine may be tried."""
        if self.data_parallel_size > 1:
            return f"with data_parallel_size={self.data_parallel_size} each call loads the model again"
        config = self.model.llm_engine.vllm_config
        space = (config.cache_config.num_gpu_blocks or 0) * self._block
        if space < 2 * config.scheduler_config.max_num_batched_tokens:
            # a prompt that is put off in the middle would find its own first rows in the cache
            return f"memory for {space:,} tokens is too little to keep shared prefixes"
        return ""

    @property
    def _block(self) -> int:
        return int(self.model.llm_engine.vllm_config.cache_config.block_size)

    def _trial(self, stem: int) -> str:
        """Describe how a small trie's log-likelihoods differ from those of the engine alone; empty if they don't."""
        config = self.model.llm_engine.model_config
        usable = usable_ids(self.tokenizer, config.get_vocab_size())
        drawn = trial(self.max_length - 3, stem, usable)
        requests = []
        for number, (ids, tail) in enumerate(zip(*drawn, strict=True)):
            # long continuations, and short ones of one token and of three
            requests += [
                (None, ids[:-tail], ids[-tail:]),
                (None, ids, ids[: 1 + 2 * (number % 2)]),
            ]
        try:
            expected = super()._loglikelihood_tokens(requests, disable_tqdm=True)
            pairs = [(context, continuation) for _, context, continuation in requests]
            plan = cached_prefixes.plan(pairs, self._block)
            first, _ = self._answers(plan, True)
            # now the beginnings are in the cache
            second, cached = self._answers(plan, True)
        except Exception as error:  # noqa: BLE001 (an engine that can't be asked so is left to the vllm backend)
            return f"a trial fails: {one_line(error)}"
        difference = max(
            abs(value - wanted)
            for answers in (first, second)
            for (value, _), (wanted, _) in zip(answers, expected, strict=True)
        )
        tolerance = EXACT if str(config.dtype) == "torch.float32" else ROUGH
        if not difference <= tolerance:
            return f"a trial differs by {difference:.1e} from the engine's own log-likelihoods"
        if not cached:
            return "the engine doesn't use its prefix cache"
        return ""

    def _loglikelihood_tokens(
        self, requests: Sequence[Request], disable_tqdm: bool = False
    ) -> Likelihoods:
        """Return log-likelihoods of continuations, all given as token ids, and whether each is greedy."""
        self.forget()
        config = self.model.llm_engine.model_config.hf_config
        lengths = [
            len(context) + len(continuation) for _, context, continuation in requests
        ]
        longest = max(lengths, default=0)
        stem = attention_masks.beyond(config, self._tested, longest)
        if stem and not self.why_not:
            self._prove(stem)
        if self.why_not or not requests:
            return super()._loglikelihood_tokens(requests, disable_tqdm)
        # the engine has to write a token behind each prompt
        pairs = fitted(requests, self.max_length - 1)
        self.model.reset_prefix_cache()  # what was asked before would come from it, rows included
        answers, _ = self._answers(
            cached_prefixes.plan(pairs, self._block), disable_tqdm
        )
        for (key, _, _), answer in zip(requests, answers, strict=True):
            if key is not None:  # rolling ones are kept as a whole
                self.cache_hook.add_partial("loglikelihood", key, answer)
        return answers

    def _answers(self, plan: Plan, silent: bool) -> tuple[Likelihoods, int]:
        """Compute the likelihoods of a plan's requests, and count the tokens that came from the cache."""
        answer_by_node: dict[int, Likelihood] = {}
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
        answers = []
        for nodes in plan.scored:
            values, greedy = zip(*(answer_by_node[node] for node in nodes), strict=True)
            answers.append((math.fsum(values), all(greedy)))
        return answers, cached

    def _outputs(
        self, prompts: Sequence[PrefixPrompt], silent: bool, read_cache: bool
    ) -> list[RequestOutput]:
        """Ask the engine for the answers to prompts."""
        from vllm import SamplingParams

        if not prompts:
            return []
        parameters = []
        for prompt in prompts:
            wanted: Data = {"prompt_logprobs": 1}
            if prompt.children:
                wanted = {"logprob_token_ids": list(prompt.children)}
            parameters.append(
                SamplingParams(
                    temperature=0,
                    max_tokens=1,
                    detokenize=False,
                    skip_reading_prefix_cache=not read_cache,
                    **wanted,
                )
            )
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


def _read(prompt: PrefixPrompt, output: RequestOutput) -> Likelihoods:
    """Read the log-likelihood of each node of a prompt, and whether the node is greedy.

    Raises:
        _Unanswered: One is missing, is no log-likelihood, or may be that of another token.
    """
    if list(output.prompt_token_ids) != list(prompt.tokens):
        raise _Unanswered("an answer to another prompt")
    if prompt.children:
        (written,) = output.outputs
        row = written.logprobs[0] if written.logprobs else {}
        tokens = prompt.children
        rows = [row] * len(tokens)
    else:
        cached = output.num_cached_tokens
        if cached is None or cached >= prompt.first:
            raise _Unanswered(f"{cached} tokens of a prompt came from the cache")
        tokens = prompt.tokens[prompt.first :]
        rows = (output.prompt_logprobs or [])[prompt.first :]
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
