"""What a run prints, beside its words in ``tests/golden/pages``: as much as is wanted, each reason once."""

import logging
import math
import os
import subprocess
import sys

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.report import run_output

RUN = [
    "run",
    "--model",
    "bias-chance",
    "--limit",
    "4",
    "--tasks",
    "occugender_implicit",
]


@pytest.mark.slow
def test_only_warnings_are_shown():
    command = [sys.executable, "-m", "lm_eval_bias", *RUN]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    harness, least, line = (
        done.stderr.splitlines()
    )  # and no progress bar for what takes no time
    assert "--limit" in harness
    assert "--limit 4" in least
    assert line.endswith(" requests")
    assert "occugender_implicit: " in line


@pytest.mark.parametrize(
    ("verbosity", "level"),
    [("info", logging.INFO), ("error", logging.ERROR), (None, 30)],
)
def test_the_log_and_the_table_say_as_much_as_is_wanted(verbosity, level, capsys):
    more = [] if verbosity is None else ["--verbosity", verbosity]
    assert main([*RUN, "--table", "none", *more]) == 0
    assert logging.getLogger("lm_eval").level == level
    out = capsys.readouterr().out
    assert "Neutral, best" not in out  # above a table


def test_a_reason_is_told_once_of_all_tasks():
    nothing = Value("acc_amb", math.nan, note="no items")
    known = Value("acc_disamb", 0.5, note="a known thing")
    scores = {"acc_amb": nothing, "acc_disamb": known}
    tasks = [
        TaskRun(name, registry.get("gg_bbq"), "de", "2.0", 4, 968, {}, scores)
        for name in ("one", "two")
    ]
    *table, first, last = run_output.scores(tasks, "main").splitlines()
    assert (first, last) == ("† no items", "‡ a known thing")
    assert sum("–†" in line for line in table) == 2
