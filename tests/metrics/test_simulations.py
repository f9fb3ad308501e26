"""The simulations run, their page names what misses, and the one in the docs has all designs."""

import re
from pathlib import Path

import pytest

from lm_eval_bias.core import registry
from simulations import breakdowns, coverage

PAGE = Path(__file__).parents[2] / "docs" / "simulations.md"


def test_a_few_rounds_give_a_page(tmp_path):
    file = tmp_path / "page.md"
    coverage.main(
        ["--rounds", "4", "--only", ", 5 templates, middle", "--page", str(file)]
    )
    text = file.read_text(encoding="utf-8")
    assert "--rounds 4 --only ', 5 templates, middle'" in text
    (design,) = set(re.findall(r"^\| (OccuGender.+?) +\|", text, re.MULTILINE))
    assert design == "OccuGender, 5 templates, middle"


def test_shares_out_of_bounds_are_bold_and_named():
    good = dict(zip(coverage.TITLES, (95.0, 96.0, 5.0, 1.0), strict=True))
    found = {"a": good, "b": good | {"interval": 94.0}, "c": good | {"false": 7.1}}
    listed = [*coverage.rows("d, high", found), *coverage.rows("d, ceiling", found)]
    page = coverage.page(listed, {"by job": (95.0, 88.0)}, 1000, "command")
    assert "- by job: all at once 88.0%" in page
    assert page.count("94.0 to 95.0") == 2
    assert page.count("**7.1**") == 2
    assert "- d, high: `c`, false findings 7.1%" in page
    wide = {"a": good | {"interval": 99.0}}
    listed = [*coverage.rows("d, high", wide), *coverage.rows("d, ceiling", wide)]
    page = coverage.page(listed, {}, 1000, "command")
    assert page.count("**99.0**") == 1


@pytest.mark.parametrize("design", coverage.DESIGNS)
def test_the_page_of_the_docs_has_every_design(design):
    assert f"| {design} " in PAGE.read_text(encoding="utf-8")
    assert coverage.DESIGNS[design][0] in registry.by_name()


def test_breakdowns_run_and_their_single_intervals_cover():
    for single, together in breakdowns.simulate(3).values():
        assert 85 < single <= 100
        assert 0 <= together <= 100
