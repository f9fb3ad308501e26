"""The page of a comparison: what its pictures draw, what its table says, and what isn't compared."""

from __future__ import annotations

import json
import math
import re
import shutil

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.comparing.findings import Finding
from lm_eval_bias.comparing.pairing import Pair
from lm_eval_bias.custom_metrics.differences import Difference
from lm_eval_bias.report import comparison_reports
from tests.support.boards import HOSTILE, safe
from tests.support.made_mirror import make_tiny_mirror
from tests.support.pages import check_closed
from tests.support.toy import Toy, side

OCCUGENDER = ("occugender_debias_implicit_none", "occugender_debias_implicit_1", "occugender_implicit_gen")
TASKS = ",".join([*OCCUGENDER, "gg_bbq_group_terms", "gg_bbq_group_terms_gen"])
(MEAN,) = (score for score in Toy().scores() if score.name == "mean")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        make_tiny_mirror(root / "mirror", patch)
        for seed in (1, 2, 3):
            model = ["--model", "bias-chance", "--model_args", f"seed={seed}", "--output_path", str(root / f"s{seed}")]
            assert main(["run", "--tasks", TASKS, *model, "--limit", "200", "--log_samples"]) == 0
    return root


@pytest.fixture
def runs(made, tmp_path):
    """Copies that a test may change."""
    return [str(shutil.copytree(made / name, tmp_path / name)) for name in ("s1", "s2", "s3")]


def page_of(out, *arguments):
    assert main(["compare", *arguments, "-o", str(out)]) == 0
    return check_closed(out.read_text(encoding="utf-8"))


def test_the_ending_says_the_format_and_no_known_one_is_text(runs, tmp_path):
    starts = {"html": "<!doctype html>", "json": "[", "csv": "what,", "md": "**", "txt": "occugender_debias"}
    for ending, start in starts.items():
        out = tmp_path / f"compare.{ending}"
        assert main(["compare", *runs[:2], "-o", str(out)]) == 0
        assert out.read_text(encoding="utf-8").startswith(start), ending
    assert main(["compare", *runs[:2], "--format", "json", "-o", str(tmp_path / "named.html")]) == 0
    assert (tmp_path / "named.html").read_text(encoding="utf-8").startswith("[")


def shown(value, unit, sign=""):
    """A number as people read it: a share in percent."""
    factor, digits = {"proportion": (100, 1), "percent": (1, 1)}.get(unit, (1, 3))
    return f"{round(factor * value, digits) + 0.0:{sign}.{digits}f}"


