"""Runs of all four benchmarks on small data of our own, made once."""

from __future__ import annotations

import pytest

from tests.conftest import make_tiny_mirror
from tests.fuzz.kit import command

TASKS = "occugender_debias_implicit_none,gg_bbq_group_terms,stereoset_en,regard_en"


@pytest.fixture(scope="package")
def small_run(tmp_path_factory):
    """A result folder with samples of every benchmark."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_BIAS_CACHE", str(folder / "cache"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        make_tiny_mirror(folder / "mirror", patch)
        given = '{"classifier": "light", "repeats": 2}'
        made = command(
            *("run", "--tasks", TASKS, "--model", "bias-chance", "--limit", "8", "--metadata", given),
            *("--output_path", str(folder / "run"), "--log_samples"),
        )
    assert made.status == 0, made
    return folder / "run"
