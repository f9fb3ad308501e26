"""Only runs that were asked the same are ranked with each other; the others are listed with the reason."""

import pytest

from lm_eval_bias.boards import building
from lm_eval_bias.report.board_reports import notes, unranked
from lm_eval_bias.runs import run_discovery
from tests.support.boards import run_data, write

TASK = "gg_bbq_group_terms"
DATA_SET = {"file": "own.json", "sha256": "4" * 64}
ONE, OTHER, PART = "1" * 64, "2" * 64, "3" * 64


def board_of(folder):
    runs, problems = run_discovery.read([folder])
    assert not problems
    (board,) = building.boards(runs)
    return board


def add(folder, name, value, number=968, metadata=None, **inputs):
    given = {**(metadata or {}), **({"inputs": inputs} if inputs else {})}
    data = run_data(name, acc_amb=(value, 0.02), metadata=given)
    data["tasks"][TASK]["documents"] = number
    if metadata:
        data["tasks"][TASK]["items"] = number
    write(folder, name, data)


def ranks(board):
    return {row.model: str(row.cells["acc_amb"].rank or "") for row in board.rows}


@pytest.fixture
def whole(tmp_path):
    add(tmp_path, "a", 0.9, documents=ONE)
    add(tmp_path, "b", 0.1, documents=ONE)
    return tmp_path


def test_a_part_of_the_items_is_not_ranked_with_all(whole):
    add(whole, "part", 0.99, 96, documents=ONE, scored=PART)
    board = board_of(whole)
    assert ranks(board) == {"a": "1", "b": "2", "part": ""}
    assert any("96 of 968 items: no other run on the same items" in line for line in unranked(board))
    assert "part: trial run, 96 of 968 items" in notes(board)["Single models"]


def test_parts_are_ranked_among_themselves_where_they_are_the_same_items(whole):
    add(whole, "part 1", 0.2, 96, documents=ONE, scored=PART)
    add(whole, "part 2", 0.8, 96, documents=ONE, scored=PART)
    add(whole, "part 3", 0.8, 96, documents=ONE, scored=OTHER)
    assert ranks(board_of(whole)) == {"a": "1", "b": "2", "part 1": "2", "part 2": "1", "part 3": ""}


def test_a_part_that_is_not_known_is_never_ranked(whole):
    for name in ("old 1", "old 2"):
        add(whole, name, 0.5, 96)
    board = board_of(whole)
    assert ranks(board) == {"a": "1", "b": "2", "old 1": "", "old 2": ""}
    assert any("96 of 968 items, and its file doesn't say which" in line for line in unranked(board))


def test_other_documents_under_the_same_name_rank_apart(whole):
    add(whole, "c", 0.5, documents=OTHER)
    board = board_of(whole)
    assert ranks(board) == {"a": "1", "b": "2", "c": ""}
    assert any("other documents or prompts are ranked separately" in note for note in board.notes)


def test_older_files_rank_among_themselves(whole):
    add(whole, "old 1", 0.3)
    add(whole, "old 2", 0.7)
    board = board_of(whole)
    assert ranks(board) == {"a": "1", "b": "2", "old 1": "2", "old 2": "1"}
    assert any("files don't record the documents and prompts" in note for note in board.notes)
    assert not any("other documents" in note for note in board.notes)


def test_a_system_instruction_and_examples_are_other_conventions(whole):
    data = run_data("told", acc_amb=(0.5, 0.02), metadata={"inputs": {"documents": ONE}})
    data["provenance"]["system_instruction"] = "Antworte immer: keine Antwort"
    write(whole, "told", data)
    add(whole, "shown", 0.4, documents=ONE, num_fewshot=2)
    board = board_of(whole)
    assert ranks(board) == {"a": "1", "b": "2", "told": "", "shown": ""}
    made_by = {row.model: row.conventions for row in board.rows}
    assert "system_instruction=" in made_by["told"]
    assert "num_fewshot=2" in made_by["shown"]


def test_all_of_a_smaller_data_set_is_no_part(whole):
    for name, value in (("own 1", 0.2), ("own 2", 0.8)):
        add(whole, name, value, 200, {"dataset_used": DATA_SET}, documents=OTHER)
    board = board_of(whole)
    assert ranks(board) == {"a": "1", "b": "2", "own 1": "2", "own 2": "1"}
    assert notes(board)["Single models"] == []
