"""Runs and pages that several tests look at."""

import pytest

from lm_eval_bias.cli.main import main
from tests.support.made_runs import run_file, write
from tests.support.pages import made


@pytest.fixture(scope="session")
def whole_page(tmp_path_factory):
    """The page about a run of every benchmark."""
    folder = tmp_path_factory.mktemp("page")
    made([write(folder / "tiny.json", run_file())], folder)
    return folder / "out.html"


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A run with its sample log, of a model whose bias is known."""
    folder = tmp_path_factory.mktemp("run")
    command = ["run", "--tasks", "occugender_explicit", "--limit", "120", "--model", "bias-dial"]
    command += ["--model_args", "strength=0.5,noise=0.5", "--output_path", str(folder), "--log_samples"]
    assert main(command) == 0
    return folder
