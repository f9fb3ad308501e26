"""The page: its tabs, rows and columns, their order, their labels, and the page's size."""

import re
from dataclasses import replace

from lm_eval_bias.report import board_reports
from tests.support.boards import board, run, run_data, task, value, write
from tests.support.many_models import MODELS, TASKS, hundred_models
from tests.support.pages import Page


def test_a_hundred_models_stay_under_three_megabytes():
    made = hundred_models()
    assert len(made.encode()) < 3_000_000
    assert made.count('<th scope="row" title=') == MODELS * made.count('role="tabpanel"')
    assert set(re.findall("<legend>(.*?)</legend>", made)) == set(TASKS)
    assert made.count('class="bar"') > 1000


def scored(name, number, **provenance):
    return run(name, task(value("diff_bias_amb", number), value("acc_amb", number)), **provenance)


def rows_of(*boards):
    (tab,) = board_reports.tabs(boards)
    return tab.rows


def test_rows_stand_by_their_distance_from_neutral_and_those_at_chance_level_last():
    found = board(scored("far", -0.6), scored("near", 0.2), scored("guessing", 0.0))
    caveats = {"guessing": "trial run, 9 of 90 items; chance level: at random", "far": "trial run, 9 of 90 items"}
    kinds = {"guessing": ("trial_run", "chance_level"), "far": ("trial_run",)}
    found = replace(
        found,
        rows=[replace(row, caveat=caveats.get(row.model, ""), unmaking=kinds.get(row.model, ())) for row in found.rows],
    )
    (tab,) = board_reports.tabs([found])
    (place,) = (i for i, (_, _, shown) in enumerate(tab.columns) if shown)
    assert tab.columns[place][1].name == "diff_bias_amb"
    said = [(row.model, row.warnings, row.cells[place].key) for row in tab.rows]
    assert said == [("near", "", "0.2"), ("far", "trial run", "0.6"), ("guessing", "trial run; chance level", "")]
    # accuracies stand in their own order
    accuracies = [row.cells[0].key for row in tab.rows]
    assert accuracies == ["0.2", "-0.6", "0.0"]
    notes = board_reports.notes(found)
    assert "far: trial run, 9 of 90 items" in notes["Single models"]


def test_a_warning_names_its_tasks_where_it_is_not_true_of_all():
    found = board(scored("a", 0.1))
    guessing = replace(found, task="other", rows=[replace(found.rows[0], unmaking=("chance_level",))])
    (row,) = rows_of(found, guessing)
    assert row.warnings == "chance level (other)"


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
    (one,) = data["tasks"].values()
    data["tasks"] = {"gg_bbq_group_terms": one, "gg_bbq_group_terms (wording 2)": one}
    write(tmp_path, "a", data)
    _, *rows = Page(said("leaderboard", tmp_path, "--format", "html")).board
    assert [row[0] for row in rows] == ["model", "model (wording 2)"]
    assert rows[0][1:] == rows[1][1:]
