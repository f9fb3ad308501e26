"""Log-likelihoods of token ids and texts on any backend: exact, kept, and such as a distribution gives."""

import math

import pytest
import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM, CachingLM, TemplateLM
from lm_eval.models.huggingface import HFLM

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import (
    CLOZE,
    EXACT,
    KINDS,
    WITH_LENGTH,
    WITH_LENGTH_IF_KNOWN,
)
from lm_eval_bias.harness import answer_checks, internals, registration
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.scoring.token_likelihoods import loglikelihoods
from tests.support import tiny
from tests.support.servers import Kept


class Letters(TemplateLM):
    """A token a letter; the log-likelihood is minus the continuation's first token; notes what it is asked."""

    eot_token_id = prefix_token_id = 0

    def __init__(self, value=None, stops=math.inf, keeps=True):
        super().__init__()
        self.asked, self.stops, self.keeps = [], stops, keeps
        self.value = value or (lambda continuation: -float(continuation[0]))

    def tok_encode(self, string, **kwargs):
        return [ord(letter) for letter in string]

    def _loglikelihood_tokens(self, requests, **kwargs):
        for key, context, continuation in requests:
            if len(self.asked) >= self.stops:
                raise KeyboardInterrupt
            self.asked.append((tuple(context), tuple(continuation)))
            if self.keeps:
                self.cache_hook.add_partial(
                    "loglikelihood", key, (self.value(continuation), False)
                )
        return [(self.value(continuation), False) for *_, continuation in requests]

    loglikelihood_rolling = generate_until = None


@pytest.fixture(scope="module", autouse=True)
def gpt2(tmp_path_factory):
    registration.register()
    return tiny.gpt2(tmp_path_factory.mktemp("gpt2"))


def hf(where, **options):
    return HFLM(
        pretrained=where, device="cpu", dtype="float32", batch_size=4, **options
    )


def ask(model, kind, *arguments):
    return getattr(model, kind)([Instance(kind, {}, own, 0) for own in arguments])


