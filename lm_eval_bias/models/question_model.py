"""Base of our transformers model types that answer only questions: loading, device, ranks, caching."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

import torch
import transformers
from lm_eval.api.model import LM
from lm_eval.models.huggingface import HFLM
from torch import Tensor

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.questions import KINDS, SENTENCE_LIKELIHOODS
from lm_eval_bias.scoring.token_likelihoods import Places, answer_cached

if TYPE_CHECKING:
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

    from lm_eval_bias.harness.internals import Requests

T = TypeVar("T")
logger = logging.getLogger("lm_eval.bias")
_PARTS = 16  # answers are kept (--use_cache) after so many batches
ScoredTexts = list[tuple[float, int]]  # scores, each with the number of tokens scored
Rows = Sequence[Sequence[int]]  # token ids of inputs


def padded(rows: Rows, value: int = 0) -> Tensor:
    """Pad rows on the right to the longest."""
    return torch.nn.utils.rnn.pad_sequence(
        list(map(torch.tensor, rows)), batch_first=True, padding_value=value
    )


def padded_inputs(
    rows: Rows, tokenizer: transformers.PreTrainedTokenizerBase
) -> dict[str, Tensor]:
    """Make ``input_ids`` and ``attention_mask`` of padded rows."""
    return {
        "input_ids": padded(rows, tokenizer.pad_token_id or 0),
        "attention_mask": padded([[1] * len(row) for row in rows]),
    }


class QuestionModel(LM):
    """A transformers model that answers questions of :mod:`lm_eval_bias.scoring.questions` in its own way."""

    kind = ""
    max_length = math.inf
    vocabulary = math.inf
    _model: transformers.PreTrainedModel  # which answers

    def __init__(
        self,
        pretrained: str,
        tokenizer: str | None = None,
        revision: str = "main",
        dtype: str = "auto",
        device: str | None = None,
        batch_size: int | str = 32,
        max_batch_size: int | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        """Load the tokenizer; subclasses load the model.

        Args:
            pretrained: A local folder or the name of a model on the hub.
            tokenizer: The same for the tokenizer, if it lies elsewhere.
            revision: Revision on the hub.
            dtype: ``auto`` (as stored) or the name of a torch dtype.
            device: A torch device; by default CUDA, or the CPU where there is none.
            batch_size: Inputs per forward.
            max_batch_size: Not used; the harness gives it.
            trust_remote_code: Whether code that comes with the model may run.

        Raises:
            BiasError: An invalid batch size or dtype.
        """
        super().__init__()
        if not str(batch_size).isdigit() or int(batch_size) < 1:
            raise BiasError(
                f"--batch_size {batch_size}: {self.kind} needs a number above 0"
            )
        self._dtype = dtype if dtype == "auto" else getattr(torch, str(dtype), None)
        if dtype != "auto" and not isinstance(self._dtype, torch.dtype):
            raise BiasError(
                f"--model_args dtype={dtype}: not a torch dtype; try float32, bfloat16 or auto"
            )
        self.batch_size = int(batch_size)
        self.portion = self.batch_size * _PARTS
        self._pretrained = pretrained
        self._from = {"revision": str(revision), "trust_remote_code": trust_remote_code}
        self._set_device(device)
        self.tokenizer: transformers.PreTrainedTokenizerBase = (
            transformers.AutoTokenizer.from_pretrained(
                tokenizer or pretrained, **self._from
            )
        )

    @classmethod
    def refusal(cls, arguments: Facts, kinds: Sequence[str]) -> BiasError | None:
        """Explain why a model made from these arguments can't answer these kinds of requests; ``None`` if it can.

        Args:
            arguments: The ``--model_args``.
            kinds: Kinds of questions, ``loglikelihood`` or ``generate_until``.
        """
        if SENTENCE_LIKELIHOODS in kinds:
            return cls._no_likelihoods()
        return cls._no_plain_requests() if set(kinds) - set(KINDS) else None

    def _set_device(self, device: str | None) -> None:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            import accelerate

            self.accelerator = accelerate.Accelerator()
            self._rank = self.accelerator.process_index
            self._world_size = self.accelerator.num_processes
            self._device = self.accelerator.device
            return
        self._device = torch.device(device or "cuda")
        # the harness's default is cuda:0
        if self._device.type == "cuda" and not torch.cuda.is_available():
            logger.info("no CUDA device found: running on the CPU")
            self._device = torch.device("cpu")

    def load(
        self, auto_class: type[_BaseAutoModelClass]
    ) -> tuple[transformers.PreTrainedModel, list[str]]:
        """Load a model of an auto class for evaluation, and list the weights that the checkpoint lacks.

        Raises:
            BiasError: The checkpoint can't be loaded with this class.
        """
        verbosity = transformers.utils.logging.get_verbosity()
        transformers.utils.logging.set_verbosity_error()  # its report of a checkpoint's other heads; ours follows
        try:
            model, info = auto_class.from_pretrained(
                self._pretrained,
                dtype=self._dtype,
                output_loading_info=True,
                **self._from,
            )
        except Exception as error:  # a checkpoint can be damaged in many ways, each with an error of its own
            raise BiasError(
                f"--model {self.kind} pretrained={self._pretrained}: {one_line(error)}"
            ) from error
        finally:
            transformers.utils.logging.set_verbosity(verbosity)
        return model.to(self._device).eval(), sorted(info["missing_keys"])

    def _limit(self, model: transformers.PreTrainedModel) -> float:
        """Return the most tokens of an input: the model's positions, less those that some families leave unused."""
        self.vocabulary = model.get_input_embeddings().num_embeddings
        positions = getattr(model.config, "max_position_embeddings", None) or math.inf
        if isinstance(getattr(model.base_model, "embeddings", None), torch.nn.Module):
            # RoBERTa's kind counts positions from behind its padding's
            embeddings = model.base_model.embeddings
            of_positions = getattr(embeddings, "position_embeddings", None)
            padding = getattr(of_positions, "padding_idx", None)
            positions -= 0 if padding is None else padding + 1
        return float(min(positions, self.tokenizer.model_max_length))

    def _check_rows(self, rows: Rows) -> None:
        """Refuse inputs that are too long for the model, or whose tokens it doesn't have."""
        highest = max((max(row) for row in rows), default=0)
        if highest >= self.vocabulary:
            raise BiasError(
                f"--model {self.kind}: the tokenizer gives the token {highest}, but the model has only "
                f"{self.vocabulary:g}: tokenizer and model don't belong together"
            )
        longest = max(map(len, rows), default=0)
        if longest > self.max_length:
            raise BiasError(
                f"--model {self.kind}: an input of {longest} tokens; the model reads at most {self.max_length:g}"
            )

    def answers(
        self,
        kind: str,
        requests: Requests,
        answer_part: Callable[[Requests], list[T]],
    ) -> list[T]:
        """Answer requests in parts, and keep each part in the cache of ``--use_cache`` as soon as it is done."""

        def run_batch(places: Places) -> list[T]:
            return answer_part([requests[i] for i in places if i is not None])

        keys = [request.args for request in requests]
        title = f"Answering {kind} questions"
        return answer_cached(self, kind, keys, run_batch, title=title)

    def batches(self, rows: Rows) -> Iterator[list[int]]:
        """Group indices of inputs by similar length, longest first, so that too little memory shows at once.

        Raises:
            BiasError: The longest input is too long, or the tokenizer is another model's.
        """
        self._check_rows(rows)
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]

    def probabilities(
        self,
        rows: Rows,
        logits: Callable[[list[int]], Tensor],
        label: int,
    ) -> ScoredTexts:
        """Return the probability of a class, and the number of tokens, of each input.

        Args:
            rows: The inputs.
            logits: Computes the logits of a batch, given the indices of its inputs.
            label: The class.
        """
        probabilities = torch.zeros(len(rows))
        for batch in self.batches(rows):
            values = logits(batch).float().softmax(-1)[:, label]
            probabilities[batch] = values.cpu()
        return list(zip(probabilities.tolist(), map(len, rows), strict=True))

    def inputs(self, rows: Rows) -> dict[str, Tensor]:
        """Make ``input_ids`` and ``attention_mask`` of padded rows, on the device."""
        inputs = padded_inputs(rows, self.tokenizer)
        return {name: tensor.to(self._device) for name, tensor in inputs.items()}

    @classmethod
    def _no_plain_requests(cls) -> BiasError:
        return BiasError(
            f"--model {cls.kind} answers blanks, next sentences and contrasts ('lm-eval-bias ls'), not tasks with "
            "plain log-likelihoods or generated text: run those with --model hf"
        )

    @classmethod
    def _no_likelihoods(cls) -> BiasError:
        return BiasError(
            f"--model {cls.kind} gives no likelihoods of whole sentences, which the generative variants compare: run "
            "them with --model hf, or run tasks whose names end in _inter"
        )

    def _refuse_plain(self, requests: Requests) -> NoReturn:
        raise self._no_plain_requests()

    loglikelihood = loglikelihood_rolling = generate_until = _refuse_plain

    def sentence_likelihoods(self, requests: Requests) -> NoReturn:
        """Refuse: the model has no likelihoods of sentences."""
        raise self._no_likelihoods()

    # as the hf backend does it
    tokenizer_name = HFLM.tokenizer_name
    all_gather = HFLM.all_gather
    gather_object = HFLM.gather_object
    barrier = HFLM.barrier

    def get_model_info(self) -> Data:
        """Describe the model for a result file, with the ``hf`` backend's names."""
        return {
            "model_num_parameters": self._model.num_parameters(),
            "model_dtype": str(self._model.dtype),
            "model_revision": self._from["revision"],
            "model_sha": getattr(self._model.config, "_commit_hash", None) or "",
        }
