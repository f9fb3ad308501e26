"""Runs of all four benchmarks on small data of our own, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import command
from tests.support.made_mirror import make_tiny_mirror

TASKS = "occugender_debias_implicit_none,gg_bbq_group_terms,stereoset_en,regard_en"


@pytest.fixture(autouse=True)
def bounded_memory():
    """What would fill the machine is a MemoryError here."""
    resource = pytest.importorskip("resource", reason="no limits on memory here")
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        yield
        return
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + (4 << 30), before[1])
    )
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


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
            *(
                "run",
                "--tasks",
                TASKS,
                "--model",
                "bias-chance",
                "--limit",
                "8",
                "--metadata",
                given,
            ),
            *("--output_path", str(folder / "run"), "--log_samples"),
        )
    assert made.status == 0, made
    return folder / "run"
