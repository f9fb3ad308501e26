"""A benchmark from another distribution is known to every command and comes through the built-in ones' door."""

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_bias import Benchmark
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog, errors, registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data import sources
from lm_eval_bias.evaluation import suites
from lm_eval_bias.harness import internals, linking
from tests.support.places import ROOT

HERE = Path(__file__).parent
PLAIN = """
task: plain_age_pairs
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{context}}"
doc_to_choice: choices
doc_to_target: 0
target_delimiter: " "
metadata: {version: 2.0}
"""


def forget(packages=()):
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]
    errors.FAULTS.clear()
    known = (registry._found, registry.benchmarks, registry.by_name, catalog.packaged, sources.manifest)
    for cached in (*known, suites.load, registry.published):
        cached.cache_clear()


@contextlib.contextmanager
def as_if_installed(monkeypatch, folder, benchmarks):
    """A distribution's packages on the path, and its entry points (each package's name with its benchmark) known."""
    real = importlib.metadata.entry_points
    own = [importlib.metadata.EntryPoint(name, value, registry.GROUP) for name, value in benchmarks.items()]

    def points(**wanted):
        return [*real(**wanted), *own] if wanted.get("group") == registry.GROUP else real(**wanted)

    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    forget(benchmarks)
    yield
    forget(benchmarks)


@pytest.fixture
def installed(monkeypatch):
    """The distribution as if it were installed: its entry point, and its package on the path."""
    with as_if_installed(monkeypatch, HERE, {"age_stereotypes": "age_stereotypes.benchmark:BENCHMARK"}):
        yield


def said(capsys, *arguments, status=0):
    capsys.readouterr()
    assert main([*map(str, arguments)]) == status
    return capsys.readouterr().out


def recorded(folder):
    """What a run's file says of the inputs of age_pairs, though the benchmark does nothing for it."""
    (path,) = folder.rglob("results_*.json")
    metadata = json.loads(path.read_text(encoding="utf-8"))["configs"]["age_pairs"]["metadata"]
    return {"scored": None, **metadata["inputs"]}


@pytest.fixture
def runs(installed, tmp_path, capsys):
    """Two runs of its tasks by the random model."""
    for seed in (1, 2):
        arguments = ["--model", "bias-chance", "--model_args", f"seed={seed}", "--seed", "0,1,2,3", "--log_samples"]
        out = said(capsys, "run", "--tasks", "age_pairs,age_ratings", *arguments, "--output_path", tmp_path / str(seed))
        assert "old_share" in out
        assert "age_pairs:\n  old_share" in out  # a plain line, since it has no sentences of its own
        assert "stereotypes about the old" in out
    return tmp_path / "1", tmp_path / "2"


def test_built_in_ones_come_the_same_way():
    folders = {path.parent.name for path in (ROOT / "tasks").glob("*/benchmark.py")}
    assert {benchmark.name for benchmark in registry.benchmarks()} == folders
    assert all(isinstance(benchmark, Benchmark) for benchmark in registry.benchmarks())


def test_listed(installed, capsys):
    out = said(capsys, "ls", "--all")
    assert "age_pairs" in out
    assert "Scores of age_stereotypes" in out
    assert "Scores of age_ratings" in out
    entry = next(entry for entry in json.loads(said(capsys, "ls", "--json")) if entry["name"] == "age_pairs")
    assert (entry["items"], entry["benchmark"], entry["scores"][0]["neutral"]) == (24, "age_stereotypes", 50.0)
    assert "age_pairs" not in said(capsys, "ls", "--suites")
    quick, chat, standard, full = (suites.load(f"{name}+age_stereotypes").parts for name in suites.NAMES)
    assert quick["age_pairs"][1:] == (8, None)
    assert "age_pairs" in standard
    assert not [task for task in chat if task.startswith("age")]
    assert {"age_pairs", "age_ratings", "plain_age_pairs"} <= set(full)
    with pytest.raises(BiasError, match="unknown benchmark of another package. Did you mean age_stereotypes?"):
        suites.load("quick+age_stereotype")


