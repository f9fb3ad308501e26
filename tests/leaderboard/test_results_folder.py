"""The folder results: runs that are sound, and every published cell once, under a score that exists."""

import json
import math

import pytest

from lm_eval_bias.core import catalog, registry, run_data
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, TESTS, VARIANTS
from lm_eval_bias.runs import harness_results, run_discovery
from tests.support.places import ROOT

FILES = sorted((ROOT / "results" / "runs").rglob("*.json"))


def content(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_run_is_valid_and_fits_the_catalogue(path):
    run = harness_results.read(path, content(path))
    for name, task in run.tasks.items():
        entry = catalog.entries()[name]
        assert (task.benchmark, task.language, task.items) == (
            entry.benchmark,
            entry.language,
            entry.items,
        )
        assert 0 < task.documents <= task.items
        assert set(registry.get(task.benchmark).main) <= set(task.scores)
        for score in task.scores.values():
            assert math.isnan(score.value) or score.low <= score.value <= score.high, (
                name,
                score.name,
            )
            assert score.note or not math.isnan(score.value), (name, score.name)
            assert (
                score.interval is None
                or score.interval[0] - 1e-12 <= score.value <= score.interval[1] + 1e-12
            ), (name, score.name)


def test_results_is_a_folder_of_runs():
    runs, problems = run_discovery.read([ROOT / "results"])
    assert not problems
    assert {task for run in runs for task in run.tasks} == {
        name for path in FILES for name in content(path)["results"]
    }


TYPES = [
    {"test": test, "bias_type": kind, "variants": VARIANTS}
    for test in TESTS
    for kind in BIAS_TYPES
]


def row(task, model):
    (found,) = [r for r in registry.published()[task] if r.model == model]
    return found


def of_paper(author):
    return [
        row
        for rows in registry.published().values()
        for row in rows
        if row.paper.startswith(author)
    ]


def test_tasks_and_scores_exist_and_values_are_in_range():
    for task, rows in registry.published().items():
        entry = catalog.entries()[task]
        assert entry.kind == "task"
        documents = TYPES if entry.benchmark.startswith("stereoset") else []
        known = {
            score.name: score
            for score in registry.get(entry.benchmark).scores(documents)
        }
        for made in rows:
            assert made.task == task
            for name, cell in made.cells.items():
                assert (
                    known[name].low <= cell.value <= known[name].high
                    or cell.printed == "<.01"
                ), (task, name)
        assert len({r.model for r in rows}) == len(rows), task


def test_occugender():
    arrived = of_paper("Chen")
    assert len(arrived) == 2 * 10 + 10 * 7 * 2
    tasks = {
        name
        for name, e in catalog.entries().items()
        if e.benchmark == "occugender" and e.kind == "task"
    }
    assert {r.task for r in arrived} == tasks
    found = row("occugender_explicit", "Llama-2-7B")
    # ((54.1 - 45.2) + (73.5 - 25.7)) / 200
    assert found.cells["stereotype_gap"].value == pytest.approx(0.2835, abs=1e-12)
    assert found.cells["stereotype_gap"].derived
    assert found.cells["female_dominated_F"] == run_data.PublishedCell(
        54.1, "54.1", 1.3
    )
    assert found.tables == "Table 3"
    five = row("occugender_debias_implicit_5", "Gemma-7B")
    assert "first 5 templates, instruction 5 of Table 8" in five.conventions
    assert all(cell.plus_minus is None for cell in five.cells.values())


def test_stereoset():
    arrived = of_paper("Öztürk")
    variants = row("stereoset_en_inter_variants", "mGPT-2").cells
    assert (variants["gen/ss"].value, variants["gen_orig/ss"].value) == (45.6, 43.15)
    assert row("stereoset_en_inter", "GPT-2 (gen)").tables == "Tables 3, 7 and 9"
    assert (
        "inter=gen_orig" in row("stereoset_en_inter", "mGPT-2 (gen_orig)").conventions
    )
    remarked = {(r.task, r.model) for r in arrived if r.notes}
    # 4 on single cells, 5 on untrained networks, 3 on German BERT's checkpoint, 3 not in the paper
    assert len(remarked) == 15
    assert remarked > {
        ("stereoset_tr_inter", "mBERT (NSP)"),
        ("stereoset_de", "mBERT"),
        ("stereoset_en", "T5"),
    }


def test_regard_in_the_suites_units():
    found = row("regard_de", "GerPT-2")
    assert found.cells["all/chi2"].value == 12.59
    assert found.cells["all/cramers_v"].value == pytest.approx(math.sqrt(12.59 / 2000))
    assert math.isnan(found.cells["all/p"].value)
    assert found.cells["caregiving/female/positive"].value == 0.12
    assert row("regard_en", "GPT-2 large").cells["perpetration/male"].value == 0.12
    assert {r.model for r in of_paper("Kraft")} == {
        "GerPT-2",
        "GPT-3 davinci",
        "GPT-2 large",
    }
