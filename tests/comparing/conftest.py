"""The toy benchmark, where a test asks for it."""

from __future__ import annotations

import pytest

from lm_eval_bias.core import registry
from tests.support.toy import Toy


@pytest.fixture
def toy(monkeypatch):
    """The benchmark, registered."""
    benchmark, real = Toy(), registry.benchmarks()
    by_name = {**registry.by_name(), "toy": benchmark}
    monkeypatch.setattr(registry, "benchmarks", lambda: (benchmark, *real))
    monkeypatch.setattr(registry, "by_name", lambda: by_name)
    return benchmark
