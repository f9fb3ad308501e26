"""Runs and pages that several tests look at."""

import pytest

from lm_eval_bias.cli.main import main
from tests.report.made_runs import run_file, write


@pytest.fixture(scope="session")
def a_run(tmp_path_factory) -> str:
    """A run file with every benchmark."""
    return write(tmp_path_factory.mktemp("runs") / "tiny.json", run_file())


@pytest.fixture(scope="session")
def whole_page(a_run, tmp_path_factory):
    """The page about it: its figures take seconds."""
    out = tmp_path_factory.mktemp("page") / "whole.html"
    assert main(["report", a_run, "-o", str(out)]) == 0
    return out
