"""The command and its page: formats that say the same, what is passed over, rows and columns, hostile names."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.report import board_reports
from tests.support.boards import HOSTILE, MODELS, TASK, TASKS, board, hundred_models, run, run_data, safe, task, value
from tests.support.made_runs import write
from tests.support.pages import OF_BOARDS, Page, check_closed
from tests.support.places import ROOT

RESULTS = ROOT / "results"


def scored(name, number):
    return run(name, task(value("diff_bias_amb", number), value("acc_amb", number)))


def rows_of(*boards):
    (tab,) = board_reports.tabs(boards)
    return tab.rows


# ---------------------------------------------------------------------- the command


def test_format_by_ending_or_name(said, capsys, tmp_path):
    for ending, start in {"html": "<!doctype html>", "md": "# Bias", "csv": "task,", "json": "{"}.items():
        path = tmp_path / f"board.{ending}"
        assert said("leaderboard", RESULTS, "-o", path).startswith(f"{path}: 12 tasks, 5 runs")
        text = path.read_text(encoding="utf-8")
        assert text.startswith(start)
        assert said("leaderboard", RESULTS, "--format", ending).strip() == text.strip()
    assert said("leaderboard", RESULTS, "--format", "text") == said("leaderboard", RESULTS)
    (tmp_path / "empty").mkdir()
    for path in ("board", "none/board.md", "board.tex"):
        assert main(["leaderboard", str(RESULTS), "-o", str(tmp_path / path)]) == 2
        assert str(tmp_path / path) in capsys.readouterr().err
    assert main(["leaderboard", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_csv_json_and_page_say_the_same_as_the_files(said):
    lines = list(csv.DictReader(io.StringIO(said("leaderboard", RESULTS, "--format", "csv"))))
    boards = json.loads(said("leaderboard", RESULTS, "--format", "json"))["boards"]
    page = check_closed(said("leaderboard", RESULTS, "--format", "html"), OF_BOARDS)
    shown = [cell for row in page.board for cell in row[1:]]
    cells = {}
    for one in boards:
        main_scores = {score["name"] for score in one["scores"] if score["main"]}
        for row in one["rows"]:
            for name, cell in row["scores"].items():
                cells[one["task"], row["kind"], row["model"], name] = cell
                if name in main_scores and cell["value"] is not None:
                    assert any(text.startswith(cell["text"]) for text in shown), (row["model"], name)
    assert len(lines) == len(cells) > 500
    for line in lines:
        cell = cells[line["task"], line["kind"], line["model"], line["score"]]
        assert (float(line["value"]) if line["value"] else None) == cell["value"]
        assert (float(line["interval_high"]) if line["interval_high"] else None) == (cell["interval"] or [0, None])[1]
    source = json.loads((RESULTS / "runs" / "smollm2-135m-instruct.json").read_text(encoding="utf-8"))
    (row,) = next(one["rows"] for one in boards if one["task"] == TASK)
    for name, cell in row["scores"].items():
        given = source["tasks"][TASK]["scores"][name]
        assert all(cell[field] == given[field] for field in ("value", "stderr", "interval"))


def test_damaged_empty_partial_older_and_mixed_folders(capsys, tmp_path):
    whole = run_data("good model")
    (older,) = (run_data("older")["tasks"],)
    del older[TASK]["benchmark"]
    places = {
        "a/truncated.json": json.dumps(whole)[:200], "b/empty.json": "",
        "b/older.json": json.dumps({**whole, "package": "some 0.1", "tasks": older}),
        f"c/samples_{TASK}_2026-01-01T00-00-00.jsonl": "{}\n",
        "d/results_2026-01-01T00-00-00.json": '{"results": {"arc": {}}, "configs": {}, "config": {}}',
        "e/notes.json": '{"a": 1}',
    }  # fmt: skip
    write(tmp_path / "a" / "good.json", whole)
    for place, text in places.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    named = [*list(places)[:-1], "e"]  # where there is nothing else, the folder is named
    for form in ("html", "md"):
        assert main(["leaderboard", *(str(tmp_path / name) for name in "abcde"), "--format", form]) == 0
        made, err = capsys.readouterr()
        assert "good model" in made
        assert err.count("\n") == len(named)
        assert all(place in err and place in made.replace("\\_", "_") for place in named)


def test_hostile_runs_are_text_on_the_page_and_the_terminal(said, tmp_path):
    for i, name in enumerate(HOSTILE):
        data = run_data(name, acc_amb={"note": name}, metadata={"wording": name})
        data["command"] = name
        data["provenance"] |= {"dtype": name, "date": name}
        write(tmp_path / f"run{i}.json", data)
    made = check_closed(said("leaderboard", tmp_path, "--format", "html"), OF_BOARDS)
    assert {safe(name) for name in HOSTILE} <= {" ".join(row[0].split()) for row in made.board}
    assert "\x1b" not in made.said
    out = said("leaderboard", tmp_path)
    assert "{{ 7 * 7 }}" in out
    assert not set("\x00\x1b") & set(out)


# ---------------------------------------------------------------------- rows and columns


def test_rows_stand_by_their_distance_from_neutral_and_those_at_chance_level_last():
    kinds = {"guessing": ("trial_run", "chance_level"), "far": ("trial_run",)}
    found = board(scored("far", -0.6), scored("near", 0.2), scored("guessing", 0.0))
    rows = [replace(row, unmaking=kinds.get(row.model, ()), caveat=f"of {row.model}") for row in found.rows]
    (tab,) = board_reports.tabs([replace(found, rows=rows)])
    (place,) = (i for i, (_, _, shown) in enumerate(tab.columns) if shown)
    assert tab.columns[place][1].name == "diff_bias_amb"
    said = [(row.model, row.warnings, row.cells[place].key) for row in tab.rows]
    assert said == [("near", "", "0.2"), ("far", "trial run", "0.6"), ("guessing", "trial run; chance level", "")]
    assert [row.cells[0].key for row in tab.rows] == ["0.2", "-0.6", "0.0"]  # accuracies: in their own order


@pytest.mark.parametrize("other", [False, True])
def test_a_warning_names_its_tasks_where_it_is_not_true_of_all(other):
    found = board(scored("a", 0.1))
    guessing = replace(found, task="other", rows=[replace(found.rows[0], unmaking=("chance_level",))])
    (row,) = rows_of(*([found] if other else []), guessing)
    assert row.warnings == "chance level" + " (other)" * other


def test_a_model_without_a_task_has_no_cells_there():
    one, other = board(scored("a", 0.1)), board(scored("b", 0.2))
    first, second = rows_of(one, replace(other, task="other"))
    assert [cell.text == "" for cell in first.cells] == [False] * len(one.columns) + [True] * len(other.columns)
    assert (first.model, second.model) == ("a", "b")


def test_only_the_first_tasks_have_a_column_at_first():
    found = board(scored("a", 0.1))
    (tab,) = board_reports.tabs([replace(found, task=f"task{number}") for number in range(board_reports.FIRST + 2)])
    assert [one.task for one, _, shown in tab.columns if shown] == [f"task{i}" for i in range(board_reports.FIRST)]


def test_runs_with_a_remark_have_rows_of_their_own(said, tmp_path):
    data = run_data("model")
    data["tasks"][f"{TASK} (wording 2)"] = data["tasks"][TASK]
    write(tmp_path / "a.json", data)
    _, *rows = Page(said("leaderboard", tmp_path, "--format", "html")).board
    assert [row[0] for row in rows] == ["model", "model (wording 2)"]
    assert rows[0][1:] == rows[1][1:]


def test_published_models_without_main_scores_stand_in_the_table_of_theirs_alone(said):
    text = said("leaderboard", RESULTS, "--format", "md")
    section = next(part for part in re.split(r"\n## ", text) if part.startswith("regard\\_de"))
    first, further = re.findall(r"(?:^\|.*\n)+", section, re.M)
    assert ["GerPT-2" in first, "GerPT-2" in further] == [False, True]


def test_a_hundred_models_stay_under_three_megabytes():
    made = hundred_models()
    assert len(made.encode()) < 3_000_000
    assert made.count('<th scope="row" title=') == MODELS * made.count('role="tabpanel"')
    assert set(re.findall("<legend>(.*?)</legend>", made)) == set(TASKS)
    assert made.count('class="bar"') > 1000
