"""Texts that are encoded once: the same tokens as one at a time."""

import pytest
import transformers

from lm_eval_bias.harness.internals import encode_pair
from lm_eval_bias.models.encoded_texts import EncodesOnce
from tests.support import tiny

PAIRS = [
    ("The gardener said ", "that she was tired"),
    ("The gardener said", " that he"),
    ("The gardener said", " that he"),
    ("", " The"),
    ("<|endoftext|>The", " gardener"),
    ("Die Mutter ist", " müde \n"),
    ("alone", ""),
]


class OneByOne:
    """What a backend of the harness does with a text."""

    backend, rank, prefix_token_id = "causal", 0, 0

    def __init__(self, tokenizer, add_bos_token):
        self.tokenizer, self.add_bos_token, self.encoded = tokenizer, add_bos_token, []

    def tok_encode(self, string, add_special_tokens=None, **more):
        self.encoded.append(string)
        special = (
            self.add_bos_token if add_special_tokens is None else add_special_tokens
        )
        if add_special_tokens is None and string.startswith(self.tokenizer.decode(0)):
            special = False
        options = {} if special is None else {"add_special_tokens": special}
        return self.tokenizer.encode(string, **options)

    def _encode_pair(self, context, continuation):
        spaces = len(context) - len(context.rstrip())
        if spaces:
            context, continuation = context[:-spaces], context[-spaces:] + continuation
        whole, before = (
            self.tok_encode(context + continuation),
            self.tok_encode(context),
        )
        return before, whole[len(before) :]


class Once(EncodesOnce, OneByOne):
    pass


class Marked(transformers.PreTrainedTokenizerFast):
    """A tokenizer with a way of its own to encode, which its backend doesn't know."""

    def __call__(self, text, *args, **more):
        texts = [f"# {one}" for one in text] if isinstance(text, list) else f"# {text}"
        return super().__call__(texts, *args, **more)

    def encode(self, text, **more):
        return super().__call__(f"# {text}", **more)["input_ids"]


@pytest.fixture(scope="module")
def tokenizer():
    return tiny.gpt2_tokenizer()


def marked(tokenizer):
    return Marked(tokenizer_object=tokenizer.backend_tokenizer)


def without_fast_version(tokenizer):
    """A tokenizer of bytes, in Python."""
    return transformers.ByT5Tokenizer()


@pytest.mark.parametrize("make", [lambda it: it, marked, without_fast_version])
@pytest.mark.parametrize("add_bos_token", [None, True, False])
def test_tokens_are_those_of_each_text_alone(tokenizer, make, add_bos_token):
    made = make(tokenizer)
    made("x", truncation=True, max_length=1)  # no later call may be cut by it
    plain, once = (kind(made, add_bos_token) for kind in (OneByOne, Once))
    found = [encode_pair(once, *pair) for pair in PAIRS]
    assert found == [encode_pair(plain, *pair) for pair in PAIRS]


def test_texts_are_encoded_once_and_forgotten(tokenizer):
    model = Once(tokenizer, None)
    for pair in PAIRS[:3] * 2:
        encode_pair(model, *pair)
    assert len(model.encoded) == len(set(model.encoded)) == 3
    model.forget()
    encode_pair(model, *PAIRS[0])
    assert len(model.encoded) == 5
