"""What fails once everything is scored costs no scores; files keep the user's umask; sizes have limits."""

import json

import pytest

from lm_eval_bias.core.errors import FAULTS, BiasError
from lm_eval_bias.runs import provenance, sample_logs
from tests.support.commands import command

RUN = [
    "run",
    "--model",
    "bias-chance",
    "--tasks",
    "occugender_implicit",
    "--limit",
    "4",
    "--log_samples",
]


@pytest.fixture(autouse=True)
def _no_faults():
    FAULTS.clear()
    yield
    FAULTS.clear()


@pytest.mark.parametrize("part", ["block", "weights"])
def test_what_fails_after_scoring_loses_no_scores(part, tmp_path, monkeypatch):
    def fails(*given):
        raise KeyError("anything")

    monkeypatch.setattr(provenance, part, fails)
    made = command(*RUN, "--output_path", str(tmp_path))
    assert made.status == 2
    assert "what the run was made by is not recorded (KeyError: 'anything')" in made.err
    (saved,) = tmp_path.rglob("results_*.json")
    assert json.loads(saved.read_text())["results"]["occugender_implicit"]
    assert len(list(tmp_path.rglob("samples_*.jsonl"))) == 1
    FAULTS.clear()
    assert command("report", str(tmp_path), "--format", "md").status == 0


def test_a_long_line_is_refused_before_it_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(sample_logs, "_LONGEST", 1_000)
    log = tmp_path / "samples_occugender_implicit_2026-01-01T00-00-00.000000.jsonl"
    with log.open("wb") as file:
        file.truncate(3 << 30)  # a hole
    with pytest.raises(BiasError, match="line 1: longer than"):
        list(sample_logs.lines(log))
