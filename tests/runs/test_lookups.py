"""Benchmarks are looked up when a file is read, once for each of its tasks; what comes after has them from there."""

import pytest

from lm_eval_bias.core import catalog, registry
from tests.support.made_runs import harness_folder


@pytest.mark.parametrize(
    ("command", "files_of_a_task"),
    [
        # a results file and a sample log, or the one of them that is read
        (["report", "one", "-o", "page.html"], 2),
        (["rescore", "one"], 2),
        (["rescore", "one", "--by", "language"], 1),
        (["compare", "one", "two"], 4),
    ],
)
def test_once_for_each_task_of_a_file(
    command, files_of_a_task, tmp_path, monkeypatch, said
):
    catalog.entries()  # each names its benchmark, once for all commands
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("one", "two")):
        harness_folder(tmp_path / name, model=name, lean=float(number))
    logs = len(list((tmp_path / "one").rglob("samples_*.jsonl")))
    looked_up, real = [], registry.by_name

    def by_name():
        looked_up.append(1)
        return real()

    monkeypatch.setattr(registry, "by_name", by_name)
    said(*command)
    assert logs * files_of_a_task <= len(looked_up) <= 2 * logs * files_of_a_task + 1
