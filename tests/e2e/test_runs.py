"""Whole runs with a model that needs no weights: three ways in, rescoring, order, other tasks beside ours."""

import json
import random
import shutil
import subprocess
import sys

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.files import tasks_path
from tests.support.run_scores import assert_rescored_equals, numbers, rescored, results_of, same

TASKS = (
    "occugender_debias_implicit_none,gg_bbq_group_terms,gg_bbq_group_terms_gen,gg_bbq_group_terms_prompts,stereoset_en,"
    "stereoset_de_inter_variants"
)
OCCUGENDER = ["run", "--tasks", "occugender_debias_implicit_2", "--model", "bias-chance", "--output_path"]


@pytest.fixture
def run_folder(tmp_path, tiny_mirror):
    out = tmp_path / "run"
    arguments = ["run", "--tasks", TASKS, "--model", "bias-chance", "--output_path", str(out), "--log_samples"]
    assert main(arguments) == 0
    return out


def test_rescore_gives_exactly_the_runs_numbers_whatever_the_order_of_documents(run_folder, tmp_path, capsys):
    for again in (False, True):
        for path in run_folder.rglob("samples_*.jsonl") if again else ():
            lines = path.read_text(encoding="utf-8").splitlines()
            random.Random(3).shuffle(lines)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert_rescored_equals(rescored(capsys, run_folder), numbers(results_of(run_folder)))
    for name in ("one", "two"):
        shutil.copytree(run_folder, tmp_path / "copies" / name)
    assert main(["rescore", str(tmp_path / "copies"), "--table", "none"]) == 0
    out = capsys.readouterr().out
    for number, folder in ((1, "one"), (2, "two")):  # tasks of the same name are numbered
        (line,) = (line for line in out.splitlines() if line.startswith(f"gg_bbq_group_terms [{number}]: "))
        assert f"/{folder}/" in line


def test_predict_only_still_rescores(tmp_path, capsys):
    full, blind = tmp_path / "full", tmp_path / "blind"
    assert main([*OCCUGENDER, str(full)]) == 0
    assert main([*OCCUGENDER, str(blind), "--predict_only"]) == 0
    assert_rescored_equals(rescored(capsys, blind), numbers(results_of(full)))


@pytest.mark.slow
def test_stock_harness_with_include_path_gives_the_same_numbers(run_folder, tmp_path, tiny_mirror):
    # a process of its own: nothing of ours is imported before the harness reads the YAMLs
    out = tmp_path / "stock"
    code = (
        "import sys, lm_eval.api.registry as r\n"
        "from lm_eval_bias.models.chance import ChanceLM\n"
        "r.register_model('chance-for-test')(ChanceLM)\n"
        "from lm_eval.__main__ import cli_evaluate\n"
        "cli_evaluate()\n"
    )
    names = TASKS.split(",")[0]  # the tiny manifest lives in this process only
    arguments = ["run", "--include_path", str(tasks_path()), "--tasks", names, "--model", "chance-for-test"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--output_path", str(out)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ours, stock = numbers(results_of(run_folder))[names], numbers(results_of(out))[names]
    assert ours.keys() == stock.keys()
    assert all(same(ours[name], stock[name]) for name in ours)
    # the harness's own table shows our standard error in its Stderr column
    row = next(line for line in done.stdout.splitlines() if "|stereotype_gap" in line)
    value, error = (cell.strip() for cell in (row.split("|")[7], row.split("|")[9]))
    assert float(value) == pytest.approx(stock["stereotype_gap"], abs=1e-4)
    assert float(error) == pytest.approx(stock["stereotype_gap_stderr"], abs=1e-4)


@pytest.mark.slow
def test_a_task_of_the_harness_beside_ours(tmp_path, capsys):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "data.jsonl").write_text('{"q": "1+1=", "a": "2"}\n{"q": "2+2=", "a": "4"}\n')
    (tmp_path / "tasks" / "sums.yaml").write_text(
        "task: own_sums\ndataset_path: json\n"
        f"dataset_kwargs:\n  data_files: {tmp_path / 'data.jsonl'}\n"
        "test_split: train\noutput_type: loglikelihood\ndoc_to_text: q\ndoc_to_target: a\n"
        "metric_list:\n  - metric: acc\n    aggregation: mean\n    higher_is_better: true\n"
    )
    out = tmp_path / "out"
    arguments = ["run", "--tasks", "own_sums,occugender_debias_implicit_1", "--include_path", str(tmp_path / "tasks")]
    assert main([*arguments, "--model", "bias-chance", "--output_path", str(out), "--log_samples"]) == 0
    assert set(results_of(out)["results"]) == {"own_sums", "occugender_debias_implicit_1"}
    text = capsys.readouterr().out
    assert text.index("In words") < text.index("stereotype_gap: -1 to 1") < text.index("|own_sums|")
    assert "|occugender_debias_implicit_1|" not in text
    # the folder then holds another task's log too: passed over in a folder, refused by name
    assert main(["rescore", str(out)]) == 0
    printed = capsys.readouterr()
    assert "occugender_debias_implicit_1: 200 documents" in printed.out
    assert "skipped" in printed.err
    assert main(["rescore", str(next(out.rglob("samples_own_sums*")))]) == 2


