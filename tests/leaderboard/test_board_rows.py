"""A board's rows and cells from runs made of their data alone: what is ranked by what, and what is said of the rest."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from lm_eval_bias.boards import building
from lm_eval_bias.boards.building import PUBLISHED, RUN
from lm_eval_bias.core import catalog, registry, run_data
from lm_eval_bias.core.run_data import Published
from tests.support.boards import DEFINITIONS, TASK, WHOLE, board, run, task, value


def cell(score, *others):
    """The cell of a run beside another with the same conventions, which can be ranked."""
    beside = others or (value(),)
    rows = board(run("a", task(score)), run("b", task(*beside))).rows
    return rows[0].cells["acc_amb"]


# ---------------------------------------------------------------------- what a run is ranked by


@pytest.mark.parametrize(
    ("error", "dof", "changes"),
    [
        (0.02, 60.0, {}),
        (0.02, math.inf, {"dof": math.nan}),
        (0.02, 1.0, {"dof": 0.25}),
        (0.02, 1.5, {"dof": 1.5}),
        # an interval that is wider than the error counts for more: 1.96 errors reach to either side
        (0.05 / 1.959964, math.inf, {"interval": (0.45, 0.55), "stderr": 0.01, "dof": math.inf}),
        (0.02, math.inf, {"interval": (0.49, 0.51), "stderr": 0.02, "dof": math.inf}),
        (0.05 / 1.959964, math.inf, {"interval": (0.45, 0.55), "stderr": math.nan, "dof": math.inf}),
        # Student's t with 2 degrees of freedom reaches 4.303 errors
        (0.1 / 4.302653, 2.0, {"interval": (0.4, 0.6), "stderr": 0.001, "dof": 2.0}),
    ],
)
def test_a_run_is_ranked_by_its_value_error_and_degrees_of_freedom(error, dof, changes):
    """Beside one that is known almost exactly, two tests with Holm tell it apart at 97.5% of its distribution."""
    edge = error * (stats.norm.ppf(0.975) if math.isinf(dof) else stats.t.ppf(0.975, dof))
    for share, rank in ((1.001, "2"), (0.999, "1-2")):
        exact = value(number=0.5 + share * edge, stderr=1e-6, dof=math.inf)
        assert str(cell(replace(value(), **changes), exact).rank) == rank


ODD = "its file states another range, unit or neutral value for the score"


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("no items", {"value": math.nan, "note": "no items"}),
        ("no value", {"value": math.nan, "note": ""}),
        ("one template", {"stderr": math.nan, "note": "one template"}),
        # a billionth of the range from 0 to 1 is none, and more than the range
        *(("no usable standard error", {"stderr": error}) for error in (math.nan, 0.0, 1e-9, 1.5)),
        *((ODD, change) for change in (
            {"neutral": 0.9}, {"neutral": None}, {"higher_is_better": False}, {"unit": "percent"}, {"low": -1.0},
            {"high": 100.0}, {"value": 1.01}, {"value": -0.01},
        )),
        *(("", change) for change in ({"value": 0.0}, {"value": 1.0}, {"stderr": 1.0}, {"stderr": 2e-9})),
    ],
)  # fmt: skip
def test_why_a_run_is_not_ranked(reason, changes):
    odd = cell(replace(value(), **changes))
    assert (odd.rank is None, odd.unranked) == (bool(reason), reason)


@pytest.mark.parametrize(("error", "is_ranked"), [(5.0, True), (100.0, True), (2e-7, True), (5e-8, False)])
def test_a_billionth_is_of_the_scores_own_range(error, is_ranked):
    percents = [task(value("ss", number, error, "stereoset"), name="stereoset_en") for number in (52.0, 60.0)]
    row = board(run("a", percents[0]), run("b", percents[1]), name="stereoset_en").rows[0]
    assert (row.cells["ss"].rank is not None) is is_ranked


def test_a_cell_shows_what_the_run_says():
    shown = cell(value(number=0.4, stderr=0.03, interval=(0.3, 0.5), note="beware"))
    assert (shown.value, shown.stderr, shown.interval, shown.note) == (0.4, 0.03, (0.3, 0.5), "beware")
    assert (shown.printed, shown.plus_minus, shown.unranked, str(shown.rank)) == ("", None, "", "1-2")
    absent = cell(value("acc_disamb"))
    assert (absent.note, absent.unranked, absent.rank) == ("not in its file", "not in its file", None)
    assert math.isnan(absent.value)


# ---------------------------------------------------------------------- who is ranked with whom


def scored(name, number, **changes):
    return run(name, task(value(number=number), **changes))


def ranks(found):
    return {row.model: str(row.cells["acc_amb"].rank or row.cells["acc_amb"].unranked) for row in found.rows}


def test_every_column_has_its_own_ranks_and_a_model_at_chance_level_has_none():
    """It knows nothing, and so is near a neutral value, too."""
    runs = [
        run(name, task(value("diff_bias_amb", bias), value("acc_amb", amb), value("acc_disamb", disamb)))
        for name, bias, amb, disamb in (("a", 0.5, 0.9, 0.7), ("b", 0.2, 0.5, 0.9), ("c", 0.0, math.nan, 0.8))
    ]
    guessing = run("guessing", task(value("diff_bias_amb", 0.0), value("acc_amb", 0.9), value("acc_disamb", 0.3)))
    rows = board(*runs, guessing).rows
    for name, expected in (("diff_bias_amb", ["3", "2", "1"]), ("acc_amb", ["1", "2", "None"]),
                           ("acc_disamb", ["3", "1", "2"])):  # fmt: skip
        assert [str(row.cells[name].rank) for row in rows] == [*expected, "None"]
        assert rows[-1].cells[name].unranked == "chance level"
    assert rows[0].cells["acc_amb"].rank.of == 2


def test_parts_of_the_items_are_ranked_where_they_are_the_same():
    """Only runs that were asked the same are ranked with each other; the others are listed with the reason."""
    part, other = ({"inputs": {**WHOLE, "scored": digit * 64}, "documents": 96} for digit in "12")
    unknown = {"inputs": {}, "documents": 96}
    elsewhere, older = {"inputs": {"documents": "3" * 64}}, {"inputs": {}}
    own = {"metadata": {"dataset_used": {"file": "own.json", "sha256": "4" * 64}}, "documents": 200, "items": 200}
    found = board(
        scored("a", 0.2), scored("b", 0.9), scored("part 1", 0.5, **part), scored("part 2", 0.8, **part),
        scored("part 3", 0.8, **other), scored("unknown", 0.3, **unknown), scored("unknown, nan", math.nan, **unknown),
        scored("elsewhere", 0.7, **elsewhere), scored("older 1", 0.3, **older), scored("older 2", 0.6, **older),
        scored("own 1", 0.1, **own), scored("own 2", 0.9, **own),
        run("told", task(value(number=0.4)), system_instruction="Antworte"),
        scored("worded 1", 0.1, metadata={"wording": 3}), scored("worded 2", 0.9, metadata={"wording": 3}),
        scored("shown", 0.4, inputs={**WHOLE, "num_fewshot": 2}),
    )  # fmt: skip
    alone = "no other run was scored by the same conventions"
    assert ranks(found) == {
        "a": "2", "b": "1", "part 1": "2", "part 2": "1", "part 3": "96 of 968 items: no other run on the same items",
        "unknown": "96 of 968 items, and its file doesn't say which",
        "unknown, nan": "96 of 968 items, and its file doesn't say which",
        "elsewhere": alone, "older 1": "2", "older 2": "1", "own 1": "2", "own 2": "1", "told": alone, "shown": alone,
        "worded 1": "2", "worded 2": "1",
    }  # fmt: skip


# ---------------------------------------------------------------------- rows


def test_a_row_says_what_it_was_made_by_and_what_to_beware_of():
    noted = task(
        value(note="few items"), value("acc_disamb", 0.3, note="few items"),
        value("diff_bias_amb", 0.1, note="one sided"), value("diff_bias_disamb", math.nan, note="no answers"),
        version="1.0", metadata={"wording": 3},
    )  # fmt: skip
    (row,) = board(run("model", noted, dtype="float32", **{"lm-eval-bias": "1.2"})).rows
    assert (row.kind, row.source, row.conventions) == (RUN, "lm-eval-bias 1.2", "wording=3; float32")
    assert row.deviations == (
        "task version 1.0, now 2.0", "acc_amb, acc_disamb: few items", "diff_bias_amb: one sided",
    )  # fmt: skip


def test_a_warning_that_is_said_of_the_whole_row_is_not_repeated():
    scores = [
        value(score.name, 0.1, benchmark="regard", note="weak" if number else "beware")
        for number, score in enumerate(registry.get("regard").scores())
    ]
    one = task(*scores, name="regard_en", metadata={"classifier_used": {"name": "light", "warning": "weak"}})
    row = board(run("model", one), name="regard_en").rows[0]
    assert [text.rpartition(": ")[2] for text in row.deviations] == ["weak", "beware"]


def test_scores_that_must_not_be_shown_are_not():
    """Regard without a facet."""
    names = [score.name for score in registry.get("regard").scores() if not score.name.startswith("caregiving")]
    one = task(*(value(name, 0.1, benchmark="regard") for name in names), name="regard_en")
    row = board(run("model", one), name="regard_en").rows[0]
    assert len(row.deviations) == 1
    assert all(math.isnan(cell.value) and cell.note == "not in its file" for cell in row.cells.values())


def test_rows_stand_by_name_whatever_its_case():
    runs = [scored(name, 0.5) for name in ("b", "A", "c")]
    two = run("B2", *(task(value(), task=f"{TASK} ({remark})") for remark in "ba"))
    rows = board(*runs, two).rows
    assert [row.model for row in rows] == ["A", "b", "B2 (a)", "B2 (b)", "c"]
    assert rows[2].source == "lm-eval-bias"  # an old file has no version


# ---------------------------------------------------------------------- published scores


@pytest.fixture
def printed(monkeypatch):
    """Scores that no paper printed."""

    def put(*rows):
        monkeypatch.setattr(registry, "published", lambda: {TASK: list(rows)} if rows else {})

    return put


def paper(model="Paper", **cells):
    return Published(TASK, model, "Doe 2025", "Table 3", "by hand", ("a misprint",), cells)


def test_published_rows_stand_after_runs_unranked(printed):
    score = run_data.PublishedCell
    printed(
        paper("z", acc_amb=score(0.25, "25.0"), diff_bias_amb=score(0.1, "10", 0.02, "half of 20")),
        paper("Y"), paper("x", acc_amb=score(math.nan, "<1")),
    )  # fmt: skip
    found = board(scored("run", 0.5))
    assert [row.model for row in found.rows if row.kind == PUBLISHED] == ["x", "Y", "z"]
    assert (found.rows[0].kind, found.rows[0].model) == (RUN, "run")
    row = found.rows[-1]
    assert (row.source, row.conventions, row.deviations) == ("Doe 2025, Table 3", "by hand", ("a misprint",))
    accuracy, bias, missing = (row.cells[name] for name in ("acc_amb", "diff_bias_amb", "acc_disamb"))
    assert (accuracy.value, accuracy.printed, accuracy.derived) == (0.25, "25.0", False)
    assert accuracy.unranked == "published without standard error"
    assert (bias.value, bias.printed, bias.plus_minus, bias.note) == (0.1, "10", 0.02, "half of 20")
    assert (bias.unranked, bias.derived) == ("published with a ± that is not a standard error", True)
    assert (missing.note, missing.unranked, missing.derived) == ("not published", "not published", False)
    assert math.isnan(missing.value)


def test_published_scores_that_rank_nothing_say_nothing_of_ranks(printed):
    benchmark = registry.get("gg_bbq")
    further = next(score.name for score in benchmark.scores() if score.name not in benchmark.main)
    printed(paper("one", **{further: run_data.PublishedCell(0.5, "0.5")}), paper("two"))
    found = board(scored("run", 0.5))
    assert [column.name for column in found.others] == [further]
    assert further not in {column.name for column in found.columns}
    notes = [(row.cells[further].unranked, row.cells[further].note) for row in found.rows]
    assert notes == [("", "not in its file"), ("", ""), ("", "not published")]
    assert any("none of the main scores" in note for note in found.notes)


def test_what_is_said_of_the_whole_table(printed):
    mixed, old, apart, unpublished = "follow different conventions", "Older runs", "other documents", "No published"
    printed()
    one, again, other = scored("a", 0.2), scored("b", 0.5), scored("c", 0.9, inputs={"documents": "1" * 64})
    older, part = scored("d", 0.9, inputs={}), scored("e", 0.9, inputs={**WHOLE, "scored": "2" * 64}, documents=96)
    worded = scored("f", 0.4, metadata={"wording": 3}, inputs={"documents": "3" * 64})
    for runs, said in (
        ((one, again), [building.INDEPENDENT, unpublished]),
        ((one, part), [mixed, unpublished]),
        ((one, worded), [mixed, unpublished]),  # other prompts are expected of another wording
        ((one, other, older), [mixed, old, apart, unpublished]),
        ((older,), [unpublished]),
    ):
        assert all(part in note for part, note in zip(said, board(*runs).notes, strict=True))
    printed(paper(acc_amb=run_data.PublishedCell(0.5, "0.5")), paper("none"))
    assert list(board(one).notes) == []


# ---------------------------------------------------------------------- boards


def test_a_board_is_about_one_task_of_one_benchmark():
    alien = run("b", task(value(), benchmark="stereoset"))  # whose task of this name is another benchmark's
    found = board(scored("a", 0.5), alien)
    entry = catalog.entries()[TASK]
    assert (found.task, found.benchmark, found.language, found.measures) == (TASK, "gg_bbq", "de", entry.measures)
    assert tuple(column.name for column in found.columns) == tuple(registry.get("gg_bbq").main)
    for column in found.columns:
        assert math.isnan(column.value)
        assert all(getattr(column, field) == getattr(value(column.name), field) for field in DEFINITIONS)
    assert [row.model for row in found.rows if row.kind == RUN] == ["a"]


def test_tasks_stand_in_the_catalogs_order_and_those_that_are_not_in_it_last():
    used = {"dataset_used": {"file": "own.json", "sha256": "1" * 64}, "measures": "what I asked"}
    score = value("ss", 52.0, 1.0, "stereoset")
    own = task(score, name="stereoset_en", metadata=used, task="own", language="tr")
    other = task(score, name="stereoset_en", metadata={"measures": "another"}, task="other")
    found = building.boards([run("a", own, other, task(value())), run("b", task(score, name="stereoset_en"))])
    known = [name for name in catalog.entries() if name in (TASK, "stereoset_en")]
    assert {one.task: one.measures for one in found[2:]} == {
        "own": "what I asked", "other": "a task that this package doesn't know",
    }  # fmt: skip
    assert [one.task for one in found[:2]] == known
    (last,) = (one for one in found if one.task == "own")
    assert (last.benchmark, last.language, [row.model for row in last.rows]) == ("stereoset", "tr", ["a"])
    assert building.boards([]) == []
