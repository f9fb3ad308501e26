"""The command: formats that say the same, what is passed over, and names that are no markup in any of them."""

import csv
import io
import json

import pytest

from lm_eval_bias.cli.main import main
from tests.support.boards import HOSTILE, SOURCE, run_data, safe, write
from tests.support.pages import OF_BOARDS, check_closed
from tests.support.places import ROOT

RESULTS = ROOT / "results"


@pytest.fixture
def hostile(tmp_path):
    folder = tmp_path / "hostile"
    for i, name in enumerate(HOSTILE):
        data = run_data(name, acc_amb={"note": name}, metadata={"wording": name})
        data["command"] = name
        data["provenance"].update(dtype=name, date=name)
        write(folder, f"run{i}", data)
    return folder


def test_format_by_ending_or_name(said, capsys, tmp_path):
    for ending, start in {"html": "<!doctype html>", "md": "# Bias", "csv": "task,", "json": "{"}.items():
        path = tmp_path / f"board.{ending}"
        assert said("leaderboard", RESULTS, "-o", path).startswith(f"{path}: 12 tasks, 5 runs")
        text = path.read_text(encoding="utf-8")
        assert text.startswith(start)
        assert said("leaderboard", RESULTS, "--format", ending).strip() == text.strip()
        assert "SmolLM2-135M-Instruct" in text
        assert "Mistral-7B" in text
    for path in (tmp_path / "board", tmp_path / "none" / "board.md", tmp_path / "board.tex"):
        assert main(["leaderboard", str(RESULTS), "-o", str(path)]) == 2
        assert str(path) in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["leaderboard", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_csv_json_and_page_say_the_same_as_the_files(said):
    lines = list(csv.DictReader(io.StringIO(said("leaderboard", RESULTS, "--format", "csv"))))
    data = json.loads(said("leaderboard", RESULTS, "--format", "json"))
    page = check_closed(said("leaderboard", RESULTS, "--format", "html"), OF_BOARDS)
    shown = [cell for row in page.board for cell in row[1:]]
    cells = {}
    for board in data["boards"]:
        main_scores = {score["name"] for score in board["scores"] if score["main"]}
        for row in board["rows"]:
            for name, cell in row["scores"].items():
                cells[board["task"], row["kind"], row["model"], name] = cell
                if name in main_scores and cell["value"] is not None:
                    assert any(text.startswith(cell["text"]) for text in shown), (row["model"], name)
    assert len(lines) == len(cells) > 500
    for line in lines:
        cell = cells[line["task"], line["kind"], line["model"], line["score"]]
        assert (float(line["value"]) if line["value"] else None) == cell["value"]
        assert (float(line["interval_high"]) if line["interval_high"] else None) == (cell["interval"] or [0, None])[1]
    assert [board["task"] for board in data["boards"]] == list(dict.fromkeys(line["task"] for line in lines))
    (row,) = next(board["rows"] for board in data["boards"] if board["task"] == "gg_bbq_group_terms")
    for name, cell in row["scores"].items():
        given = SOURCE["tasks"]["gg_bbq_group_terms"]["scores"][name]
        assert all(cell[field] == given[field] for field in ("value", "stderr", "interval"))
    # a model stands once in a tab
    heads = [number for number, row in enumerate(page.board) if row[0] == "Model"]
    for start, end in zip(heads, [*heads[1:], None], strict=True):
        names = [row[0] for row in page.board[start:end]]
        assert len(names) == len(set(names))


def test_damaged_empty_partial_older_and_mixed_folders(capsys, tmp_path):
    whole = json.dumps(run_data("good model"))
    write(tmp_path / "a", "good", whole)
    write(tmp_path / "a", "truncated", whole[: len(whole) // 2])
    write(tmp_path / "b", "empty", "")
    older = json.loads(whole)
    older["package"] = "some 0.1"
    del older["tasks"]["gg_bbq_group_terms"]["benchmark"]
    write(tmp_path / "b", "older", older)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "samples_gg_bbq_group_terms_2026-01-01T00-00-00.jsonl").write_text("{}\n")
    write(tmp_path / "d", "results_2026-01-01T00-00-00", {"results": {"arc": {}}, "configs": {}, "config": {}})
    write(tmp_path / "e", "notes", '{"a": 1}')
    places = ("truncated.json", "empty.json", "older.json", "samples_gg_bbq", "results_2026", str(tmp_path / "e"))
    for form in ("html", "md"):
        assert main(["leaderboard", *(str(tmp_path / name) for name in "abcde"), "--format", form]) == 0
        made, err = capsys.readouterr()
        assert "good model" in made
        assert err.count("\n") == len(places)
        assert all(place in err and place in made.replace("\\_", "_") for place in places)


def test_hostile_runs_are_text_on_the_page_and_the_terminal(said, hostile):
    made = check_closed(said("leaderboard", hostile, "--format", "html"), OF_BOARDS)
    names = [" ".join(row[0].split()) for row in made.board]
    assert {safe(name) for name in HOSTILE} <= set(names)
    assert "\x1b" not in made.said
    out = said("leaderboard", hostile)
    assert "{{ 7 * 7 }}" in out
    assert not set("\x00\x1b") & set(out)
    assert said("leaderboard", hostile, "--format", "text") == out


def test_a_rank_is_shown(said, tmp_path):
    for name, value in {"best": 0.9, "twin a": 0.6, "twin b": 0.61}.items():
        write(tmp_path, name, run_data(name, acc_amb=(value, 0.02)))
    head, *rows = check_closed(said("leaderboard", tmp_path, "--format", "html"), OF_BOARDS).board
    place = next(number for number, text in enumerate(head) if "accuracy in ambiguous contexts" in text)
    ranks = {row[0]: row[place].partition("rank ")[2] for row in rows}
    assert ranks == {"best": "1 of 3", "twin a": "2-3 of 3", "twin b": "2-3 of 3"}
    assert "2-3 of 3" in said("leaderboard", tmp_path)
