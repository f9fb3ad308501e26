"""Data sets of one's own: their file, the tasks over them, and what reads their results."""

import json
import re
import shlex

import pytest

from lm_eval_bias.core import catalog
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import harness_results
from lm_eval_bias.tasks.stereoset import custom_sets, stereoset_items
from tests.support.commands import command, refused
from tests.support.example_items import DUTCH, ENGLISH


def written(path, language, items):
    custom_sets.write(path, custom_sets.DataSet(language, items))
    return path


@pytest.fixture
def dutch(tmp_path):
    return written(tmp_path / 'a: b\'s "c" ünï 🐈 #{}' / "nl.json", "nl", DUTCH)


@pytest.fixture
def folder(dutch, tmp_path):
    custom_sets.write_tasks(tmp_path / "tasks", dutch, custom_sets.read(dutch))
    return tmp_path / "tasks"


def dev(every, **more):
    """StereoSet's own layout, with the fields of its file that nothing here needs."""
    data = {"intersentence": [], "intrasentence": []}
    for one in every:
        own = {key: one[key] for key in ("id", "target", "bias_type", "context")} | {
            "sentences": []
        }
        for c in one["candidates"]:
            labels = {
                "gold_label": c["label"],
                "labels": [{"label": c["label"], "human_id": "1"}],
            }
            own["sentences"].append(
                {"id": c["id"], "sentence": c["sentence"], **labels}
            )
        data[f"{one['test']}sentence"].append(own)
    return {"version": "1.0", "data": data, **more}


def test_what_is_written_is_read_again_and_so_is_stereosets_own_file(tmp_path):
    texts = {"context": '\u2028 \x00 \U0001f600 "', "target": "", "term": " "}
    items = [*DUTCH, DUTCH[2] | texts]
    path = written(tmp_path / "set.json", "pt-BR", items)
    assert (
        custom_sets.read(path)
        == custom_sets.read(path, "pt-BR")
        == custom_sets.DataSet("pt-BR", items)
    )
    with pytest.raises(BiasError, match="'pt-BR', not 'de'"):
        custom_sets.read(path, "de")
    path.write_text(json.dumps(dev(ENGLISH)))
    assert custom_sets.read(path, "en") == custom_sets.DataSet("en", ENGLISH)
    with pytest.raises(BiasError, match="--language"):
        custom_sets.read(path)


def test_the_words_of_stereosets_own_file(mirror):
    wrong = 0
    for one in stereoset_items.read("en", "intra"):
        for candidate in one["candidates"]:
            found = custom_sets.word_of(one["context"], candidate["sentence"])
            wrong += found.casefold() != candidate["word"].casefold()
    assert (
        wrong == 12
    )  # of 6,318: four contexts whose blank touches letters or has them behind its full stop


def without(*steps, value=None):
    """The Dutch set's layout with something else, or nothing, at a place of its second item within sentences."""
    content = dev(DUTCH, language="nl")
    place = content["data"]["intrasentence"][1]
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    if value is None:
        del place[steps[-1]]
    return json.dumps(content)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"\xff\xfe{}", "utf-8"),
        ("[]", "StereoSet's format"),
        ('{"data": {"intersentence": []}, "language": "nl"}', "no items"),
        ('{"data": {"intersentence": []}, "language": "../x"}', "'../x'"),
        (
            '{"data": {"intersentence": [7]}, "language": "nl"}',
            "data: intersentence: 0: 7",
        ),
        (without("context"), "data: intrasentence: 1: 'context' is"),
        (without("bias_type", value="age"), "'age'"),
        (without("sentences", 1, "word", value=3), "sentences: 1: word: 3"),
        (
            without("sentences", 2, "gold_label", value="related"),
            "sentences: 2: gold_label: 'related'",
        ),
    ],
)
def test_broken_files(tmp_path, content, named):
    path = tmp_path / "set.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BiasError, match=rf"^{path}.*{re.escape(named)}"):
        custom_sets.read(path)


