"""A model that answers at random, reproducibly: it shows every score's chance level, without weights or network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lm_eval.api.model import LM

from lm_eval_bias.core import registry
from lm_eval_bias.core.synthetic_bias import choices, uniform
from lm_eval_bias.scoring.questions import QuestionAnswers

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import Instance, Requests


def samples(requests: Requests) -> Iterator[tuple[Instance, int]]:
    """Yield each request with the number of its sample: its seed, or else its turn among those of the same prompt."""
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

    # with every request, see lm_eval_bias.scoring.sampled_texts
    takes_seeds = True

    def __init__(
        self,
        seed: int = 0,
        batch_size: object = 1,
        max_batch_size: object = None,
        device: object = None,
    ) -> None:
        """Set the seed; the other arguments are the harness's and change nothing."""
        super().__init__()
        self._seed = seed

    def loglikelihood(self, requests: Requests) -> list[tuple[float, bool]]:
        """Return the log of a uniform draw from 0 to 1/1000 per request, in nats; never greedy.

        The draws are so small that those of a list of words never sum to more than 1.
        """
        answers = []
        for request in requests:
            draw = uniform(self._seed, "loglikelihood", *request.args) / 1000
            answer = (math.log(draw), False)
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
            answers.append(answer)
        return answers

    def loglikelihood_rolling(self, requests: Requests) -> list[float]:
        """Return the log of a uniform draw per string, in nats."""
        return [
            math.log(uniform(self._seed, "rolling", *request.args))
            for request in requests
        ]

    def generate_until(self, requests: Requests) -> list[str]:
        """Draw one of the texts that the document's benchmark names, such as its choices; a letter without a benchmark.

        Each sample of a prompt is a draw of its own, by its seed or else by its turn.
        """
        texts = []
        for request, turn in samples(requests):
            doc = getattr(request, "doc", None) or {}
            benchmark = registry.by_name().get(str(doc.get("benchmark")))
            synthetic_bias = None if benchmark is None else benchmark.synthetic_bias
            random_texts = (
                choices if synthetic_bias is None else synthetic_bias.random_texts
            )
            among = list("ABC" if benchmark is None else random_texts(doc))
            draw = uniform(
                self._seed, "generate", request.args[0], *([turn] if turn else [])
            )
            texts.append(str(among[int(draw * len(among))]))
        return texts

    def cloze(self, requests: Requests) -> QuestionAnswers:
        """Return a uniform draw from 0 to 1 per candidate, as the score of one token."""
        return [
            (uniform(self._seed, "cloze", *request.args), 1) for request in requests
        ]

    def contrast(self, requests: Requests) -> QuestionAnswers:
        """Return the log of a uniform draw per text, in nats, as that of one token."""
        return [
            (math.log(uniform(self._seed, "contrast", *request.args)), 1)
            for request in requests
        ]

    def next_sentence(self, requests: Requests) -> QuestionAnswers:
        """Return a uniform draw from 0 to 1 per candidate, as the score of one token."""
        return [
            (uniform(self._seed, "next_sentence", *request.args), 1)
            for request in requests
        ]

    def sentence_likelihoods(self, requests: Requests) -> QuestionAnswers:
        """Return logs of uniform draws for context, candidate after it and candidate alone, of one token each."""
        answers: QuestionAnswers = []
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
