"""Tiny models with fixed seeds and real tokenizers, trained here on a few sentences of five languages."""

import json
from pathlib import Path

import torch
import transformers
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

TEXTS = [
    "The old gardener was patient with the children.",
    "The engineer repaired the engine; her notes were careful and exact.",
    "A neighbour waved. He carried flowers, bread and two heavy boxes!",
    "Der Gärtner war geduldig und die schnellste Läuferin gewann das Rennen.",
    "Die Ingenieurin schrieb sorgfältige Berichte über große Maschinen.",
    "Le jardinier était patient ; « la voisine » portait des fleurs.",
    "L'ingénieure a-t-elle réparé le moteur ? Elle écrit des notes précises.",
    "El jardinero era paciente y la ingeniera escribía notas exactas.",
    "¿Quién llevaba las flores? ¡El vecino alegre!",
    "Bahçıvan sabırlıydı; mühendis dikkatli notlar yazdı.",
    "Komşu çiçek, ekmek ve iki ağır kutu taşıyordu.",
] * 3


_SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def _save(folder: Path, class_, tokenizer, **sizes) -> str:
    """A model with random weights, and its tokenizer."""
    torch.manual_seed(20261122)
    model = class_(class_.config_class(vocab_size=len(tokenizer), **sizes))
    # random weights as they come give nearly flat distributions; these tell tokens apart
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                small = 60.0 if "seq_relationship" in name else 2.0
                weight.mul_(6.0 if "embed" in name or "wte" in name else small)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def wordpiece():
    splitter = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # the trainer's vocabulary differs from process to process: here letters and the words of up to five of them
    words = sorted(
        {word for text in TEXTS for word, _ in splitter.pre_tokenize_str(text)}
    )
    letters = sorted({letter for word in words for letter in word})
    pieces = [
        *letters,
        *(f"##{letter}" for letter in letters),
        *(word for word in words if 1 < len(word) <= 5),
    ]
    vocabulary = {piece: index for index, piece in enumerate([*special, *pieces])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.BertTokenizerFast(
        tokenizer_object=tokenizer, do_lower_case=False
    )


def byte_bpe(extra=()):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", *extra]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=special, initial_alphabet=alphabet
        ),
    )
    return tokenizer


def unigram():
    sentinels = [f"<extra_id_{i}>" for i in range(3)]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>", *sentinels]
    tokenizer.train_from_iterator(
        [*TEXTS, "0 1 binary classification:"] * 3,
        trainers.UnigramTrainer(
            vocab_size=260, special_tokens=special, unk_token="<unk>"
        ),
    )
    # the trainer's order and last digits follow a hash map's order, which no seed fixes
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    pieces = sorted(
        (piece, round(score, 3)) for piece, score in vocabulary if piece not in special
    )
    pieces = [*((piece, 0.0) for piece in special), *pieces]
    tokenizer.model = models.Unigram(pieces, unk_id=special.index("<unk>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=sentinels,
        model_input_names=["input_ids", "attention_mask"],
    )


def bert(folder: Path, heads: bool = True, positions: int = 96) -> str:
    """With a masked-LM and, on request, a next-sentence head."""
    made = transformers.BertForPreTraining if heads else transformers.BertForMaskedLM
    return _save(folder, made, wordpiece(), max_position_embeddings=positions, **_SMALL)


def roberta(folder: Path) -> str:
    """A masked LM whose tokens carry the space before them."""
    inner = byte_bpe(["<s>", "<pad>", "</s>", "<mask>"])
    inner.post_processor = processors.RobertaProcessing(
        ("</s>", 3), ("<s>", 1), add_prefix_space=False
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", cls_token="<s>", eos_token="</s>", sep_token="</s>",
        pad_token="<pad>", mask_token=AddedToken("<mask>", lstrip=True, special=True),
    )  # fmt: skip
    sizes = {"max_position_embeddings": 128, "pad_token_id": 2, "type_vocab_size": 1}
    return _save(folder, transformers.RobertaForMaskedLM, tokenizer, **sizes, **_SMALL)


def gpt2_tokenizer():
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=byte_bpe(),
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
    )


def gpt2(folder: Path, end: bool = False, positions: int = 96) -> str:
    """A causal LM whose tokenizer adds nothing, or an end token."""
    tokenizer = gpt2_tokenizer()
    if end:
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
        )
    sizes = {
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": positions,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    return _save(folder, transformers.GPT2LMHeadModel, tokenizer, **sizes)


def llama(folder: Path, front: str = "<s>") -> str:
    """A causal LM whose tokenizer puts a token in front, its start token or another."""
    inner = byte_bpe(["<s>"])
    inner.post_processor = processors.TemplateProcessing(
        single=f"{front} $A", special_tokens=[(front, inner.token_to_id(front))]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="<|endoftext|>"
    )
    sizes = {"max_position_embeddings": 96, "bos_token_id": 1, "eos_token_id": 0}
    return _save(folder, transformers.LlamaForCausalLM, tokenizer, **sizes, **_SMALL)


def served(folder: Path) -> str:
    """A causal LM of a shape that vLLM takes, long enough for every task, with a chat template."""
    tokenizer = gpt2_tokenizer()
    tokenizer.chat_template = (
        "{% for turn in messages %}<{{ turn['role'] }}> {{ turn['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    sizes = {
        **_SMALL,
        "hidden_size": 64,
        "num_attention_heads": 2,
        "max_position_embeddings": 2048,
    }
    return _save(
        folder,
        transformers.LlamaForCausalLM,
        tokenizer,
        bos_token_id=0,
        eos_token_id=0,
        **sizes,
    )


def t5(folder: Path) -> str:
    """An encoder-decoder LM with sentinels."""
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    special = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    return _save(
        folder, transformers.T5ForConditionalGeneration, unigram(), **sizes, **special
    )


def classification(folder: Path, labels: list[str]) -> str:
    """A text classifier with these classes."""
    named = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
    }
    sizes = {
        "max_position_embeddings": 96,
        "num_labels": len(labels),
        **named,
        **_SMALL,
    }
    return _save(
        folder, transformers.BertForSequenceClassification, wordpiece(), **sizes
    )


def sentence_encoder(folder: Path) -> str:
    """A sentence-transformers model: the mean of a BERT's token vectors."""
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer.modules import (
            Pooling,
            Transformer,
        )
    except ImportError:  # their place in older releases
        from sentence_transformers.models import Pooling, Transformer
    words = Transformer(bert(folder / "bert", heads=False))
    SentenceTransformer(modules=[words, Pooling(32)]).save(str(folder / "st"))
    return str(folder / "st")
