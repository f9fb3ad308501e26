"""Releases of the harness: too old, newer than tested, and those that read our entry points by themselves."""

import importlib.metadata
import re
from pathlib import Path

import pytest
from lm_eval import simple_evaluate
from lm_eval.api import registry
from lm_eval.config.evaluate_config import EvaluatorConfig
from lm_eval.tasks import TaskManager
from packaging.version import Version

from lm_eval_bias import installation
from lm_eval_bias.cli.main import main
from lm_eval_bias.evaluation import evaluate
from lm_eval_bias.harness import linking, registration

ROOT = Path(__file__).resolve().parents[2]
REGISTRIES = {
    "lm_eval.models": "model_registry",
    "lm_eval.filters": "filter_registry",
    "lm_eval.metrics": "metric_registry",
    "lm_eval.aggregations": "aggregation_registry",
}


def load_plugins(group, known):
    """As the harness's main branch: names that are taken stay, others are loaded when they are asked for."""
    new = [entry for entry in importlib.metadata.entry_points(group=group) if entry.name not in known]
    for entry in new:
        known.register(entry.name, target=entry)
    return [entry.name for entry in new]


class ReadsEntryPoints(TaskManager):
    """A task manager that looks into the folders of the group ``lm_eval.tasks``, without the harness's own tasks."""

    def __init__(self, verbosity=None, include_path=None, include_defaults=True, metadata=None):
        entries = importlib.metadata.entry_points(group="lm_eval.tasks")
        given = [include_path] if isinstance(include_path, str) else list(include_path or [])
        folders = [str(entry.load()()) for entry in entries] + given
        super().__init__(include_path=folders, include_defaults=False, metadata=metadata)


@pytest.fixture
def stubs(tmp_path, monkeypatch):
    """A stand-in for the harness's task folder."""
    folder = tmp_path / "lm_eval" / "tasks"
    folder.mkdir(parents=True)
    monkeypatch.setattr(linking, "harness_tasks", lambda: folder)
    return folder / linking.FOLDER


@pytest.fixture
def reads_entry_points(stubs, monkeypatch):
    """A harness that reads the five groups, and knows nothing of ours yet."""
    registration.register()  # what the harness fills on import stays when this test is over
    linking.unnecessary.cache_clear()
    monkeypatch.setattr(registry, "load_plugins", load_plugins, raising=False)
    monkeypatch.setattr("lm_eval.tasks.TaskManager", ReadsEntryPoints)
    ours = {**registration.MODELS, **registration.FILTERS, **registration.METRICS, **registration.AGGREGATIONS}
    for name in REGISTRIES.values():
        known = getattr(registry, name)
        monkeypatch.setattr(known, "_objs", {k: v for k, v in known._objs.items() if k not in ours})
    yield
    linking.unnecessary.cache_clear()


@pytest.mark.parametrize("first", ["ours", "harness"])
def test_names_are_the_same_whoever_registers_first(reads_entry_points, first):
    if first == "ours":
        registration.register()
    for group, name in REGISTRIES.items():
        assert bool(load_plugins(group, getattr(registry, name))) == (first == "harness")
    registration.register()
    assert registry.get_model("hf-packed").__name__ == "HFPacked"
    assert registry.get_filter("bias_regard").__name__ == "RegardFilter"
    assert registry.get_aggregation("bias_clustered_mean")([(1.0, "a"), (0.0, "b")]) == 0.5


def test_the_harness_runs_our_tasks_and_models_by_itself(reads_entry_points):
    load_plugins("lm_eval.models", registry.model_registry)
    load_plugins("lm_eval.filters", registry.filter_registry)
    found = simple_evaluate(
        model="bias-chance",
        model_args="seed=1",
        tasks=["occugender_implicit"],
        limit=3,
        task_manager=ReadsEntryPoints(),
    )
    assert "stereotype_gap,none" in found["results"]["occugender_implicit"]


