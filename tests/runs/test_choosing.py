"""Tasks that are chosen by name, group, tag, pattern and language, for every command and in Python."""

import json

import pytest

import lm_eval_bias as leb
from tests.support.places import ROOT

RUNS = ROOT / "results" / "runs"
ONE = RUNS / "smollm2-135m-instruct-quick"


@pytest.mark.parametrize(
    ("flags", "tasks"),
    [
        ("--tasks stereoset_de", {"stereoset_de"}),
        ("--tasks mbbq_*,stereoset_de --language de,tr", {"stereoset_de", "mbbq_tr_gender_identity"}),
        ("--tasks social_bias_gg_bbq", {"gg_bbq_group_terms", "gg_bbq_names"}),
    ],
)  # fmt: skip
def test_what_is_chosen(said, flags, tasks):
    words = flags.split()
    data = json.loads(said("report", ONE, "--format", "json", *words))
    assert set(data["tasks"]) == tasks
    options = zip(words[::2], words[1::2], strict=True)
    (run,) = leb.load(ONE).choose(**{flag.strip("-"): text for flag, text in options})
    assert set(run.tasks) == tasks
    board = json.loads(said("leaderboard", ONE, "--format", "json", *words))
    assert {score["task"] for score in board["scores"]} == tasks
    assert any("left out, not chosen" in one["reason"] for one in board["problems"])


def test_a_gate_of_some_tasks_says_what_it_left_out(said):
    flags = ("--tasks", "stereoset_*", "--language", "de")
    (judged,) = json.loads(said("check", ONE, "--strict", "--json", *flags))["runs"]
    found = {finding["score"]: finding for finding in judged["findings"]}
    assert {f["task"] for f in judged["findings"]} == {None, "stereoset_de"}
    assert "left out, not chosen: occugender_explicit" in found["choice"]["says"]
    assert all(finding["passes"] for finding in judged["findings"])
