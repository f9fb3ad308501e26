"""Log-likelihoods with their token counts, on a model made here."""

import pytest
from lm_eval.api.instance import Instance
from lm_eval.api.model import CachingLM, TemplateLM

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import WITH_LENGTH as REQUEST
from lm_eval_bias.harness import registration
from lm_eval_bias.models.chance import ChanceLM


class Characters(TemplateLM):
    """A token a character; the log-likelihood is minus the number of tokens."""

    asked = 0

    @property
    def eot_token_id(self):
        return 0

    def tok_encode(self, string, add_special_tokens=None, **kwargs):
        return [ord(c) for c in string]

    def _loglikelihood_tokens(self, requests, **kwargs):
        self.asked += len(requests)
        return [(-float(len(continuation)), False) for _, _, continuation in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        return []

    def generate_until(self, requests, disable_tqdm=False):
        return []


@pytest.fixture(autouse=True)
def _registered():
    registration.register()


def instances(*pairs):
    return [Instance(REQUEST, {}, pair, 0) for pair in pairs]


def test_counts_come_from_the_backends_own_encoding():
    answers = getattr(Characters(), REQUEST)(instances(("ab", " cd"), ("ab ", "c")))
    # a space at the context's end belongs to the continuation's tokens, as the harness encodes it
    assert answers == [(-3.0, False, 3), (-2.0, False, 2)]


def test_answers_are_cached(tmp_path):
    model = Characters()
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    first = getattr(cached, REQUEST)(instances(("a", " b"), ("a", " bc")))
    assert model.asked == 2
    again = getattr(cached, REQUEST)(instances(("a", " bc"), ("a", " d")))
    assert model.asked == 3
    assert (first[1], again[1]) == (again[0], (-2.0, False, 2))


def test_cache_is_shared_with_plain_loglikelihoods(tmp_path):
    model = Characters()
    cached = CachingLM(model, str(tmp_path / "cache.db"))
    cached.loglikelihood([Instance("loglikelihood", {}, ("a", " b"), 0)])
    assert getattr(cached, REQUEST)(instances(("a", " b"))) == [(-2.0, False, 2)]
    assert model.asked == 1


def test_every_rank_asks_for_as_many(monkeypatch):
    torch = pytest.importorskip("torch")
    model = Characters()
    model._world_size, model._device = 2, "cpu"
    monkeypatch.setattr(model, "all_gather", lambda mine: torch.stack([mine, torch.tensor(5)]))
    assert getattr(model, REQUEST)(instances(("a", " b"), ("a", " bc"))) == [(-2.0, False, 2), (-3.0, False, 3)]
    assert model.asked == 25  # five rounds of five, as the other rank has


def test_a_model_without_tokens_says_so():
    with pytest.raises(BiasError, match="ChanceLM doesn't say how many tokens"):
        getattr(ChanceLM(), REQUEST)(instances(("a", " b")))
