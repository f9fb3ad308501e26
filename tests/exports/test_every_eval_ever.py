"""Every Eval Ever: valid by its own schemas, and the numbers that went in."""

import hashlib
import json
import math

import jsonschema
import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from lm_eval_bias.exports.directed_scores import NO_DIRECTION
from lm_eval_bias.runs import sample_logs
from tests.support.exported import NAN, a_run, cells, exported, lines
from tests.support.made_runs import HOSTILE, edited, harness_folder, hostile_file, run_file, write
from tests.support.places import ROOT

SCHEMAS = ROOT.parent / "shared" / "schemas"


@pytest.fixture
def check():
    """The collection's own schemas."""
    paths = [SCHEMAS / f"{name}.schema.json" for name in ("eval", "instance_level_eval")]
    if not all(path.is_file() for path in paths):
        pytest.skip("the schemas of Every Eval Ever are not here")
    whole, one_item = (jsonschema.Draft7Validator(json.loads(path.read_text(encoding="utf-8"))) for path in paths)

    def checked(content, items=()):
        whole.validate(content)
        for item in items:
            one_item.validate(item)

    return checked


def written(capsys, out, *arguments):
    exported(capsys, *arguments, "--to", "eee", "-o", out)
    (path,) = out.rglob("*.json")
    return path, json.loads(path.read_text(encoding="utf-8"))


def test_numbers_errors_and_directions(tmp_path, capsys, check):
    path, content = a_run(tmp_path)
    _, made = written(capsys, tmp_path / "out", path, "--organization", "Testers", "--relationship", "third_party")
    check(made)
    results = {result["evaluation_result_id"]: result for result in made["evaluation_results"]}
    for (task, name), cell in cells(content).items():
        signed, distance = results.pop(f"{task}/{name}", None), results.pop(f"{task}/{name}_distance", None)
        own, better = signed or distance, cell["higher_is_better"]
        if cell["value"] is None or (better is None and not _inside(cell)):
            assert own is None, (task, name)
            continue
        config, details = own["metric_config"], own["score_details"]
        if better is not None:
            assert distance is None
            assert details["score"] == cell["value"]
            assert config["lower_is_better"] is not better
            assert [config["min_score"], config["max_score"]] == cell["range"]
        else:
            assert signed is None
            assert details["score"] == pytest.approx(abs(cell["value"] - cell["neutral"]))
            assert (config["lower_is_better"], config["min_score"]) == (True, 0)
            assert config["additional_details"]["neutral_value"] == str(cell["neutral"])
            assert config["max_score"] in ("Infinity", pytest.approx(_largest(cell)))
        assert float(details["details"]["signed_value"]) == cell["value"]
        error = details.get("uncertainty", {}).get("standard_error", {})
        assert error.get("value") == cell["stderr"]
        if cell["stderr"] is not None:
            method = registry.get(content["tasks"][task]["benchmark"]).card.uncertainty
            assert method
            assert error["method"].startswith(method)
            assert float(details["details"]["degrees_of_freedom"]) == cell["dof"]
            assert json.loads(details["details"]["signed_interval"]) == cell["interval"]
    assert results == {}
    assert len(made["evaluation_results"]) > 20
    assert made["model_info"]["id"] == "owner/tiny"
    assert made["source_metadata"]["source_organization_name"] == "Testers"
    assert made["source_metadata"]["evaluator_relationship"] == "third_party"


def _inside(cell):
    low, high = (math.inf * sign if end is None else end for end, sign in zip(cell["range"], (-1, 1), strict=True))
    return cell["neutral"] is not None and low < cell["neutral"] < high


def _largest(cell):
    return max(abs(end - cell["neutral"]) for end in cell["range"]) if None not in cell["range"] else None


def test_what_has_no_place_is_in_the_details(tmp_path, capsys, check):
    path, content = a_run(tmp_path)
    _, made = written(capsys, tmp_path / "out", path)
    left = json.loads(made["source_metadata"]["additional_details"]["scores_left_out"])
    by_name = {(one["task"], one["score"]): one for one in left}
    ss, coverage = by_name["stereoset_en", "ss"], by_name["occugender_explicit", "coverage"]
    assert (ss["reason"], ss["value"]) == (f"no value: {NAN}", None)
    assert coverage["reason"] == NO_DIRECTION
    assert coverage["value"] == cells(content)["occugender_explicit", "coverage"]["value"]
    assert len(left) + len(made["evaluation_results"]) == len(cells(content))


def test_data_by_revision_and_hash(tmp_path, capsys, check):
    _, made = written(capsys, tmp_path / "out", a_run(tmp_path)[0])
    sources = {result["evaluation_name"]: result["source_data"] for result in made["evaluation_results"]}
    assert sources["occugender_explicit"]["source_type"] == "other"  # the package's own
    own = sources["stereoset_en"]
    assert (own["source_type"], "CC BY-SA 4.0" in own["additional_details"]["licence"]) == ("url", True)
    for url, (pin, digest) in zip(own["url"], json.loads(own["additional_details"]["sha256"]).items(), strict=True):
        repository, _, rest = pin.partition("@")
        assert url.endswith(f"{repository}/{rest}")
        assert len(digest) == 64


