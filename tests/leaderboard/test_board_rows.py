"""A board's rows and cells from runs made of their data alone: what is ranked by what, and what is said of the rest."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from lm_eval_bias.boards.building import foreign, rule
from lm_eval_bias.boards.models import models
from lm_eval_bias.core import registry
from lm_eval_bias.report import board_pages
from tests.support.boards import TASK, WHOLE, board, task, value
from tests.support.toy import run_of as run

ODD = "its file states another range, unit or neutral value for the score"


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
        (
            0.05 / 1.959964,
            math.inf,
            {"interval": (0.45, 0.55), "stderr": 0.01, "dof": math.inf},
        ),
        (0.02, math.inf, {"interval": (0.49, 0.51), "stderr": 0.02, "dof": math.inf}),
        (
            0.05 / 1.959964,
            math.inf,
            {"interval": (0.45, 0.55), "stderr": math.nan, "dof": math.inf},
        ),
        # Student's t with 2 degrees of freedom reaches 4.303 errors
        (0.1 / 4.302653, 2.0, {"interval": (0.4, 0.6), "stderr": 0.001, "dof": 2.0}),
    ],
)
def test_a_run_is_ranked_by_its_value_error_and_degrees_of_freedom(error, dof, changes):
    """Beside one that is known almost exactly, two tests with Holm tell it apart at 97.5% of its distribution."""
    edge = error * (
        stats.norm.ppf(0.975) if math.isinf(dof) else stats.t.ppf(0.975, dof)
    )
    for share, rank in ((1.001, "2"), (0.999, "1–2")):
        exact = value(number=0.5 + share * edge, stderr=1e-6, dof=math.inf)
        assert str(cell(replace(value(), **changes), exact).rank) == rank


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("no items", {"value": math.nan, "note": "no items"}),
        ("no value", {"value": math.nan, "note": ""}),
        ("one template", {"stderr": math.nan, "note": "one template"}),
        # a billionth is rounding, and no error exceeds the range from 0 to 1
        *(("no usable standard error", {"stderr": error}) for error in (math.nan, 0.0, 1e-9, 1.5)),
        *((ODD, change) for change in (
            {"neutral": 0.9}, {"neutral": None}, {"higher_is_better": False}, {"unit": "percent"}, {"low": -1.0},
            {"high": 100.0},
        )),
        *(("", change) for change in ({"value": 0.0}, {"value": 1.0}, {"stderr": 1.0}, {"stderr": 1.1e-9})),
    ],
)  # fmt: skip
def test_why_a_run_is_not_ranked(reason, changes):
    odd = cell(replace(value(), **changes))
    assert (odd.rank is None, odd.unranked) == (bool(reason), reason)


@pytest.mark.parametrize(
    ("better", "neutral", "said"),
    [
        (True, 1.0, "highest first"),
        (False, 0.0, "lowest first"),
        (None, 50.0, "nearest to 50 first"),
        (None, None, ""),
    ],
)
def test_how_a_score_ranks(better, neutral, said):
    assert rule(value(higher_is_better=better, neutral=neutral, unit="points")) == said


# ---------------------------------------------------------------------- who is ranked with whom


def scored(name, number, **changes):
    return run(name, task(value(number=number), **changes))


def ranks(found):
    return {
        row.model: str(row.cells["acc_amb"].rank or row.cells["acc_amb"].unranked)
        for row in found.rows
    }


def test_every_column_has_its_own_ranks_and_a_model_at_chance_level_has_none():
    """It knows nothing, and so is near a neutral value, too."""
    runs = [
        run(
            name,
            task(
                value("diff_bias_amb", bias),
                value("acc_amb", amb),
                value("acc_disamb", disamb),
                value("acc_of_named", disamb),
            ),
        )
        for name, bias, amb, disamb in (
            ("a", 0.5, 0.9, 0.7),
            ("b", 0.2, 0.5, 0.9),
            ("c", 0.0, math.nan, 0.8),
        )
    ]
    guessing = run(
        "guessing",
        task(
            value("diff_bias_amb", 0.0),
            value("acc_amb", 0.9),
            value("acc_disamb", 0.3),
            value("acc_of_named", 0.5),
        ),
    )
    rows = board(*runs, guessing).rows
    for name, expected in (("diff_bias_amb", ["3", "2", "1"]), ("acc_amb", ["1", "2", "None"]),
                           ("acc_disamb", ["3", "1", "2"])):  # fmt: skip
        assert [str(row.cells[name].rank) for row in rows] == [*expected, "None"]
        assert rows[-1].cells[name].unranked.startswith("not shown to be better")
    assert rows[0].cells["acc_amb"].rank.of == 2


def test_parts_of_the_items_are_ranked_where_they_are_the_same():
    """Only runs that were asked the same are ranked with each other; the others are listed with the reason."""
    part, other = (
        {"inputs": {**WHOLE, "scored": digit * 64}, "documents": 96} for digit in "12"
    )
    unknown = {"inputs": {}, "documents": 96}
    elsewhere, older = {"inputs": {"documents": "3" * 64}}, {"inputs": {}}
    own = {
        "metadata": {"dataset_used": {"file": "own.json", "sha256": "4" * 64}},
        "documents": 200,
        "items": 200,
    }
    found = board(
        scored("a", 0.2), scored("b", 0.9), scored("part 1", 0.5, **part), scored("part 2", 0.8, **part),
        scored("part 3", 0.8, **other), scored("unknown", 0.3, **unknown), scored("unknown, nan", math.nan, **unknown),
        scored("elsewhere", 0.7, **elsewhere), scored("older 1", 0.3, **older), scored("older 2", 0.6, **older),
        scored("own 1", 0.1, **own), scored("own 2", 0.9, **own),
        run("told", task(value(number=0.4)), system_instruction="Antworte"),
        scored("worded 1", 0.1, metadata={"wording": 3}), scored("worded 2", 0.9, metadata={"wording": 3}),
        scored("shown", 0.4, inputs={**WHOLE, "num_fewshot": 2}),
    )  # fmt: skip
    alone = "no other run with the same items and conventions can be ranked"
    assert ranks(found) == {
        "a": "2", "b": "1", "part 1": "2", "part 2": "1", "part 3": alone,
        "unknown": "96 of 968 items, and its file doesn't say which",
        "unknown, nan": "96 of 968 items, and its file doesn't say which",
        "elsewhere": alone, "older 1": "2", "older 2": "1", "own 1": "2", "own 2": "1", "told": alone, "shown": alone,
        "worded 1": "2", "worded 2": "1",
    }  # fmt: skip


def test_what_is_said_of_a_run_and_of_one_that_nobody_knows():
    noted = task(*(value(name, note="why") for name in ("acc_amb", "acc_disamb")))
    row = board(run("a", noted)).rows[0]
    assert row.deviations == ("acc_amb, acc_disamb: why",)
    (problem,) = foreign(
        [
            run(
                "a",
                noted,
                task(name="gg_bbq_names", definition=registry.of_run("alien")),
            )
        ]
    )
    assert (problem.path.name, "gg_bbq_names" in problem.reason) == ("a.json", True)


# ---------------------------------------------------------------------- published scores


@pytest.mark.parametrize(
    ("facts", "prompt"),
    [
        ({"model": "hf"}, "no chat template"),
        ({"model": "hf", "chat_template": "1" * 64}, "chat template"),
        ({"model": "local-chat-completions"}, "chat template"),
    ],
)
def test_a_board_says_of_prompts_what_is_known_and_of_models_nothing(facts, prompt):
    """An instruction-tuned model that ran without a template isn't a base model."""
    (model,) = models([run("Tuned-Instruct", task(value()), **facts)])
    assert model.prompt == prompt
    assert board_pages.about(model).startswith(prompt)


@pytest.mark.parametrize("documents", [(300, 200), (300, 300)])
def test_the_run_with_most_documents_counts_then_the_newest(documents):
    made = []
    for day, number in zip(("01", "02"), documents, strict=True):
        one = run("m", task(value(), documents=number), model="hf")
        record = replace(one.record, date=f"2026-01-{day}")
        tasks = {n: replace(t, record=record) for n, t in one.tasks.items()}
        made.append(replace(one, tasks=tasks, path=one.path.with_name(f"{day}.json")))
    (model,) = models(made)
    counting, _ = model.tasks[TASK]
    assert counting.path.stem == ("01" if documents[0] > documents[1] else "02")


def test_what_keeps_runs_apart_is_said_under_the_table():
    elsewhere, older = (
        scored("b", 0.3, inputs=inputs) for inputs in ({"documents": "3" * 64}, {})
    )
    told = run("b", task(value()), system_instruction="x")
    for beside, said in (
        (scored("b", 0.3), []),
        (told, ["The"]),
        (older, ["The"]),
        (elsewhere, ["The", "Runs"]),
    ):
        notes = [note.split()[0] for note in board(scored("a", 0.2), beside).notes]
        assert notes == (said or ["All"])
