"""Tasks over data sets of one's own, from the command line to what reads their results, and the command validate."""

import json
import shlex

import pytest
import yaml

from lm_eval_bias import catalog
from lm_eval_bias.cli.main import main
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import harness_results
from lm_eval_bias.tasks.stereoset import released_sets, stereoset_items
from lm_eval_bias.tasks.stereoset.own_sets import set_files, set_tasks
from tests.fuzz.kit import command, refused
from tests.stereosets.example_items import DUTCH, ENGLISH

PROVENANCE = {"engine": "two people", "date": "2023-05-01"}


@pytest.fixture
def dutch(tmp_path):
    path = tmp_path / "nl.json"
    set_files.write(path, set_files.DataSet("nl", DUTCH, PROVENANCE))
    return path


@pytest.fixture
def folder(dutch, tmp_path):
    set_tasks.write(tmp_path / "tasks", dutch, set_files.read(dutch))
    return tmp_path / "tasks"


def run(names, *more, out):
    arguments = ["run", "--tasks", names, "--model", "bias-chance", "--output_path", str(out), "--log_samples", *more]
    return command(*arguments)


def path_of(out):
    return next(out.rglob("results_*.json"))


def results(out):
    return json.loads(path_of(out).read_text())


def test_the_tasks_of_a_language(folder, dutch):
    names = {path.stem for path in folder.iterdir()}
    assert names == {f"stereoset_nl{ending}" for ending in ("", "_inter", "_intra", "_inter_variants")}
    known = catalog.entries([folder])
    for name in names:
        own, like = known[name], catalog.packaged()[name.replace("_nl", "_de")]
        assert (own.benchmark, own.kind, set(own.asks)) == (like.benchmark, like.kind, set(like.asks))
        assert (own.language, own.data) == ("nl", "")
        told = catalog.read_yaml(folder / f"{name}.yaml")
        assert told["metadata"]["fixed"]["dataset"] == {"file": str(dutch), "sha256": set_files.digest(dutch)}
        expected = catalog.read_yaml(like.path)
        assert told["metadata"]["fixed"]["tests"] == expected["metadata"]["fixed"]["tests"]
        assert {k: v for k, v in told.items() if k not in ("task", "metadata")} == {
            k: v for k, v in expected.items() if k not in ("task", "metadata")
        }
    assert {name: known[name].items for name in names} == {
        "stereoset_nl": 4, "stereoset_nl_inter": 2, "stereoset_nl_intra": 2, "stereoset_nl_inter_variants": 2
    }  # fmt: skip


def test_a_run_and_all_that_reads_it(folder, dutch, tmp_path, monkeypatch):
    out = tmp_path / "run"
    done = run("stereoset_nl,stereoset_nl_inter_variants", "--include_path", str(folder), "--table", "all", out=out)
    assert done.status == 0, done.err
    assert "stereoset_nl:\n  All items: prefers a meaningful candidate" in done.out
    assert "gen_full_ratio: prefers a meaningful candidate" in done.out
    assert "| mc_icat_macro " in done.out  # how to read the scores
    told = results(out)
    docs = [
        json.loads(line)["doc"] for line in next(out.rglob("samples_stereoset_nl_2*.jsonl")).read_text().splitlines()
    ]
    assert {doc["language"] for doc in docs} == {"nl"}
    assert sorted(doc["id"] for doc in docs) == ["a1", "a2", "e1", "e2"]
    own = told["provenance"]["tasks"]["stereoset_nl"]["dataset"]
    assert own == {
        "file": str(dutch),
        "sha256": set_files.digest(dutch),
        "items": {"inter": 2, "intra": 2},
        "provenance": PROVENANCE,
    }
    # later nothing knows the tasks but the result file
    rescored = json.loads(command("rescore", str(out), "--json").out)
    by_task = {entry["task"]: entry["scores"] for entry in rescored}
    assert by_task["stereoset_nl"]["ss"]["value"] == told["results"]["stereoset_nl"]["ss,none"]
    again = shlex.split(harness_results.read(path_of(out), told).command)
    assert again[again.index("--include_path") + 1] == str(folder)
    page = command("report", str(out), "--format", "md")
    assert page.status == 0
    assert "its own data set, not the published one" in page.out
    assert "not a task of this version" not in page.out
    board = command("leaderboard", str(out), "--format", "md")
    assert f"dataset=nl.json ({set_files.digest(dutch)[:12]})" in board.out
    assert "a task that this package doesn't know" not in board.out
    assert command("report", str(out), "-o", str(tmp_path / "run.json")).status == 0
    assert "not a task of this version" not in command("report", str(tmp_path / "run.json"), "--format", "md").out
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "require_full: true\nallow_warnings: true\nbounds:\n  - {task: stereoset_nl, score: lms, min: 101}\n"
    )
    assert refused(tmp_path, "check", str(out), "--policy", str(policy))
    policy.write_text(
        "require_full: true\nallow_warnings: true\nbounds:\n"
        "  - {task: stereoset_nl, score: lms, min: 1, on: point}\n  - {task: stereoset_nl, score: gender/ss, min: 1}\n"
    )
    assert command("check", str(out), "--policy", str(policy)).status == 1