def test_a_planted_bias_comes_back(installed, tmp_path, capsys):
    arguments = ["--tasks", "age_pairs,age_ratings", "--model", "bias-dial", "--model_args", "strength=1"]
    said(capsys, "run", *arguments, "--output_path", tmp_path, "--log_samples")
    for entry in json.loads(said(capsys, "rescore", tmp_path, "--json")):
        assert entry["scores"]["old_share"]["value"] == 100


def test_a_bias_that_is_not_planted_is_refused_by_name(installed, monkeypatch, capsys):
    own = registry.get("age_stereotypes")
    monkeypatch.setattr(type(own), "planting", None)
    capsys.readouterr()
    assert main(["run", "--tasks", "age_pairs", "--model", "bias-dial", "--model_args", "strength=1"]) == 2
    assert "error: bias-dial can't answer Age stereotypes: " in capsys.readouterr().err


def test_every_command_knows_it(runs, tmp_path, capsys):
    one, two = runs
    rescored = {entry["task"]: entry for entry in json.loads(said(capsys, "rescore", one, "--json"))}
    results = json.loads(next(one.rglob("results_*.json")).read_text())["results"]
    for task in ("age_pairs", "age_ratings"):
        assert rescored[task]["scores"]["old_share"]["value"] == results[task]["old_share,none"]
        assert rescored[task]["scores"]["old_share"]["dof"] >= 3
    in_words = said(capsys, "rescore", one).partition("In words")[2]
    assert "old_share" in in_words
    assert "neutral 50" in in_words
    assert "age_pairs" in said(capsys, "compare", one, two)
    said(capsys, "report", one, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Age stereotypes" in page
    assert "Six traits are no sample" in page
    assert "Share by trait" in page
    assert "nothing is downloaded" not in page
    assert 'id="age_stereotypes"' in page
    for form in ("md", "latex", "csv", "json"):
        assert "age_pairs" in said(capsys, "report", one, "--format", form).replace("\\", "")
    board = said(capsys, "leaderboard", one, two, "--format", "md").replace("\\", "")
    assert "## age_pairs" in board
    assert "Nobody (2020)" in board
    policy = tmp_path / "policy.yaml"
    policy.write_text("bounds: [{task: age_pairs, score: old_share, max: 99.9, on: point}]\nallow: [chance_level]\n")
    assert "old_share" in said(capsys, "check", one, "--policy", policy)
    part = tmp_path / "part"
    arguments = ["--model", "bias-chance", "--limit", 12, "--output_path", part, "--log_samples"]
    said(capsys, "run", "--tasks", "age_pairs", *arguments)
    inputs = [recorded(run) for run in (one, two, part)]
    assert inputs[0] == inputs[1] == {**inputs[2], "scored": None}
    assert inputs[2]["scored"] not in (None, inputs[0]["documents"])
    assert "limit=12" in said(capsys, "check", part, "--policy", policy, status=1)
    policy.write_text("bounds: [{task: age_pairs, score: olt_share, max: 90}]\n")
    said(capsys, "check", one, "--policy", policy, status=2)


@pytest.mark.slow
def test_a_task_of_the_harness_that_it_describes(installed, tmp_path, capsys):
    documents = importlib.import_module("age_stereotypes.documents")
    rows = documents.dataset("none")["test"]
    for row in rows:
        del row["benchmark"]
    (tmp_path / "rows.json").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "plain_age_pairs.yaml").write_text(PLAIN.replace("FILE", str(tmp_path / "rows.json")))
    arguments = ["--model", "bias-chance", "--include_path", tmp_path, "--output_path", tmp_path / "out"]
    said(capsys, "run", "--tasks", "plain_age_pairs", *arguments, "--log_samples")
    (found,) = json.loads(said(capsys, "rescore", tmp_path / "out", "--json"))
    assert (found["task"], found["benchmark"], found["documents"]) == ("plain_age_pairs", "age_stereotypes", 24)
    value = found["scores"]["old_share"]["value"]
    report = json.loads(said(capsys, "report", tmp_path / "out", "--format", "json"))
    assert report["tasks"]["plain_age_pairs"]["scores"]["old_share"]["value"] == value
    assert len(report["tasks"]["plain_age_pairs"]["metadata"]["inputs"]["documents"]) == 64
    log = next((tmp_path / "out").rglob("samples_*.jsonl"))
    saved = [json.loads(line) for line in log.read_text().splitlines()]
    other = [{**sample, "filter": "other", "filtered_resps": sample["filtered_resps"][::-1]} for sample in saved]
    log.write_text("".join(json.dumps(sample) + "\n" for sample in [*saved, *other]))
    report = json.loads(said(capsys, "report", tmp_path / "out", "--format", "json"))
    assert report["tasks"]["plain_age_pairs"]["scores"]["old_share"]["value"] == value
    log.unlink()
    report = json.loads(said(capsys, "report", tmp_path / "out", "--format", "json"))
    score = report["tasks"]["plain_age_pairs"]["scores"]["old_share"]
    assert (score["value"], score["note"]) == (None, "no sample log: run it again with --log_samples")


