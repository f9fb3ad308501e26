"""Published scores as rows: every cell of the CSV files arrives once, in a task and under a score that exist."""

import csv
import math

import pytest

from lm_eval_bias.core import catalog, registry, run_data
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, TESTS, VARIANTS
from tests.support.places import ROOT

TYPES = [{"test": test, "bias_type": kind, "variants": VARIANTS} for test in TESTS for kind in BIAS_TYPES]


def row(task, model):
    (found,) = [r for r in registry.published()[task] if r.model == model]
    return found


def of_paper(author):
    rows = (row for rows in registry.published().values() for row in rows)
    return [row for row in rows if row.paper.startswith(author)]


def test_tasks_and_scores_exist_and_values_are_in_range():
    for task, rows in registry.published().items():
        entry = catalog.entries()[task]
        assert entry.kind == "task"
        documents = TYPES if entry.benchmark.startswith("stereoset") else []
        known = {score.name: score for score in registry.get(entry.benchmark).scores(documents)}
        for made in rows:
            assert made.task == task
            for name, cell in made.cells.items():
                assert known[name].low <= cell.value <= known[name].high or cell.printed == "<.01", (task, name)
        assert len({r.model for r in rows}) == len(rows), task


def test_occugender():
    arrived = of_paper("Chen")
    assert len(arrived) == 2 * 10 + 10 * 7 * 2
    printed = [c for r in arrived for c in r.cells.values() if not c.derived]
    assert len(printed) == 960
    assert sum(c.plus_minus is not None for c in printed) == 120
    tasks = {name for name, e in catalog.entries().items() if e.benchmark == "occugender" and e.kind == "task"}
    assert {r.task for r in arrived} == tasks
    found = row("occugender_explicit", "Llama-2-7B")
    # ((54.1 - 45.2) + (73.5 - 25.7)) / 200
    assert found.cells["stereotype_gap"].value == pytest.approx(0.2835, abs=1e-12)
    assert found.cells["stereotype_gap"].derived
    assert found.cells["female_dominated_F"] == run_data.PublishedCell(54.1, "54.1", 1.3)
    assert found.tables == "Table 3"
    five = row("occugender_debias_implicit_5", "Gemma-7B")
    assert "first 5 templates, instruction 5 of Table 8" in five.conventions
    assert all(cell.plus_minus is None for cell in five.cells.values())


def test_stereoset():
    arrived = of_paper("Öztürk")
    plain = [r for r in arrived if not r.task.endswith("_variants")]
    # Table 7 repeats Table 3 for 6 pairs of model and language with 3 scores each
    assert sum(len(r.cells) for r in plain) == 654 - 18
    assert len({r.model for r in plain if "7" in r.tables}) == 10
    variants = row("stereoset_en_inter_variants", "mGPT-2").cells
    assert (variants["gen/ss"].value, variants["gen_orig/ss"].value) == (45.6, 43.15)
    assert row("stereoset_en_inter", "GPT-2 (gen)").tables == "Tables 3, 7 and 9"
    assert "inter=gen_orig" in row("stereoset_en_inter", "mGPT-2 (gen_orig)").conventions
    remarked = {(r.task, r.model) for r in arrived if r.remarks}
    assert len(remarked) == 4
    assert remarked > {("stereoset_tr_inter", "mBERT (NSP)"), ("stereoset_de", "mBERT"), ("stereoset_en", "T5")}


def test_a_repeated_cell_is_the_same():
    seen = {}
    table = (ROOT / "results" / "published" / "stereoset.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(table.splitlines()):
        approach = line["approach"] or ("gen" if "GPT-2" in line["model"] else "NSP")
        key = (line["test"], line["model"], approach, line["language"], line["score"])
        assert seen.setdefault(key, float(line["value"])) == float(line["value"]), key


def test_regard_in_the_suites_units():
    found = row("regard_de", "GerPT-2")
    assert found.cells["all/chi2"].value == 12.59
    assert found.cells["all/cramers_v"].value == pytest.approx(math.sqrt(12.59 / 2000))
    assert math.isnan(found.cells["all/p"].value)
    assert found.cells["caregiving/female/positive"].value == 0.12
    assert row("regard_en", "GPT-2 large").cells["perpetration/male"].value == 0.12
    arrived = of_paper("Kraft")
    assert {r.model for r in arrived} == {"GerPT-2", "GPT-3 davinci", "GPT-2 large"}  # classifiers are no models
    cells = [cell for r in arrived for cell in r.cells.values() if not cell.derived]
    assert len(cells) == 3 * 4 + 6 * 4 + 1  # chi2, n and p; six percentages a model, and one more
