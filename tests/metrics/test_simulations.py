"""The simulations run, their page names what misses, and the one in the docs has all designs."""

import re
from pathlib import Path

import pytest

from lm_eval_bias.core import registry
from simulations import coverage

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


@pytest.mark.parametrize("design", coverage.DESIGNS)
def test_the_page_of_the_docs_has_every_design(design):
    assert f"| {design} " in PAGE.read_text(encoding="utf-8")
    assert coverage.DESIGNS[design][0] in registry.by_name()