def test_linked_like_the_others(installed, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "lm_eval" / "tasks"
    folder.mkdir(parents=True)
    monkeypatch.setattr(internals, "tasks_folder", lambda: folder)
    linking.found_by_harness.cache_clear()
    said(capsys, "link")
    task = TaskManager(include_path=str(folder), include_defaults=False).load(["age_pairs"])["tasks"]["age_pairs"]
    assert (type(task).__name__, len(task.eval_docs)) == ("BiasTask", 24)
    assert not (folder / linking.FOLDER / "plain_age_pairs.yaml").exists()  # the harness's own
    assert not linking.problem()
    said(capsys, "link", "--remove")
    assert not (folder / linking.FOLDER).exists()


def test_one_that_cannot_be_loaded_is_named_and_left_out(installed, monkeypatch, capsys):
    import age_stereotypes.benchmark

    monkeypatch.setattr(age_stereotypes.benchmark, "BENCHMARK", "none")
    forget()
    assert main(["ls", "--all"]) == 2
    out, err = capsys.readouterr()
    assert "occugender_implicit" in out
    assert "age_pairs" not in out
    assert "age_stereotypes.benchmark:BENCHMARK is left out" in err
    assert "is not an instance of lm_eval_bias.Benchmark): repair or uninstall it" in err


@pytest.mark.slow
def test_installed_into_an_environment_of_its_own(tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    dependencies = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{ROOT}\n{dependencies}\n")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    source = shutil.copytree(HERE, tmp_path / "source")  # building leaves folders behind
    subprocess.run([*pip, "--target", str(site), str(source)], check=True, cwd=tmp_path)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}

    def run(*arguments):
        command = [str(python), "-m", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    folder = run("lm_eval_bias", "path", "age_stereotypes").strip()
    assert folder == str(site / "age_stereotypes")
    asked = ["--tasks", "age_pairs", "--output_path", "out", "--log_samples"]
    run("lm_eval_bias", "run", "--model", "bias-chance", *asked)
    page = run("lm_eval_bias", "report", "out", "--format", "md")
    assert "Age stereotypes" in page
    # and by the harness's own command
    code = (
        "import sys; from lm_eval_bias.harness.registration import register; register(); sys.argv = ['lm_eval', 'run', "
        f"'--include_path', {folder!r}, '--model', 'bias-chance', '--tasks', 'age_pairs']; from lm_eval.__main__ "
        "import cli_evaluate; cli_evaluate()"
    )
    (tmp_path / "by_lm_eval.py").write_text(code)
    assert "old_share" in run("by_lm_eval")


@pytest.mark.parametrize("form", ["eee", "model-card"])
def test_exports(form, runs, tmp_path, capsys):
    out = tmp_path / "exported"
    said(capsys, "export", runs[0], "--to", form, "--scores", "all", "-o", out)
    texts = [path.read_text(encoding="utf-8") for path in ([out] if out.is_file() else out.rglob("*.*"))
             if path.is_file()]  # fmt: skip
    assert any("old_share" in text for text in texts)
