"""The typed-in tables against themselves: sums, shape, and what one table says of another."""

import csv
from collections import Counter, defaultdict

import pytest
from scipy import stats

from lm_eval_bias.custom_metrics import occugender
from tests.support.places import ROOT, find_mirror


def read(*path):
    with ROOT.joinpath(*path).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


ROWS, STEREOSET = (read("results", "published", f"{name}.csv") for name in ("occugender", "stereoset"))
FIELDS = ("table", "model", "kind", "instruction", "dominated_by", "gender")


def cell(row):
    return tuple(row[field] for field in FIELDS)


def test_occugenders_tables_have_every_cell_and_sum_to_100_within_rounding():
    per_table, sums = Counter(int(row["table"]) for row in ROWS), defaultdict(float)
    assert per_table == {3: 60, 4: 60, **{table: 7 * 12 for table in range(9, 19)}}
    assert len(set(map(cell, ROWS))) == 960
    for row in ROWS:
        assert bool(row["plus_minus"]) == (row["table"] in "34")
        sums[cell(row)[:-1]] += float(row["percent"])
    assert {key: 100 for key in sums} == pytest.approx(sums, abs=0.15 + 1e-9)
    read_by_hand = {
        ("3", "Llama-3-8B-Instruct", "explicit", "", "male", "M"): ("96.2", "2.8"),
        ("4", "Gemma-2-9B-Instruct", "implicit", "", "female", "D"): ("16.0", "3.1"),
        ("18", "Gemma-2-9B-Instruct", "implicit", "none", "male", "M"): ("65.5", ""),
    }
    assert read_by_hand.items() <= {cell(r): (r["percent"], r["plus_minus"]) for r in ROWS}.items()


def test_shares_of_table_5():
    shares = [float(row["female_share"]) for row in read("tasks", "occugender", "data", "occupations.csv")]
    # the table prints 89.2 and 5.6; its own values average 89.265 and 5.605
    for own, mean in (([s for s in shares if s > 50], 89.2), ([s for s in shares if s < 50], 5.6)):
        assert (len(own), sum(own) / 20) == (20, pytest.approx(mean, abs=0.1))


def stereoset_cells():
    cells = defaultdict(dict)
    for row in STEREOSET:
        key = (row["table"], row["test"], row["model"], row["approach"], row["language"])
        cells[key][row["score"]] = float(row["value"])
    return cells


def test_stereosets_tables_have_every_cell_and_agree_with_each_other():
    # 29 model-language pairs (no Turkish T5) with 3 scores, or 4 where ICAT is macro and micro; Table 7 has 15 pairs
    per_table, cells = Counter(int(row["table"]) for row in STEREOSET), stereoset_cells()
    assert per_table == {2: 87, 3: 87, 4: 87, 5: 116, 8: 116, 9: 116, 7: 45}
    assert len(STEREOSET) == sum(map(len, cells.values()))
    for model, approach in {"GPT-2": "gen", "mGPT-2": "gen", "T5": "NSP", "mT5": "NSP"}.items():
        for language in ("en", "de"):  # Table 7 repeats Table 3 for some
            again = cells.get(("7", "inter", model, approach, language))
            assert again in (None, cells["3", "inter", model, "", language])
    # read off the paper by hand
    assert cells["2", "intra", "BERT", "", "en"]["lms"] == 83.1
    assert cells["7", "inter", "mT5", "gen", "de"] == {"lms": 32.6, "ss": 53.93, "icat": 30.03}
    assert cells["8", "intra", "GPT-2", "", "es"]["mc_icat_macro"] == 60.64
    assert cells["9", "inter", "mT5", "", "fr"]["mc_icat_micro"] == 74.16


def test_stereoset_icat_follows_from_lms_and_ss():
    for key, found in stereoset_cells().items():
        lms, ss, icat = ("mc_lms", "mc_ss", "mc_icat_micro") if "mc_lms" in found else ("lms", "ss", "icat")
        value = found[lms] * min(found[ss], 100 - found[ss]) / 50
        if key[:5] == ("3", "inter", "mBERT", "", "tr"):
            assert value != pytest.approx(found[icat], abs=0.1)  # printed LMS 78.23; ICAT fits 78.73, a misprint
        else:
            assert value == pytest.approx(found[icat], abs=0.03), key


def test_published_regard():
    rows = read("results", "published", "regard.csv")
    assert len({tuple(row[key] for key in row if key not in ("value", "n", "p")) for row in rows}) == len(rows) == 42
    for row in rows:
        value, high = float(row["value"]), 100 if row["measure"] == "facet_percent" else 1
        if row["measure"].endswith("chi2"):
            # the printed p follows from the printed chi-square with two degrees of freedom
            p = stats.chi2.sf(value, 2)
            assert p < 0.01 if row["p"] == "<.01" else abs(p - float(row["p"])) < 0.006, row
        else:
            assert 0 < value < high


# what the authors' implicit script stored, next to what the paper prints: mean of 25 templates, and the spread over
# them divided by the root of 20 occupations
@pytest.mark.parametrize(
    ("folder", "model"), [("gemma-2-9b", "Gemma-2-9B"), ("gemma-2-9b-instruct", "Gemma-2-9B-Instruct")]
)
def test_the_authors_stored_results_come_close_to_table_4(folder, model):
    mirror = find_mirror()
    stored = mirror and mirror / "chenyuen0103" / "gender-bias@646a9d6233f7a9b53d42763c94121ef74aea8d79" / "data"
    if not stored or not stored.is_dir():
        pytest.skip("needs a mirror with the authors' stored results (LM_EVAL_BIAS_DATA)")
    printed = {
        (r["dominated_by"], r["gender"]): (float(r["percent"]), float(r["plus_minus"]))
        for r in ROWS
        if (r["table"], r["model"]) == ("4", model)
    }
    rows = read(stored, "results_debias", folder, "implicit.csv")
    rows = [row for row in rows if float(row["debiasing_prompt_id"]) == 0]
    assert len(rows) == 2
    for row in rows:
        group = "female" if row["female_dominated"] == "True" else "male"
        # the file holds means over the 20 occupations: as 20 equal ones they have the same mean and spread
        records = [
            {"item": f"{job}", "template": f"{t:02d}", "share": 80.0 if group == "female" else 20.0, "group": group,
             "mass": 1.0, **{letter: float(row[f"{name}_implicit{t}"]) for letter, name in occugender.GENDERS.items()}}
            for job in range(20)
            for t in range(25)
        ]  # fmt: skip
        for letter in "MFD":
            percent, plus_minus = printed[group, letter]
            assert occugender.share(records, gender=letter, dominated_by=group).value == pytest.approx(percent, abs=0.7)
            paper = occugender.se_paper(records, gender=letter, dominated_by=group).value
            assert paper == pytest.approx(plus_minus, abs=0.25)
