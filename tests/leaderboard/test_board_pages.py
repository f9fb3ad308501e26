"""The command and its page: formats that say the same, what is passed over, rows and columns, hostile names."""

from lm_eval_bias.boards import building, models
from lm_eval_bias.cli.main import main
from lm_eval_bias.report import board_pages
from tests.support.boards import run_data, task, value
from tests.support.made_runs import write
from tests.support.toy import run_of as run


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


def test_a_model_that_says_nothing_of_bias_comes_last_in_every_order():
    """Its nearness to neutral is none, so that its cells have nothing to be sorted by."""
    made = []
    for name, low in (("able", 0.85), ("unable", 0.1)):
        able = value("acc_of_named", low + 0.04, interval=(low, low + 0.08))
        bias = value("diff_bias_amb", 0.01, interval=(-0.02, 0.04))
        made.append(run(name, task(bias, able)))
    (board,) = building.boards(models.models(made))
    (column,) = board_pages.columns([board])
    keys = {row.model: board_pages.score_cell(column, row).key for row in board.rows}
    assert (keys["able"], keys["unable"]) == ("0.01", "")
