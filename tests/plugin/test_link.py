"""link and link --remove, in a stand-in for the harness's task folder, with releases that need it and that don't."""

import json
import re
import sys

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import catalog
from lm_eval_bias.harness import internals, linking

OWN = set(catalog.packaged())


@pytest.fixture
def harness(tmp_path, monkeypatch):
    """The task folder of a release that reads no entry points."""
    folder = tmp_path / "lm_eval" / "tasks"
    folder.mkdir(parents=True)
    (folder / "other.yaml").write_text("task: other\n")
    monkeypatch.setattr(linking, "found_by_harness", frozenset)
    monkeypatch.setattr(internals, "tasks_folder", lambda: folder)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return folder


@pytest.fixture
def stubs(harness, capsys):
    assert main(["link"]) == 0
    capsys.readouterr()
    return harness / linking.FOLDER


@pytest.fixture
def newer(monkeypatch):
    """Make the harness one that finds the tasks by itself."""
    return lambda: monkeypatch.setattr(linking, "missing_folders", lambda: ())


def doctor(capsys):
    """The status and the words of what doctor says about the link."""
    main(["doctor"])
    return re.search(
        r"^(\w+) +((?:not )?link.*)", capsys.readouterr().out, re.MULTILINE
    ).groups()


def files(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


def test_harness_finds_linked_tasks(harness, stubs, capsys):
    manager = TaskManager(include_path=str(harness), include_defaults=False)
    tags = {name for name in manager.all_tasks if name.startswith("social_bias")}
    assert set(manager.all_tasks) - tags == {*OWN, "other"}
    assert "social_bias" in tags
    task = manager.load(["occugender"])["tasks"]["occugender_implicit"]
    assert (type(task).__name__, len(task.eval_docs)) == ("BiasTask", 1000)
    assert json.loads(
        (stubs / "occugender.yaml").read_text().split("include: ")[1]
    ).startswith("/")
    assert doctor(capsys)[0] == "ok"


def test_an_lm_eval_of_another_environment_is_named_before_it_is_written_to(
    harness, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "other"))
    before = files(harness)
    assert main(["link"]) == 2
    assert f"lies in {harness.parent}, outside of this" in capsys.readouterr().err
    assert files(harness) == before
    assert main(["link", "--outside"]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == f"Linking in {harness / linking.FOLDER}"
    assert main(["link", "--remove"]) == 0
    assert files(harness) == before


def test_remove_takes_exactly_what_link_wrote(harness, stubs):
    main(["link"])  # twice is once
    assert len(files(harness)) == len(OWN) + 1
    (stubs / "mine.yaml").write_text("task: mine\n")
    (stubs / "occugender.yaml").write_bytes(b"task: \xff\n")
    before = files(harness)
    assert main(["link"]) == 2
    assert files(harness) == before
    assert main(["link", "--remove"]) == 0
    assert files(stubs) == ["mine.yaml", "occugender.yaml"]
    for path in stubs.glob("*.yaml"):
        path.unlink()
    assert main(["link"]) == main(["link", "--remove"]) == 0
    assert files(harness) == ["other.yaml"]
    assert not stubs.exists()
    assert main(["link", "--remove"]) == 0


def test_a_harness_that_finds_the_tasks_needs_no_link(harness, newer, capsys):
    assert doctor(capsys)[1].startswith("not linked")
    newer()
    assert main(["link"]) == 0
    capsys.readouterr()
    assert files(harness) == ["other.yaml"]
    assert doctor(capsys)[1].startswith("link not needed")
