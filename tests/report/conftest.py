"""Runs and pages that several tests look at."""

import pytest

from lm_eval_bias.cli.main import main
from tests.support.made_runs import run_file, write


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


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A run with its sample log, of a model whose bias is known."""
    folder = tmp_path_factory.mktemp("run")
    command = ["run", "--tasks", "occugender_explicit", "--limit", "120", "--model", "bias-dial"]
    command += ["--model_args", "strength=0.5,noise=0.5", "--output_path", str(folder), "--log_samples"]
    assert main(command) == 0
    return folder
