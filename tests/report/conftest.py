"""Runs and pages that several tests look at."""

import pytest

from lm_eval_bias.cli.main import main


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A run with its sample log, of a model whose bias is known."""
    folder = tmp_path_factory.mktemp("run")
    command = ["run", "--tasks", "occugender_explicit", "--limit", "120", "--model", "bias-dial"]
    command += ["--model_args", "strength=0.5,noise=0.5", "--output_path", str(folder), "--log_samples"]
    assert main(command) == 0
    return folder
