"""A model that answers at random, reproducibly: the chance level of every score, without weights or network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval.api.model import LM

from lm_eval_bias.core import registry
from lm_eval_bias.core.planting import choices, uniform

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import Instance


def samples(requests: Sequence[Instance]) -> Iterator[tuple[Instance, int]]:
    """Each request with the sample of its prompt that it wants: its seed, or else its place in the order."""
    turns: Counter[str] = Counter()
    for request in requests:
        context, options = request.args
        yield request, options.get("seed", turns[context])
        turns[context] += 1


class ChanceLM(LM):
    """Log-likelihoods and texts drawn from a hash of the seed and the request.

    ``lm-eval-bias run --model bias-chance --model_args seed=1 --tasks ...``. The same seed and request always give the
    same answer, whatever the order, batch size or number of processes.
    """

    takes_seeds = (
        True  # with every request, see :mod:`lm_eval_bias.scoring.sampled_texts`
    )

    def __init__(
        self,
        seed: int = 0,
        batch_size: Any = 1,
        max_batch_size: Any = None,
        device: Any = None,
    ) -> None:
        """Answer with this seed; the other arguments are the harness's and change nothing."""
        super().__init__()
        self._seed = seed

    def loglikelihood(self, requests: Sequence[Instance]) -> list[tuple[float, bool]]:
        """Log of a uniform draw from 0 to 1/1000 per ``(context, continuation)``, nats; never greedy.

        So small that a list of words never sums to more than 1.
        """
        answers = []
        for request in requests:
            answer = (
                math.log(uniform(self._seed, "loglikelihood", *request.args) / 1000),
                False,
            )
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
            answers.append(answer)
        return answers

    def loglikelihood_rolling(self, requests: Sequence[Instance]) -> list[float]:
        """Log of a uniform draw per string, nats."""
        return [
            math.log(uniform(self._seed, "rolling", *request.args))
            for request in requests
        ]

    def generate_until(self, requests: Sequence[Instance]) -> list[str]:
        """One of the texts that the document's benchmark gives (its choices, say); a letter without a benchmark.

        Samples of a prompt are other draws, by their seeds or, without any, by their order.
        """
        texts = []
        for request, turn in samples(requests):
            doc = getattr(request, "doc", None) or {}
            benchmark = registry.by_name().get(str(doc.get("benchmark")))
            planting = None if benchmark is None else benchmark.planting
            random_texts = choices if planting is None else planting.random_texts
            among = list("ABC" if benchmark is None else random_texts(doc))
            draw = uniform(
                self._seed, "generate", request.args[0], *([turn] if turn else [])
            )
            texts.append(str(among[int(draw * len(among))]))
        return texts

    def cloze(self, requests: Sequence[Instance]) -> list[tuple[float, int]]:
        """A uniform draw from 0 to 1 per candidate, and one token."""
        return [
            (uniform(self._seed, "cloze", *request.args), 1) for request in requests
        ]

    def next_sentence(self, requests: Sequence[Instance]) -> list[tuple[float, int]]:
        """A uniform draw from 0 to 1 per candidate, and one token."""
        return [
            (uniform(self._seed, "next_sentence", *request.args), 1)
            for request in requests
        ]

    def sentence_likelihoods(
        self, requests: Sequence[Instance]
    ) -> list[tuple[float | int, ...]]:
        """Logs of uniform draws for the context, the candidate after it and the candidate alone; one token each."""
        answers: list[tuple[float | int, ...]] = []
        for request in requests:
            context, *candidate = request.args
            keys = (("x", context), ("c", context, *candidate), ("u", *candidate))
            x, c, u = (math.log(uniform(self._seed, *key)) for key in keys)
            answers.append((x, 1, c, 1, u, 1))
        return answers

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Join turns as ``<role> content``, open at the end for the answer."""
        text = "".join(f"<{turn['role']}> {turn['content']}\n" for turn in chat_history)
        return text + "<assistant> " if add_generation_prompt else text.rstrip("\n")

    @property
    def tokenizer_name(self) -> str:
        """Fingerprint for the harness's request cache."""
        return "bias-chance"
