"""A leaderboard's ranks from sample logs, where both runs have one."""

import pytest

from lm_eval_bias.boards import building, models
from lm_eval_bias.core.benchmark import Options
from tests.support.toy import log, run_of, score, spread_over, task_run

INPUTS = {"inputs": {"documents": "0" * 64}}


@pytest.fixture(autouse=True)
def _ranked(toy):
    toy.main, toy.options = ("mean",), Options()


def _run(
    folder,
    name,
    mean,
    logged=True,
    metadata=INPUTS,
    shift=0.0,
    off=0.0,
    stderr=0.87,
    **changes,
):
    """A model whose eight items differ a lot among each other, and hardly from other models' ones."""
    values = {
        item: mean + number + shift * (number % 3)
        for number, item in enumerate(spread_over())
    }
    samples = log(folder / name, "toy", values) if logged else None
    value = sum(values.values()) / 8
    given = score(
        value=value + off,
        stderr=stderr,
        dof=7.0,
        low=-9.0,
        high=9.0,
        neutral=0.0,
        unit="difference",
    )
    return run_of(
        name, task_run(samples=samples, scores=[given], metadata=metadata, **changes)
    )


def _board(*runs):
    (board,) = building.boards(models.models(runs))
    independent = [note for note in board.notes if building.INDEPENDENT in note]
    return [str(row.cells["mean"].rank) for row in board.rows], [
        note.split()[0] for note in independent
    ]


@pytest.fixture
def runs(tmp_path):
    """Two models with logs, and the same without."""
    return [
        [_run(tmp_path, "a", 0.0, logged), _run(tmp_path, "b", 0.2, logged, shift=0.1)]
        for logged in (True, False)
    ]


def test_ranks_take_the_error_of_the_difference_where_both_runs_have_logs(
    runs, tmp_path
):
    logs, files = runs
    assert _board(*logs) == (["1", "2"], [])
    assert _board(*files) == _board(logs[0], files[1]) == (["1–2", "1–2"], ["All"])
    assert _board(*logs, _run(tmp_path, "c", 5.0, logged=False)) == (
        ["1", "2", "3"],
        ["Some"],
    )


@pytest.mark.parametrize(("off", "ranks"), [(1e-9, ["1", "2"]), (0.5, ["1–2", "1–2"])])
def test_a_log_is_taken_where_it_gives_the_score_in_the_file(tmp_path, off, ranks):
    one, two = (
        _run(tmp_path, name, mean, shift=mean / 2, off=off)
        for name, mean in (("a", 0.0), ("b", 0.2))
    )
    assert _board(one, two)[0] == ranks
    assert (
        _board(one, _run(tmp_path, "c", 4.0, stderr=5e-9))[0][1] == "None"
    )  # rounding, of a value of 7.5


@pytest.mark.parametrize("metadata", [{"dataset_used": {}}, {}])
def test_a_task_over_data_of_ones_own_says_what_it_measures(tmp_path, metadata):
    run = _run(tmp_path, "a", 0.0, metadata={"measures": "ages", **metadata})
    (board,) = building.boards(models.models([run]))
    said = "ages" if metadata else "a task that this package doesn't know"
    assert (board.measures, board.language) == (said, "en")
