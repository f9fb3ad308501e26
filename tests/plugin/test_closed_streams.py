"""Commands whose standard output or error is closed (``>&-``) end as ever, and print nothing elsewhere."""

from __future__ import annotations

import sys

import pytest

from lm_eval_bias.cli.main import main


@pytest.mark.parametrize(("command", "status"), [(["ls"], 0), (["check", "--example"], 0), (["path", "none"], 2)])
def test_a_closed_output_changes_no_status(command, status, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(command) == status
    assert ("error:" in capsys.readouterr().err) == bool(status)


def test_errors_go_nowhere_else_where_theirs_is_closed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["path", "none"]) == 2
    assert capsys.readouterr().out == ""
