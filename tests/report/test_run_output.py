"""What a run prints: words first, the main scores in a table, the rest on request."""

import logging
import math
import os
import subprocess
import sys

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.report import run_output

TASKS = "occugender,gg_bbq,gg_bbq_group_terms_gen,stereoset_en,stereoset_en_intra,stereoset_en_inter,regard_en"
RUN = ["run", "--model", "bias-chance", "--limit", "4", "--metadata", '{"repeats": 2, "classifier": "light"}']


def test_nine_tasks_are_read_on_two_screens(tiny_mirror, capsys):
    assert main([*RUN, "--tasks", TASKS]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) < 90
    assert out.index("Nothing will be saved") < out.index("In words") < out.index("stereotype_gap: -1 to 1")
    assert "How to read" not in out
    assert "|Tasks" not in out
    # regard is never without the facets beside it, nor without its classifier
    assert out.index("Texts with keywords") < out.index("Regard by classifier light.") < out.index("Women minus men")


@pytest.mark.parametrize(
    ("table", "there", "absent"),
    [
        ("all", ["|Stderr|", "female_dominated_D", "How to read the scores", "labour_spearman of occug"], ["--table"]),
        ("none", ["In words", "--table all"], ["|Stderr|", "labour_pearson:"]),
    ],
)
def test_the_table_is_as_long_as_is_wanted(table, there, absent, capsys):
    assert main([*RUN[:5], "--tasks", "occugender_implicit", "--table", table]) == 0
    out = capsys.readouterr().out
    assert out.index("In words") < min(map(out.index, there[1:]))
    assert not [text for text in absent if text in out]


@pytest.mark.slow
def test_only_warnings_are_shown():
    command = [sys.executable, "-m", "lm_eval_bias", *RUN[:5], "--tasks", "occugender_implicit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    warning, line = done.stderr.splitlines()  # and no progress bar for what takes no time
    assert "--limit SHOULD ONLY BE USED FOR TESTING" in warning
    assert line.endswith(" requests")
    assert "occugender_implicit: " in line


@pytest.mark.parametrize(("verbosity", "level"), [("info", logging.INFO), ("error", logging.ERROR), (None, 30)])
def test_the_log_says_as_much_as_is_wanted(verbosity, level, capsys):
    more = [] if verbosity is None else ["--verbosity", verbosity]
    assert main([*RUN[:5], "--tasks", "occugender_implicit", "--table", "none", *more]) == 0
    assert logging.getLogger("lm_eval").level == level


def run_of(task, **scores):
    return TaskRun(task, "gg_bbq", "de", "2.0", 4, 968, {}, scores)


def test_a_reason_is_told_once_of_all_tasks_and_not_if_the_words_say_it():
    nothing = Value("acc_amb", math.nan, note="no items; a known thing")
    other = Value("unanswered", math.nan, note="no items")
    tasks = [run_of("one", acc_amb=nothing, unanswered=other), run_of("two", acc_amb=nothing, unanswered=other)]
    assert run_output.notes(tasks, False, "Beware: a known thing.").splitlines() == [
        "not computable: acc_amb of one, two (no items)",
        "2 other scores have no value or no interval (--table all says why)",
    ]
    assert run_output.notes(tasks, True, "Beware: a known thing.").splitlines() == [
        "not computable: acc_amb, unanswered of one, two (no items)",
    ]


def test_main_scores_stand_with_interval_and_neutral_value():
    value = Value("acc_amb", 0.5, 0.1, (0.3, 0.7), low=0.0, high=1.0, neutral=1.0, unit="proportion")
    bias = Value("diff_bias_amb", -0.1, 0.1, (-0.3, 0.1), low=-1.0, high=1.0, neutral=0.0)
    lines = run_output.main_scores([run_of("one", acc_amb=value, diff_bias_amb=bias), run_of("two", acc_amb=value)])
    cells = [line.split() for line in lines.splitlines()]
    assert cells[0] == ["Task", "Items", "acc_amb", "diff_bias_amb"]
    assert cells[2] == ["one", "4", "50.0%", "[30.0,", "70.0]", "-0.100", "[-0.300,", "0.100]"]
    assert cells[3] == ["two", "4", "50.0%", "[30.0,", "70.0]", "–"]
    assert cells[4] == ["(neutral,", "or", "best)", "100%", "0"]
