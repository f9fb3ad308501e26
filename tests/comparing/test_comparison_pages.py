"""Where the marks of a comparison's page lie, and what its sentences say first."""

from __future__ import annotations

import math
import re

import pytest

from lm_eval_bias.comparing.findings import Finding
from lm_eval_bias.comparing.pairing import Pair
from lm_eval_bias.custom_metrics.differences import Difference
from lm_eval_bias.report import comparison_reports
from tests.support.pages import check_closed
from tests.support.toy import Toy, side

(MEAN,) = (score for score in Toy().scores() if score.name == "mean")


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
    marks = re.findall(r'class="(mark[^"]*)".*?<use href="#mark-(\d)"', text, re.S)
    assert [name for name, _ in marks] == ["mark", "mark hollow"]
    assert len({shape for _, shape in marks}) == 2  # as many as sides


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_no_axis_can_show_is_left_to_the_table(drawn, value):
    page = check_closed(drawn(finding("a"), finding("b", value=value, p=math.nan, adjusted=math.nan, reason="why")))
    assert sum("strip" == one for one in page.values("class")) == 2  # one score and the axis
    (row,) = (row for table in page.tables for row in table if len(row) == 10 and row[0].startswith("b"))
    assert "why" in row