def run(names, *more, out):
    """Results of a run, the documents of its first task and the command that repeats it."""
    done = command(
        "run",
        "--tasks",
        names,
        "--model",
        "bias-chance",
        "--output_path",
        str(out),
        "--log_samples",
        *more,
    )
    assert done.status == 0, done.err
    path = next(out.rglob("results_*.json"))
    lines = (
        next(out.rglob(f"samples_{names.partition(',')[0]}_2*.jsonl"))
        .read_text()
        .splitlines()
    )
    told = json.loads(path.read_text())
    again = shlex.split(harness_results.read(path, told).command)
    return told, [json.loads(line)["doc"]["id"] for line in lines], again


def test_the_tasks_of_a_language(folder, dutch, tmp_path):
    names = {path.stem for path in folder.iterdir()}
    assert names == {
        f"stereoset_nl{ending}"
        for ending in ("", "_inter", "_intra", "_inter_variants")
    }
    known = catalog.entries([folder])
    for name in names:
        own, like = known[name], catalog.packaged()[name.replace("_nl", "_de")]
        assert (own.benchmark, own.kind, set(own.asks)) == (
            like.benchmark,
            like.kind,
            set(like.asks),
        )
        assert (own.language, own.data, own.items) == (
            "nl",
            "",
            4 if name == "stereoset_nl" else 2,
        )
        told, expected = (
            catalog.read_yaml(folder / f"{name}.yaml"),
            catalog.read_yaml(like.path),
        )
        fixed, published = (
            told.pop("metadata")["fixed"],
            expected.pop("metadata")["fixed"],
        )
        assert fixed.pop("dataset") == {
            "file": str(dutch),
            "sha256": custom_sets.digest(dutch),
        }
        assert (fixed, told) == (
            published | {"language": "nl"},
            expected | {"task": name},
        )
    of_one_test = written(tmp_path / "one.json", "nl", DUTCH[2:])
    (task,) = custom_sets.write_tasks(
        tmp_path, of_one_test, custom_sets.read(of_one_test)
    )
    assert task.name == "stereoset_nl_intra.yaml"


def test_a_run_and_all_that_reads_it(folder, dutch, tmp_path):
    out, names = tmp_path / "run", "stereoset_nl,stereoset_nl_inter_variants"
    told, ids, again = run(names, "--include_path", str(folder), out=out)
    assert sorted(ids) == ["a1", "a2", "e1", "e2"]
    used = {"file": str(dutch), "sha256": custom_sets.digest(dutch)}
    assert told["provenance"]["tasks"]["stereoset_nl"]["dataset"] == used
    assert again[again.index("--include_path") + 1] == str(folder)
    # later nothing knows the tasks but the result file
    by_task = {
        entry["task"]: entry["scores"]
        for entry in json.loads(command("rescore", str(out), "--json").out)
    }
    assert (
        by_task["stereoset_nl"]["ss"]["value"]
        == told["results"]["stereoset_nl"]["ss,none"]
    )
    for name in ("report", "leaderboard"):
        page = command(name, str(out), "--format", "md")
        assert (page.status, "not a task of this version" in page.out) == (0, False)
    assert f"dataset=nl.json ({custom_sets.digest(dutch)[:12]})" in page.out


def test_a_set_is_refused_before_a_model_is_loaded(
    tiny_mirror, folder, dutch, tmp_path
):
    one = written(tmp_path / "one.json", "de", stereoset_items.read("de", "intra"))
    bad = written(tmp_path / "bad.json", "en", [{**ENGLISH[2], "context": "No blank."}])
    hf = ("run", "--model", "hf", "--model_args", "pretrained=gpt2")
    for task, file, named in (
        ("stereoset_de", str(dutch), "'nl', not 'de'"),
        ("stereoset_de", 7, "dataset=7"),
        ("stereoset_de", str(one), "stereoset_de_intra"),
        ("stereoset_en_intra", str(bad), "item a1"),
    ):
        assert named in refused(
            tmp_path, *hf, "--tasks", task, "--metadata", json.dumps({"dataset": file})
        )
    arguments = [
        "run",
        "--include_path",
        str(folder),
        "--tasks",
        "stereoset_nl",
        "--model",
        "bias-chance",
    ]
    dutch.write_text(dutch.read_text() + "\n")
    assert f"{dutch} was changed" in refused(tmp_path, *arguments)
    dutch.unlink()
    assert f"stereoset tasks {dutch} -o" in refused(tmp_path, *arguments)
