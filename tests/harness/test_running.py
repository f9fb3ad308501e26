"""What a run prints and keeps beside its own words."""

import json

from lm_eval_bias.cli.main import main


def test_outside_of_a_repository_git_says_nothing_and_reports_name_no_place(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    run = "run --tasks occugender_implicit --model bias-chance --limit 8"
    assert main([*run.split(), "--output_path", "out"]) == 0
    assert "not a git repository" not in capfd.readouterr().err
    assert main(["report", "out", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    told = report["tasks"]["occugender_implicit"]["metadata"]
    assert told["benchmark"] == "occugender"
    assert "config_source" not in told
