"""Runs that can't be saved, on a full disk or on the Hub: one line, exit status 2, nothing cut off has its name."""

import huggingface_hub
import pytest

from lm_eval_bias.cli.main import main
from tests.support.commands import disk

RUN = [
    "run",
    "--tasks",
    "occugender",
    "--model",
    "bias-chance",
    "--limit",
    "20",
    "--log_samples",
    "--output_path",
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    assert main([*RUN, str(folder)]) == 0
    return folder


def names(folder):
    return sorted(
        path.name.partition("_20")[0] for path in folder.rglob("*") if path.is_file()
    )


def error(capsys):
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("lm-eval-bias: error: ")
    return line


def test_a_run_whose_files_are_cut_off_ends_in_status_2(finished, tmp_path, capsys):
    sizes = {
        path.name.partition("_20")[0]: path.stat().st_size
        for path in finished.rglob("*.json*")
    }
    assert sizes["results"] < sizes["samples_occugender_explicit"]
    with disk(sizes["samples_occugender_explicit"] - 1):
        assert main([*RUN, str(tmp_path / "log")]) == 2
    printed = capsys.readouterr()
    assert (
        "1 of 3 files could not be written (File too large)"
        in printed.err.splitlines()[-1]
    )
    assert "In words" in printed.out
    kept = ["SHA256SUMS", "answers", "results", "samples_occugender_implicit"]
    assert names(tmp_path / "log") == kept
    with disk(sizes["results"] // 2):
        assert main([*RUN, str(tmp_path / "results")]) == 2
    assert "3 of 3 files could not be written (File too large)" in error(capsys)
    assert names(tmp_path / "results") == []
    assert not list(tmp_path.glob("*/.unfinished-*"))


TOKEN = "hf_secret_token"  # noqa: S105


class Hub:
    """A hub that fails in one of its methods."""

    def __init__(self, failing):
        self.failing = failing

    def __call__(self, token):
        assert token == TOKEN
        return self

    def whoami(self):
        return {"name": "me"}

    def __getattr__(self, name):
        def method(**arguments):
            if name == self.failing:
                raise OSError(f"403 Forbidden for {TOKEN}\nmore")

        return method


@pytest.mark.parametrize(
    ("failing", "flag"),
    [
        ("upload_file", "push_results_to_hub"),
        ("upload_folder", "push_samples_to_hub"),
        ("list_repo_files", "push_results_to_hub"),
    ],
)
def test_what_could_not_be_pushed_is_said_at_the_end(
    failing, flag, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub(failing))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert main([*RUN, str(tmp_path), "--hf_hub_log_args", f"{flag}=True"]) == 2
    printed = capsys.readouterr()
    assert "In words" in printed.out
    line = printed.err.splitlines()[-1]
    assert "--hf_hub_log_args: not pushed to the Hub: 403 Forbidden for ***" in line
    assert f"(everything is saved in {tmp_path})" in line
    assert TOKEN not in line
    assert len(list(tmp_path.rglob("*.json*"))) == 3
