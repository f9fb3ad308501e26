"""What fails in one benchmark is named and left out: commands about others go on, and a run keeps its answers."""

import dataclasses
import json

import pytest

from lm_eval_bias.cli.main import main
from tests.third_party.test_third_party import forget, installed  # noqa: F401 (a fixture)


def told(capsys, *arguments):
    capsys.readouterr()
    status = main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def fail(*arguments, **options):
    raise RuntimeError("age")


@pytest.fixture
def own(installed):  # noqa: F811 (the fixture)
    """The class of the benchmark from another package."""
    from age_stereotypes.benchmark import AgeStereotypes

    return AgeStereotypes


@pytest.fixture
def run(own, tmp_path, capsys):
    """A run of its tasks beside one of this package's."""
    tasks = "age_pairs,age_pairs_gen,occugender_implicit"
    arguments = ["--model", "bias-chance", "--limit", "16", "--log_samples", "--output_path", tmp_path / "run"]
    assert told(capsys, "run", "--tasks", tasks, *arguments)[0] == 0
    return tmp_path / "run"


@pytest.mark.parametrize("part", ["cautions", "sentences", "figures", "score_label", "withheld", "published"])
def test_a_part_that_fails_does_not_end_a_report_on_others(part, own, run, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(own, part, fail)
    command = ["leaderboard", run] if part == "published" else ["report", run]
    forget()
    status, _, err = told(capsys, *command, "-o", tmp_path / "page.html")
    assert status == 2
    (line,) = err.splitlines()
    assert line.startswith("lm-eval-bias: warning: the benchmark age_stereotypes: ")
    assert line.endswith(" failed (RuntimeError: age)")
    assert "occugender_implicit" in (tmp_path / "page.html").read_text()


def test_a_wrong_name_in_a_suite_is_left_out(own, monkeypatch, capsys):
    monkeypatch.setattr(own, "quick", {"age_pair": None})
    forget()
    status, out, _ = told(capsys, "ls", "--suites")
    assert (status, "occugender_implicit" in out) == (0, True)  # nobody asked for it
    arguments = ["--suite", "quick+age_stereotypes", "--model", "bias-chance", "--limit", "3"]
    status, _, err = told(capsys, "run", *arguments)
    assert status == 2
    assert "the benchmark age_stereotypes: quick names age_pair, which is not a task: it is left out" in err


def test_a_yaml_that_lacks_something_is_named_with_its_benchmark(own, monkeypatch, capsys, tmp_path):
    (tmp_path / "broken.yaml").write_text("task: broken\nmetadata: {benchmark: age_stereotypes}\n")
    monkeypatch.setattr(own, "folder", tmp_path)
    forget()
    status, out, err = told(capsys, "ls", "--all")
    assert (status, "occugender_implicit" in out) == (2, True)
    assert f"age_stereotypes are left out ({tmp_path / 'broken.yaml'}: the key 'language' is missing)" in err


def test_a_card_that_cannot_be_read_is_left_out(own, run, monkeypatch, capsys, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "card.yaml").write_text("measures: Age.\ncosts: None.\n")
    monkeypatch.delattr(own, "card")
    monkeypatch.setattr(own, "folder", tmp_path)
    forget()
    status, _, err = told(capsys, "report", run, "-o", tmp_path / "page.html")
    assert status == 2
    assert f"its card in {tmp_path / 'data' / 'card.yaml'} is left out (TypeError: unknown argument 'costs')" in err
    assert "occugender_implicit" in (tmp_path / "page.html").read_text()


def test_two_of_one_name(own, monkeypatch, capsys):
    monkeypatch.setattr(own, "name", "occugender")
    forget()
    status, out, err = told(capsys, "ls", "--all")
    assert (status, "occugender_implicit" in out) == (2, True)
    assert "age_stereotypes.benchmark:BENCHMARK is left out (another one is named occugender, too)" in err


@pytest.mark.parametrize("what", ["record", "compute", "sample"])
def test_an_error_keeps_the_answers_of_a_run(what, own, monkeypatch, capsys, tmp_path):
    real = own.scores
    if what == "record":
        monkeypatch.setattr(own, "record", fail)
    else:
        failing = lambda self, *a, **k: [dataclasses.replace(s, **{what: fail}) for s in real(self, *a, **k)]  # noqa: E731
        monkeypatch.setattr(own, "scores", failing)
    arguments = ["--model", "bias-chance", "--log_samples", "--output_path", tmp_path]
    status, out, err = told(capsys, "run", "--tasks", "age_pairs,occugender_implicit", "--limit", 16, *arguments)
    assert status == 2
    place = "" if what == "compute" else "document slow/At the station: "
    name = {"record": "record", "compute": "the score old_share"}.get(what, "old_share")
    assert f"lm-eval-bias: warning: age_pairs: {place}{name} failed (RuntimeError: age)" in err.splitlines()
    (log,) = tmp_path.rglob("samples_age_pairs_*.jsonl")
    assert len(log.read_text().splitlines()) == 16
    results = json.loads(next(tmp_path.rglob("results_*.json")).read_text())
    assert results["results"]["age_pairs"]["old_share,none"] != results["results"]["age_pairs"]["old_share,none"]
    note = next(m["note"] for m in results["configs"]["age_pairs"]["metric_list"] if m["metric"] == "old_share")
    assert "failed (RuntimeError: age)" in note


def test_a_run_refuses_what_later_commands_would(own, monkeypatch, capsys):
    real = own.scores
    monkeypatch.setattr(
        own, "scores", lambda self, *a, **k: [dataclasses.replace(s, unit="") for s in real(self, *a, **k)]
    )
    status, _, err = told(capsys, "run", "--tasks", "age_pairs", "--model", "bias-chance")
    assert status == 2
    assert err.startswith("lm-eval-bias: error: age_pairs: old_share: its unit is '': it must be one of percent, ")


def test_a_run_says_which_package_and_code_made_it(own, run, monkeypatch, capsys):
    path = next(run.rglob("results_*.json"))
    content = json.loads(path.read_text())
    for task, source in (("age_pairs", ""), ("occugender_implicit", "lm-eval-bias ")):
        metadata = content["configs"][task]["metadata"]
        assert metadata["distribution"].startswith(source)
        assert {"package_content", "package_code"} <= set(metadata["inputs"])
    arguments = ["--model", "bias-chance", "--model_args", "seed=2", "--limit", "16", "--log_samples"]
    tasks = "age_pairs,occugender_implicit"
    assert told(capsys, "run", "--tasks", tasks, *arguments, "--output_path", run.parent / "other")[0] == 0
    path = next((run.parent / "other").rglob("results_*.json"))
    content = json.loads(path.read_text())
    content["configs"]["age_pairs"]["metadata"]["inputs"]["package_code"] = "0" * 64
    path.write_text(json.dumps(content))
    status, out, _ = told(capsys, "compare", run, run.parent / "other", "--format", "json")
    notes = {entry["what"]: entry["note"] for entry in json.loads(out)}
    assert status == 0
    assert "the benchmark's code" in notes["age_pairs"]
    assert "the benchmark's code" not in notes["occugender_implicit"]
