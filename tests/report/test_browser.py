"""Pages in a real browser: what they load, how they sort, whether they can be read, on paper as well."""

import base64

import pytest

from lm_eval_bias.cli.main import main
from tests.support.chromium import OVERFLOW, UNFOLD, check_page
from tests.support.made_runs import harness_folder, hostile_run, run_of, write
from tests.support.pages import made
from tests.support.places import ROOT

LONG = "an-organisation/a-model-with-a-name-that-is-longer-than-any-column-is-wide"


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """A page of every kind, most of them with long and hostile names."""
    folder, bad = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("bad")
    long, hostile = (
        write(folder / "b.json", run_of(LONG, shift=9)),
        write(bad / "h.json", hostile_run()),
    )
    sides = (("base", 1.0), (LONG, -3.0), ("<script>alert(1)</script>", 1.001))
    runs = [
        harness_folder(folder / str(number), model=name, lean=lean)
        for number, (name, lean) in enumerate(sides)
    ]
    made([write(folder / "every" / "run.json", run_of())], folder / "every")
    made([runs[0], long], folder)
    made([hostile], bad)
    board, comparison = folder / "board.html", folder / "compare.html"
    assert (
        main(["leaderboard", long, hostile, str(ROOT / "results"), "-o", str(board)])
        == 0
    )
    assert main(["compare", *runs, "-o", str(comparison)]) == 0
    reports = {
        "whole": folder / "every" / "out.html",
        "two": folder / "out.html",
        "hostile": bad / "out.html",
    }
    return {**reports, "board": board, "comparison": comparison}


KINDS = ("whole", "two", "hostile", "board", "comparison")


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (360, False)])
@pytest.mark.parametrize("which", KINDS)
def test_nothing_is_loaded_complained_of_too_wide_or_too_pale(
    browser, which, width, dark, pages
):
    check_page(browser, pages[which].as_uri(), width, dark)
    assert (
        browser.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    )
    assert set(browser.evaluate("[...document.links].map(a => a.protocol)")) <= {
        "file:",
        "https:",
    }


VISIBLE = """(what) => [...document.querySelectorAll(what)].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.top >= 0 && box.top < innerHeight && box.left >= 0 && box.right <= innerWidth + 1;
}).map(e => e.textContent)"""


@pytest.mark.parametrize(("which", "width"), [("whole", 1280), ("two", 400)])
def test_the_first_screen_holds_picture_and_verdicts(browser, which, width, pages):
    browser.open(pages[which].as_uri(), width)
    assert len(browser.evaluate(f"({VISIBLE})('.verdicts li')")) >= 3
    assert len(browser.evaluate(f"({VISIBLE})('.glance .mark')")) >= 3
    if width == 1280 and which == "whole":  # seven tasks: everything else is folded
        assert browser.evaluate("document.scrollingElement.scrollHeight") < 5000


# a table, and a column of it as the reader sees it
TABLE = "const table = [...document.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('%s'));"
COLUMN = "[...table.tBodies[0].rows].map(r => r.cells[2].dataset.value ?? r.cells[2].textContent)"


def test_tables_sort_by_keyboard(browser, pages):
    def in_table(code):
        return browser.evaluate(
            f"(() => {{ {TABLE % 'Scores with'} return {code}; }})()"
        )

    browser.open(pages["whole"].as_uri())
    browser.evaluate(UNFOLD)
    before = in_table(COLUMN)
    # the heading before ours, then one press of Tab
    in_table("table.tHead.rows[0].cells[1].querySelector('button').focus()")
    browser.press("TAB")
    assert (
        browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        == "solid"
    )
    for key, direction in (("ENTER", "ascending"), ("SPACE", "descending")):
        browser.press(key)
        found = [float(value) for value in in_table(COLUMN)]
        assert found == sorted(map(float, before), reverse=direction == "descending")
        sorts = in_table("[...table.tHead.rows[0].cells].map(c => c.ariaSort)")
        assert sorts == ["none", "none", direction, *["none"] * 2]


@pytest.mark.parametrize("which", ["whole", "board"])
def test_paper_is_white_and_cuts_nothing_off(browser, which, pages):
    browser.open(pages[which].as_uri(), 720, dark=True)  # A4 between its margins
    browser.evaluate(
        "[...document.querySelectorAll('details')].slice(0, 1).forEach(d => { d.open = true; })"
    )
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=dark)
    assert (
        browser.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert browser.evaluate(OVERFLOW) == 720
    cells = (
        "[...document.querySelectorAll('td, figure')].filter(e => e.checkVisibility())"
    )
    rights = browser.evaluate(f"{cells}.map(e => e.getBoundingClientRect().right)")
    assert len(rights) > 10
    assert max(rights) <= 720
    if which != "board":  # which has filters and other tabs that paper doesn't show
        parts = "[...document.querySelectorAll('main h2, main .strip .mark')]"
        hidden = (
            f"{parts}.filter(e => !e.getClientRects().length && !e.closest('details'))"
        )
        assert browser.evaluate(f"{hidden}.length") == 0
        shown = "[...document.querySelectorAll('details')].map(d => getComputedStyle(d).display !== 'none')"
        assert sum(browser.evaluate(shown)) <= 1  # what is unfolded
    pdf = base64.b64decode(
        browser.call("Page.printToPDF", printBackground=True)["data"]
    )
    browser.call("Emulation.setEmulatedMedia", media="")
    assert b"/Type /Page\n" in pdf
