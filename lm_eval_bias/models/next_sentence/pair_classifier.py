"""What is trained: a causal body with the paper's head, or a T5 that answers with a word.

How a pair is asked is that of ``--model hf-nsp`` (:class:`lm_eval_bias.models.next_sentence.nsp_model.HFNextSentence`).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from transformers import PreTrainedModel

from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.models.next_sentence import nsp_checkpoint
from lm_eval_bias.models.next_sentence.nsp_answers import by_head, by_word
from lm_eval_bias.models.next_sentence.sentence_pairs import Pair

Tensors = dict[str, torch.Tensor]


class Example(TypedDict):
    """A pair as token ids; its label is 0 or 1, or the tokens of a T5's answer."""

    input_ids: list[int]
    labels: int | list[int]


class CausalNetwork(torch.nn.Module):
    """A decoder, the mean of its last hidden states over real tokens, and three linear layers."""

    def __init__(self, body: PreTrainedModel) -> None:
        """Put a new head on a body without one."""
        super().__init__()
        self.body = body
        self.head = nsp_checkpoint.make_head(body.config.hidden_size)

    def gradient_checkpointing_enable(self, **options: object) -> None:
        """Of the body, for the ``Trainer``."""
        self.body.gradient_checkpointing_enable(**options)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, labels: torch.Tensor) -> Tensors:
        """Loss, and the two logits of each pair, ``[pairs, 2]``."""
        states = self.body(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state
        with torch.autocast(states.device.type, enabled=False):
            logits = by_head(self.head, states, attention_mask)
            return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def _unpacked(body: PreTrainedModel) -> PreTrainedModel:
    """The model of a GGUF file as one that can be saved: transformers refuses to save it as it was loaded."""
    config = copy.deepcopy(body.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(body)(config)
    plain.load_state_dict(body.state_dict())
    return plain.eval()


class PairClassifier:
    """A network to be trained with its tokenizer, and how a pair becomes its input.

    Attributes:
        family: ``causal`` or ``seq2seq``.
        network: What is trained.
        body: The transformers model in it.
        head: The head of a causal body.
        tokenizer: Of the model.
        longest: Most tokens of a pair.
        config: How the network is asked.
    """

    def __init__(
        self, pretrained: str, longest: int, revision: str | None = None, gguf_file: str | None = None
    ) -> None:
        """Load a model to be trained, in float32.

        Args:
            pretrained: Folder or hub name.
            longest: Most tokens of a pair; longer contexts lose their beginning, longer candidates their end.
            revision: Commit or tag on the hub.
            gguf_file: The file in the folder, where it is one.

        Raises:
            BiasError: It can't be loaded, or is neither causal nor T5's kind.
        """
        origin = {"revision": revision or "main"} | ({"gguf_file": gguf_file} if gguf_file else {})
        try:
            config = transformers.AutoConfig.from_pretrained(pretrained, **origin)
            self.family = "seq2seq" if config.is_encoder_decoder else "causal"
            kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModel
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(pretrained, **origin)
            self.body: PreTrainedModel = kind.from_pretrained(pretrained, dtype=torch.float32, **origin)
            if gguf_file:
                self.body = _unpacked(self.body)
        except Exception as error:  # a checkpoint can be damaged in many ways, each with an error of its own
            raise BiasError(f"--model {pretrained}: {one_line(error)[:300]}") from error
        self.longest = min(longest, getattr(self.body.config, "max_position_embeddings", None) or longest)
        self.network: torch.nn.Module = self.body
        self.head: torch.nn.Sequential | None = None
        if self.family == "causal":
            self._check_causal(self.body.config.model_type, pretrained)
            self.network = CausalNetwork(self.body)
            self.head = self.network.head
            self.config = nsp_checkpoint.NSPConfig("causal")
        else:
            self._choose_words()

    @staticmethod
    def _check_causal(kind: str, pretrained: str) -> None:
        from transformers.models.auto import modeling_auto

        if kind not in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or kind in ("bert", "roberta", "electra"):
            raise BiasError(
                f"--model {pretrained}: {kind} is neither a causal model nor a T5: run a model like BERT with --model "
                "hf-mlm, which uses its next-sentence head or its mask tokens"
            )

    def _choose_words(self) -> None:
        """The labels' tokens, and the decoder step at which they tell the labels apart."""
        config = nsp_checkpoint.NSPConfig("seq2seq", prefix=nsp_checkpoint.PREFIX)
        self.targets = [list(self.tokenizer(text_target=word)["input_ids"]) for word in config.labels]
        words = [list(self.tokenizer.encode(word, add_special_tokens=False)) for word in config.labels]
        step = len(words[0])
        if len(words[1]) != step or step not in (1, 2) or words[0][:-1] != words[1][:-1]:
            raise BiasError(f"the tokenizer makes {words} of the labels {config.labels}: they must differ in one token")
        self.words = [word[-1] for word in words]
        self.config = dataclasses.replace(config, read_step=step)

    def encode(self, pair: Pair) -> Example:
        """Token ids and label of a pair."""
        if self.family == "causal":
            context, candidate = (self.tokenizer.encode(text, add_special_tokens=False) for text in pair[:2])
            room = max(self.longest - len(candidate), self.longest // 2)
            context = context[-room:]
            return {"input_ids": [*context, *candidate[: self.longest - len(context)]], "labels": pair.follows}
        prefixed = f"{self.config.prefix}{pair.context}"
        ids = self.tokenizer(prefixed, pair.candidate, truncation=True, max_length=self.longest)["input_ids"]
        return {"input_ids": list(ids), "labels": self.targets[pair.follows]}

    def collate(self, examples: Sequence[Example]) -> Tensors:
        """A batch, padded on the right."""
        ids = [torch.tensor(example["input_ids"]) for example in examples]
        pad = torch.nn.utils.rnn.pad_sequence
        return {
            "input_ids": pad(ids, batch_first=True, padding_value=self.tokenizer.pad_token_id or 0),
            "attention_mask": pad([torch.ones_like(row) for row in ids], batch_first=True),
            "labels": torch.tensor([example["labels"] for example in examples]),
        }

    def two_logits(self, network: torch.nn.Module, inputs: Tensors) -> torch.Tensor:
        """The logits of "doesn't follow" and "follows" from the network as training wraps it, ``[pairs, 2]``."""
        if self.family == "seq2seq":
            return by_word(self.body, inputs, self.words, self.config.read_step)
        return network(**inputs)["logits"]

    def follows(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the candidates follow, from a batch's labels."""
        causal = self.family == "causal"
        return np.equal(labels, 1) if causal else np.equal(labels[:, self.config.read_step - 1], self.words[1])

    def freeze(self, layers: int) -> None:
        """Train the last layers of the body alone (none: the head alone).

        Raises:
            BiasError: It has fewer, or is no causal model whose layers can be found.
        """
        stacks = [module for module in self.body.modules() if isinstance(module, torch.nn.ModuleList)]
        stack = max(stacks, key=len, default=torch.nn.ModuleList())
        if self.family != "causal" or not 0 <= layers <= len(stack):
            raise BiasError(f"--train_layers {layers}: must be from 0 to {len(stack)}, for causal models")
        self.body.requires_grad_(False)
        stack[len(stack) - layers :].requires_grad_(True)
