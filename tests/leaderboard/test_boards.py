"""Which rows a board has, which of them are ranked, and what is said of the others."""

import json

from lm_eval_bias.boards import building
from lm_eval_bias.boards.building import PUBLISHED, RUN
from lm_eval_bias.report.board_reports import notes, table, text, unranked
from lm_eval_bias.runs import run_discovery
from tests.support.boards import run_data, write
from tests.support.places import ROOT

TASK = "gg_bbq_group_terms"


def board_of(folder, task=TASK, **kwargs):
    runs, _ = run_discovery.read([folder])
    (found,) = (board for board in building.boards(runs, **kwargs) if board.task == task)
    return found


def shown(board, row):
    columns = {column.name: column for column in (*board.columns, *board.others)}
    assert set(columns) == set(row.cells)
    return {name: text(row, columns[name]) for name in row.cells}


def cells(board, score):
    return {row.model: row.cells[score] for row in board.rows}


def test_two_sided_scores_rank_by_distance_from_the_neutral_value(tmp_path):
    for name, value in {"plus": 0.5, "minus": -0.5, "near": 0.02}.items():
        write(tmp_path, name, run_data(name, diff_bias_amb=(value, 0.02)))
    found = {model: str(cell.rank) for model, cell in cells(board_of(tmp_path), "diff_bias_amb").items()}
    assert found == {"near": "1", "plus": "2-3", "minus": "2-3"}


def test_scores_without_a_neutral_value_rank_nothing():
    board = board_of(ROOT / "results", "occugender_explicit")
    assert all(row.cells["coverage"].rank is None and not row.cells["coverage"].unranked for row in board.rows)
    assert not any("coverage" in line for line in unranked(board))


def test_published_models_stand_beside_marked_and_unranked(tmp_path):
    for name in ("a", "b"):
        write(tmp_path, name, run_data(name, task="occugender_explicit"))
    board = board_of(tmp_path, "occugender_explicit")
    kinds = [row.kind for row in board.rows]
    assert kinds == [RUN] * 2 + [PUBLISHED] * 10
    llama = next(row for row in board.rows if row.model == "Llama-2-7B")
    assert llama.source == "Chen et al. 2025, Table 3"
    assert llama.cells["stereotype_gap"].rank is None
    assert llama.cells["stereotype_gap"].derived
    assert llama.cells["female_dominated_F"].plus_minus == 1.3
    assert shown(board, llama)["coverage"] == "–"
    assert all(row.cells["stereotype_gap"].rank.of == 2 for row in board.rows if row.kind == RUN)
    assert any(line.startswith("published models") for line in unranked(board))


def test_a_benchmark_without_published_scores_says_so():
    assert any("No published scores" in note for note in board_of(ROOT / "results").notes)


def test_one_texts_two_classifiers_are_two_rows_ranked_apart():
    board = board_of(ROOT / "results", "regard_en")
    own = [row for row in board.rows if row.kind == RUN]
    assert len(own) == 2
    assert any("(sbert:all-MiniLM-L6-v2)" in row.model for row in own)
    assert {row.conventions.partition(";")[0] for row in own} == {
        "classifier=light",
        "classifier=sbert:all-MiniLM-L6-v2",
    }
    assert any("light classifier, which is weak" in line for line in notes(board)["Single models"])


def test_regard_is_never_shown_without_the_facets(tmp_path):
    data = json.loads((ROOT / "results" / "runs" / "smollm2-135m-instruct-regard-en.json").read_text(encoding="utf-8"))
    scores = data["tasks"]["regard_en"]["scores"]
    data["tasks"] = {"regard_en": {**data["tasks"]["regard_en"]}}
    data["tasks"]["regard_en"]["scores"] = {n: s for n, s in scores.items() if not n.startswith("caregiving")}
    write(tmp_path, "part", data)
    board = board_of(tmp_path, "regard_en")
    assert shown(board, board.rows[0])
    assert all(one == "–" for one in shown(board, board.rows[0]).values())
    assert any("facets" in line for line in notes(board)["Single models"])


def test_published_models_without_main_scores_stand_with_their_own_only():
    board = board_of(ROOT / "results", "regard_de")
    main, further = (table(board, columns, "scores") for columns in (board.columns, board.others))
    assert [line[0].note for line in main.rows] == ["run"]
    assert [line[0].text for line in further.rows[1:]] == ["GerPT-2", "GPT-3 davinci"]
    assert any("none of the main scores" in note for note in board.notes)
    assert not any("not published" in line for line in unranked(board))


def test_every_task_run_has_its_board_and_its_scores():
    runs, _ = run_discovery.read([ROOT / "results"])
    found = building.boards(runs)
    assert len(found) == 12
    for board in found:
        for row in board.rows:
            assert set(row.cells) == {column.name for column in [*board.columns, *board.others]}
        for made in (table(board, columns, "scores") for columns in (board.columns, board.others)):
            assert all(len(line) == len(made.columns) for line in made.rows)
