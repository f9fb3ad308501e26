"""link and link --remove, in a stand-in for the harness's task folder."""

import json

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_bias.cli import installation
from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog
from lm_eval_bias.harness import internals, linking


@pytest.fixture
def harness(tmp_path, monkeypatch):
    folder = tmp_path / "lm_eval" / "tasks"
    folder.mkdir(parents=True)
    (folder / "other.yaml").write_text("task: other\n")
    monkeypatch.setattr(internals, "tasks_folder", lambda: folder)
    return folder


def own_tasks():
    """Those with YAMLs of this package; others are the harness's."""
    return {name for name, entry in catalog.entries().items() if entry.path}


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_harness_finds_linked_tasks(harness, capsys):
    assert main(["link"]) == 0
    assert "works now" in capsys.readouterr().out
    manager = TaskManager(include_path=str(harness), include_defaults=False)
    assert set(manager.all_tasks) == {*own_tasks(), "other"}
    task = manager.load(["occugender"])["tasks"]["occugender_implicit"]
    assert type(task).__name__ == "BiasTask"
    assert len(task.eval_docs) == 1000
    stub = (harness / linking.FOLDER / "occugender.yaml").read_text()
    assert json.loads(stub.split("include: ")[1]).startswith("/")
    assert linking.state().stubs
    assert not linking.state().problem


def test_remove_takes_exactly_what_link_wrote(harness):
    before = files(harness)
    main(["link"])
    main(["link"])  # twice is once
    assert len(files(harness)) == len(before) + len(own_tasks())
    assert main(["link", "--remove"]) == 0
    assert files(harness) == before
    assert not (harness / linking.FOLDER).exists()
    assert main(["link", "--remove"]) == 0


def test_remove_leaves_foreign_and_changed_files(harness, capsys):
    main(["link"])
    folder = harness / linking.FOLDER
    (folder / "mine.yaml").write_text("task: mine\n")
    (folder / "occugender.yaml").write_text("task: changed\n")
    assert main(["link", "--remove"]) == 2
    assert "changed after it was linked" in capsys.readouterr().err
    assert files(folder) == ["mine.yaml", "occugender.yaml"]
    assert main(["link"]) == 2
    assert "changed by hand" in capsys.readouterr().err


def test_changed_stub_is_noticed_before_anything_is_removed(harness):
    main(["link"])
    stub = harness / linking.FOLDER / "occugender.yaml"
    stub.write_bytes(b"task: \xff\n")
    assert "changed by hand" in linking.state().problem
    before = files(harness)
    assert main(["link"]) == 2
    assert files(harness) == before
    assert main(["link", "--remove"]) == 2
    assert stub.exists()


@pytest.fixture
def moved(harness, tmp_path):
    """Stubs that lead to a file elsewhere."""
    main(["link"])
    stub, gone = harness / linking.FOLDER / "occugender.yaml", tmp_path / "occugender.yaml"
    stub.write_text(stub.read_text().replace(str(catalog.packaged()["occugender"].path), str(gone)))
    return gone


def test_moved_package_is_detected(moved):
    assert f"{moved}, which is gone" in linking.state().problem
    assert any(f.status == "problem" and "which is gone" in f.text for f in installation.examine())
    moved.write_text("")
    assert "another copy" in linking.state().problem
    assert main(["link"]) == 0
    assert not linking.state().problem


def test_lost_stub_and_other_version(harness, monkeypatch):
    main(["link"])
    (harness / linking.FOLDER / "gg_bbq.yaml").unlink()
    assert f"1 of {len(own_tasks())} tasks have no stub" in linking.state().problem
    main(["link"])
    real = catalog.packaged()
    monkeypatch.setattr(catalog, "packaged", lambda: {**real, "new_task": real["gg_bbq"]})
    assert f"1 of {len(own_tasks())} tasks have no stub" in linking.state().problem


def test_what_earlier_releases_wrote_beside_stubs_goes_too(harness):
    main(["link"])
    (harness / linking.FOLDER / "ledger.json").write_text("{")
    assert not linking.state().problem
    assert main(["link", "--remove"]) == 0
    assert not (harness / linking.FOLDER).exists()


def test_unwritable_harness(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(internals, "tasks_folder", lambda: tmp_path / "file")
    assert main(["link"]) == 2
    assert "lm-eval-bias run" in capsys.readouterr().err


def test_installed_harness_is_found():
    assert (internals.tasks_folder() / "manager.py").is_file()


def test_run_with_harness_tasks_says_that_the_link_is_stale(moved, caplog, monkeypatch):
    from lm_eval.config.evaluate_config import EvaluatorConfig

    from lm_eval_bias.evaluation import evaluate

    config = EvaluatorConfig(tasks=["occugender", "hellaswag"], metadata={})
    monkeypatch.setattr(EvaluatorConfig, "process_tasks", lambda self, metadata: "manager")
    assert evaluate.load_tasks(config, catalog.entries()) == "manager"
    assert "which is gone" in caplog.text
    assert config.include_path
