"""Runs whose results are to be pushed to the hub: what couldn't be is said at their end, and what is local is kept."""

import huggingface_hub
import pytest
from lm_eval.loggers import EvaluationTracker

from lm_eval_bias.cli.main import main

TOKEN = "hf_secret_token"  # noqa: S105
RUN = ["run", "--model", "bias-chance", "--tasks", "occugender_implicit", "--limit", "4"]


class Hub:
    """A hub that fails in some of its methods."""

    failing = ()

    def __init__(self, token):
        assert token == TOKEN

    def whoami(self):
        return {"name": "me"}

    def __getattr__(self, name):
        def method(**arguments):
            calls.append((name, arguments["repo_id"]))
            if name in self.failing:
                raise OSError(f"403 Forbidden for {TOKEN}\nmore")

        return method


calls = []


@pytest.fixture(autouse=True)
def _hub(monkeypatch):
    calls.clear()
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    monkeypatch.setenv("HF_TOKEN", TOKEN)


@pytest.mark.parametrize(
    ("failing", "flag"),
    [
        ("create_repo", "push_results_to_hub"),
        ("upload_file", "push_results_to_hub"),
        ("upload_folder", "push_samples_to_hub"),
        ("list_repo_files", "push_results_to_hub"),
    ],
)
def test_what_could_not_be_pushed_is_said_at_the_end(failing, flag, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Hub, "failing", (failing,))
    out = tmp_path / "out"
    assert main([*RUN, "--output_path", str(out), "--log_samples", "--hf_hub_log_args", f"{flag}=True"]) == 2
    printed = capsys.readouterr()
    assert "In words" in printed.out
    line = printed.err.splitlines()[-1]
    assert line.startswith("lm-eval-bias: error: --hf_hub_log_args: not pushed to the Hub: 403 Forbidden for ***")
    assert line.endswith(f"(everything is saved in {out})")
    assert TOKEN not in printed.err.splitlines()[-1]
    assert len(list(out.rglob("results_*.json"))) == len(list(out.rglob("samples_*.jsonl"))) == 1


def test_what_was_pushed_needs_no_word(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(EvaluationTracker, "recreate_metadata_card", lambda self: None)
    assert main([*RUN, "--output_path", str(tmp_path), "--hf_hub_log_args", "push_results_to_hub=True"]) == 0
    assert ("upload_file", "me/lm-eval-results-private") in calls
    assert "not pushed" not in capsys.readouterr().err