def test_items_of_a_sample_log(tmp_path, capsys, check):
    folder = harness_folder(tmp_path / "run")
    rows = list(sample_logs.first_filter(next((tmp_path / "run").rglob("samples_*.jsonl"))))
    benchmark = registry.get("occugender")
    records = [benchmark.record(doc, answers) for _, doc, answers, _ in rows]
    (gap,) = (score for score in benchmark.scores(records) if score.name == "stereotype_gap")
    value = gap.compute(records).value

    def that_this_log_has(content):  # made-up scores are others
        content["results"]["occugender_explicit"]["stereotype_gap,none"] = value
        for metric in content["configs"]["occugender_explicit"]["metric_list"]:
            if metric["metric"] == "stereotype_gap":
                metric["interval"] = [value - 0.1, value + 0.1]

    path, made = written(capsys, tmp_path / "out", edited(folder, that_this_log_has))
    detailed = made["detailed_evaluation_results"]
    log = tmp_path / "out" / detailed["file_path"]
    assert (log.parent, log.stem) == (path.parent, f"{path.stem}_samples")
    assert detailed["checksum"] == hashlib.sha256(log.read_bytes()).hexdigest()
    items = lines(log)
    check(made, items)
    assert detailed["total_rows"] == len(items) == len(rows)
    name = "occugender_explicit/stereotype_gap_distance"
    assert {(item["evaluation_result_id"], item["evaluation_id"]) for item in items} == {(name, made["evaluation_id"])}
    (own,) = (one["score_details"] for one in made["evaluation_results"] if one["evaluation_result_id"] == name)
    mean = math.fsum(item["evaluation"]["score"] for item in items) / len(items)
    assert mean == pytest.approx(float(own["details"]["signed_value"]))
    assert own["score"] == pytest.approx(abs(mean))
    assert [item["sample_id"] for item in items] == ["/".join(benchmark.key(row.doc)) for row in rows]
    assert not any(item["evaluation"]["is_correct"] for item in items)
    assert all("no right answer" in item["metadata"]["is_correct"] for item in items)


def test_scores_that_are_no_mean_have_no_items(tmp_path, capsys, check):
    folder = harness_folder(tmp_path / "run")
    said = exported(capsys, folder, "--to", "eee", "-o", tmp_path / "out").out
    # made-up scores aren't the log's: no item may claim to be a part of them
    assert "No items of occugender_explicit stereotype_gap, occugender_explicit labour_pearson" in said
    assert not list((tmp_path / "out").rglob("*_samples.jsonl"))
    assert "detailed_evaluation_results" not in written(capsys, tmp_path / "no", folder, "--no-items")[1]


def test_hostile_names_stay_below_the_folder(tmp_path, capsys, check):
    content = hostile_file()
    content["model"] = f"../../../etc/{HOSTILE}"
    path, made = written(capsys, tmp_path / "deep" / "out", write(tmp_path / "h.json", content))
    check(made)
    assert path.is_relative_to(tmp_path / "deep" / "out" / "data" / "lm-eval-bias")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "deep", tmp_path / "h.json"]


def test_several_runs_are_several_files(tmp_path, capsys, check):
    runs = [a_run(tmp_path)[0], write(tmp_path / "b.json", run_file("other", ["stereoset_en"]))]

    def made(folder, *more):
        exported(capsys, *runs, "--to", "eee", "-o", tmp_path / folder, *more)
        return [json.loads(path.read_text()) for path in (tmp_path / folder).rglob("*.json")]

    assert {one["model_info"]["name"] for one in made("out")} == {"tiny", "other"}
    named = made("both", "--name", "owner/both")
    assert len({one["evaluation_id"] for one in named}) == 2
    for content in named:
        check(content)


def test_right_answers_are_those_of_scores_that_have_some(tiny_mirror, tmp_path, capsys, check):
    run = ["run", "--tasks", "gg_bbq_group_terms", "--model", "bias-chance", "--log_samples"]
    assert main([*run, "--output_path", str(tmp_path / "run")]) == 0
    path, made = written(capsys, tmp_path / "out", tmp_path / "run")
    items = lines(path.with_name(f"{path.stem}_samples.jsonl"))
    check(made, items)
    told = {}
    for item in items:
        name, one = item["evaluation_result_id"].partition("/")[2], item["evaluation"]
        told.setdefault(name, set()).add((one["score"], one["is_correct"]))
    assert told["acc_amb"] == {(1.0, True), (0.0, False)}
    assert {(1.0, False), (-1.0, False)} <= told["diff_bias_amb_distance"]
