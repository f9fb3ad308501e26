"""Tasks over data sets of one's own, from the command line to what reads their results, and the command validate."""

import json
import shlex

import pytest
import yaml

from lm_eval_bias.core import catalog
from lm_eval_bias.runs import harness_results
from lm_eval_bias.tasks.stereoset import own_sets, stereoset_items
from tests.support.example_items import DUTCH, ENGLISH
from tests.support.fuzzing import command, refused

PROVENANCE = {"engine": "two people", "date": "2023-05-01"}


@pytest.fixture
def dutch(tmp_path):
    path = tmp_path / "nl.json"
    own_sets.write(path, own_sets.DataSet("nl", DUTCH, PROVENANCE))
    return path


@pytest.fixture
def folder(dutch, tmp_path):
    own_sets.write_tasks(tmp_path / "tasks", dutch, own_sets.read(dutch))
    return tmp_path / "tasks"


def run(names, *more, out):
    """What a run prints, its results, the documents of its first task and the command that repeats it."""
    done = command("run", "--tasks", names, "--model", "bias-chance", "--output_path", str(out), "--log_samples", *more)
    assert done.status == 0, done.err
    path = next(out.rglob("results_*.json"))
    lines = next(out.rglob(f"samples_{names.partition(',')[0]}_2*.jsonl")).read_text().splitlines()
    told = json.loads(path.read_text())
    again = shlex.split(harness_results.read(path, told).command)
    return done.out, told, [json.loads(line)["doc"] for line in lines], again


def test_the_tasks_of_a_language(folder, dutch):
    names = {path.stem for path in folder.iterdir()}
    assert names == {f"stereoset_nl{ending}" for ending in ("", "_inter", "_intra", "_inter_variants")}
    known = catalog.entries([folder])
    for name in names:
        own, like = known[name], catalog.packaged()[name.replace("_nl", "_de")]
        assert (own.benchmark, own.kind, set(own.asks)) == (like.benchmark, like.kind, set(like.asks))
        assert (own.language, own.data) == ("nl", "")
        told = catalog.read_yaml(folder / f"{name}.yaml")
        assert told["metadata"]["fixed"]["dataset"] == {"file": str(dutch), "sha256": own_sets.digest(dutch)}
        expected = catalog.read_yaml(like.path)
        assert told["metadata"]["fixed"]["tests"] == expected["metadata"]["fixed"]["tests"]
        assert {k: v for k, v in told.items() if k not in ("task", "metadata")} == {
            k: v for k, v in expected.items() if k not in ("task", "metadata")
        }
    assert {name: known[name].items for name in names} == {
        "stereoset_nl": 4, "stereoset_nl_inter": 2, "stereoset_nl_intra": 2, "stereoset_nl_inter_variants": 2
    }  # fmt: skip


def test_a_run_and_all_that_reads_it(folder, dutch, tmp_path):
    out, names = tmp_path / "run", "stereoset_nl,stereoset_nl_inter_variants"
    printed, told, docs, again = run(names, "--include_path", str(folder), out=out)
    assert "stereoset_nl:\n  All items: prefers a meaningful candidate" in printed
    assert "gen_full_ratio: prefers a meaningful candidate" in printed
    assert {doc["language"] for doc in docs} == {"nl"}
    assert sorted(doc["id"] for doc in docs) == ["a1", "a2", "e1", "e2"]
    assert told["provenance"]["tasks"]["stereoset_nl"]["dataset"] == {
        "file": str(dutch),
        "sha256": own_sets.digest(dutch),
        "items": {"inter": 2, "intra": 2},
        "provenance": PROVENANCE,
    }
    assert again[again.index("--include_path") + 1] == str(folder)
    # later nothing knows the tasks but the result file
    rescored = json.loads(command("rescore", str(out), "--json").out)
    by_task = {entry["task"]: entry["scores"] for entry in rescored}
    assert by_task["stereoset_nl"]["ss"]["value"] == told["results"]["stereoset_nl"]["ss,none"]
    for page in (command("report", str(out), "--format", "md"), command("leaderboard", str(out), "--format", "md")):
        assert page.status == 0
        assert "not a task of this version" not in page.out
        assert "a task that this package doesn't know" not in page.out
    assert f"dataset=nl.json ({own_sets.digest(dutch)[:12]})" in page.out


def test_the_stock_harness_runs_them(folder):
    from lm_eval.tasks import TaskManager

    loaded = TaskManager(include_path=str(folder), include_defaults=False).load(["stereoset_nl"])
    task = loaded["tasks"]["stereoset_nl"]
    assert sorted(doc["id"] for doc in task.eval_docs) == ["a1", "a2", "e1", "e2"]
    assert task.config.metadata["dataset_used"]["provenance"] == PROVENANCE


def test_another_set_of_a_published_language(tiny_mirror, tmp_path):
    german = [{**one, "id": f"new-{one['id']}"} for one in stereoset_items.read("de", "inter")]
    path = tmp_path / "de.json"
    own_sets.write(path, own_sets.DataSet("de", german, {"engine": "other"}))
    given = json.dumps({"dataset": str(path)})
    names = "stereoset_de_inter,stereoset_de_inter_variants"
    _, told, docs, again = run(names, "--metadata", given, out=tmp_path / "run")
    assert {doc["id"] for doc in docs} == {one["id"] for one in german}
    own = told["provenance"]["tasks"]["stereoset_de_inter"]
    assert own["dataset"]["sha256"] == own_sets.digest(path)
    assert "data" not in own
    assert again[again.index("--metadata") + 1] == given
    run("stereoset_de_inter", out=tmp_path / "published")
    said = command("compare", str(tmp_path / "published"), str(tmp_path / "run"))
    assert f"data sets: the published one and {own_sets.digest(path)[:12]}" in said.err + said.out


