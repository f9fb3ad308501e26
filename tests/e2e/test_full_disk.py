"""Runs and commands on a disk that is full: one line, exit status 2, and nothing that is cut off has its name."""

import contextlib

import pytest

from lm_eval_bias.cli.main import main

resource = pytest.importorskip("resource")
RUN = ["run", "--tasks", "occugender", "--model", "bias-chance", "--limit", "20", "--log_samples", "--output_path"]


@contextlib.contextmanager
def disk(size):
    """No file may grow beyond so many bytes: as on a full disk, the system refuses to write the rest."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    assert main([*RUN, str(folder)]) == 0
    return folder


def names(folder):
    return sorted(path.name.partition("_20")[0] for path in folder.rglob("*") if path.is_file())


def error(capsys):
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("lm-eval-bias: error: ")
    return line


def test_a_run_whose_files_are_cut_off_ends_in_status_2(finished, tmp_path, capsys):
    sizes = {path.name.partition("_20")[0]: path.stat().st_size for path in finished.rglob("*.json*")}
    assert sizes["results"] < sizes["samples_occugender_explicit"]
    with disk(sizes["samples_occugender_explicit"] - 1):
        assert main([*RUN, str(tmp_path / "log")]) == 2
    printed = capsys.readouterr()
    assert "samples of occugender_explicit: 19 of 20 lines: is the disk full?" in printed.err.splitlines()[-1]
    assert "In words" in printed.out
    assert "lm-eval-bias rescore" not in printed.out
    assert "lm-eval-bias report" not in printed.out
    assert names(tmp_path / "log") == ["results", "samples_occugender_implicit"]
    with disk(sizes["results"] // 2):
        assert main([*RUN, str(tmp_path / "results")]) == 2
    assert "results: cut off (" in error(capsys)
    assert names(tmp_path / "results") == []
    assert not list(tmp_path.glob("*/.unfinished-*"))
