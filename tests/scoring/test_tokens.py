"""Exact token log-likelihoods on the harness's backends: shared forwards, the cache, ranks."""

import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM, TemplateLM

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import (
    CLOZE,
    EXACT,
    KINDS,
    NEXT_SENTENCE,
    SENTENCE_LIKELIHOODS,
    WITH_LENGTH,
    WITH_LENGTH_IF_KNOWN,
    NextSentence,
    choose,
)
from lm_eval_bias.harness import registration
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.scoring import causal, token_likelihoods
from tests.support import tiny


class Counting(TemplateLM):
    """A token a character; the log-likelihood is minus the continuation's first token; counts what it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    eot_token_id = 0

    def tok_encode(self, string, add_special_tokens=None, **kwargs):
        return [ord(c) for c in string]

    def _loglikelihood_tokens(self, requests, **kwargs):
        answers = [(-float(continuation[0]), False) for _, _, continuation in requests]
        self.asked += [(tuple(c), tuple(k)) for _, c, k in requests]
        for (key, _, _), answer in zip(requests, answers, strict=True):
            self.cache_hook.add_partial("loglikelihood", key, answer)
        return answers

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return []

    def generate_until(self, requests, disable_tqdm=False):
        return []


@pytest.fixture(autouse=True)
def _registered():
    registration.register()


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return tiny.gpt2(tmp_path_factory.mktemp("gpt2"))


def hf(where, **options):
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=where, device="cpu", dtype="float32", batch_size=4, **options)


def alone(where, context, continuation):
    """One forward for one request, in plain transformers."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32).eval()
    with torch.no_grad():
        logs = model(torch.tensor([[*context, *continuation]])).logits[0].double().log_softmax(-1)
    at = range(len(context), len(context) + len(continuation))
    return sum(logs[i - 1, token].item() for i, token in zip(at, continuation, strict=True))


def test_one_token_string_divided_at_two_places(gpt2):
    pairs = [([5, 6], [7, 8, 9]), ([5, 6, 7], [8, 9]), ([5, 6, 7, 8], [9]), ([5, 6, 7], [8, 10]), ([5, 6, 7, 8], [10])]
    expected = [alone(gpt2, *pair) for pair in pairs]
    model = hf(gpt2)
    assert token_likelihoods.shares_forwards(model)
    found = token_likelihoods.loglikelihoods(model, pairs)
    assert [value for value, _ in found] == pytest.approx(expected, rel=1e-5)
    # the harness itself gets them wrong: if this fails, the bug is mended and rounds() can go
    wrong = [value for value, _ in model._loglikelihood_tokens([(None, *map(list, pair)) for pair in pairs])]
    assert wrong != pytest.approx(expected, rel=1e-3)
    apart = [value for value, _ in token_likelihoods.loglikelihoods(hf(gpt2, logits_cache=False), pairs)]
    assert apart == pytest.approx(expected, rel=1e-5)


def test_plain_requests_of_our_tasks_are_apart_too(gpt2):
    model = hf(gpt2)
    text = "The old gardener was patient"
    cuts = [i for i, c in enumerate(text) if c == " "]
    requests = [Instance(EXACT, {}, (text[:i], text[i:]), 0) for i in cuts]
    found = [value for value, _ in getattr(model, EXACT)(requests)]
    counted = getattr(model, WITH_LENGTH)(requests)
    expected = []
    for i in cuts:
        context, whole = model.tok_encode(text[:i]), model.tok_encode(text)
        expected.append(alone(gpt2, context, whole[len(context) :]))
    assert found == pytest.approx(expected, rel=1e-5)
    assert [value for value, _, _ in counted] == pytest.approx(expected, rel=1e-5)
    assert len({number for *_, number in counted}) > 1
    assert getattr(model, WITH_LENGTH_IF_KNOWN)(requests) == counted
    assert getattr(ChanceLM(), WITH_LENGTH_IF_KNOWN)(requests) == ChanceLM().loglikelihood(requests)  # it has no tokens


def test_each_pair_is_asked_once():
    model = Counting()
    pairs = [([1], [2]), ([1], [3]), ([1], [2])]
    assert token_likelihoods.loglikelihoods(model, pairs) == [(-2.0, False), (-3.0, False), (-2.0, False)]
    assert model.asked == [((1,), (2,)), ((1,), (3,))]


def test_cache_keeps_every_answer(tmp_path):
    model = Counting()
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    asked = [NextSentence("ab.", "cd", {"bos": "first", "inter": "gen"})]
    instances = [Instance(NEXT_SENTENCE, {}, q.arguments, 0) for q in asked]
    first = cached.next_sentence(instances)
    number = len(model.asked)
    assert number == 1
    assert cached.next_sentence(instances) == first
    assert len(model.asked) == number
    # the evidence for the variants needs more, and only that is asked
    more = [Instance(SENTENCE_LIKELIHOODS, {}, ("ab.", "cd", {"bos": "first"}), 0)]
    cached.sentence_likelihoods(more)
    assert len(model.asked) == number + 4


