"""``--model hf-nsp``: causal and T5 models that were trained to tell whether a sentence follows another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import transformers

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import expanded
from lm_eval_bias.core.questions import CLOZE, NEXT_SENTENCE
from lm_eval_bias.models.next_sentence import nsp_checkpoint
from lm_eval_bias.models.next_sentence.nsp_checkpoint import by_head, by_word
from lm_eval_bias.models.question_model import QuestionModel
from lm_eval_bias.scoring.questions import next_sentences, refuse_foreign

if TYPE_CHECKING:
    from lm_eval_bias.harness.internals import Instance

_NO_CLOZE = (
    "--model hf-nsp answers only between-sentence questions: run stereoset_<language>_inter with it, and "
    "stereoset_<language>_intra with --model hf on its base model ('lm-eval-bias export' joins the two)"
)


class HFNextSentence(QuestionModel):
    """A model with next-sentence training, in the layout of :mod:`.nsp_checkpoint` or the authors'.

    Causal: the context's token ids followed by the candidate's with nothing between, the mean of the last hidden states
    over real tokens, three linear layers, probability of class 1. T5: ``<prefix><context>`` and the candidate as the
    tokenizer joins a pair, probability of ``1`` against ``0`` at the decoder step that the configuration names.
    """

    kind = "hf-nsp"

    def __init__(self, pretrained: str, nsp_weights: str | None = None, **options: Any) -> None:
        """Load a model; further arguments as :class:`~lm_eval_bias.models.question_model.QuestionModel`.

        Args:
            pretrained: A folder with ``nsp_config.json``, or with ``nsp_weights`` the base model.
            nsp_weights: The authors' checkpoint file.
            options: Passed on.

        Raises:
            BiasError: There is no next-sentence training in it, or body and head don't fit.
        """
        super().__init__(pretrained, **options)
        body: nsp_checkpoint.Tensors = {}
        if nsp_weights is None:
            self.config = nsp_checkpoint.read_config(expanded(pretrained))
            head = nsp_checkpoint.read_head(expanded(pretrained)) if self.config.family == "causal" else {}
        else:
            body, head = nsp_checkpoint.read_authors_weights(expanded(nsp_weights))
            base = transformers.AutoConfig.from_pretrained(pretrained, **self._from)
            family = "seq2seq" if base.is_encoder_decoder else "causal"
            prefix = nsp_checkpoint.PREFIX if base.model_type == "t5" else ""
            self.config = nsp_checkpoint.NSPConfig(family, prefix=prefix)
        self._is_causal = self.config.family == "causal"
        kind = transformers.AutoModel if self._is_causal else transformers.AutoModelForSeq2SeqLM
        self._body: transformers.PreTrainedModel = self.load(kind)[0]
        rows = len(body.get("wte.weight", ()))
        if rows > self._body.get_input_embeddings().num_embeddings:  # the authors' script added a padding token
            self._body.resize_token_embeddings(rows, mean_resizing=False)
        try:
            if body:
                self._body.load_state_dict(body)
            if self._is_causal:
                made = nsp_checkpoint.make_head(self._body.config.hidden_size)
                made.load_state_dict(head)
                self._head = made.to(self._device, torch.float32).eval()
            else:
                words = (self.tokenizer.encode(word, add_special_tokens=False) for word in self.config.labels)
                self._labels = [word[-1] for word in words]  # some tokenizers put an empty token in front
        except RuntimeError as error:
            where = nsp_weights or expanded(pretrained) / nsp_checkpoint.HEAD
            raise BiasError(f"{where}: doesn't fit the body of {pretrained}: {one_line(error)[:200]}") from error
        self.max_length = self._limit(self._body)

    @classmethod
    def refusal(cls, arguments: Mapping[str, Any], kinds: Sequence[str]) -> BiasError | None:
        """Why it cannot answer these kinds of questions."""
        return super().refusal(arguments, kinds) or (BiasError(_NO_CLOZE) if CLOZE in kinds else None)

    def _answering(self) -> transformers.PreTrainedModel:
        return self._body

    def cloze(self, requests: Sequence[Instance]) -> list[Any]:
        """Refuse: the model was trained for whole sentences."""
        raise BiasError(_NO_CLOZE)

    def next_sentence(self, requests: Sequence[Instance]) -> list[tuple[float, int]]:
        """Score candidates after their context: ``(probability that it follows, tokens of the pair)`` (0..1)."""
        refuse_foreign(next_sentences(requests), (), "a model with next-sentence training")
        return self.answers(NEXT_SENTENCE, requests, self._follow)

    @torch.inference_mode()
    def _follow(self, requests: list[Instance]) -> list[tuple[float, int]]:
        rows = [self._ids(q.context, q.candidate) for q in next_sentences(requests)]

        def logits(batch: list[int]) -> torch.Tensor:
            inputs = self.inputs([rows[i] for i in batch])
            if self._is_causal:
                return by_head(self._head, self._body(**inputs).last_hidden_state, inputs["attention_mask"])
            return by_word(self._body, inputs, self._labels, self.config.read_step)

        return self.probabilities(rows, logits, self.config.is_next)

    def _ids(self, context: str, candidate: str) -> list[int]:
        if self._is_causal:
            parts = (self.tokenizer.encode(text, add_special_tokens=False) for text in (context, candidate))
            return [token for part in parts for token in part]
        return list(self.tokenizer(f"{self.config.prefix}{context}", candidate)["input_ids"])