def test_the_stock_harness_runs_them(folder):
    from lm_eval.tasks import TaskManager

    loaded = TaskManager(include_path=str(folder), include_defaults=False).load(["stereoset_nl"])
    task = loaded["tasks"]["stereoset_nl"]
    assert sorted(doc["id"] for doc in task.eval_docs) == ["a1", "a2", "e1", "e2"]
    assert task.config.metadata["dataset_used"]["provenance"] == PROVENANCE


def test_another_set_of_a_published_language(tiny_mirror, tmp_path):
    german = [{**one, "id": f"new-{one['id']}"} for one in released_sets.read("de", "inter")]
    path = tmp_path / "de.json"
    set_files.write(path, set_files.DataSet("de", german, {"engine": "other"}))
    given = json.dumps({"dataset": str(path)})
    done = run("stereoset_de_inter,stereoset_de_inter_variants", "--metadata", given, out=tmp_path / "run")
    assert done.status == 0, done.err
    logs = next((tmp_path / "run").rglob("samples_stereoset_de_inter_2*.jsonl")).read_text().splitlines()
    assert {json.loads(line)["doc"]["id"] for line in logs} == {one["id"] for one in german}
    told = results(tmp_path / "run")["provenance"]["tasks"]["stereoset_de_inter"]
    assert told["dataset"]["sha256"] == set_files.digest(path)
    assert "data" not in told
    assert run("stereoset_de_inter", out=tmp_path / "published").status == 0
    again = shlex.split(harness_results.read(path_of(tmp_path / "run"), results(tmp_path / "run")).command)
    assert again[again.index("--metadata") + 1] == given
    said = command("compare", str(tmp_path / "published"), str(tmp_path / "run"))
    assert f"data sets: the published one and {set_files.digest(path)[:12]}" in said.err + said.out


def test_the_published_set_isnt_needed_then(tiny_mirror, tmp_path, monkeypatch):
    path = tmp_path / "de.json"
    set_files.write(path, set_files.DataSet("de", released_sets.read("de", "inter"), {}))
    monkeypatch.setenv("LM_EVAL_BIAS_DATA", str(tmp_path))
    for name in ("stereoset_de_inter", "stereoset_de_inter_variants"):
        assert run(name, "--metadata", json.dumps({"dataset": str(path)}), out=tmp_path / name).status == 0
    assert run("stereoset_de_inter", out=tmp_path / "x").status == 2


