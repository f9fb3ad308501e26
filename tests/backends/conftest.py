"""A server that can be made to fail, and clients of it as a run builds them."""

import pytest
from lm_eval.api.model import CacheHook
from lm_eval.api.registry import get_model

from lm_eval_bias.harness import registration
from lm_eval_bias.harness import servers as checks
from tests.support import servers, tiny


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny.gpt2_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def server():
    made = servers.Server()
    yield made
    made.close()


mended = server  # another one, which no request of an earlier run can still reach


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(checks, "PAUSE", 0.0)
    monkeypatch.setenv("OPENAI_API_KEY", servers.KEY)


@pytest.fixture(params=[1, 3], ids=["one at a time", "three at a time"])
def client(request, server, tokenizer):
    """One of the harness's clients of the server, with a cache; more model arguments may be given."""
    registration.register()

    def make(model="local-completions", name="tiny", **more):
        url = f"{server.url}/{'chat/' * ('chat' in model)}completions?api_key={servers.KEY}"
        given = {
            "model": name,
            "base_url": url,
            "timeout": 1,
            "max_retries": 1,
            "batch_size": 4,
        }
        given["num_concurrent"] = request.param
        if "chat" not in model:
            given |= {"tokenizer": str(tokenizer), "tokenizer_backend": "huggingface"}
        made = checks.checked(get_model(model))(**given | more)
        made.set_cache_hook(CacheHook(None))
        made.cache_hook.dbdict = servers.Kept()
        return made

    make.at_once = request.param
    return make
