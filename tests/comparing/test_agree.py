"""``lm-eval-bias agree``: which scores are correlated, over which models, and what a handful of them can tell."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from scipy import stats

from lm_eval_bias.analysis import published_scores
from lm_eval_bias.cli.main import main
from tests.conftest import ROOT
from tests.report import made_runs

TASKS = ("stereoset_en", "stereoset_de", "gg_bbq_names", "gg_bbq_names_gen")
# by model: ss in English and German, diff-bias in ambiguous contexts by log-likelihoods and generated
VALUES = {
    "one": (52.0, 51.0, 0.01, 0.05),
    "two": (55.0, 57.0, 0.03, 0.01),
    "three": (58.0, 53.0, 0.05, 0.02),
    "four": (61.0, 60.0, 0.02, 0.03),
    "five": (64.0, 63.0, 0.07, 0.09),
}
PUBLISHED = ROOT / "results" / "published" / "stereoset.csv"


def _runs(folder, models=tuple(VALUES), stderr=1.0):
    for model in models:
        content = made_runs.run_file(model, TASKS)
        names = ("ss", "ss", "diff_bias_amb", "diff_bias_amb")
        for task, name, value in zip(TASKS, names, VALUES[model], strict=True):
            scale = 1.0 if name == "ss" else 0.01
            content["tasks"][task]["scores"][name] |= {"value": value, "stderr": stderr * scale, "interval": None}
        made_runs.write(folder / f"{model}.json", content)
    return folder


def _said(capsys, *arguments):
    capsys.readouterr()
    assert main(["agree", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def _data(capsys, *arguments):
    return json.loads(_said(capsys, *arguments, "--format", "json"))


def _refused(capsys, *arguments):
    capsys.readouterr()
    assert main(["agree", *map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def _of(data, first, second, score):
    (one,) = [
        c
        for c in data["correlations"]
        if (c["first"]["task"], c["second"]["task"], c["first"]["score"]) == (first, second, score)
    ]
    return one


def test_a_folder_of_published_scores_is_read_like_its_files(tmp_path, capsys):
    one = _said(capsys, PUBLISHED, "--scores", "ss")
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "stereoset.csv").write_bytes(PUBLISHED.read_bytes())
    (tmp_path / "published" / "other.csv").write_text("a,b\n1,2\n")
    assert _said(capsys, tmp_path / "published", "--scores", "ss") == one
    assert "stereoset_en ss " in one  # no Markdown on the terminal
    both = _said(capsys, tmp_path / "published", _runs(tmp_path / "runs"), "--scores", "ss")
    assert "of Öztürk" not in both
    assert "three" in both
    made_runs.write(tmp_path / "published" / "here.json", made_runs.run_file("here", TASKS))
    assert "here" in _said(capsys, tmp_path / "published", "--scores", "ss")


def test_languages_forms_and_benchmarks_by_scipy(tmp_path, capsys):
    data = _data(capsys, _runs(tmp_path))
    english, german, likely, generated = ([values[k] for values in VALUES.values()] for k in range(4))
    pairs = {
        ("stereoset_en", "stereoset_de", "ss"): (english, german, "languages"),
        ("gg_bbq_names", "gg_bbq_names_gen", "diff_bias_amb"): (likely, generated, "forms"),
    }
    for pair, (x, y, relation) in pairs.items():
        one = _of(data, *pair)
        assert (one["relation"], one["n"], one["models"]) == (relation, 5, sorted(VALUES))
        order = [list(VALUES).index(model) for model in one["models"]]
        assert list(one["first"]["values"].values()) == [x[k] for k in order]
        assert one["spearman"]["value"] == pytest.approx(stats.spearmanr(x, y).statistic)
        assert one["kendall"]["value"] == pytest.approx(stats.kendalltau(x, y).statistic)
        assert one["kendall"]["p"] == pytest.approx(stats.kendalltau(x, y, method="exact").pvalue)
        assert one["spearman"]["interval"][0] < one["spearman"]["value"] < one["spearman"]["interval"][1]
        assert one["p_adjusted"] >= one["spearman"]["p"]
        assert one["least_told_from_0"] == 1.0
    # between benchmarks only scores with a neutral value and no better end
    between = {
        (c["first"]["score"], c["second"]["score"]) for c in data["correlations"] if c["relation"] == "benchmarks"
    }
    assert between == {("ss", "diff_bias_amb"), ("ss", "diff_bias_disamb")}
    # lms, ss and icat of two languages; four scores of two forms; two languages' ss with four tasks' scores
    assert len(data["correlations"]) == 3 + 4 + 2 * 4


def test_the_share_of_measurement_error(tmp_path, capsys):
    data = _data(capsys, _runs(tmp_path))
    one = _of(data, "stereoset_en", "stereoset_de", "ss")
    # of 52, 55, 58, 61, 64 the variance is 22.5, and each has an error of 1
    assert one["first"]["error_share"] == pytest.approx(1 / 22.5)
    (line,) = [line for line in data["words"] if line.startswith("Measurement error")]
    assert "nothing here corrects for it: squared standard errors are from 4% (" in line


def test_words_say_how_little_a_handful_can_tell(tmp_path, capsys):
    words = _data(capsys, _runs(tmp_path / "five"))["words"]
    assert words[0] == "5 models: five, four, one, three, two."
    assert "With 5 models only a perfect correlation can be significant (Spearman, two-sided, 5%, one test)." in words
    assert any(line.startswith("With 6 tests and 5 models, not even a perfect correlation can") for line in words)
    words = _data(capsys, _runs(tmp_path / "four", list(VALUES)[:4]), "--scores", "ss")["words"]
    assert any(line.startswith("With 4 models no correlation can be significant, not even a perfect") for line in words)
    data = _data(capsys, _runs(tmp_path / "three", list(VALUES)[:3]), "--scores", "ss")
    assert "With 3 models there is no rank correlation: it needs at least 4." in data["words"]
    for one in data["correlations"]:
        assert one["spearman"] == {
            "value": None, "interval": None, "p": None, "test": "",
            "reason": "a rank correlation needs at least 4 models, there are 3",
        }  # fmt: skip
    words = _data(capsys, PUBLISHED, "--scores", "ss", "--task", "stereoset_en_intra,stereoset_de_intra")["words"]
    assert "With 6 models a correlation must be at least 0.886 in size to be significant" in " ".join(words)
    assert not any("not even a perfect" in line for line in words)  # one test: 2 of 720 orders


def test_scores_that_are_named_and_tasks(tmp_path, capsys):
    _runs(tmp_path)
    data = _data(capsys, tmp_path, "--scores", "ss,lms", "--task", "stereoset_en")
    (one,) = data["correlations"]
    assert (one["relation"], one["first"]["score"], one["second"]["score"]) == ("scores", "ss", "lms")
    data = _data(capsys, tmp_path, "--scores", "ss,acc_amb", "--correction", "none")
    assert {c["relation"] for c in data["correlations"]} == {"languages", "forms", "benchmarks"}
    assert all(c["p_adjusted"] == c["spearman"]["p"] for c in data["correlations"])


def test_published_scores_of_one_benchmark(capsys, tmp_path):
    data = _data(capsys, PUBLISHED, "--scores", "ss", "--task", "stereoset_en_intra", "--task", "stereoset_de_intra")
    (one,) = data["correlations"]
    rows = {
        task: {row.model: row.cells["ss"].value for row in published_scores.by_task()[task] if "ss" in row.cells}
        for task in ("stereoset_en_intra", "stereoset_de_intra")
    }
    shared = [model for model in rows["stereoset_en_intra"] if model in rows["stereoset_de_intra"]]
    sides = [[own[model] for model in shared] for own in rows.values()]
    assert one["spearman"]["value"] == pytest.approx(stats.spearmanr(*sides).statistic)
    assert one["first"]["source"] == "Öztürk et al. 2023"
    assert "The scores are those of Öztürk et al. 2023." in data["words"]
    assert any("its size is unknown" in line for line in data["words"])
    # an extract of another name is read the same way
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    extract = tmp_path / "mine.CSV"
    extract.write_text("\n".join([lines[0], *(line for line in lines if ",intra," in line)]), encoding="utf-8")
    again = _data(capsys, extract, "--scores", "ss", "--task", "stereoset_en_intra,stereoset_de_intra")
    assert again["correlations"] == data["correlations"]


def test_a_task_and_one_that_holds_its_items_are_not_correlated(capsys):
    found = _data(capsys, PUBLISHED)["correlations"]
    assert {c["relation"] for c in found} == {"languages"}
    for one in found:
        first, second = (one[side]["task"].replace(f"_{one[side]['language']}", "") for side in ("first", "second"))
        assert first == second


def test_several_ways_of_running_a_task_are_told_apart(tmp_path, capsys):
    _runs(tmp_path)
    for model in ("one", "two"):
        path = tmp_path / f"{model}.json"
        content = json.loads(path.read_text())
        content["tasks"]["stereoset_en"]["metadata"]["inter"] = "gen_full"
        path.write_text(json.dumps(content))
    data = _data(capsys, tmp_path, "--scores", "ss")
    assert {c["first"]["source"] for c in data["correlations"]} >= {"way 1 of 2", "way 2 of 2"}
    said = " ".join(data["words"])
    assert "stereoset_en, way 2 of 2: inter=gen_full" in said or "stereoset_en, way 1 of 2: inter=gen_full" in said


def test_two_runs_of_one_model_are_said(tmp_path, capsys):
    _runs(tmp_path)
    content = json.loads((tmp_path / "one.json").read_text())
    content["provenance"]["dtype"] = "bfloat16"
    made_runs.write(tmp_path / "again" / "one.json", content)
    data = _data(capsys, tmp_path)
    assert any("counts as a model of its own, though it differs from" in line for line in data["words"])
    assert data["correlations"][0]["n"] == 6


def test_every_format(tmp_path, capsys):
    folder = _runs(tmp_path / "runs")
    assert (text := _said(capsys, folder)).index("- 5 models: ") < text.index("First ")
    assert "| First" in _said(capsys, folder, "--format", "md")
    page = tmp_path / "page.html"
    assert _said(capsys, folder, "-o", page) == f"{page}: 15 correlations\n"
    assert '<h2 id="correlations">' in page.read_text(encoding="utf-8")
    assert "\\begin{table}" in _said(capsys, folder, "--format", "latex")
    _said(capsys, folder, "-o", tmp_path / "all.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text(encoding="utf-8"))))
    data = _data(capsys, folder)["correlations"]
    assert len(rows) == len(data)
    for row, one in zip(rows, data, strict=True):
        assert (row["first_task"], row["second_score"]) == (one["first"]["task"], one["second"]["score"])
        value = one["spearman"]["value"]
        assert float(row["spearman"] or "nan") == pytest.approx(math.nan if value is None else value, nan_ok=True)
        assert json.loads(row["models"]) == one["models"]


def test_refusals(tmp_path, capsys):
    folder = _runs(tmp_path / "runs")
    assert "no such file or folder" in _refused(capsys, tmp_path / "gone")
    assert "can't be read as CSV" in _refused(capsys, tmp_path / "gone.csv")
    assert "no task in these files has it. Did you mean diff_bias_amb" in _refused(
        capsys, folder, "--scores", "diff_bias"
    )
    assert "--scores is empty" in _refused(capsys, folder, "--scores", ",")
    assert "--task is empty" in _refused(capsys, folder, "--task", ",")
    assert "no such task" in _refused(capsys, folder, "--task", "stereoset_xx")
    assert "no two scores to correlate" in _refused(capsys, folder, "--task", "stereoset_en")
    assert "no format goes with" in _refused(capsys, folder, "-o", tmp_path / "a.xyz")
    foreign = tmp_path / "foreign.csv"
    foreign.write_text("a,b\n1,2\n")
    assert "not a file of published scores: the first line must be" in _refused(capsys, foreign)
    header = PUBLISHED.read_text(encoding="utf-8").splitlines()[0]
    for line, reason in (
        ("2,intra,BERT,monolingual,,en,ss,high", "a line is not a published score of stereoset"),
        ("2,intra,BERT,monolingual,,xx,ss,50", "no such task"),
        ("2,intra,BERT,monolingual,,en,ss,500", "ss of BERT in stereoset_en_intra is 500, which is outside 0 to 100"),
        ("2,intra", "a line is not a published score of stereoset"),
    ):
        foreign.write_text(f"{header}\n{line}\n", encoding="utf-8")
        assert reason in _refused(capsys, foreign)
    foreign.write_bytes(b"\xff\xfe\x00")
    assert "can't be read as CSV" in _refused(capsys, foreign)