def test_a_set_is_refused_before_a_model_is_loaded(tiny_mirror, dutch, tmp_path):
    def line(names, file):
        arguments = ["--model", "hf", "--model_args", "pretrained=gpt2", "--metadata", json.dumps({"dataset": file})]
        return refused(tmp_path, "run", "--tasks", names, *arguments)

    assert "is in language 'nl', not 'de'" in line("stereoset_de", str(dutch))
    assert "cannot be read" in line("stereoset_de", str(tmp_path / "none.json"))
    assert "must be the path of a data set" in line("stereoset_de", 7)
    one = tmp_path / "one.json"
    set_files.write(one, set_files.DataSet("de", released_sets.read("de", "intra"), {}))
    assert "no items between sentences: run the task of the other test, stereoset_de_intra" in line(
        "stereoset_de", str(one)
    )
    broken = [{**ENGLISH[2], "context": "No blank."}]
    set_files.write(one, set_files.DataSet("en", broken, {}))
    assert "item a1: the context holds no BLANK" in line("stereoset_en_intra", str(one))
    assert "--metadata key 'datasets' is unknown" in refused(
        tmp_path, "run", "--tasks", "stereoset_de", "--model", "bias-chance", "--metadata", '{"datasets": "x"}'
    )


def test_a_changed_or_missing_file_is_said(folder, dutch, tmp_path):
    arguments = ["run", "--include_path", str(folder), "--tasks", "stereoset_nl", "--model", "bias-chance"]
    dutch.write_text(dutch.read_text() + "\n")
    assert "was changed since the task was written for it: write the tasks again" in refused(tmp_path, *arguments)
    dutch.unlink()
    assert "put it back, or write the tasks again: lm-eval-bias validate stereoset" in refused(tmp_path, *arguments)


def test_flags_and_options_are_held_against_them_as_well(folder, tmp_path):
    arguments = ["run", "--include_path", str(folder), "--model", "bias-chance"]
    for more, said in (
        (["--tasks", "stereoset_nl", "--metadata", '{"boss": "all"}'], "--metadata key 'boss' is unknown"),
        (["--tasks", "stereoset_nl", "--num_fewshot", "2"], "scores plain sentences"),
    ):
        assert said in refused(tmp_path, *arguments, *more)


def test_folders_with_tasks_of_others(tmp_path, dutch):
    place = tmp_path / "mixed"
    set_tasks.write(place, dutch, set_files.read(dutch))
    (place / "theirs.yaml").write_text("task: theirs\ndataset_path: x\nmetadata: {version: 1}\n")
    (place / "latin.yaml").write_bytes(b"\xff\xfe")
    assert set(catalog.entries([place])) - set(catalog.packaged()) == {
        path.stem for path in place.glob("stereoset_nl*")
    }
    own = place / "stereoset_nl.yaml"
    own.write_text(own.read_text().replace("  n_items: 4\n", ""))
    with pytest.raises(BiasError, match="not a task of this package"):
        catalog.entries([place])


def test_tasks_of_one_test(tmp_path):
    path = tmp_path / "one.json"
    set_files.write(path, set_files.DataSet("nl", DUTCH[2:], {}))
    written = set_tasks.write(tmp_path / "tasks", path, set_files.read(path))
    assert [p.name for p in written] == ["stereoset_nl_intra.yaml"]


def test_odd_names(tmp_path):
    place = tmp_path / 'a: b\'s "c" ünï 🐈 #{}'
    place.mkdir()
    path = place / "nl.json"
    set_files.write(path, set_files.DataSet("nl", DUTCH, {}))
    for target in set_tasks.write(place, path, set_files.read(path)):
        told = yaml.load(target.read_text(), catalog.Loader)
        assert told["metadata"]["fixed"]["dataset"]["file"] == str(path)


