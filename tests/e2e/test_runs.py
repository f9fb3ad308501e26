"""Whole runs: three ways in, rescoring, order, other tasks beside ours, devices."""

import random
import shutil

import pytest
import torch

from lm_eval_bias.cli.main import main
from lm_eval_bias.report import run_reports
from lm_eval_bias.runs import run_discovery
from tests.support import tiny
from tests.support.run_scores import (
    assert_rescored_equals,
    numbers,
    rescored,
    results_of,
    run,
)

TASKS = (
    "occugender_debias_implicit_none,gg_bbq_group_terms,gg_bbq_group_terms_gen,gg_bbq_group_terms_prompts,stereoset_en,"
    "stereoset_de_inter_variants"
)
TASK = "occugender_debias_implicit_none"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """A folder for the one run that tests take copies of."""
    return tmp_path_factory.mktemp("made") / "run"


@pytest.fixture
def run_folder(made_once, tmp_path, tiny_mirror):
    if not made_once.exists():
        run(made_once, TASKS)
    return shutil.copytree(made_once, tmp_path / "run")


def read(folder):
    """Its result file, and what that says of the run in the harness's form and in ours."""
    (run,), problems = run_discovery.read([folder])
    assert not problems
    return (
        next(folder.rglob("results_*.json")),
        results_of(folder),
        run_reports.as_data(run),
    )


def test_rescore_gives_exactly_the_runs_numbers_whatever_the_order_of_documents(
    run_folder, tmp_path, capsys
):
    for path in run_folder.rglob("samples_*.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        random.Random(3).shuffle(lines)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert_rescored_equals(
        rescored(capsys, run_folder), numbers(results_of(run_folder))
    )
    for path in [*run_folder.rglob("samples_*.jsonl"), *run_folder.rglob("answers_*")]:
        path.unlink()
    assert main(["rescore", str(run_folder)]) == 2
    assert "--log_samples" in capsys.readouterr().err


def test_other_word_sets_from_the_same_log(tmp_path, capsys):
    out, task = tmp_path / "out", "occugender_debias_explicit_none"
    run(out, task)
    fewer = run(tmp_path / "fewer", task, "--metadata", '{"words": "authors_code"}')
    assert_rescored_equals(
        rescored(capsys, out, "--words", "authors_code"), numbers(fewer)
    )
    pronouns, all_words = (
        rescored(capsys, out, *more)[task]["scores"]
        for more in (("--words", "pronouns"), ())
    )
    assert pronouns["coverage"]["value"] < all_words["coverage"]["value"]


@pytest.mark.parametrize(("kind", "make", "task"), [
    ("hf", tiny.t5, TASK),
    ("hf-packed", tiny.llama, TASK),
    ("hf-mlm", tiny.bert, "stereoset_en_intra"),
])  # fmt: skip
def test_local_models(kind, make, task, tmp_path, tiny_mirror, said):
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    model_args = f"pretrained={make(tmp_path / '.hidden' / 'my model')}"
    model_args += ",backend=seq2seq" if make is tiny.t5 else ""
    run(tmp_path / "out", task, "--limit", "1", "--model_args", model_args, model=kind)
    path, results, told = read(tmp_path / "out")
    assert path.parent.name.startswith("my_model-")
    assert results["config"]["device"] == device
    assert told["provenance"]["device"] == device
    said("rescore", tmp_path / "out")
