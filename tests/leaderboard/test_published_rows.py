"""Published scores as rows: every cell of the CSV files arrives once, in a task and under a score that exist."""

import csv
import math

import pytest

from lm_eval_bias.core import catalog, registry, run_data
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, TESTS, VARIANTS
from lm_eval_bias.tasks.stereoset import published
from tests.support.places import ROOT

ROWS = [row for rows in registry.published().values() for row in rows]


def lines(name):
    with (ROOT / "results" / "published" / f"{name}.csv").open(encoding="utf-8") as table:
        return list(csv.DictReader(table))


def row(task, model):
    (found,) = [r for r in registry.published()[task] if r.model == model]
    return found


def documents(benchmark):
    types = [{"test": test, "bias_type": kind, "variants": VARIANTS} for test in TESTS for kind in BIAS_TYPES]
    return types if benchmark.startswith("stereoset") else []


def test_tasks_and_scores_exist_and_values_are_in_range():
    for task, rows in registry.published().items():
        entry = catalog.entries()[task]
        assert entry.kind == "task"
        benchmark = registry.get(entry.benchmark)
        known = {score.name: score for score in benchmark.scores(documents(entry.benchmark))}
        for made in rows:
            assert made.task == task
            for name, cell in made.cells.items():
                assert known[name].low <= cell.value <= known[name].high or cell.printed == "<.01", (task, name)
        assert len({r.model for r in rows}) == len(rows), task


def test_every_occugender_cell_arrives():
    arrived = [r for r in ROWS if r.paper.startswith("Chen")]
    assert len(arrived) == 2 * 10 + 10 * 7 * 2
    printed = [c for r in arrived for c in r.cells.values() if not c.derived]
    assert len(printed) == 960
    assert sum(c.plus_minus is not None for c in printed) == 120
    assert {r.task for r in arrived} == {
        name for name, e in catalog.entries().items() if e.benchmark == "occugender" and e.kind == "task"
    }


def test_every_stereoset_cell_arrives():
    arrived = [r for r in ROWS if r.paper.startswith("Öztürk")]
    plain = [r for r in arrived if not r.task.endswith("_variants")]
    # Table 7 repeats Table 3 for 6 pairs of model and language with 3 scores each
    assert sum(len(r.cells) for r in plain) == 654 - 18
    seven = {r.model for r in plain if "7" in r.tables}
    assert seven == {"GPT-2 (NSP)", "GPT-2 (gen)", "GPT-2 (gen_orig)", "T5 (NSP)", "T5 (gen)", "mGPT-2 (NSP)",
                     "mGPT-2 (gen)", "mGPT-2 (gen_orig)", "mT5 (NSP)", "mT5 (gen)"}  # fmt: skip
    variants = row("stereoset_en_inter_variants", "mGPT-2").cells
    assert (variants["gen/ss"].value, variants["gen_orig/ss"].value) == (45.6, 43.15)


def test_a_repeated_cell_is_the_same():
    seen = {}
    for line in lines("stereoset"):
        approach = line["approach"] or published._APPROACH[line["model"]]
        key = (line["test"], line["model"], approach, line["language"], line["score"])
        assert seen.setdefault(key, float(line["value"])) == float(line["value"]), key


def test_the_stereotype_gap_follows_from_the_shares():
    found = row("occugender_explicit", "Llama-2-7B")
    # ((54.1 - 45.2) + (73.5 - 25.7)) / 200
    assert found.cells["stereotype_gap"].value == pytest.approx(0.2835, abs=1e-12)
    assert found.cells["stereotype_gap"].derived
    assert found.cells["female_dominated_F"] == run_data.PublishedCell(54.1, "54.1", 1.3)
    assert "25 templates" in found.conventions
    assert "no standard error" in found.conventions
    assert found.tables == "Table 3"


def test_five_templates_are_said_to_be_five():
    found = row("occugender_debias_implicit_5", "Gemma-7B")
    assert "first 5 templates, instruction 5 of Table 8" in found.conventions
    assert all(cell.plus_minus is None for cell in found.cells.values())
    assert "no instruction;" in row("occugender_debias_explicit_none", "Gemma-7B").conventions


def test_stereoset_says_its_approach():
    assert "next-sentence head" in row("stereoset_de_inter", "BERT (NSP)").conventions
    assert "fine-tuned on next sentences" in row("stereoset_en_inter", "T5 (NSP)").conventions
    assert "inter=gen_orig" in row("stereoset_en_inter", "mGPT-2 (gen_orig)").conventions
    assert "behind the sentinel" in row("stereoset_en_inter", "T5 (gen)").conventions
    assert row("stereoset_en_inter", "GPT-2 (gen)").tables == "Tables 3, 7 and 9"
    assert row("stereoset_tr_inter", "mBERT (NSP)").remarks
    assert row("stereoset_de", "mBERT").remarks
    assert row("stereoset_en", "T5").remarks
    assert sum(bool(r.remarks) for r in ROWS if r.paper.startswith("Öztürk")) == 4


def test_regard_in_the_suites_units():
    found = row("regard_de", "GerPT-2")
    assert found.cells["all/chi2"].value == 12.59
    assert found.cells["all/cramers_v"].value == pytest.approx(math.sqrt(12.59 / 2000))
    assert math.isnan(found.cells["all/p"].value)
    assert found.cells["caregiving/female/positive"].value == 0.12
    assert "SentenceBERT" in found.conventions
    assert "Sheng" in row("regard_en", "GPT-2 large").conventions
    assert row("regard_en", "GPT-2 large").cells["perpetration/male"].value == 0.12
    models = {r.model for r in ROWS if r.paper.startswith("Kraft")}
    assert models == {"GerPT-2", "GPT-3 davinci", "GPT-2 large"}  # classifiers are no models
    arrived = sum(not c.derived for r in ROWS if r.paper.startswith("Kraft") for c in r.cells.values())
    assert arrived == 3 * 4 + 6 * 4 + 1  # chi2, n and p; six percentages a model, and one more