def test_cached_answers_give_the_same_numbers(tmp_path, monkeypatch):
    base = ["run", "--tasks", "occugender_debias_implicit_3", "--model", "bias-chance"]
    base += ["--use_cache", str(tmp_path / "cache"), "--output_path"]
    from lm_eval_bias.models.chance import ChanceLM

    assert main([*base, str(tmp_path / "a")]) == 0

    def never(self, requests):
        raise AssertionError(f"{len(requests)} requests asked again")

    monkeypatch.setattr(ChanceLM, "loglikelihood", never)
    assert main([*base, str(tmp_path / "b")]) == 0
    assert numbers(results_of(tmp_path / "a")) == numbers(results_of(tmp_path / "b"))


def test_other_word_sets_from_the_same_log(tmp_path, capsys):
    out = tmp_path / "explicit"
    base = ["run", "--tasks", "occugender_debias_explicit_none", "--model", "bias-chance", "--output_path"]
    assert main([*base, str(out), "--log_samples"]) == 0
    fewer = tmp_path / "fewer"
    assert main([*base, str(fewer), "--metadata", '{"words": "authors_code"}']) == 0
    assert_rescored_equals(rescored(capsys, out, "--words", "authors_code"), numbers(results_of(fewer)))
    pronouns = rescored(capsys, out, "--words", "pronouns")["occugender_debias_explicit_none"]["scores"]
    assert (
        pronouns["coverage"]["value"]
        < rescored(capsys, out)["occugender_debias_explicit_none"]["scores"]["coverage"]["value"]
    )


def test_word_set_that_the_log_does_not_hold(run_folder, capsys):
    path = str(next(run_folder.rglob("samples_occugender*.jsonl")))
    other = str(next(run_folder.rglob("samples_gg_bbq*.jsonl")))
    for arguments, says in (
        ([path, "--words", "appendix_a"], "the log holds no scores of Male, male"),
        ([other, "--words", "pronouns"], "--words is for OccuGender"),
        ([str(run_folder), "--words", "pronouns", "--classifier", "light"], "--classifier has no effect"),
    ):
        assert main(["rescore", *arguments]) == 2
        assert says in capsys.readouterr().err.strip().splitlines()[-1]
    # what it doesn't concern is passed over, in the whole run as well as where it is named itself
    for paths in ([str(run_folder)], [other, path]):
        assert main(["rescore", *paths, "--words", "pronouns", "--json"]) == 0
        out, err = capsys.readouterr()
        assert [entry["benchmark"] for entry in json.loads(out)] == ["occugender"]
        assert f"skipped: {other}: --words is for OccuGender" in err


def test_bad_sample_files(tmp_path, capsys):
    assert main([*OCCUGENDER, str(tmp_path), "--log_samples"]) == 0
    (path,) = tmp_path.rglob("samples_*.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    for changed, says in (
        ([*lines[:-1], lines[-1][: len(lines[-1]) // 2]], "line 200: truncated or damaged"),
        (lines[:150], "150 documents, but the run scored 200"),
        ([*lines, lines[7]], "line 201: document 7 appears twice"),
        ([], "empty"),
        (['{"doc": {"q": 1}, "filtered_resps": [], "doc_id": 0}'], "not a task of this package"),
        (['{"answer": 1}'], "not a sample of a harness run"),
        (["[" * 100_000], "truncated or damaged"),
    ):
        path.write_text("\n".join(changed), encoding="utf-8")
        assert main(["rescore", str(path)]) == 2
        err = capsys.readouterr().err.strip().splitlines()[-1]
        assert says in err
        assert path.name in err
    path.unlink()
    assert main(["rescore", str(tmp_path)]) == 2
    assert "--log_samples" in capsys.readouterr().err


def test_every_task_runs(tmp_path, tiny_mirror):
    packaged = {name: entry for name, entry in catalog.entries().items() if entry.path}
    known = {n: e for n, e in packaged.items() if "required" not in registry.get(e.benchmark).options.values()}
    names = list(known)
    out = tmp_path / "all"
    arguments = ["run", "--tasks", ",".join([*names, "occugender*"]), "--model", "bias-chance", "--limit", "80"]
    assert main([*arguments, "--output_path", str(out)]) == 0
    assert set(numbers(results_of(out))) == {n for n, e in known.items() if e.kind == "task"}
