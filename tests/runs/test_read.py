"""Reading runs: one model's tasks together, other models apart, and everything damaged named."""

from __future__ import annotations

import shutil

import pytest

from lm_eval_bias.runs import diagnostics
from lm_eval_bias.runs.run_discovery import read
from tests.support import made_runs
from tests.support.made_runs import write
from tests.support.run_scores import results_of, run

TASK = "occugender_debias_implicit_none"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    run(root / "one" / "a", TASK, "--limit", "80")
    run(root / "one" / "b", "occugender_debias_implicit_1", "--limit", "120")
    run(root / "two", TASK, "--limit", "80", "--model_args", "seed=5")
    return root


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "made")


def _results(folder):
    return sorted(folder.rglob("results_*.json"))


def test_one_models_tasks_are_one_run(folder):
    runs, problems = read([folder])
    assert problems == []
    assert [run.name for run in runs] == ["bias-chance", "bias-chance (seed=5)"]
    first, second = runs
    assert set(first.tasks) == {TASK, "occugender_debias_implicit_1"}
    assert {record.limit for record in first.records} == {80.0, 120.0}
    assert len(first.command.splitlines()) == 2
    task = first.tasks[TASK]
    assert (task.documents, task.items, task.language) == (80, 200, "en")
    gap = second.tasks[TASK].scores["stereotype_gap"]
    written = results_of(folder / "two")
    raw = written["results"][TASK]
    assert (gap.value, gap.stderr) == (
        raw["stereotype_gap,none"],
        raw["stereotype_gap_stderr,none"],
    )
    assert (gap.low, gap.high, gap.neutral, gap.unit) == (-1.0, 1.0, 0.0, "difference")
    metrics = {own["metric"]: own for own in written["configs"][TASK]["metric_list"]}
    assert list(gap.interval) == metrics["stereotype_gap"]["interval"]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"pretrained": "org/one"}, "org/one"),
        ({"pretrained": "/a/tuned/"}, "tuned"),
        ({"pretrained": "/a/b", "gguf_file": "One-7B.Q4.gguf"}, "One-7B.Q4"),
        ({"pretrained": "/c/models--org--one/snapshots/1f"}, "org/one"),
        ({"pretrained": "org/one", "peft": "./lora"}, "org/one + lora"),
    ],
)
def test_a_checkpoint_names_its_run(folder, arguments, name):
    [path] = _results(folder / "two")
    content = results_of(folder / "two")
    content["config"]["model_args"] = arguments
    write(path, content)
    assert read([path])[0][0].name == name


def test_one_run_by_several_paths_counts_once(folder):
    (folder / "link").symlink_to(folder / "two")
    (path,) = _results(folder / "two")
    path.with_name("other.json").symlink_to(path)  # no results by its name
    (file_link := path.with_name("results_1.json")).symlink_to(path)
    (run,) = read([folder / "two"])[0]
    assert run.tasks[TASK].samples is not None
    for paths in (
        [path, path],
        [folder / "two", folder / "link"],
        [folder / "two", folder],
        [path, file_link, folder],
    ):
        runs, problems = read(paths)
        assert [run.name for run in runs if "seed=5" in run.name] == [
            "bias-chance (seed=5)"
        ]
        assert not problems


DAMAGED = {
    "results_1.json": ("", "truncated or damaged"),
    "results_2.json": (
        '{"results": {"mmlu": {"acc,none": 1}}, "configs": {"mmlu": {}}}',
        "mmlu",
    ),
    "results_4.json": ('{"results": 3}', "not the results of a harness run"),
    f"samples_{TASK}_2026-01-01T00-00-00.000000.jsonl": (
        "{}\n",
        "the run is unfinished",
    ),
}


def test_damaged_files_are_named_and_the_rest_is_read(folder):
    (folder / "broken").mkdir()
    for name, (content, _) in DAMAGED.items():
        (folder / "broken" / name).write_text(content)
    (folder / "broken" / "notes.json").write_text(
        "[1, 2]"
    )  # somebody else's, not meant for us
    runs, problems = read([folder])
    assert len(runs) == 2
    assert {problem.path.name for problem in problems} == set(DAMAGED)
    for problem in problems:
        assert DAMAGED[problem.path.name][1] in problem.reason


def add(folder, name, tasks, shift=0, **provenance):
    content = made_runs.run_of(tasks=tasks, shift=shift)
    content["provenance"] |= provenance
    return write(folder / name / "run.json", content)


def names(folder, by_task=False):
    return [run.name for run in read([folder], by_task)[0]]


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("gen_kwargs", "top_p=0.1"),
        ("seeds", [1, 2, 3, 4]),
        ("torch", "2.12.0"),
        ("system_instruction", "Antworte!"),
    ],
)
def test_what_changes_numbers_keeps_runs_apart(fact, value, tmp_path):
    add(tmp_path, "a", ["stereoset_en"])
    add(tmp_path, "b", ["stereoset_de"], **{fact: value})
    assert names(tmp_path) == ["tiny (a)", "tiny (b)"]
    assert names(tmp_path, by_task=True) == ["tiny", "tiny"]  # no table has both


def trained_on(digest):
    """What a run of ``lm-eval-bias run`` says of a checkpoint's files."""
    told = {
        "machine": {"threads": 1},
        "packages": {},
        "tasks": {},
        "model": {"pretrained files": {"a": 4 * digest}},
    }
    return {"provenance": told}


def test_other_tasks_are_one_run_but_of_a_checkpoint_that_was_trained_on(tmp_path):
    add(
        tmp_path,
        "a",
        ["stereoset_en"],
        torch="2.13.0",
        more=trained_on("0123456789abcdef"),
    )
    # of another build, and a run of the harness's own command, of which the files are not known
    add(tmp_path, "b", ["stereoset_de"], torch="2.13.0+cpu")
    assert names(tmp_path) == ["tiny"]
    add(
        tmp_path,
        "c",
        ["regard_en"],
        torch="2.13.0",
        more=trained_on("fedcba9876543210"),
    )
    (first, other) = read([tmp_path])[0]
    assert (set(first.tasks), set(other.tasks)) == (
        {"stereoset_en", "stereoset_de"},
        {"regard_en"},
    )


def test_runs_that_do_not_prove_their_weights_are_joined_with_a_remark(tmp_path):
    """Two servers under one name, say; a name of the Hub that stood for two commits isn't joined."""
    add(tmp_path, "a", ["stereoset_en"])
    add(tmp_path, "b", ["stereoset_de"])
    (run,) = read([tmp_path])[0]
    (suffix,) = diagnostics.about_origin(run)
    assert (suffix.code, suffix.message.count("run.json")) == ("unproven_weights", 2)
    for name, digest in (("c", "1" * 40), ("d", "2" * 40)):
        told = trained_on("")
        told["provenance"]["model"] = {"pretrained commit": digest}
        add(
            tmp_path / "hub",
            name,
            [f"stereoset_{'es' if name == 'c' else 'fr'}"],
            more=told,
        )
    assert len(read([tmp_path / "hub"])[0]) == 2
