"""The page: whole, its own, and nobody else's. Its words stand in ``tests/golden/pages``."""

import re

from tests.support.made_runs import HOSTILE, hostile_run, run_of, write
from tests.support.pages import check_closed, made


def test_hostile_run_comes_out_as_text(tmp_path):
    said = "".join(
        check_closed(made([write(tmp_path / "h.json", hostile_run())], tmp_path)).text
    )
    assert HOSTILE in said
    assert "&amp;amp;" not in said  # but the name's own


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


def told(content, folder, *more):
    """The page, and what it says of each benchmark."""
    text = made([write(folder / "v.json", content)], folder, *more)
    plain = re.sub(r"</?span.*?>", "", text)
    return text, re.findall(r"<strong>(.*?)</strong>(.*?)</li>", plain)


def test_a_line_says_what_a_score_can_bear_and_the_picture_where_it_lies(tmp_path):
    content = run_of(tasks=["stereoset_en", "gg_bbq_names"])
    scores, answers = (
        content["tasks"][task]["scores"] for task in ("stereoset_en", "gg_bbq_names")
    )
    scores["lms"] |= {"value": 90.0, "interval": [88.0, 92.0]}
    scores["ss"] |= {"value": 60.0, "interval": [55.0, 65.0]}
    answers["diff_bias_amb"] |= {"value": 0.01, "interval": [-0.1, 0.12]}
    answers["unanswered"] |= {"value": 0.0, "interval": None}
    for of_length in (scores["length_shorter"], answers["length_shorter"]):
        of_length |= {"value": 0.5, "interval": [0.4, 0.6]}
    for name in ("acc_disamb", "acc_of_named"):
        answers[name] |= {"value": 0.9, "interval": [0.8, 0.95]}
    answers["acc_amb"] |= {"value": 0.9, "interval": [0.8, 0.95]}
    answers["acc_amb"] |= {"higher_is_better": False}  # an error rate
    text, said = told(content, tmp_path)
    assert said == [
        ("no clear direction", ": gg_bbq_names (bias in ambiguous contexts)."),
        ("prefers stereotypes", ": stereoset_en (stereotypes preferred)."),
    ]
    # the furthest end, 65, is 30% of the way from 50 to 100: the half width stands for half of that way
    ss = "Multilingual StereoSet: stereotypes preferred, stereoset_en"
    bbq = "GG-BBQ: {}, gg_bbq_names"
    assert picture(text, ss) == ([70.0], [(60.0, 80.0)], 50.0)
    amb = bbq.format("bias in ambiguous contexts")
    assert picture(text, amb) == ([52.0], [(30.0, 74.0)], 50.0)
    # abilities stand in the table alone
    text, _ = told(content, tmp_path, "--scores", "lms,ss")
    assert picture(text, ss) == ([70.0], [(60.0, 80.0)], 50.0)
    assert "sense preferred to nonsense, stereoset_en" not in text
    # what can't be placed isn't, and what unmakes a verdict is said
    scores["ss"] |= {"value": 40.0, "interval": None, "stderr": None}
    scores["lms"] |= {"value": 51.0, "interval": [49.0, 53.0]}
    answers["diff_bias_amb"]["range"] = [None, None]
    text, said = told(content, tmp_path)
    assert f'aria-label="{bbq.format("bias in ambiguous contexts")}"' not in text
    assert said[1][0] == "chance level, says nothing about bias"
    assert picture(text, ss) == ([10.0], [(10.0, 10.0)], 50.0)
