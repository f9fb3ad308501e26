"""The command: formats, what is passed over, and names that are no markup in any of them."""

import csv
import io
import json

import pytest

from lm_eval_bias.cli.main import main
from tests.support.boards import HOSTILE, SOURCE, run_data, safe, write
from tests.support.pages import OF_BOARDS, Page, check_closed
from tests.support.places import ROOT

FORMATS = ["html", "md", "csv", "json"]
RESULTS = str(ROOT / "results")


def run(capsys, *arguments):
    status = main(["leaderboard", *map(str, arguments)])
    out = capsys.readouterr()
    assert status == 0
    return out.out, out.err


@pytest.fixture
def hostile(tmp_path):
    folder = tmp_path / "hostile"
    for i, name in enumerate(HOSTILE):
        data = run_data(name, acc_amb={"note": name}, metadata={"wording": name})
        data["command"] = name
        data["provenance"].update(dtype=name, date=name)
        write(folder, f"run{i}", data)
    return folder


def test_results_is_listed_in_every_format(capsys, tmp_path):
    for form in FORMATS:
        out, err = run(capsys, RESULTS, "--format", form)
        assert err == ""
        assert "SmolLM2-135M-Instruct" in out
        assert "Mistral-7B" in out
        assert out.endswith("\n") or form == "html"


def test_what_the_terminal_shows_is_text(capsys, hostile):
    out, _ = run(capsys, RESULTS, hostile)
    assert "occugender_explicit" in out
    assert "{{ 7 * 7 }}" in out
    assert not set("\x00\x1b") & set(out)
    assert run(capsys, RESULTS, hostile, "--format", "text")[0] == out


def test_format_by_ending(capsys, tmp_path):
    for ending, start in {
        "html": "<!doctype html>",
        "md": "# Bias",
        "csv": "task,",
        "json": "{",
    }.items():
        path = tmp_path / f"board.{ending}"
        out, _ = run(capsys, RESULTS, "-o", path)
        assert path.read_text(encoding="utf-8").lstrip().lower().startswith(start.lower())
        assert out == f"{path}: 12 tasks, 5 runs\n"
    for path in (tmp_path / "board", tmp_path / "none" / "board.md", tmp_path / "board.tex"):
        assert main(["leaderboard", RESULTS, "-o", str(path)]) == 2
        assert str(path) in capsys.readouterr().err


def test_csv_and_json_say_the_same(capsys):
    lines = list(csv.DictReader(io.StringIO(run(capsys, RESULTS, "--format", "csv")[0])))
    data = json.loads(run(capsys, RESULTS, "--format", "json")[0])
    cells = {
        (board["task"], row["kind"], row["model"], name): cell
        for board in data["boards"]
        for row in board["rows"]
        for name, cell in row["scores"].items()
    }
    assert len(lines) == len(cells) > 500
    for line in lines:
        cell = cells[line["task"], line["kind"], line["model"], line["score"]]
        assert (float(line["value"]) if line["value"] else None) == cell["value"]
        assert (float(line["interval_high"]) if line["interval_high"] else None) == (cell["interval"] or [0, None])[1]
        assert line["kind"] in ("run", "published")
    assert [board["task"] for board in data["boards"]] == list(dict.fromkeys(line["task"] for line in lines))


def test_numbers_of_a_run_arrive_unchanged(capsys):
    data = json.loads(run(capsys, RESULTS, "--format", "json")[0])
    (row,) = next(board["rows"] for board in data["boards"] if board["task"] == "gg_bbq_group_terms")
    for name, cell in row["scores"].items():
        given = SOURCE["tasks"]["gg_bbq_group_terms"]["scores"][name]
        assert (cell["value"], cell["stderr"], cell["interval"]) == (
            given["value"],
            given["stderr"],
            given["interval"],
        )


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
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "notes.json").write_text('{"a": 1}')
    folders = [tmp_path / name for name in "abcde"]
    page = run(capsys, *folders, "--format", "html")
    table = run(capsys, *folders, "--format", "md")
    places = ("truncated.json", "empty.json", "older.json", "samples_gg_bbq", "results_2026", str(tmp_path / "e"))
    for made, err in (page, table):
        assert "good model" in made
        for place in places:
            assert place in err
            assert place in made.replace("\\_", "_")
    assert page[1].count("\n") == len(places)


def test_hostile_runs_make_no_markup_in_the_page(capsys, hostile):
    made = check_closed(run(capsys, hostile, "--format", "html")[0], OF_BOARDS)
    names = [" ".join(row[0].split()) for row in made.board]
    for name in HOSTILE:
        assert safe(name) in names
    assert "\x1b" not in made.said


def test_a_rank_is_shown_and_sortable(capsys, tmp_path):
    for name, value in {"best": 0.9, "twin a": 0.6, "twin b": 0.61}.items():
        write(tmp_path, name, run_data(name, acc_amb=(value, 0.02)))
    made = run(capsys, tmp_path, "--format", "html")[0]
    page = Page(made)
    head, *rows = page.board
    place = next(number for number, text in enumerate(head) if "accuracy in ambiguous contexts" in text)
    ranks = {row[0]: row[place].partition("rank ")[2] for row in rows}
    assert ranks == {"best": "1 of 3", "twin a": "2-3 of 3", "twin b": "2-3 of 3"}
    out = run(capsys, tmp_path)[0]
    assert "2-3 of 3" in out