def test_nothing_is_linked_where_the_harness_reads_entry_points(reads_entry_points, stubs, monkeypatch, capsys):
    assert main(["link"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to link")
    assert not stubs.exists()
    (said,) = [finding for finding in installation.examine() if "link" in finding.text and "plain" in finding.text]
    assert said.status == "ok"
    assert said.text.startswith("link not needed")
    monkeypatch.setattr(EvaluatorConfig, "process_tasks", lambda self, metadata: "manager")
    config = EvaluatorConfig(tasks=["occugender", "hellaswag"], metadata={})
    assert evaluate.load_tasks(config) == "manager"
    assert not config.include_path  # once is enough


def test_a_stale_link_is_no_problem_there(stubs, monkeypatch, capsys):
    main(["link"])
    (stubs / "occugender.yaml").unlink()
    assert "1 of" in linking.state().problem
    monkeypatch.setattr(linking, "unnecessary", lambda: True)
    assert not linking.state().problem
    assert any("unlink' removes" in finding.text for finding in installation.examine())
    config = EvaluatorConfig(tasks=["occugender", "hellaswag"], metadata={})
    monkeypatch.setattr(EvaluatorConfig, "process_tasks", lambda self, metadata: "manager")
    assert evaluate.load_tasks(config) == "manager"
    assert not config.include_path


def test_releases_that_read_no_entry_points_need_the_link(stubs, monkeypatch):
    monkeypatch.delattr(registry, "load_plugins", raising=False)
    linking.unnecessary.cache_clear()
    assert not linking.unnecessary()


def test_entry_points_for_models_alone_leave_the_link_needed(reads_entry_points, monkeypatch):
    class WithoutTasks(TaskManager):
        def __init__(self):
            super().__init__(include_defaults=False)

    monkeypatch.setattr("lm_eval.tasks.TaskManager", WithoutTasks)
    assert not linking.unnecessary()


@pytest.fixture
def installed(monkeypatch):
    """Another release of the harness than the installed one."""
    real = importlib.metadata.version

    def pretend(version):
        monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == "lm_eval" else real(name))

    return pretend


def test_a_newer_harness_is_warned_about_once(installed, monkeypatch):
    said = []
    monkeypatch.setattr(evaluate.logger, "warning", lambda text, *more: said.append(text % more))
    arguments = ["run", "--model", "bias-chance", "--tasks", "occugender_implicit", "--limit", "2"]
    installed("0.5.0")
    assert main(arguments) == 0
    about = [text for text in said if "lm_eval" in text]
    assert about == [
        f"lm_eval 0.5.0 is newer than {installation.SUPPORTED['lm_eval'][1]}, the newest release tested here"
    ]
    assert installation.harness().status == "note"
    said.clear()
    installed(installation.SUPPORTED["lm_eval"][1])
    assert main(arguments) == 0
    assert not [text for text in said if "lm_eval" in text]


def test_an_old_harness_is_refused_in_one_line(installed, capsys):
    installed("0.4.11")
    assert main(["run", "--model", "bias-chance", "--tasks", "occugender_implicit"]) == 2
    err = capsys.readouterr().err
    assert "lm_eval 0.4.11 is older than 0.4.12: pip install -U lm_eval" in err
    assert "Traceback" not in err


def pins(name):
    lines = [line.split(";")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {re.sub(r"[-_.]+", "-", package).lower(): Version(version) for package, version in found}


def test_bounds_are_the_versions_that_were_tested():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = {}
    for requirement in project["dependencies"]:
        package, _, bound = re.sub(r"\[.*?\]", "", requirement).partition(">=")
        lowest[re.sub(r"[-_.]+", "-", package).lower()] = Version(bound)
    oldest, newest = pins("constraints-oldest.txt"), pins("constraints.txt")
    del lowest["torch"], oldest["torch"]  # see there
    assert {package: oldest[package] for package in lowest} == lowest
    for package, (low, high) in installation.SUPPORTED.items():
        assert Version(high) == newest[package.replace("_", "-")]
        assert package == "torch" or Version(low) == lowest[package.replace("_", "-")]
