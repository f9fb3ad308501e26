"""Pages in a real browser: what they load, how they sort, whether they can be read."""

import pytest

from lm_eval_bias.cli.main import main
from tests.support.chromium import UNFOLD, check_page
from tests.support.made_runs import harness_folder, hostile_file, run_file, write
from tests.support.pages import made
from tests.support.places import ROOT

LONG = "an-organisation/a-model-with-a-name-that-is-longer-than-any-column-is-wide"


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """A page of every kind, most of them with long and hostile names."""
    folder, bad = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("bad")
    long, hostile = write(folder / "b.json", run_file(LONG, shift=9)), write(bad / "h.json", hostile_file())
    sides = (("base", 1.0), (LONG, -3.0), ("<script>alert(1)</script>", 1.001))
    runs = [harness_folder(folder / str(number), model=name, lean=lean) for number, (name, lean) in enumerate(sides)]
    made([write(folder / "every" / "run.json", run_file())], folder / "every")
    made([runs[0], long], folder)
    made([hostile], bad)
    board, comparison = folder / "board.html", folder / "compare.html"
    assert main(["leaderboard", long, hostile, str(ROOT / "results"), "-o", str(board)]) == 0
    assert main(["compare", *runs, "-o", str(comparison)]) == 0
    reports = {"whole": folder / "every" / "out.html", "two": folder / "out.html", "hostile": bad / "out.html"}
    return {**reports, "items": folder / "out-items" / "r1t1.html", "board": board, "comparison": comparison}


KINDS = ("whole", "two", "items", "hostile", "board", "comparison")


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (360, False)])
@pytest.mark.parametrize("which", KINDS)
def test_nothing_is_loaded_complained_of_too_wide_or_too_pale(browser, which, width, dark, pages):
    check_page(browser, pages[which].as_uri(), width, dark)
    assert browser.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    assert not any(event.get("method") == "Page.javascriptDialogOpening" for event in browser.events)
    assert set(browser.evaluate("[...document.links].map(a => a.protocol)")) <= {"file:", "https:"}


def test_a_mark_leads_to_its_items_by_keyboard(browser, pages):
    browser.open(pages["two"].as_uri(), 1280)
    browser.evaluate("document.querySelector('.overview .mark[href]').focus()")
    browser.press("Enter", 13)
    at = "location.href.endsWith('out-items/r1t1.html#score-1') && document.readyState === 'complete'"
    assert any(browser.evaluate(at) for _ in range(200))


# a table, and a column of it as the reader sees it
TABLE = "const table = [...document.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('%s'));"
COLUMN = "[...table.tBodies[0].rows].map(r => r.cells[2].dataset.value ?? r.cells[2].textContent)"


def test_tables_sort_by_keyboard(browser, pages):
    def in_table(code):
        return browser.evaluate(f"(() => {{ {TABLE % 'By way of scoring'} return {code}; }})()")

    browser.open(pages["whole"].as_uri())
    browser.evaluate(UNFOLD)
    before = in_table(COLUMN)
    # the heading before ours, then one press of Tab
    in_table("table.tHead.rows[0].cells[1].querySelector('button').focus()")
    browser.press("Tab", 9)
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key, code, direction in (("Enter", 13, "ascending"), (" ", 32, "descending")):
        browser.press(key, code)
        found = [float(value) for value in in_table(COLUMN)]
        assert found == sorted(map(float, before), reverse=direction == "descending")
        assert in_table("[...table.tHead.rows[0].cells].map(c => c.ariaSort)") == ["none", "none", direction, "none"]
