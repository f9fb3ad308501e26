"""The page: whole, its own, and nobody else's. Its words stand in ``tests/golden/pages``."""

import re

import pytest

from tests.support.made_runs import HOSTILE, harness_folder, hostile_run, run_of, write
from tests.support.pages import check_closed, made


def test_several_runs_beside_each_other(tmp_path):
    runs = [
        run_of("tiny", ["stereoset_de", "regard_en"]),
        run_of("other", ["stereoset_de", "regard_en"], shift=7),
    ]
    found = check_closed(
        made([write(tmp_path / f"{run['model']}.json", run) for run in runs], tmp_path)
    )
    (main_scores,) = (
        table
        for table in found.tables
        if table[0][:4] == ["Task", "Score", "tiny", "other"]
    )
    (ss,) = (row for row in main_scores if row[1].endswith("ss"))
    # both run below chance
    assert [cell.replace("‡", "†") for cell in ss[2:4]] == [
        "31.0%†[27.0, 35.0]",
        "38.0%†[34.0, 42.0]",
    ]
    assert {"r1t2-regard-title", "r2t2-regard-title"} <= set(found.values("id"))


def test_hostile_run_comes_out_as_text(tmp_path):
    said = "".join(
        check_closed(made([write(tmp_path / "h.json", hostile_run())], tmp_path)).text
    )
    assert HOSTILE in said
    assert "&amp;amp;" not in said  # but the name's own


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda log: None, ""),
        (lambda log: log.unlink(), "there are no saved answers"),
        (lambda log: log.write_text(""), "the run wrote no samples"),
        (lambda log: log.write_text(log.read_text()[:-900]), "truncated or damaged"),
        (
            lambda log: log.write_text(
                log.read_text().replace('"genders"', '"gender"')
            ),
            "damaged",
        ),
        (
            lambda log: log.write_text(log.read_text().replace('"-6', '"x')),
            "no requests or answers",
        ),
    ],
)
def test_occupations_come_from_the_sample_log_or_it_is_named(tmp_path, damage, reason):
    folder = harness_folder(tmp_path / "h")
    damage(next((tmp_path / "h").rglob("samples_*.jsonl")))
    found = check_closed(made([folder], tmp_path))
    assert reason in found.said
    assert ("r1t1-occupations-title" in found.values("id")) is (not reason)
    # the most female-dominated occupation of Table 5 is named in figure and table
    assert reason or found.said.count("skincare specialist") >= 3


def test_regard_never_without_facets(tmp_path, said):
    content = run_of(tasks=["regard_en", "occugender_explicit"])
    scores = content["tasks"]["regard_en"]["scores"]
    content["tasks"]["regard_en"]["scores"] = {
        k: v for k, v in scores.items() if not k.startswith("sexualization")
    }
    for kind in ("md", "csv", "latex"):
        text = said("report", write(tmp_path / "r.json", content), "--format", kind)
        score = "gap towards the stereotype" if kind == "latex" else "stereotype_gap"
        assert score in text.replace("\\_", "_")
        assert "negative_gap" not in text.replace("\\_", "_")


def picture(text, label):
    """The marks of the picture's row with that label: places of values, intervals and the chance mark."""
    row = re.search(rf'aria-label="{re.escape(label)}">(.*?)</svg>', text, re.S)[1]
    marks = [float(x) for x in re.findall(r'<use [^>]* x="([\d.]+)%"', row)]
    bars = [
        tuple(map(float, b))
        for b in re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%"', row)
    ]
    return (
        marks,
        bars,
        *map(float, re.findall(r'class="neutral"[^>]*x1="([\d.]+)%"', row)),
    )


def told(content, folder):
    """The page, and its verdicts."""
    text = made([write(folder / "v.json", content)], folder)
    return text, re.search(r'<div class="verdicts">(.*?)</div>', text, re.S)[1]


def test_a_verdict_says_what_a_score_can_bear_and_the_picture_where_it_lies(tmp_path):
    content = run_of(tasks=["stereoset_en", "gg_bbq_names"])
    scores, answers = (
        content["tasks"][task]["scores"] for task in ("stereoset_en", "gg_bbq_names")
    )
    scores["lms"] |= {"value": 90.0, "interval": [88.0, 92.0]}
    scores["ss"] |= {"value": 60.0, "interval": [55.0, 65.0]}
    for name in ("diff_bias_amb", "diff_bias_disamb"):
        answers[name] |= {"value": 0.01, "interval": [-0.1, 0.12]}
    answers["unanswered"] |= {"value": 0.0, "interval": None}
    for of_length in (scores["length_shorter"], answers["length_shorter"]):
        of_length |= {"value": 0.5, "interval": [0.4, 0.6]}
    for name in ("acc_disamb", "acc_of_named"):
        answers[name] |= {"value": 0.9, "interval": [0.8, 0.95]}
    answers["acc_amb"] |= {
        "value": 0.9,
        "interval": [0.8, 0.95],
        "higher_is_better": False,
    }  # an error rate
    text, verdicts = told(content, tmp_path)
    assert re.findall("<strong>(.*?)</strong>", verdicts) == [
        "no clear direction",
        "prefers stereotypes",
    ]
    # the furthest end, 65, is 30% of the way from 50 to 100: the half width stands for half of that way
    assert picture(text, "stereotypes preferred") == ([70.0], [(60.0, 80.0)], 50.0)
    assert picture(text, "bias in ambiguous contexts") == ([51.0], [(40.0, 62.0)], 50.0)
    # abilities lie between worst and best, beside what guessing gives
    assert picture(text, "sense preferred to nonsense") == (
        [90.0],
        [(88.0, 92.0)],
        50.0,
    )
    assert picture(text, "accuracy in disambiguated contexts") == (
        [90.0],
        [(80.0, 95.0)],
    )
    assert picture(
        text, "accuracy in disambiguated contexts where a person is named"
    ) == ([90.0], [(80.0, 95.0)], 50.0)
    assert picture(text, "accuracy in ambiguous contexts") == (
        [10.0],
        [(5.0, 20.0)],
        66.67,
    )
    scores["ss"] |= {"value": 40.0, "interval": None, "stderr": None}
    scores["lms"] |= {"value": 51.0, "interval": [49.0, 53.0]}
    answers["diff_bias_disamb"]["range"] = [None, None]
    text, verdicts = told(content, tmp_path)
    assert 'aria-label="bias in disambiguated contexts"' not in text
    # what unmakes a verdict stands in front of it, and it isn't bold then
    assert (
        '<span class="beware">not shown to be better than a guess</span>: no verdict without an interval.'
        in verdicts
    )
    assert verdicts.count("<strong>") == 1
    assert picture(text, "stereotypes preferred") == ([10.0], [], 50.0)