def test_validate_a_translation(tiny_mirror, tmp_path):
    items = [one for test in stereoset_items.TESTS for one in released_sets.read("de", test)]
    path = tmp_path / "nl.json"
    set_files.write(path, set_files.DataSet("nl", items, {}))
    found = command("stereoset", "validate", str(path), "--json")
    assert found.status == 1
    told = json.loads(found.out)
    assert told["source"] == "the published English set"
    codes = {entry["code"] for entry in told["counts"]}
    assert {"missing", "glued"} <= codes
    english = sum(len(released_sets.read("en", test)) for test in stereoset_items.TESTS)
    missing = next(entry for entry in told["counts"] if entry["code"] == "missing")
    assert missing["items"] == english - len(items)
    whole = [row for row in told["coverage"] if row["bias_type"] == "all"]
    assert [(row["test"], row["items"], row["of"]) for row in whole] == [("intra", 2, 4), ("inter", 2, 4)]
    text = command("stereoset", "validate", str(path))
    assert text.out.splitlines()[-1].startswith("problems that need a person in ")
    assert "BLANKSTE" in text.out
    alone = json.loads(command("stereoset", "validate", str(path), "--source", "none", "--json").out)
    assert alone["source"] is None
    assert "missing" not in {entry["code"] for entry in alone["counts"]}
    spanish = json.loads(command("stereoset", "validate", str(path), "--source", "es", "--json").out)
    assert spanish["source"] == "the published set in 'es'"
    german = json.loads(command("stereoset", "validate", "de", "--json").out)
    assert {entry["code"] for entry in german["counts"]} >= {"glued"}


def test_validate_a_set_of_ones_own(tiny_mirror, dutch, tmp_path):
    found = command("stereoset", "validate", str(dutch), "--tasks", str(tmp_path / "made"))
    assert (found.status, found.err) == (0, "")
    assert found.out.splitlines()[-1] == "no problems in the items"
    assert "source: none" in found.out
    assert len(list((tmp_path / "made").iterdir())) == 4
    english = tmp_path / "en.json"
    set_files.write(english, set_files.DataSet("en", ENGLISH, {}))
    assert command("stereoset", "validate", str(dutch), "--source", str(english)).status == 0
    set_files.write(dutch, set_files.DataSet("nl", DUTCH[1:], {}))
    assert command("stereoset", "validate", str(dutch), "--source", str(english)).status == 1


def test_long_lists_are_cut(tiny_mirror, tmp_path):
    items = [{**ENGLISH[0], "id": str(n), "context": "BLANK.", "candidates": [
        {**c, "id": f"{n}{c['id']}"} for c in ENGLISH[0]["candidates"]]} for n in range(30)]  # fmt: skip
    path = tmp_path / "many.json"
    set_files.write(path, set_files.DataSet("en", items, {}))
    assert "... and 10 more (--all)" in command("stereoset", "validate", str(path)).out
    assert "more (--all)" not in command("stereoset", "validate", str(path), "--all").out


def test_validate_refuses(tiny_mirror, dutch, tmp_path):
    for arguments, said in (
        (["nope"], "nope: cannot be read"),
        ([str(dutch), "--language", "de"], "is in language 'nl', not 'de'"),
        ([str(dutch), "--source", str(tmp_path / "x.json")], "x.json: cannot be read"),
        (["de", "--tasks", str(tmp_path / "t")], "is published and already has tasks"),
    ):
        assert said in refused(tmp_path, "stereoset", "validate", *arguments)
    path = tmp_path / "de.json"
    set_files.write(path, set_files.DataSet("de", released_sets.read("de", "inter"), {}))
    assert "--metadata" in refused(tmp_path, "stereoset", "validate", str(path), "--tasks", str(tmp_path / "t"))
    assert "has no item of the same id" in refused(tmp_path, "stereoset", "validate", str(dutch), "--source", str(path))
    assert main(["stereoset", "validate", str(dutch)]) == 0


def test_without_the_published_set_the_source_has_to_be_said(dutch, tmp_path):
    assert "--source none" in refused(tmp_path, "stereoset", "validate", str(dutch))
    assert command("stereoset", "validate", str(dutch), "--source", "none").status == 0
