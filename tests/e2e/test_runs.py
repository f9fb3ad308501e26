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
    "occugender_debias_implicit_none,gg_bbq_group_terms,gg_bbq_group_terms_gen,stereoset_en,stereoset_de_inter_variants"
)


@pytest.fixture
def run_folder(tmp_path, tiny_mirror):
    out = tmp_path / "run"
    arguments = ["run", "--tasks", TASKS, "--model", "bias-chance", "--output_path", str(out), "--log_samples"]
    assert main(arguments) == 0
    return out


def test_rescore_gives_exactly_the_runs_numbers(run_folder, capsys):
    assert_rescored_equals(rescored(capsys, run_folder), numbers(results_of(run_folder)))


def test_rescore_does_not_depend_on_the_order_of_documents(run_folder, capsys):
    before = rescored(capsys, run_folder)
    for path in run_folder.rglob("samples_*.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        random.Random(3).shuffle(lines)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    after = rescored(capsys, run_folder)
    for task, entry in before.items():
        for name, score in entry["scores"].items():
            for part in ("value", "stderr"):
                assert score[part] == after[task]["scores"][name][part], (task, name)


def test_rescore_breaks_gg_bbq_down_by_social_value(run_folder, capsys):
    scores = rescored(capsys, run_folder)["gg_bbq_group_terms"]["scores"]
    assert "value/gendered_occupation/diff_bias_amb" in scores
    assert scores["value/not_stated/acc_amb"]["reason"] == "a standard error needs items of at least 2 templates"


def test_rescore_says_words_first_then_the_tables_that_are_wanted(run_folder, capsys):
    def out(*flags):
        capsys.readouterr()
        assert main(["rescore", str(run_folder), *flags]) == 0
        return capsys.readouterr().out

    main_scores, every, words = out(), out("--table", "all"), out("--table", "none")
    assert out("--table", "main") == main_scores
    assert main_scores.index("In words") < main_scores.index("acc_amb, acc_disamb: 0 to 100%, higher is better")
    assert "| value/gendered_occupation/diff_bias_amb" not in main_scores
    assert "(--table all says why)" in main_scores
    assert every.index("In words") < every.index("| acc_amb") < every.index("| value/gendered_occupation/diff_bias_amb")
    assert "(--table all says why)" not in every
    assert "no interval: value/" in every
    assert "In words" in words
    assert not [text for text in ("| acc_amb", "acc_amb, acc_disamb:") if text in words]


def test_rescored_tasks_of_the_same_name_are_numbered(run_folder, tmp_path, capsys):
    for name in ("one", "two"):
        shutil.copytree(run_folder, tmp_path / "copies" / name)
    capsys.readouterr()
    assert main(["rescore", str(tmp_path / "copies")]) == 0
    out = capsys.readouterr().out
    for number, folder in ((1, "one"), (2, "two")):
        (line,) = (line for line in out.splitlines() if line.startswith(f"gg_bbq_group_terms [{number}]: "))
        assert f"/{folder}/" in line
        assert out.index("In words") < out.index(f"\ngg_bbq_group_terms [{number}]:\n") < out.index("Task  ")


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


def test_predict_only_still_rescores(tmp_path, capsys):
    full, blind = tmp_path / "full", tmp_path / "blind"
    base = ["run", "--tasks", "occugender_debias_implicit_2", "--model", "bias-chance", "--output_path"]
    assert main([*base, str(full)]) == 0
    assert main([*base, str(blind), "--predict_only"]) == 0
    assert_rescored_equals(rescored(capsys, blind), numbers(results_of(full)))


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


@pytest.mark.slow
def test_request_cache_knows_the_metadata(tmp_path, monkeypatch):
    monkeypatch.setattr("lm_eval.caching.cache.PATH", str(tmp_path / "requests"))
    base = ["run", "--tasks", "occugender_explicit", "--model", "bias-chance", "--limit", "40"]
    other = ["--metadata", "instruction=3"]
    assert main([*base, "--cache_requests", "true"]) == 0
    assert main([*base, "--cache_requests", "true", *other, "--output_path", str(tmp_path / "a")]) == 0
    assert main([*base, *other, "--output_path", str(tmp_path / "b")]) == 0
    assert numbers(results_of(tmp_path / "a")) == numbers(results_of(tmp_path / "b"))
    assert list((tmp_path / "requests").iterdir())


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
    path = next(run_folder.rglob("samples_occugender*.jsonl"))
    assert main(["rescore", str(path), "--words", "appendix_a"]) == 2
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert "the log holds no scores of Male, male" in err
    other = str(next(run_folder.rglob("samples_gg_bbq*.jsonl")))
    assert main(["rescore", other, "--words", "pronouns"]) == 2
    assert "--words is for OccuGender" in capsys.readouterr().err
    # what it doesn't concern is passed over, in the whole run as well as where it is named itself
    for paths in ([str(run_folder)], [other, str(path)]):
        assert main(["rescore", *paths, "--words", "pronouns", "--json"]) == 0
        out, err = capsys.readouterr()
        assert [entry["benchmark"] for entry in json.loads(out)] == ["occugender"]
        assert f"skipped: {other}: --words is for OccuGender" in err
    assert main(["rescore", str(run_folder), "--words", "pronouns", "--classifier", "light"]) == 2
    assert "--classifier has no effect on these files: it is for regard" in capsys.readouterr().err


def test_prompt_spread_run(tmp_path, tiny_mirror, capsys):
    out = tmp_path / "prompts"
    arguments = ["run", "--tasks", "gg_bbq_group_terms_prompts", "--model", "bias-chance", "--output_path", str(out)]
    assert main([*arguments, "--log_samples"]) == 0
    scores = numbers(results_of(out))["gg_bbq_group_terms_prompts"]
    each = [scores[f"acc_amb/prompt_{w}"] for w in range(1, 6)]
    assert scores["acc_amb/range"] == pytest.approx(max(each) - min(each), abs=1e-12)
    assert scores["acc_amb/mean"] == pytest.approx(sum(each) / 5, abs=1e-12)
    assert_rescored_equals(rescored(capsys, out), {"gg_bbq_group_terms_prompts": scores})


def test_limit_is_pointed_out(capsys, caplog):
    assert main(["run", "--tasks", "occugender_implicit", "--model", "bias-chance", "--limit", "50"]) == 0
    out = capsys.readouterr().out
    assert "no interval: stereotype_gap, coverage of occugender_implicit (the items x templates product is" in out
    assert "incomplete" not in caplog.text  # said once


def test_chat_template_changes_prompts_not_scores_shape(tmp_path):
    out = tmp_path / "chat"
    arguments = ["run", "--tasks", "occugender_debias_explicit_none", "--model", "bias-chance", "--apply_chat_template"]
    assert main([*arguments, "--output_path", str(out)]) == 0
    scores = numbers(results_of(out))["occugender_debias_explicit_none"]
    assert sum(scores[f"female_dominated_{g}"] for g in "MFD") == pytest.approx(100)


def edit(path, change):
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(change(lines)), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: [*lines[:-1], lines[-1][: len(lines[-1]) // 2]], "line 200: truncated or damaged"),
        (lambda lines: lines[:150], "150 documents, but the run scored 200"),
        (lambda lines: [*lines, lines[7]], "line 201: document 7 appears twice"),
        (lambda lines: [], "empty"),
        (lambda lines: ['{"doc": {"q": 1}, "filtered_resps": [], "doc_id": 0}'], "not a task of this package"),
        (lambda lines: ['{"answer": 1}'], "not a sample of a harness run"),
        (lambda lines: ["[" * 100_000], "truncated or damaged"),
    ],
)
def test_bad_sample_files(run_folder, change, says, capsys):
    path = next(run_folder.rglob("samples_occugender*.jsonl"))
    edit(path, change)
    assert main(["rescore", str(path)]) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert says in err[-1]
    assert path.name in err[-1]


def test_folder_without_samples(tmp_path, capsys):
    (tmp_path / "readme.txt").write_text("x")
    assert main(["rescore", str(tmp_path)]) == 2
    assert "run again with --log_samples" in capsys.readouterr().err


def test_a_group_and_its_member_run_once(tmp_path):
    out = tmp_path / "out"
    arguments = ["run", "--tasks", "occugender*,occugender_explicit", "--model", "bias-chance", "--limit", "40"]
    assert main([*arguments, "--output_path", str(out)]) == 0
    assert len(numbers(results_of(out))) == 18


def test_every_task_runs(tmp_path, tiny_mirror):
    packaged = {name: entry for name, entry in catalog.entries().items() if entry.path}
    known = {n: e for n, e in packaged.items() if "required" not in registry.get(e.benchmark).options.values()}
    names = list(known)
    out = tmp_path / "all"
    arguments = ["run", "--tasks", ",".join(names), "--model", "bias-chance", "--limit", "80"]
    assert main([*arguments, "--output_path", str(out)]) == 0
    assert set(numbers(results_of(out))) == {n for n, e in known.items() if e.kind == "task"}
