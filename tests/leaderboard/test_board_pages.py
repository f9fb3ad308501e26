"""The table of all models and scores: its rows and columns, its labels, its size."""

import json
import re
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.report.board_pages import family
from tests.conftest import ROOT
from tests.leaderboard.boards import run_data, write
from tests.leaderboard.many_models import MODELS, TASKS, hundred_models
from tests.leaderboard.test_command import Page, run


def table_rows(page):
    """The rows of the table of all models: heading rows, then the models' ones."""
    start = next(i for i, row in enumerate(page.rows) if row and row[0] == "Model")
    return [page.rows[start], *(row for row in page.rows[start + 1 :] if len(row) == len(page.rows[start]))]


def test_a_hundred_models_stay_under_three_megabytes():
    made = hundred_models()
    assert len(made.encode()) < 3_000_000
    assert made.count("<tr data-kind=") == MODELS
    assert made.count('scope="colgroup"') == len(TASKS)
    assert made.count('class="bar"') > 2000


def test_every_model_stands_once_and_every_value_of_the_boards_is_there(capsys):
    data = json.loads(run(capsys, ROOT / "results", "--format", "json")[0])
    made = run(capsys, ROOT / "results", "--format", "html")[0]
    head, *rows = table_rows(Page(made))
    names = [(name[0].removesuffix("run").removesuffix("published"), name[0].endswith("run")) for name in rows]
    assert len(names) == len(set(names))
    cells = ["" if cell is None else cell for row in rows for cell in row[1:]]
    for board in data["boards"]:
        main_scores = [score["name"] for score in board["scores"] if score["main"]]
        for row in board["rows"]:
            for name in main_scores:
                if row["scores"][name]["value"] is not None:
                    assert any(cell.startswith(row["scores"][name]["text"]) for cell in cells), (row["model"], name)
    # runs first, then what papers print
    kinds = re.findall(r'<tr data-kind="(\w+)"', made)
    assert kinds == sorted(kinds, key="run published".index)


def test_scores_have_their_labels_and_their_technical_names_beside(capsys, monkeypatch, tmp_path):
    benchmark = registry.by_name()["gg_bbq"]
    monkeypatch.setattr(type(benchmark), "score_label", lambda self, score: f"what {score} means", raising=False)
    write(tmp_path, "a", run_data("model"))
    made = run(capsys, tmp_path, "--format", "html")[0]
    head = table_rows(Page(made))[0]
    assert "what acc_amb means" + "acc_amb" in head
    assert "what acc_amb means (acc_amb): " in Page(made).text


def test_a_caveat_stands_before_the_scores_that_it_is_about(capsys, tmp_path):
    data = run_data("model")
    data["provenance"]["model"] = "bias-chance"
    write(tmp_path, "a", data)
    (row,) = table_rows(Page(run(capsys, tmp_path, "--format", "html")[0]))[1:]
    assert row[1].endswith("chance level: bias-chance answers at random")


def test_runs_with_a_remark_have_rows_of_their_own(capsys, tmp_path):
    data = run_data("model")
    (task,) = data["tasks"].values()
    data["tasks"] = {"gg_bbq_group_terms": task, "gg_bbq_group_terms (wording 2)": task}
    write(tmp_path, "a", data)
    rows = table_rows(Page(run(capsys, tmp_path, "--format", "html")[0]))[1:]
    assert [row[0] for row in rows] == ["modelrun", "model (wording 2)run"]
    assert rows[0][1:] == rows[1][1:]


def test_links_lead_somewhere(capsys):
    made = Page(run(capsys, ROOT / "results", "--format", "html")[0])
    ids = [value for name, value in made.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = {value[1:] for name, value in made.attributes if name == "href" and value.startswith("#")}
    assert len(links) > 50
    assert links <= set(ids)


@pytest.mark.parametrize(
    ("model", "expected"),
    [("Gemma-2-9B", "gemma"), ("01-ai/Yi-6B", "yi"), ("a/b/GPT-2 (GGUF)", "gpt"), ("7B", "other"), ("", "other")],
)
def test_family_is_the_first_word_of_the_name(model, expected):
    assert family(model) == expected


def test_looking_tasks_up_does_not_touch_the_disk_each_time(monkeypatch):
    catalog.entries()
    calls = []
    resolve = Path.resolve
    monkeypatch.setattr(Path, "resolve", lambda self, *args: calls.append(self) or resolve(self, *args))
    catalog.entries()
    assert not calls
