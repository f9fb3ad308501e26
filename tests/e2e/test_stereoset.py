"""StereoSet from the command line: runs, the authors' files both ways, refusals, a completions server."""

import json

from lm_eval_bias.tasks.stereoset import stereoset_items
from tests.support.commands import command, refused
from tests.support.run_scores import run


def rescored(*arguments):
    done = command("rescore", *map(str, arguments), "--json")
    assert done.status == 0, done.err
    return {
        entry["task"]: {
            name: (score["value"], score["stderr"])
            for name, score in entry["scores"].items()
        }
        for entry in json.loads(done.out)
    }


def predictions(folder, out):
    return command("rescore", str(folder), "--predictions", str(out))


def test_predictions_of_several_runs(tmp_path, tiny_mirror):
    runs, out = tmp_path / "runs", tmp_path / "out"
    run(runs / "a", "stereoset_tr_intra,stereoset_es_inter")
    run(runs / "b", "stereoset_tr_inter", "--model_args", "seed=4")
    run(runs / "variants", "stereoset_en_inter_variants")
    before = rescored(runs)
    # the tests of a language that were run apart, as one row
    assert set(before) == {
        *("stereoset_tr_intra", "stereoset_tr_inter", "stereoset_tr"),
        *("stereoset_es_inter", "stereoset_en_inter_variants"),
    }
    assert predictions(runs, out).status == 0
    for test in ("intra", "inter"):
        path = out / f"tr_{test}sentence_score.json"
        task = f"stereoset_tr_{test}"
        assert rescored(path, "--language", "tr") == {task: before[task]}
    assert "exists already" in predictions(runs, out).err
    path = out / "en_intersentence_gen_pmi.json"
    one = rescored(path, "--language", "en")["stereoset_en_inter"]
    assert one["ss"] == before["stereoset_en_inter_variants"]["gen_pmi/ss"]


def test_scores_of_items_that_the_data_lack_are_left_out_and_said(mirror, tmp_path):
    # as one of the authors' files: the German data lack three items that the other languages have
    for language in ("de", "en"):
        ids = [
            c["id"]
            for item in stereoset_items.read(language, "intra")
            for c in item["candidates"]
        ]
        entries = [
            {"id": name, "score": (int(name[:6], 16) % 997) / 997} for name in ids
        ]
        (tmp_path / f"{language}.json").write_text(
            json.dumps({"intrasentence": entries})
        )
    arguments = ["rescore", str(tmp_path / "en.json"), "--language", "de"]
    # what is there counts, as if the rest weren't
    assert rescored(*arguments[1:]) == rescored(tmp_path / "de.json", *arguments[2:])
    (entry,) = json.loads(command(*arguments, "--json").out)
    assert entry["left_out"] == {"intrasentence": {"candidates": 9, "items": 3}}
    assert entry["documents"] == 2103
    assert "9 candidates of 3 items (intrasentence)" in command(*arguments).out
    entries.append({"id": "0" * 32, "score": 0.5})  # a part of an item is damage
    (tmp_path / "en.json").write_text(json.dumps({"intrasentence": entries}))
    assert "intrasentence scores 10 candidates" in refused(tmp_path, *arguments)


def test_bad_predictions_are_refused_by_name(tmp_path, tiny_mirror):
    content = {
        name: [
            {"id": candidate["id"], "score": 0.5 + number / 100}
            for number, item in enumerate(stereoset_items.read("en", test))
            for candidate in item["candidates"]
        ]
        for test, name in stereoset_items.TEST_KEYS.items()
    }
    path, intra = tmp_path / "p.json", content["intrasentence"]
    first, *rest = intra
    path.write_text(json.dumps(content))
    found = rescored(path, "--language", "en")["stereoset_en"]
    # all candidates of an item alike: no preference, and nothing to compare
    assert (found["ss"][0], found["lms"][0]) == (None, 0.0)
    for said, *more in (("--language",), ("released de data", "--language", "de")):
        assert said in refused(tmp_path, "rescore", str(path), *more)
    for changed, said in (
        (rest, f"no score for 1 of 12 candidates, among them {first['id']}"),
        ([*intra, intra[3]], f"entry 12: {{'id': '{intra[3]['id']}'"),
        *(
            ([{**first, "score": bad}, *rest], "entry 0: ")
            for bad in (float("nan"), None, 10**400)
        ),
        ({}, "intrasentence is not a list"),
    ):
        path.write_text(json.dumps({**content, "intrasentence": changed}))
        assert said in refused(tmp_path, "rescore", str(path), "--language", "en")
