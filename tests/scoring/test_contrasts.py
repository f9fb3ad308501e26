"""Texts that differ from another in a few words: which tokens count, in causal and in masked models."""

import itertools
import math

import pytest
import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from lm_eval_bias.core.questions import CONTRAST, Contrast
from lm_eval_bias.harness import registration
from lm_eval_bias.models.masked_lm import HFMaskedLM
from tests.scoring.test_likelihoods import Letters, alone
from tests.support import tiny

PAIR = "„Komşu çiçek“, sagte er", "„Komşu çiçek“, sagte sie"
WORDS = "The old gardener was patient.", "The old engineer was very patient."


@pytest.fixture(scope="module", autouse=True)
def _registered():
    registration.register()


def ask(model, text, other, whole):
    question = Contrast(text, other, whole)
    return model.contrast([Instance(CONTRAST, {}, question.arguments, 0)])[0]


@pytest.mark.parametrize(
    ("text", "other", "whole", "context", "continuation"),
    [
        ("abXd", "abYd", True, "\0", "abXd"),
        ("abXd", "abYd", False, "\0ab", "Xd"),
        ("Xab", "Yab", False, "\0", "Xab"),
        # one text begins the other: from the last letter that both have
        ("ab", "abc", False, "\0a", "b"),
        ("abc", "ab", False, "\0a", "bc"),
    ],
)
def test_which_tokens_count(text, other, whole, context, continuation):
    model = Letters()
    value, tokens = ask(model, text, other, whole)
    asked = [tuple(map(ord, part)) for part in (context, continuation)]
    assert model.asked == [tuple(asked)]
    assert (value, tokens) == (-float(ord(continuation[0])), len(continuation))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_against_plain_transformers(family, tmp_path):
    where = getattr(tiny, family)(tmp_path)
    model = HFLM(pretrained=where, device="cpu", dtype="float32", batch_size=2)
    tokenizer = transformers.AutoTokenizer.from_pretrained(where)
    ids = [tokenizer(text)["input_ids"] for text in PAIR]
    if family == "gpt2":  # its tokenizer puts no start token in front
        ids = [[tokenizer.eos_token_id, *text] for text in ids]
    pairs = enumerate(zip(*ids, strict=False))
    same = next(i for i, (one, other) in pairs if one != other)
    for first, text in zip(PAIR, ids, strict=True):
        other = PAIR[PAIR.index(first) - 1]
        for whole, cut in ((True, 1), (False, same)):
            value, tokens = ask(model, first, other, whole)
            expected = alone(where, text[:cut], text[cut:])
            assert value == pytest.approx(expected, rel=1e-5)
            assert tokens == len(text) - cut


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tiny.bert(tmp_path_factory.mktemp("bert"))


def masked(where, ids, hidden):
    """Return the log-probability of the first hidden token, all of them masked, in plain transformers."""
    model = transformers.AutoModelForMaskedLM.from_pretrained(where).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(where)
    inputs = torch.tensor([ids])
    inputs[0, hidden] = tokenizer.mask_token_id
    with torch.no_grad():
        logs = model(inputs).logits[0].log_softmax(-1)
    return logs[hidden[0], ids[hidden[0]]].item()


def test_masked_models_score_shared_tokens_or_differing_words(bert):
    model = HFMaskedLM(bert, device="cpu")
    tokenizer = model.tokenizer
    text, other = (tokenizer(words)["input_ids"] for words in WORDS)
    tokens = tokenizer.convert_ids_to_tokens(text)
    # to Nangia et al. some letters of "gardener" and "engineer" are shared; to us the words differ
    start, end = tokens.index("old") + 1, tokens.index("was")
    differing = list(range(start, end))
    expected = math.fsum(
        masked(bert, text, differing[i:]) for i in range(len(differing))
    )
    value, count = ask(model, *WORDS, False)
    assert (value, count) == (pytest.approx(expected, rel=1e-4), len(differing))
    places = nangia(text, other)
    expected = math.fsum(masked(bert, text, [place]) for place in places)
    value, count = ask(model, *WORDS, True)
    assert (value, count) == (pytest.approx(expected, rel=1e-4), len(places))
    # both sentences are scored on as many tokens
    assert ask(model, *WORDS[::-1], True)[1] == count


def nangia(text, other):
    """List the places of the tokens that are in both, but for the first and last, which are special."""
    import difflib

    blocks = difflib.SequenceMatcher(None, text, other).get_matching_blocks()
    spans = (range(start, start + size) for start, _, size in blocks)
    last = len(text) - 1
    return [place for place in itertools.chain(*spans) if place not in (0, last)]


def test_a_text_without_words_of_its_own_has_the_word_before_the_others(bert):
    model = HFMaskedLM(bert, device="cpu")
    ids = model.tokenizer("The gardener")["input_ids"]
    value, count = ask(model, "The gardener", "The old gardener", False)
    assert (value, count) == (pytest.approx(masked(bert, ids, [1]), rel=1e-4), 1)
    # texts that the tokenizer can't tell apart have no score
    value, count = ask(model, "The \N{SNOWMAN}", "The \N{UMBRELLA}", False)
    assert math.isnan(value)
    assert count == 0
