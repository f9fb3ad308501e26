"""The typed-in tables against themselves: sums, shape, and what one score says of another."""

import csv
from collections import Counter

import pytest
from scipy import stats

from lm_eval_bias.core.run_data import published
from lm_eval_bias.custom_metrics import occugender
from tests.support.places import ROOT, find_mirror


def read(*path):
    with ROOT.joinpath(*path).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def row(name, task, model):
    (found,) = [
        own for own in published(name) if (own.task, own.model) == (task, model)
    ]
    return found


def test_occugenders_tables_have_every_cell_and_sum_to_100_within_rounding():
    rows = list(published("occugender"))
    printed = {f"Table {number}": 10 for number in (3, 4)} | {
        f"Table {number}": 14 for number in range(9, 19)
    }
    assert Counter(own.tables for own in rows) == printed
    for own in rows:
        cells = dict(own.cells)
        gap = cells.pop("stereotype_gap")
        assert len(cells) == 6
        for cell in cells.values():
            assert (cell.plus_minus is not None) == (
                own.tables in ("Table 3", "Table 4")
            )
        for group in ("female", "male"):
            assert sum(
                cells[f"{group}_dominated_{letter}"].value for letter in "MFD"
            ) == pytest.approx(100, abs=0.15 + 1e-9)
        leans = [
            cells[f"{group}_dominated_{group[0].upper()}"].value
            - cells[f"{group}_dominated_{other}"].value
            for group, other in (("female", "M"), ("male", "F"))
        ]
        assert gap.value == pytest.approx(sum(leans) / 200, abs=1e-12)
    for task, model, name, value, spread in (
        ("occugender_explicit", "Llama-3-8B-Instruct", "male_dominated_M", 96.2, 2.8),
        ("occugender_implicit", "Gemma-2-9B-Instruct", "female_dominated_D", 16.0, 3.1),
        (
            "occugender_debias_implicit_none",
            "Gemma-2-9B-Instruct",
            "male_dominated_M",
            65.5,
            None,
        ),
    ):  # read by hand
        cell = row("occugender", task, model).cells[name]
        assert (cell.value, cell.plus_minus) == (value, spread)


def test_shares_of_table_5():
    shares = [
        float(own["female_share"])
        for own in read("tasks", "occugender", "data", "occupations.csv")
    ]
    # the table prints 89.2 and 5.6; its own values average 89.265 and 5.605
    for own, mean in (
        ([s for s in shares if s > 50], 89.2),
        ([s for s in shares if s < 50], 5.6),
    ):
        assert (len(own), sum(own) / 20) == (20, pytest.approx(mean, abs=0.1))


def test_stereosets_icat_follows_from_lms_and_ss():
    # 654 cells, of which Table 7 repeats some of Table 3; those of GPT-2 between sentences stand twice
    printed = [
        own for own in published("stereoset") if own.tables != "released predictions"
    ]
    assert sum(len(own.cells) for own in printed) == 715
    assert sum(len(own.cells) for own in printed if own.chance) == 35
    for own in published("stereoset"):
        cells = {name: cell.value for name, cell in own.cells.items()}
        for lms, ss, icat in (
            ("lms", "ss", "icat"),
            ("mc_lms", "mc_ss", "mc_icat_micro"),
        ):
            if lms in cells:
                value = cells[lms] * min(cells[ss], 100 - cells[ss]) / 50
                # printed LMS 78.23; ICAT fits 78.73, a misprint
                off = (
                    0.5
                    if (own.task, own.model) == ("stereoset_tr_inter", "mBERT (NSP)")
                    and lms == "lms"
                    else 0.03
                )
                assert value == pytest.approx(cells[icat], abs=off), own
    # read off the paper by hand
    for task, model, name, value in (
        ("stereoset_en_intra", "BERT", "lms", 83.1),
        ("stereoset_de_inter", "mT5 (gen)", "ss", 53.93),
        ("stereoset_es_intra", "GPT-2", "mc_icat_macro", 60.64),
        ("stereoset_fr_inter", "mT5 (NSP)", "mc_icat_micro", 74.16),
    ):
        assert row("stereoset", task, model).cells[name].value == value


def test_published_regard():
    for own in published("regard"):
        chi2, p = own.cells["all/chi2"].value, own.cells["all/p"]
        # the printed p follows from the printed chi-square with two degrees of freedom
        found = stats.chi2.sf(chi2, 2)
        assert found < 0.01 if p.printed == "<.01" else abs(found - p.value) < 0.006, (
            own
        )
        assert own.cells["all/cramers_v"].value == pytest.approx(
            (chi2 / own.cells["all/n"].value) ** 0.5, abs=1e-12
        )


# what the authors' implicit script stored, next to what the paper prints: mean of 25 templates, and the spread over
# them divided by the root of 20 occupations
@pytest.mark.parametrize(
    ("folder", "model"),
    [("gemma-2-9b", "Gemma-2-9B"), ("gemma-2-9b-instruct", "Gemma-2-9B-Instruct")],
)
def test_the_authors_stored_results_come_close_to_table_4(folder, model):
    mirror = find_mirror()
    stored = (
        mirror
        and mirror
        / "chenyuen0103"
        / "gender-bias@646a9d6233f7a9b53d42763c94121ef74aea8d79"
        / "data"
    )
    if not stored or not stored.is_dir():
        pytest.skip(
            "needs a mirror with the authors' stored results (LM_EVAL_BIAS_DATA)"
        )
    printed = row("occugender", "occugender_implicit", model).cells
    rows = read(stored, "results_debias", folder, "implicit.csv")
    rows = [own for own in rows if float(own["debiasing_prompt_id"]) == 0]
    assert len(rows) == 2
    scores = {score.name: score for score in occugender.scores()}
    for own in rows:
        group = "female" if own["female_dominated"] == "True" else "male"
        # the file holds means over the 20 occupations: as 20 equal ones they have the same mean and spread
        records = [
            {"item": f"{job}", "template": f"{t:02d}", "share": 80.0 if group == "female" else 20.0, "group": group,
             "mass": 1.0, **{letter: float(own[f"{name}_implicit{t}"]) for letter, name in occugender.GENDERS.items()}}
            for job in range(20)
            for t in range(25)
        ]  # fmt: skip
        for letter in "MFD":
            cell = printed[f"{group}_dominated_{letter}"]
            name = f"{group}_dominated_{letter}"
            assert scores[name].compute(records).value == pytest.approx(
                cell.value, abs=0.7
            )
            assert scores[f"{name}_se_paper"].compute(records).value == pytest.approx(
                cell.plus_minus, abs=0.25
            )
