"""``--model hf-nsp``: causal and T5 models that were trained to tell whether a sentence follows another.

On disk such a model is a folder that transformers can read (body, tokenizer), with ``nsp_config.json`` (how to ask the
model and how it was trained) and, for causal bodies, ``nsp_head.safetensors`` (three linear layers, nothing between
them). Its network answers the same way in training and in use.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import safetensors.torch
import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import expanded, whole_folder, writing
from lm_eval_bias.core.questions import CLOZE, CONTRAST, NEXT_SENTENCE
from lm_eval_bias.models.question_model import QuestionModel, ScoredTexts
from lm_eval_bias.scoring.questions import next_sentences, refuse_foreign

if TYPE_CHECKING:
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

    from lm_eval_bias.harness.internals import Requests

CONFIG = "nsp_config.json"
HEAD = "nsp_head.safetensors"
PREFIX = "binary classification: "
LABELS = ("0", "1")  # the words of a T5 for "doesn't follow" and "follows"
Tensors = dict[str, Tensor]
_NO_CLOZE = (
    "--model hf-nsp answers only between-sentence questions: run stereoset_<language>_inter with it, and "
    "stereoset_<language>_intra with --model hf on its base model ('lm-eval-bias rescore OUT OTHER' pools the two)"
)


def prefix_of(config: transformers.PretrainedConfig) -> str:
    """Return the text before the context: English words for T5, nothing for mT5."""
    return PREFIX if config.model_type == "t5" else ""


@dataclass(frozen=True)
class NSPConfig:
    """Settings for asking a model whether a sentence follows another."""

    family: str  # causal (body and head), or seq2seq (T5, answers with a word)
    prefix: str = ""  # before the context (T5)
    read_step: int = 2  # at which decoder step the labels' probabilities are read, 1 or 2 (the authors' is 2)
    # what it was trained on and how, for people
    training: Data = field(default_factory=dict)


def body_class(is_encoder_decoder: bool) -> type[_BaseAutoModelClass]:
    """Return the auto class of a body: with a language-model head for a T5, without one for a causal model."""
    if is_encoder_decoder:
        return transformers.AutoModelForSeq2SeqLM
    return transformers.AutoModel


class CausalNetwork(torch.nn.Module):
    """A decoder, the mean of its last hidden states over real tokens, and the paper's head of three linear layers."""

    def __init__(self, body: PreTrainedModel) -> None:
        """Make a head of ``hidden_size`` to 300 to 300 to 2 logits, in float32."""
        super().__init__()
        self.body = body
        self.head = torch.nn.Sequential(
            torch.nn.Linear(body.config.hidden_size, 300),
            torch.nn.Linear(300, 300),
            torch.nn.Linear(300, 2),
        )
        # for the Trainer
        self.gradient_checkpointing_enable = body.gradient_checkpointing_enable

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor | None = None,
    ) -> Tensors:
        """Return the two logits of each pair, ``[pairs, 2]``, and with labels the loss before them."""
        states = self.body(
            input_ids=input_ids, attention_mask=attention_mask, use_cache=False
        ).last_hidden_state
        with torch.autocast(states.device.type, enabled=False):
            real = attention_mask.unsqueeze(-1).float()
            logits = self.head((states.float() * real).sum(1) / real.sum(1))
            if labels is None:
                return {"logits": logits}
            loss = torch.nn.functional.cross_entropy(logits, labels)
            return {"loss": loss, "logits": logits}


def by_word(
    body: PreTrainedModel, inputs: Tensors, labels: Sequence[int], step: int
) -> Tensor:
    """Compute the logits of two tokens at a decoder step of a T5, after the decoder's own words, ``[pairs, 2]``."""
    mask = inputs["attention_mask"]
    encoded = body.get_encoder()(input_ids=inputs["input_ids"], attention_mask=mask)
    decoded = torch.full(
        (len(mask), 1), body.config.decoder_start_token_id, device=mask.device
    )
    for number in range(1, step + 1):
        logits = body(
            encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=decoded
        ).logits[:, -1]
        if number < step:
            decoded = torch.cat([decoded, logits.argmax(-1, keepdim=True)], dim=1)
    return logits[:, list(labels)]


