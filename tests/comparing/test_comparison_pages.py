"""The page of a comparison: what its pictures draw, what its tables say, and what isn't compared."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.comparing.findings import Finding
from lm_eval_bias.core import registry
from lm_eval_bias.core.wording import shortened, shortened_apart
from lm_eval_bias.custom_metrics.differences import Difference
from lm_eval_bias.report import comparison_reports
from lm_eval_bias.report.comparison_reports import Member
from tests.leaderboard.test_command import HOSTILE, Page, safe
from tests.support.made_mirror import make_tiny_mirror
from tests.support.toy import Toy

OCCUGENDER = ("occugender_debias_implicit_none", "occugender_debias_implicit_1", "occugender_implicit_gen")
TASKS = ",".join([*OCCUGENDER, "gg_bbq_group_terms", "gg_bbq_group_terms_gen"])
(MEAN,) = (score for score in Toy().scores() if score.name == "mean")


def finding(subject="toy", other="other", value=0.5, p=0.01, adjusted=0.01, reason="", stderr=0.1, base="base"):
    difference = Difference(value, stderr, math.inf, p, 0.0, 0.1, reason, "a test")
    return Finding(subject, base, other, MEAN, 1.0, 1.0 + value, difference, adjusted, True, 8)


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
    return Page(out.read_text(encoding="utf-8"))


def test_the_ending_says_the_format_and_no_known_one_is_text(runs, tmp_path, capsys):
    starts = {"html": "<!doctype html>", "json": "[", "csv": "what,", "md": "**", "txt": "occugender_debias"}
    for ending, start in starts.items():
        out = tmp_path / f"compare.{ending}"
        assert main(["compare", *runs[:2], "-o", str(out)]) == 0
        assert out.read_text(encoding="utf-8").startswith(start), ending
    out = tmp_path / "named.html"
    assert main(["compare", *runs[:2], "--format", "json", "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("[")


@pytest.mark.parametrize("by", ["run", "instruction"])
def test_every_difference_is_in_the_page_as_in_the_data(runs, tmp_path, capsys, by):
    given = [*runs, "--unpaired"] if by == "run" else [runs[0], "--by", by]
    page = page_of(tmp_path / "c.html", *given)
    capsys.readouterr()
    assert main(["compare", *given, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    tested = 0
    for one in data:
        sides = f"{one['other']}, against {one['base']}" if by == "run" else ""
        row = next(
            row
            for row in page.rows
            if len(row) == 11 and row[0] == one["what"] + sides and row[1].endswith(one["score"])
        )
        assert row[5] == one["finding"]
        if one["difference"] is None:
            assert row[4] == row[6] == "–"
            continue
        assert row[2] == f"{one['base_value']:.4g}"
        interval = "" if one["stderr"] is None else "["
        assert row[4].startswith(f"{one['difference']:+.4g}{interval}")
        if one["p"] is None:
            assert row[6] == "–"
            continue
        tested += 1
        assert one["p"] == pytest.approx(float(row[6].replace("<0.001", "0.0005")), abs=6e-4)
    assert tested
    assert page.tags.count("script") == 1
    assert page.tags.count("figure") == 1


def test_by_language(tmp_path, tiny_mirror):
    arguments = ["--model", "bias-chance", "--output_path", str(tmp_path / "r"), "--log_samples", "--limit", "20"]
    assert main(["run", "--tasks", "stereoset_en,stereoset_de", *arguments]) == 0
    page = page_of(tmp_path / "c.html", str(tmp_path / "r"), "--by", "language", "--unpaired")
    assert "bias-chance: language de against language en" in page.text


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
    assert "Not compared:" in page.text
    assert page.text.count(reason) == capsys.readouterr().err.count(reason) == len(TASKS.split(","))
    assert not any("seed=3" in cell for row in page.rows if len(row) == 11 for cell in row)
    # other formats refuse as before, and so does the page where nothing is left
    assert main(["compare", *runs]) == 2
    assert main(["compare", runs[0], runs[2], "-o", str(tmp_path / "none.html")]) == 2
    assert not (tmp_path / "none.html").exists()
    assert "Not compared:" not in page_of(tmp_path / "both.html", *runs, "--unpaired").text


def test_hostile_names_are_text(runs, tmp_path):
    plain = page_of(tmp_path / "plain.html", *runs[:2])
    for name in HOSTILE[:3]:
        _edit(runs[1], lambda content, name=name: content["config"].update(model_args={"pretrained": name}))
        page = page_of(tmp_path / "hostile.html", *runs[:2], "--scores", "stereotype_gap")
        assert set(page.tags) <= set(plain.tags) | {"use", "defs"}
        assert page.tags.count("script") == 1
        assert not [attribute for attribute, _ in page.attributes if attribute.startswith("on")]
        assert safe(name) in page.text


def test_scores_have_their_labels(runs, tmp_path, monkeypatch):
    benchmark = registry.by_name()["occugender"]
    monkeypatch.setattr(type(benchmark), "score_label", lambda self, score: f"what {score} means", raising=False)
    page = page_of(tmp_path / "c.html", *runs[:2])
    assert any("what stereotype_gap meansstereotype_gap" in row for row in page.rows)


def drawn(*findings):
    """The rows of a picture of one score."""
    series = {label: number for number, label in enumerate(dict.fromkeys(one.other for one in findings))}
    return comparison_reports._rows([Member("toy", one) for one in findings], series)


def test_intervals_and_marks_are_where_they_belong():
    clear, unclear = finding("a", value=0.5), finding("a", "second", value=-0.1, adjusted=0.6, stderr=0.2)
    ((strip,),) = (task.strips for task in drawn(clear, unclear))
    scale = (strip.points[0].at - 50) / 0.5  # the axis is linear around 0
    for one, mark in zip((clear, unclear), strip.points, strict=True):
        low, high = one.difference.interval
        ends = 50 + scale * low, 50 + scale * one.difference.value, 50 + scale * high
        assert (mark.bar[0], mark.at, mark.bar[1]) == pytest.approx(ends, abs=0.02)
        assert all(0 <= end <= 100 for end in ends)
    assert [mark.hollow for mark in strip.points] == [False, True]
    assert [value for value, _ in strip.values] == ["+0.5 [+0.304, +0.696]", "-0.1 [-0.492, +0.292]"]
    assert strip.points[0].text.endswith(", significant")
    assert strip.points[1].text.endswith(", not significant")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_no_axis_can_show_is_left_to_the_table(value):
    assert [task.task for task in drawn(finding("a"), finding("b", value=value))] == ["a"]
    assert drawn(finding(value=value)) == []


def test_titles_name_what_is_compared():
    def title(*others, by="run", models=("a", "b")):
        return comparison_reports._title([finding(other=other) for other in others], by, models)

    assert title("x") == "Comparison: x against base"
    assert title("x", "y") == "Comparison: x and y against base"
    assert title("x, y", "z", "w", by="instruction", models=("gpt2",)) == "gpt2: 3 instructions against base"
    assert title("x", "y", "z", by="instruction") == "Comparison: 3 instructions against base"
    several = [finding(), finding(base="another")]
    assert comparison_reports._title(several, "language", ["a"]) == "Comparison of languages"


def test_what_can_be_told_is_said_first_and_what_cannot_is_no_proof():
    members = [Member("toy", finding("a", adjusted=0.04)), Member("toy", finding("b", adjusted=0.001))]
    words = comparison_reports._sentences([*members, Member("toy", finding("c", adjusted=0.5))])
    assert words == ["2 of 3 differences are significant", f"{finding().verdict}: mean (b), mean (a)"]
    (line,) = comparison_reports._sentences([Member("toy", finding(adjusted=0.5))])
    assert "doesn’t mean that there is none" in line


def test_a_score_that_is_not_compared_says_why(toy):
    row = comparison_reports._cells(
        Member("toy", finding(value=math.nan, p=math.nan, adjusted=math.nan, reason="why")), False
    )
    assert [cell.text for cell in row][4:7] == ["–", "why", "–"]


def test_short_names_stay_apart():
    names = ["organisation/model-7B-instruct", "organisation/model-9B-instruct", "x"]
    assert shortened(names[0], 20) == shortened(names[1], 20)
    shorts = shortened_apart(names, 20)
    assert len(set(shorts.values())) == 3
    assert shorts["x"] == "x"
    assert shortened_apart(["a" * 50, "b"], 20)["a" * 50] == "aaaaaaaaaa…aaaaaaaaa"