def test_a_second_process_finds_the_cache(tmp_path):
    path = str(tmp_path / "cache.db")
    CachingLM(Counting(), path).dbdict.close()
    first = CachingLM(Counting(), path)
    token_likelihoods.loglikelihoods(first.lm, [([1], [2])])
    first.dbdict.close()
    model = Counting()
    CachingLM(model, path)
    assert token_likelihoods.loglikelihoods(model, [([1], [2]), ([1], [4])]) == [(-2.0, False), (-4.0, False)]
    assert model.asked == [((1,), (4,))]


def test_every_rank_runs_as_many_forwards(monkeypatch):
    import torch

    model = Counting()
    model._world_size, model._device = 2, "cpu"
    monkeypatch.setattr(model, "all_gather", lambda mine: torch.stack([mine, torch.tensor(3)]))
    assert token_likelihoods.loglikelihoods(model, [([1], [2]), ([1], [5])]) == [(-2.0, False), (-5.0, False)]
    assert len(model.asked) == 9  # three rounds of three, as the other rank has


def test_a_backend_without_loglikelihoods_says_so():
    class Chat(Counting):
        def _loglikelihood_tokens(self, requests, **kwargs):
            raise NotImplementedError

    instance = Instance(CLOZE, {}, ("a BLANK", "b", "a b", {"bos": "first"}), 0)
    with pytest.raises(BiasError, match="Chat gives no log-likelihoods.*local-completions"):
        Chat().cloze([instance])


def test_a_backend_without_token_ids_says_so():
    class Text(Counting):
        def tok_encode(self, string, **kwargs):
            return [string]

    instance = Instance(CLOZE, {}, ("a BLANK", "b", "a b", {"bos": "first"}), 0)
    with pytest.raises(BiasError, match="Text gives no token ids.*name its tokenizer"):
        Text().cloze([instance])


def test_a_model_without_the_methods_says_so():
    from lm_eval.api.model import LM

    class Silent(LM):
        loglikelihood = loglikelihood_rolling = generate_until = lambda self, requests: []

    for kind in KINDS:
        with pytest.raises(BiasError, match=f"Silent cannot answer '{kind}' questions.*hf-mlm"):
            getattr(Silent(), kind)([])


def test_options_without_meaning_are_refused():
    masked = Instance(CLOZE, {}, ("a BLANK", "b", "a b", {"bos": "first", "masked": "pll_original"}), 0)
    with pytest.raises(BiasError, match="masked=pll_original is for masked language models"):
        Counting().cloze([masked])
    with pytest.raises(BiasError, match="bos='second': must be one of first, all"):
        choose({"bos": "second"})


@pytest.mark.parametrize("bos", ["first", "all"])
def test_pieces_sum_over_every_token_once(bos):
    for ids in ([5], [5, 6], [5, 6, 7, 8]):
        pairs = causal.pieces(causal.Text([], ids), 0, bos)
        assert [token for _, continuation in pairs for token in continuation] == ids
    # the tokenizer's own start tokens are never scored
    assert causal.pieces(causal.Text([3], [5, 6]), 0, bos) == [([3], [5, 6])]


def test_chance_answers_all_questions():
    model = ChanceLM(seed=3)
    asked = Instance(SENTENCE_LIKELIHOODS, {}, ("a", "b", {}), 0)
    parts = model.sentence_likelihoods([asked, asked])
    assert parts[0] == parts[1]
    assert all(part < 0 for part in parts[0][::2])
    again = Instance(SENTENCE_LIKELIHOODS, {}, ("a", "c", {}), 0)
    assert model.sentence_likelihoods([again])[0][0] == parts[0][0]  # one context, one likelihood


def test_answers_that_came_before_a_stop_are_on_the_disk(tmp_path):
    import sqlite3

    class Stops(Counting):
        def _loglikelihood_tokens(self, requests, **kwargs):
            super()._loglikelihood_tokens(requests[:2])
            raise KeyboardInterrupt

    model = Stops()
    CachingLM(model, str(tmp_path / "cache.db"))
    with pytest.raises(KeyboardInterrupt):
        token_likelihoods.loglikelihoods(model, [([1], [2]), ([1], [3]), ([1], [4])])
    with sqlite3.connect(tmp_path / "cache.db") as database:
        assert database.execute("SELECT count(*) FROM unnamed").fetchone() == (2,)
