"""The page of a comparison in a real browser."""

import pytest

from lm_eval_bias.cli.main import main
from tests.support.chromium import OVERFLOW, check_page
from tests.support.made_runs import harness_folder

LONG = "an-organisation/a-model-with-a-name-that-is-longer-than-any-column-is-wide"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Three sides: one that differs, with a long name, and one that hardly does, whose name is no markup."""
    root = tmp_path_factory.mktemp("page")
    sides = (("base", 1.0), (LONG, -3.0), ("<script>alert(1)</script>", 1.001))
    runs = [harness_folder(root / str(number), model=name, lean=lean) for number, (name, lean) in enumerate(sides)]
    out = root / "compare.html"
    assert main(["compare", *runs, "-o", str(out)]) == 0
    return out.as_uri()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False), (400, True)])
def test_nothing_is_loaded_complained_of_too_wide_or_too_pale(browser, page, width, dark):
    check_page(browser, page, width, dark)
    assert "<script>alert(1)</script>" in browser.evaluate("document.querySelector('h1').textContent")


def test_sides_differ_in_shape_and_what_can_be_told_is_filled(browser, page):
    browser.open(page)
    marks = browser.evaluate(
        "[...document.querySelectorAll('figure .mark')].map(m => [m.querySelector('use').getAttribute('href'),"
        " m.classList.contains('hollow')])"
    )
    assert len(marks) == 10  # five scores of two sides
    filled = sum(not hollow for _, hollow in marks)
    told = int(browser.evaluate("document.querySelector('p.muted').textContent.match(/(\\d+) of 10/)[1]"))
    assert 0 < filled == told < 10
    assert len({shape for shape, _ in marks}) == 2


def test_paper_has_every_column(browser, page):
    browser.open(page, 720)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.evaluate(OVERFLOW) <= 720
    shown = "e => e.checkVisibility() && e.getBoundingClientRect().right <= 720"
    assert browser.evaluate(f"[...document.querySelectorAll('main > section > .scroll td, figure')].every({shown})")
    browser.call("Emulation.setEmulatedMedia", media="")
