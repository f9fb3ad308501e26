"""The command and its page: formats that say the same, what is passed over, rows and columns, hostile names."""

import csv
import io
import json

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.files import read_json
from lm_eval_bias.report import run_reports
from lm_eval_bias.runs import harness_results
from tests.support.boards import TASK, run_data, task, value
from tests.support.made_runs import HOSTILE, write
from tests.support.pages import check_closed
from tests.support.places import ROOT
from tests.support.toy import run_of as run

RESULTS = ROOT / "results"
NAMES = (
    HOSTILE,
    "a|b\n# c",
    '=HYPERLINK("http://a.org")',
    "{{ 7 * 7 }}",
    "a\x1b[31mred.exe",
)


def scored(name, number):
    return run(name, task(value("diff_bias_amb", number), value("acc_amb", number)))


def test_csv_json_and_page_say_the_same_as_the_files(said):
    lines = list(
        csv.DictReader(io.StringIO(said("leaderboard", RESULTS, "--format", "csv")))
    )
    boards = json.loads(said("leaderboard", RESULTS, "--format", "json"))["boards"]
    page = check_closed(said("leaderboard", RESULTS, "--format", "html"))
    shown = [cell for table in page.tables for row in table for cell in row[1:]]
    cells = {}
    for one in boards:
        main_scores = {score["name"] for score in one["scores"] if score["main"]}
        for row in one["rows"]:
            for name, cell in row["scores"].items():
                cells[one["task"], row["kind"], row["model"], name] = cell
                if name in main_scores and cell["value"] is not None:
                    assert any(text.startswith(cell["text"]) for text in shown), (
                        row["model"],
                        name,
                    )
    assert len(lines) == len(cells) > 500
    for line in lines:
        cell = cells[line["task"], line["kind"], line["model"], line["score"]]
        assert (float(line["value"]) if line["value"] else None) == cell["value"]
        assert (float(line["interval_high"]) if line["interval_high"] else None) == (
            cell["interval"] or [0, None]
        )[1]
    (path,) = (RESULTS / "runs" / "smollm2-135m-instruct").iterdir()
    source = run_reports.as_data(harness_results.read(path, read_json(path)))
    latest = f"{TASK}_latest"
    (row,) = next(one["rows"] for one in boards if one["task"] == latest)
    for name, cell in row["scores"].items():
        given = source["tasks"][latest]["scores"][name]
        assert all(
            cell[field] == given[field] for field in ("value", "stderr", "interval")
        )


def test_what_is_passed_over_is_named_beside_what_is_shown(capsys, tmp_path):
    write(tmp_path / "a" / "good.json", run_data("good model"))
    (tmp_path / "a" / "results_empty.json").write_text("")
    write(
        tmp_path / "nothing" / "notes.json", {"a": 1}
    )  # where there is nothing else, the folder is named
    for form in ("html", "md"):
        assert (
            main(
                [
                    "leaderboard",
                    str(tmp_path / "a"),
                    str(tmp_path / "nothing"),
                    "--format",
                    form,
                ]
            )
            == 0
        )
        made, err = capsys.readouterr()
        assert "good model" in made
        assert err.count("\n") == 2
        assert all(
            place in err and place in made for place in ("empty.json", "nothing")
        )


def test_hostile_runs_are_text_on_the_page_and_the_terminal(said, tmp_path):
    for i, name in enumerate(NAMES):
        data = run_data(name, acc_amb={"note": name}, metadata={"wording": name})
        data["provenance"] |= {"dtype": name, "model": name}
        write(tmp_path / f"run{i}.json", data)
    made = check_closed(said("leaderboard", tmp_path, "--format", "html"))
    shown = {" ".join(name.replace("\x1b", "\\u001b").split()) for name in NAMES}
    assert shown <= {
        " ".join(row[0].removesuffix("run").split())
        for table in made.tables
        for row in table
    }
    assert "\x1b" not in made.said
    out = said("leaderboard", tmp_path)
    assert "{{ 7 * 7 }}" in out
    assert not set("\x00\x1b") & set(out)


def test_the_first_table_has_the_primary_scores_with_caveats_as_footnotes(
    tmp_path, said, capsys
):
    for name, number in (("a", 0.2), ("b", 0.02)):
        scores = {"diff_bias_amb": (number, 0.05), "acc_amb": (0.5, 0.02)}
        if name == "b":  # it answers the questions with a known answer by chance
            scores["acc_disamb"] = {"value": 0.3, "interval": [0.28, 0.32]}
            scores["acc_of_named"] = {"value": 0.5, "interval": [0.48, 0.52]}
        write(tmp_path / name / "run.json", run_data(name, **scores))
    text = said("leaderboard", tmp_path)
    first = text[text.index("## Primary scores") : text.index("## gg_bbq")]
    assert "(diff_bias_amb, neutral 0" in first
    values = first.split()
    assert "0.200" in values
    assert "0.020†" in values
    assert "- † not shown to be better than a guess" in first
    named = said("leaderboard", tmp_path, "--scores", "acc_amb,diff_bias_amb")
    assert "(acc_amb, best 100%" in named[: named.index("## gg_bbq")]
    assert main(["leaderboard", str(tmp_path), "--scores", "acc_am"]) == 2
    error = capsys.readouterr().err
    assert "no task here has this score. Did you mean acc_amb" in error
