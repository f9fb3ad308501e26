"""Texts in sample logs are read again, and what is read otherwise than when the run was made is said."""

import json

import pytest

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main

TASK = "gg_bbq_group_terms_gen"


@pytest.fixture
def run(tiny_mirror, tmp_path):
    """A run of the random model on a task whose answers are written."""
    arguments = [
        "--model",
        "bias-chance",
        "--limit",
        "24",
        "--log_samples",
        "--output_path",
        str(tmp_path / "run"),
    ]
    assert main(["run", "--tasks", TASK, *arguments]) == 0
    return tmp_path / "run"


def edited(run, change):
    """Change every sample of the run's log."""
    (log,) = run.rglob("samples_*.jsonl")
    samples = [
        json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()
    ]
    for sample in samples:
        change(sample)
    log.write_text(
        "".join(json.dumps(sample) + "\n" for sample in samples), encoding="utf-8"
    )


def accuracy(said, run, *flags):
    (found,) = json.loads(said("rescore", run, "--json", *flags))
    return found["scores"]["acc_amb"]["value"]


def test_a_log_whose_texts_were_replaced_is_noticed(run, tmp_path, said):
    assert "read otherwise" not in said("rescore", run)
    before = accuracy(said, run)
    # every text takes "unknown", which is right in all ambiguous items
    edited(
        run,
        lambda sample: sample.update(
            resps=[["Das lässt sich nicht sagen. Also: keine Antwort."]]
        ),
    )
    assert accuracy(said, run) == 1.0 != before
    assert accuracy(said, run, "--as-logged") == before
    text = said("rescore", run)
    assert (
        "documents are read otherwise than when the run was made; --as-logged keeps what was read then"
        in text
    )
    (found,) = json.loads(said("rescore", run, "--json"))
    assert 0 < found["read_otherwise"] <= 16
    (logged,) = json.loads(said("rescore", run, "--json", "--as-logged"))
    assert logged["read_otherwise"] == 0
    # the scores follow from the answers, but the log isn't the run's
    strict = said("check", run, "--strict", status=1)
    assert "not as the run wrote it; files differ, scores are the same" in " ".join(
        strict.split()
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("B", "B"),
        ("Answer: B", "B"),
        ("The answer is (B) The", "B"),
        ("Let us look at the options. (B) The", "[unfinished thoughts]"),
        ("The man was", "[unfinished thoughts]"),
        ("", "[unfinished thoughts]"),
    ],
)
def test_a_text_that_was_cut_is_read_only_if_it_states_a_choice(text, said):
    options = ["The woman", "The man", "Not known"]
    assert leb.extract_choice(text, options, "en", cut=True) == said