def alone(where, context, continuation):
    """One forward for one request, in plain transformers."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        where, dtype=torch.float32
    ).eval()
    with torch.no_grad():
        logs = (
            model(torch.tensor([[*context, *continuation]]))
            .logits[0]
            .double()
            .log_softmax(-1)
        )
    at = range(len(context), len(context) + len(continuation))
    return sum(
        logs[i - 1, token].item() for i, token in zip(at, continuation, strict=True)
    )


def test_one_token_string_divided_at_two_places(gpt2):
    pairs = [
        ([5, 6], [7, 8, 9]),
        ([5, 6, 7], [8, 9]),
        ([5, 6, 7, 8], [9]),
        ([5, 6, 7], [8, 10]),
        ([5, 6, 7, 8], [10]),
    ]
    expected = [alone(gpt2, *pair) for pair in pairs]
    for options in ({}, {"logits_cache": False}):
        assert [
            value for value, _ in loglikelihoods(hf(gpt2, **options), pairs)
        ] == pytest.approx(expected, rel=1e-5)
    # the harness itself gets them wrong: if this fails, the bug is mended and mixes_up() can go
    wrong = internals.loglikelihood_tokens(
        hf(gpt2), [(None, *map(list, pair)) for pair in pairs]
    )
    assert [value for value, _ in wrong] != pytest.approx(expected, rel=1e-3)


def test_texts_divided_at_two_places_and_their_lengths(gpt2):
    model, text = hf(gpt2), "The old gardener was patient"
    pairs = [(text[:i], text[i:]) for i, c in enumerate(text) if c == " "]
    whole = model.tok_encode(text)
    lengths = [len(model.tok_encode(context)) for context, _ in pairs]
    expected = [
        pytest.approx(alone(gpt2, whole[:length], whole[length:]), rel=1e-5)
        for length in lengths
    ]
    assert [value for value, _ in ask(model, EXACT, *pairs)] == expected
    for kind in (WITH_LENGTH, WITH_LENGTH_IF_KNOWN):
        counted = ask(model, kind, *pairs)
        assert [value for value, *_ in counted] == expected
        assert [number for *_, number in counted] == [
            len(whole) - length for length in lengths
        ]
    assert ask(ChanceLM(), WITH_LENGTH_IF_KNOWN, *pairs) == ask(
        ChanceLM(), "loglikelihood", *pairs
    )  # no tokens
    # a space at the context's end belongs to the continuation's tokens, as the harness encodes it
    assert [
        number
        for *_, number in ask(Letters(), WITH_LENGTH, ("ab", " cd"), ("ab ", "c"))
    ] == [3, 2]


@pytest.mark.parametrize(("keeps", "stops"), [(False, math.inf), (True, 2)])
def test_each_pair_is_asked_once_and_kept_for_the_next_process(tmp_path, keeps, stops):
    path, pairs = str(tmp_path / "cache.db"), [([1], [2]), ([1], [3]), ([1], [2])]
    model = CachingLM(Letters(keeps=keeps, stops=stops), path).lm
    found = [(-2.0, False), (-3.0, False), (-2.0, False)]
    if stops == 2:  # what came before is on the disk
        with pytest.raises(KeyboardInterrupt):
            loglikelihoods(model, [*pairs, ([1], [4])])
    else:
        assert loglikelihoods(model, pairs) == found
    assert model.asked == [((1,), (2,)), ((1,), (3,))]
    again = CachingLM(Letters(), path).lm
    assert loglikelihoods(again, pairs) == found
    assert again.asked == []


def test_every_rank_runs_as_many_forwards():
    model = Letters()
    model._world_size, model._device = 2, "cpu"
    model.all_gather = lambda mine: torch.stack([mine, torch.tensor(3)])
    assert loglikelihoods(model, [([1], [2]), ([1], [5])]) == [
        (-2.0, False),
        (-5.0, False),
    ]
    assert len(model.asked) == 9  # three rounds of three, as the other rank has
    assert ask(model, WITH_LENGTH, ("a", "b"), ("a", "cd")) == [
        (-98.0, False, 1),
        (-99.0, False, 2),
    ]
    assert len(model.asked) == 18


class Chat(Letters):
    def _loglikelihood_tokens(self, requests, **kwargs):
        raise NotImplementedError


class Text(Letters):
    def tok_encode(self, string, **kwargs):
        return [string]


class Silent(LM):
    loglikelihood = loglikelihood_rolling = generate_until = None


QUESTION = ("a BLANK", "b", "a b", {"bos": "first"})


@pytest.mark.parametrize(
    ("kind_of_model", "kind", "arguments", "says"),
    [
        (Chat, CLOZE, QUESTION, "Chat gives no log-likelihoods.*local-completions"),
        (Text, CLOZE, QUESTION, "Text gives no token ids.*tokenizer="),
        *(
            (Silent, kind, QUESTION, f"Silent cannot answer '{kind}' questions.*hf-mlm")
            for kind in KINDS
        ),
        (ChanceLM, WITH_LENGTH, ("a", " b"), "ChanceLM"),
    ],
)
def test_backends_that_lack_something_say_so(kind_of_model, kind, arguments, says):
    with pytest.raises(BiasError, match=says):
        ask(kind_of_model(), kind, arguments)


def test_texts_that_a_model_would_read_only_the_end_of_are_refused():
    model = Letters()
    model.max_length = 4
    assert len(loglikelihoods(model, [([1, 2], [3])])) == 1
    with pytest.raises(BiasError, match="a text of 4 tokens.*max_length="):
        loglikelihoods(model, [([1, 2], [3, 4])])


P = math.log(0.6)
# answers, and what is said of them: nothing, or how they contradict each other
CASES = [
    ([("c", " he", P), ("c", " hers", P)], ""),  # one begins the other
    ([("c", " he", P), ("d", " she", P)], ""),  # two contexts
    ([("c", " He", P), ("c", " he", P)], ""),  # case, which a tokenizer may not see
    ([("c", " he", math.log(0.52)), ("c", " she", math.log(0.53))], ""),  # rounding
    ([("c", " he", -math.inf), ("c", " she", math.nan)], ""),
    ([("c", " he", 0.0), ("c", " she", -800.0)], ""),
    (
        [("c", " he", P), ("c", " she", P)],
        "(he, she) with probabilities that sum to 120%",
    ),
    (
        [((0,), (1,), P), ((0,), (2, 1), P), ((0,), (1, 7), -1.0)],
        "(tokens (1,), tokens (2, 1), ",
    ),
    ([("c", " he", 0.2)], "0.2, above 0"),
    ([("c", word, 0.0) for word in (" he", " she", " they")], "sum to 300%"),
]


@pytest.mark.parametrize(("answers", "says"), CASES)
def test_what_a_distribution_can_give(answers, says):
    found = answer_checks.impossible_likelihoods(answers)
    assert says in found
    assert bool(found) is bool(says)


@pytest.mark.parametrize("is_cached", [False, True])
def test_neither_texts_nor_tokens_are_believed_and_none_are_kept(is_cached):
    model = Letters(
        lambda continuation: (-5.0 if is_cached else 0.0) * len(continuation)
    )
    model.cache_hook.dbdict = Kept()
    pairs = [("c", word) for word in (" he", " she")]
    if is_cached:  # a cache of impossible answers is emptied
        model.cache_hook.dbdict |= {
            internals.request_key("loglikelihood", pair): (0.0, False) for pair in pairs
        }
    else:
        with pytest.raises(
            BiasError, match=r"\(tokens \(1,\), tokens \(2,\)\) with .* sum to 200%"
        ):
            loglikelihoods(model, [([0], [1]), ([0], [2])])
    with pytest.raises(
        BiasError, match=r"Letters gives .*\(he, she\) with .* sum to 200%"
    ):
        ask(model, EXACT, *pairs)
    assert model.cache_hook.dbdict == {}
    if is_cached:
        assert ask(model, EXACT, *pairs) == [(-15.0, False), (-20.0, False)]