@pytest.mark.parametrize("by", ["run", "instruction"])
def test_every_difference_is_in_the_page_as_in_the_data(runs, tmp_path, capsys, by):
    given = [*runs, "--unpaired"] if by == "run" else [runs[0], "--by", by]
    page = page_of(tmp_path / "c.html", *given)
    capsys.readouterr()
    assert main(["compare", *given, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (table,) = (table for table in page.tables if "p (Holm)" in table[0])
    tested = 0
    for one in data:
        row = next(row for row in table if row[0].startswith(one["what"]) and row[1].endswith(one["score"])
                   and (by != "run" or f"{one['other']}, against {one['base']}" in row[0]))  # fmt: skip
        assert row[5] == one["finding"]
        if one["difference"] is None:
            assert row[4] == row[6] == "–"
            continue
        assert row[2].removesuffix("%") == shown(one["base_value"], one["unit"])
        assert re.split(r"\[| points", row[4])[0] == shown(one["difference"], one["unit"], "+")
        assert ("[" in row[4]) == (one["stderr"] is not None)
        if one["p"] is None:
            assert row[6] == "–"
            continue
        tested += 1
        assert one["p"] == pytest.approx(float(row[6].replace("<0.001", "0.0005")), abs=6e-4)
    assert tested
    assert page.tags["figure"] == 1


def test_by_language(tmp_path, tiny_mirror):
    arguments = ["--model", "bias-chance", "--output_path", str(tmp_path / "r"), "--log_samples", "--limit", "20"]
    assert main(["run", "--tasks", "stereoset_en,stereoset_de", *arguments]) == 0
    page = page_of(tmp_path / "c.html", str(tmp_path / "r"), "--by", "language", "--unpaired")
    assert "language de against language en" in page.said


def _edit(folder, change):
    from pathlib import Path

    (path,) = Path(folder).rglob("results_*.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_what_is_refused_stands_in_the_page_with_its_reason(runs, tmp_path, capsys):
    _edit(runs[2], lambda content: content["config"].update(random_seed=99))
    out = tmp_path / "c.html"
    page = page_of(out, *runs)
    reason = "seeds [0, 1234, 1234, 1234] and [99, 1234, 1234, 1234]"
    assert page.said.count(reason) == capsys.readouterr().err.count(reason) == len(TASKS.split(","))
    assert not any("seed=3" in cell for table in page.tables for row in table if len(row) == 10 for cell in row)
    # other formats refuse as before, and so does the page where nothing is left
    assert main(["compare", *runs]) == 2
    assert main(["compare", runs[0], runs[2], "-o", str(tmp_path / "none.html")]) == 2
    assert not (tmp_path / "none.html").exists()
    assert "warning" not in page_of(tmp_path / "both.html", *runs, "--unpaired").values("class")


def test_hostile_names_are_text(runs, tmp_path):
    for name in HOSTILE[:3]:
        _edit(runs[1], lambda content, name=name: content["config"].update(model_args={"pretrained": name}))
        assert safe(name) in page_of(tmp_path / "hostile.html", *runs[:2], "--scores", "stereotype_gap").said


def finding(subject="toy", other="other", value=0.5, p=0.01, adjusted=0.01, reason="", stderr=0.1):
    difference = Difference(value, stderr, math.inf, p, 0.0, 0.1, reason, "a test")
    return Finding(subject, "base", other, MEAN, 1.0, 1.0 + value, difference, adjusted, True, 8)


@pytest.fixture
def drawn(toy, tmp_path):
    """The page about made findings."""

    def page(*findings):
        sides = {one.other: side(one.other, tmp_path) for one in findings}
        pairs = [Pair(one.subject, side("base", tmp_path), sides[one.other]) for one in findings]
        return comparison_reports.page(findings, pairs, "run", "holm", [])

    return page


def test_intervals_and_marks_are_where_they_belong(drawn):
    text = drawn(finding("a"), finding("a", "second", value=-0.1, adjusted=0.6, stderr=0.2))
    # the range is 18 wide, and the half width a tenth of it: 0.5 of 1.8 is 27.78% of the half
    places = re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%"[^>]*/><use href="#mark-\d" x="([\d.]+)%"', text)
    expected = [(0.5, 0.5 - 0.195996, 0.5 + 0.195996), (-0.1, -0.1 - 0.391993, -0.1 + 0.391993)]
    for (low, high, at), values in zip(places, expected, strict=True):
        assert (float(at), float(low), float(high)) == pytest.approx([50 + 50 * v / 1.8 for v in values], abs=0.01)
    assert [name for name in re.findall(r'class="(mark[^"]*)"', text)] == ["mark", "mark hollow"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_no_axis_can_show_is_left_to_the_table(drawn, value):
    page = check_closed(drawn(finding("a"), finding("b", value=value, p=math.nan, adjusted=math.nan, reason="why")))
    assert sum("strip" == one for one in page.values("class")) == 2  # one score and the axis
    (row,) = (row for table in page.tables for row in table if len(row) == 10 and row[0].startswith("b"))
    assert "why" in row


def test_what_can_be_told_is_said_first_and_what_cannot_is_no_proof(drawn):
    told = check_closed(drawn(finding("a", adjusted=0.04), finding("b", adjusted=0.001), finding("c", adjusted=0.5)))
    assert f"{finding().verdict}: mean (b), mean (a)." in told.said
    assert "2 of 3" in told.said
    assert finding().verdict not in check_closed(drawn(finding(adjusted=0.5))).said
