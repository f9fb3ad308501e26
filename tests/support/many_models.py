"""A page of a hundred made-up models on twelve tasks: as large as leaderboards get."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lm_eval_bias.boards import building
from lm_eval_bias.boards.building import Board
from lm_eval_bias.boards.rank_intervals import Rank
from lm_eval_bias.report import board_reports
from lm_eval_bias.runs import run_discovery
from tests.support.made_runs import run_file, write

MODELS = 100
TASKS = (
    "occugender_explicit",
    "occugender_implicit",
    "gg_bbq_group_terms",
    "gg_bbq_names",
    "stereoset_en",
    "stereoset_de",
    "stereoset_fr",
    "stereoset_es",
    "stereoset_tr",
    "stereoset_en_inter_variants",
    "regard_en",
    "regard_de",
)


def model(number: int) -> str:
    """A name as long as many are."""
    family = ("llama", "Qwen", "gemma", "pythia", "SmolLM")[number % 5]
    return f"an-organisation/{family}-{1 + number // 5}.5B-continued-pretraining-instruct-v{number}"


def _with_copies(board: Board, read: int) -> Board:
    """A board's runs over and over under other names, ranked anywhere among the hundred."""
    runs = board.rows[:read]
    rows = []
    for number in range(MODELS):
        row, rank = runs[number % read], Rank(1 + number // 3, MODELS - number // 3, MODELS)
        cells = {name: replace(cell, rank=rank if cell.rank else None) for name, cell in row.cells.items()}
        rows.append(replace(row, model=model(number), cells=cells))
    return replace(board, rows=rows)


@lru_cache(maxsize=1)
def hundred_models(read: int = 4) -> str:
    """The page; only so many runs are read, since reading a hundred takes half a minute."""
    with tempfile.TemporaryDirectory() as place:
        for number in range(read):
            write(Path(place) / f"run{number}.json", run_file(model(number), TASKS, shift=9 * number))
        runs, problems = run_discovery.read([place], by_task=True)
    assert not problems
    boards = [_with_copies(board, read) for board in building.boards(runs)]
    copies = [replace(runs[number % read], name=model(number)) for number in range(MODELS)]
    return board_reports.render("html", boards, copies, [])