def test_a_set_is_refused_before_a_model_is_loaded(tiny_mirror, dutch, tmp_path):
    def line(names, file):
        arguments = ["--model", "hf", "--model_args", "pretrained=gpt2", "--metadata", json.dumps({"dataset": file})]
        return refused(tmp_path, "run", "--tasks", names, *arguments)

    assert "is in language 'nl', not 'de'" in line("stereoset_de", str(dutch))
    assert "cannot be read" in line("stereoset_de", str(tmp_path / "none.json"))
    assert "must be the path of a data set" in line("stereoset_de", 7)
    one = tmp_path / "one.json"
    own_sets.write(one, own_sets.DataSet("de", stereoset_items.read("de", "intra"), {}))
    said = line("stereoset_de", str(one))
    assert "no items between sentences: run the task of the other test, stereoset_de_intra" in said
    own_sets.write(one, own_sets.DataSet("en", [{**ENGLISH[2], "context": "No blank."}], {}))
    assert "item a1: the context holds no BLANK" in line("stereoset_en_intra", str(one))


def test_a_changed_or_missing_file_is_said(folder, dutch, tmp_path):
    arguments = ["run", "--include_path", str(folder), "--tasks", "stereoset_nl", "--model", "bias-chance"]
    dutch.write_text(dutch.read_text() + "\n")
    assert "was changed since the task was written for it: write the tasks again" in refused(tmp_path, *arguments)
    dutch.unlink()
    assert "put it back, or write the tasks again: lm-eval-bias stereoset validate" in refused(tmp_path, *arguments)


def test_odd_names_and_one_test(tmp_path):
    place = tmp_path / 'a: b\'s "c" ünï 🐈 #{}'
    place.mkdir()
    path = place / "nl.json"
    own_sets.write(path, own_sets.DataSet("nl", DUTCH[2:], {}))
    written = own_sets.write_tasks(place, path, own_sets.read(path))
    assert [target.name for target in written] == ["stereoset_nl_intra.yaml"]
    for target in written:
        told = yaml.load(target.read_text(), catalog.Loader)
        assert told["metadata"]["fixed"]["dataset"]["file"] == str(path)


def test_validate_a_translation(tiny_mirror, tmp_path):
    items = [one for test in stereoset_items.TESTS for one in stereoset_items.read("de", test)]
    path = tmp_path / "nl.json"
    own_sets.write(path, own_sets.DataSet("nl", items, {}))

    def told(*more):
        found = command("stereoset", "validate", *more)
        assert found.status == 1
        first, *lines, last = found.out.splitlines()
        assert last.endswith(" items have problems that need a person; 0 more have notes")
        return first.rpartition("source: ")[2], [line for line in lines if "problem" in line], lines

    source, problems, lines = told(str(path))
    assert source == "the published set in 'en'"
    english = sum(len(stereoset_items.read("en", test)) for test in stereoset_items.TESTS)
    assert sum(line.startswith("problem missing: ") for line in problems) == english - len(items)
    assert [line for line in problems if line.startswith("problem glued: ") and "BLANKSTE" in line]
    assert "inter: gender 1 of 2, profession 1 of 2, race 0 of 0, religion 0 of 0" in lines
    source, problems, _ = told(str(path), "--source", "none")
    assert (source, [line for line in problems if "missing: " in line]) == ("none", [])
    assert told(str(path), "--source", "es")[0] == "the published set in 'es'"
    assert any("problem glued: " in line for line in told("de")[1])


def test_validate_a_set_of_ones_own(tiny_mirror, dutch, tmp_path, monkeypatch):
    found = command("stereoset", "validate", str(dutch), "--tasks", str(tmp_path / "made"))
    assert (found.status, found.err) == (0, "")
    assert found.out.splitlines()[-1] == "0 items have problems that need a person; 0 more have notes"
    assert len(list((tmp_path / "made").iterdir())) == 4
    english = tmp_path / "en.json"
    own_sets.write(english, own_sets.DataSet("en", ENGLISH, {}))
    assert command("stereoset", "validate", str(dutch), "--source", str(english)).status == 0
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(tmp_path))
    assert "--source none" in refused(tmp_path, "stereoset", "validate", str(dutch))


def test_validate_refuses(tiny_mirror, dutch, tmp_path):
    path = tmp_path / "de.json"
    own_sets.write(path, own_sets.DataSet("de", stereoset_items.read("de", "inter"), {}))
    for arguments, said in (
        ([str(dutch), "--language", "de"], "is in language 'nl', not 'de'"),
        ([str(dutch), "--source", str(tmp_path / "x.json")], "x.json: cannot be read"),
        ([str(dutch), "--source", str(path)], "has no item of the same id"),
        ([str(path), "--tasks", str(tmp_path / "t")], "--metadata"),
    ):
        assert said in refused(tmp_path, "stereoset", "validate", *arguments)
