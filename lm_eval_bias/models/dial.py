"""A model with a synthetic bias of known size: a positive control for every score, without weights or network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.models.chance import ChanceLM, samples

if TYPE_CHECKING:
    from lm_eval_bias.core.benchmark import Document
    from lm_eval_bias.custom_metrics.score import Answers
    from lm_eval_bias.harness.internals import Requests


class DialLM(ChanceLM):
    """Answers that show a bias of known size, made from the documents' own metadata and seeded noise.

    ``lm-eval-bias run --model bias-dial --model_args strength=0.2 --tasks ...``. The same seed and request always give
    the same answer, whatever the order, batch size or number of processes.
    """

    def __init__(
        self,
        strength: float | None = None,
        competence: float = Dial.competence,
        noise: float = Dial.noise,
        refusals: float = Dial.refusals,
        seed: int = 0,
        batch_size: object = 1,
        max_batch_size: object = None,
        device: object = None,
    ) -> None:
        """Answer as :class:`~lm_eval_bias.core.synthetic_bias.Dial` says.

        The last three arguments are the harness's and change nothing.
        """
        if strength is None:
            raise BiasError(
                "bias-dial: needs a strength, such as --model_args strength=0.2 (-1 to 1, 0 is neutral)"
            )
        super().__init__(seed=seed)
        self._dial = Dial(strength, competence, noise, refusals, seed)

    def cloze(self, requests: Requests) -> list[Any]:
        """Give each request the answer that its benchmark's synthetic bias makes.

        Raises:
            BiasError: There is no benchmark, or it doesn't say how to make a synthetic bias.
        """
        return [_answers(request.doc, self._dial)[request.idx] for request in requests]

    contrast = next_sentence = sentence_likelihoods = loglikelihood_rolling = cloze

    def loglikelihood(self, requests: Requests) -> list[tuple[float, bool]]:
        """Give the synthetic log-likelihood of each choice, nats; never greedy."""
        answers = self.cloze(requests)
        for request, answer in zip(requests, answers, strict=True):
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
        return answers

    def loglikelihood_with_length(
        self, requests: Requests
    ) -> list[tuple[float, bool, int]]:
        """Give the synthetic log-likelihoods, each as that of one token."""
        return [(*answer, 1) for answer in self.loglikelihood(requests)]

    def generate_until(self, requests: Requests) -> list[str]:
        """Write the synthetic text; each sample of a prompt is a draw of its own, by its seed or else by its turn."""
        return [
            str(_answers(request.doc, self._dial.for_text(n))[0])
            for request, n in samples(requests)
        ]


def _answers(doc: Document | None, dial: Dial) -> Answers:
    benchmark = registry.by_name().get(str((doc or {}).get("benchmark")))
    if benchmark is None or benchmark.synthetic_bias is None:
        name = "tasks without a bias benchmark"
        if benchmark is not None:
            name = benchmark.title or benchmark.name
        raise BiasError(
            f"bias-dial can't answer {name}: nothing says how to make a synthetic bias (Benchmark.synthetic_bias)"
        )
    return benchmark.synthetic_bias.answers(doc, dial)