def read(folder: Path) -> tuple[NSPConfig, Tensors]:
    """Read the configuration of a folder, and the weights of its head (none for a T5).

    Raises:
        BiasError: There is no configuration.
    """
    path = folder / CONFIG
    if not path.is_file():
        raise BiasError(
            f"{folder} has no {CONFIG}: not a model trained with 'lm-eval-bias nsp train'"
        )
    config = NSPConfig(**json.loads(path.read_text(encoding="utf-8")))
    if config.family != "causal":
        return config, {}
    return config, safetensors.torch.load_file(folder / HEAD)


def save(
    folder: Path,
    body: PreTrainedModel,
    tokenizer: transformers.PreTrainedTokenizerBase,
    config: NSPConfig,
    head: torch.nn.Module | None = None,
) -> None:
    """Write a model as a folder; nothing half-written is left.

    Raises:
        BiasError: The folder can't be written.
    """
    with writing(folder), whole_folder(folder) as temporary:
        body.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        (temporary / CONFIG).write_text(
            json.dumps(dataclasses.asdict(config), indent=2), encoding="utf-8"
        )
        if head is not None:
            safetensors.torch.save_model(head, str(temporary / HEAD))


class HFNextSentence(QuestionModel):
    """A model with next-sentence training, in this module's layout.

    Causal: the context's token ids followed by the candidate's with nothing between, the mean of the last hidden states
    over real tokens, three linear layers, probability of class 1. T5: ``<prefix><context>`` and the candidate as the
    tokenizer joins a pair, probability of ``1`` against ``0`` at the decoder step that the configuration names.
    """

    kind = "hf-nsp"

    def __init__(self, pretrained: str, **options: Any) -> None:
        """Load a folder with ``nsp_config.json``.

        Further arguments are those of :class:`~lm_eval_bias.models.question_model.QuestionModel`.

        Raises:
            BiasError: The model has no next-sentence training, or body and head don't fit.
        """
        super().__init__(pretrained, **options)
        self.config, head = read(expanded(pretrained))
        self._is_causal = self.config.family == "causal"
        self._model = self.load(body_class(not self._is_causal))[0]
        if self._is_causal:
            self._network = CausalNetwork(self._model).eval()
            try:
                self._network.head.load_state_dict(head)
            except RuntimeError as error:
                raise BiasError(
                    f"{expanded(pretrained) / HEAD}: doesn't fit the body: {one_line(error)[:200]}"
                ) from error
            self._network.head.to(self._device)
        else:
            # some tokenizers put an empty token in front of the word's
            self._labels = [self._encode(word)[-1] for word in LABELS]
        self.max_length = self._limit(self._model)

    @classmethod
    def refusal(cls, arguments: Facts, kinds: Sequence[str]) -> BiasError | None:
        """Explain why it can't answer these kinds of questions; ``None`` if it can."""
        problem = super().refusal(arguments, kinds)
        if problem is None and {CLOZE, CONTRAST} & set(kinds):
            return BiasError(_NO_CLOZE)
        return problem

    def cloze(self, requests: Requests) -> NoReturn:
        """Refuse: the model was trained for whole sentences."""
        raise BiasError(_NO_CLOZE)

    contrast = cloze

    def next_sentence(self, requests: Requests) -> ScoredTexts:
        """Score candidates after their context: ``(probability that it follows, number of tokens of the pair)``."""
        refuse_foreign(
            next_sentences(requests), (), "a model with next-sentence training"
        )
        return self.answers(NEXT_SENTENCE, requests, self._follow)

    @torch.inference_mode()
    def _follow(self, requests: Requests) -> ScoredTexts:
        rows = [self._ids(q.context, q.candidate) for q in next_sentences(requests)]

        def logits(batch: list[int]) -> Tensor:
            inputs = self.inputs([rows[i] for i in batch])
            if self._is_causal:
                return self._network(**inputs)["logits"]
            return by_word(self._model, inputs, self._labels, self.config.read_step)

        return self.probabilities(rows, logits, 1)

    def _ids(self, context: str, candidate: str) -> list[int]:
        if self._is_causal:
            return self._encode(context) + self._encode(candidate)
        pair = self.tokenizer(f"{self.config.prefix}{context}", candidate)
        return pair["input_ids"]

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)
