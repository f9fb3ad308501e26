"""The Hub's formats, read back by its own library."""

import pytest
import yaml

from tests.support.exported import NAN, a_run, cells, exported
from tests.support.made_runs import run_file, write

MAIN = {
    "occugender_explicit": {"stereotype_gap", "female_dominated_F", "male_dominated_M", "labour_pearson", "coverage"},
    "gg_bbq_names": {"acc_disamb", "diff_bias_amb", "diff_bias_disamb"},
    "stereoset_en": {"lms", "icat"},
    "regard_en": {"all/negative_gap", "all/positive_gap", "caregiving/gap", "sexualization/gap", "perpetration/gap"},
}


def test_a_model_card(tmp_path, capsys):
    path, content = a_run(tmp_path)
    exported(capsys, path, "--to", "model-card", "-o", tmp_path / "card.md", "--name", "owner/tiny")
    huggingface_hub = pytest.importorskip("huggingface_hub")
    card = huggingface_hub.ModelCard.load(tmp_path / "card.md")
    assert card.data.model_name == "owner/tiny"
    found = {(result.dataset_config, result.metric_type): result for result in card.data.eval_results}
    assert set(found) == {(task, name) for task, names in MAIN.items() for name in names}
    for key, result in found.items():
        cell = cells(content)[key]
        assert result.metric_value == pytest.approx(cell["value"], rel=1e-5)
        arguments = result.metric_args
        for field, own in (("standard_error", cell["stderr"]), ("interval_95", cell["interval"])):
            assert arguments.get(field) == (own and pytest.approx(own, rel=1e-5))
        assert arguments.get("neutral_value") == cell["neutral"]
        assert arguments["reads_as"] == cell["direction"]
        better = {True: "higher is better", False: "lower is better", None: None}[cell["higher_is_better"]]
        assert arguments.get("better") == better
        if cell["stderr"] is not None:
            assert arguments["degrees_of_freedom"] == cell["dof"]
            assert arguments["standard_error_method"]
    # its metadata survive the library's own writer
    assert huggingface_hub.ModelCard(str(card)).data.eval_results == card.data.eval_results
    assert f"- gg\\_bbq\\_names acc\\_amb, stereoset\\_en ss: {NAN}\n" in card.text
    revision = next(result.dataset_revision for result in card.data.eval_results if result.dataset_type == "stereoset")
    assert revision == "883f005dd9d003a6974e498f435629ec46d931c7"


def test_a_model_card_is_about_one_model(tmp_path, capsys):
    one, other = a_run(tmp_path)[0], write(tmp_path / "b.json", run_file("other", ["stereoset_de"]))
    assert "--name NAME" in exported(capsys, one, other, "--to", "model-card", "-o", tmp_path / "c", status=2).err
    exported(capsys, one, other, "--to", "model-card", "--name", "both", "-o", tmp_path / "card.md")
    huggingface_hub = pytest.importorskip("huggingface_hub")
    found = huggingface_hub.ModelCard.load(tmp_path / "card.md").data.eval_results
    assert {result.dataset_config for result in found} == {*MAIN, "stereoset_de"}


def entries_of(path):
    hub = pytest.importorskip("huggingface_hub")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("this huggingface_hub doesn't know .eval_results")
    return hub.parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_eval_results(tmp_path, capsys):
    path, content = a_run(tmp_path)
    out = tmp_path / "bias.yaml"
    exported(capsys, path, "--to", "hf-eval-results", "--dataset", "owner/bench", "-o", out)
    entries = {entry.task_id: entry for entry in entries_of(out)}
    assert {entry.dataset_id for entry in entries.values()} == {"owner/bench"}
    distances = {"acc_disamb": "", "lms": "", "icat": ""}
    kept = {f"{task}.{name.replace('/', '.')}{distances.get(name, '_distance')}" for task, names in MAIN.items()
            for name in names - {"coverage", "female_dominated_F", "male_dominated_M"}}  # fmt: skip
    assert set(entries) == kept
    gap = cells(content)["occugender_explicit", "stereotype_gap"]
    one = entries["occugender_explicit.stereotype_gap_distance"]
    assert one.value == pytest.approx(abs(gap["value"]), rel=1e-5)
    assert f"lower is better; distance of stereotype_gap = {gap['value']:.6g} from its neutral value 0" in one.notes
    assert f"standard error {gap['stderr']:.6g} (Occupations and templates" in one.notes
    lms = cells(content)["stereoset_en", "lms"]
    assert entries["stereoset_en.lms"].value == pytest.approx(lms["value"], rel=1e-5)
    low, high = lms["interval"]
    assert entries["stereoset_en.lms"].notes.startswith(f"higher is better; 95% interval {low:.6g} to {high:.6g}")
    assert one.date == "2026-01-02"


@pytest.mark.parametrize("form", [["model-card"], ["hf-eval-results", "--dataset", "owner/bench"]])
def test_a_trial_run_goes_out_only_if_it_is_meant(tmp_path, capsys, form):
    content = run_file(tasks=["gg_bbq_names"])
    content["tasks"]["gg_bbq_names"]["documents"] = 120
    content["command"] = "lm-eval-bias run --model_args pretrained=/models/tiny --output_path /models/out"
    path, out = write(tmp_path / "t.json", content), tmp_path / "out"
    said = exported(capsys, path, "--to", *form, "-o", out, status=2).err
    assert "gg_bbq_names is a trial run, 120 of 10,900 items" in said
    assert not out.exists()
    exported(capsys, path, "--to", *form, "-o", out, "--allow-trial")
    assert "/models" not in out.read_text(encoding="utf-8")
