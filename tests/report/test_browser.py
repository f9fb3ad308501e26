"""The report's page in a real browser: what it loads, how it sorts, whether it can be read, on paper as well."""

import base64

import pytest

from tests.support.chromium import CONTRAST, OVERFLOW, UNFOLD, check_page
from tests.support.made_runs import harness_folder, hostile_file, run_file, write
from tests.support.pages import made

SIZES = [(1280, True), (1000, False), (360, False), (360, True)]
LONG = "an-organisation/a-model-with-a-very-long-name-in-every-table"


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """A page with occupations, two runs and long names."""
    folder = tmp_path_factory.mktemp("two")
    one, other = harness_folder(folder / "h"), write(folder / "b.json", run_file(LONG, shift=9))
    made([one, other], folder)
    return folder / "out.html"


@pytest.mark.parametrize(("width", "dark"), SIZES)
@pytest.mark.parametrize("which", ["whole_page", "two_runs", "items"])
def test_nothing_is_loaded_complained_of_too_wide_or_too_pale(browser, which, width, dark, request):
    """The items are those of the run that has a sample log; nothing of them is unfolded unasked."""
    if which == "items":
        page = request.getfixturevalue("two_runs").with_name("out-items") / "r1t1.html"
        browser.open(page.as_uri(), width)
        assert browser.evaluate("[...document.querySelectorAll('details')].some(d => d.open)") is False
    else:
        page = request.getfixturevalue(which)
    check_page(browser, page.as_uri(), width, dark)
    assert browser.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is dark


def test_the_checks_see_what_they_look_for(browser, tmp_path):
    """Against a page with all that a page must not have."""
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><meta charset=utf-8><meta http-equiv=Content-Security-Policy content=\"style-src 'none'\">"
        '<body style="color:red"><img src="there-is-none.png"><p>x</p><script>console.error("e")</script>'
        "<div id=w>wide</div><p id=grey>grey</p>"
        '<script>w.style.width="900px";grey.style.color="#999";nowhere()</script>'
    )
    browser.open(bad.as_uri(), 360)
    assert len(browser.complaints()) >= 3
    assert any("there-is-none" in request for request in browser.requests())
    assert browser.evaluate(OVERFLOW) > 360
    assert "grey" in [text for text, _ in browser.evaluate(CONTRAST)]


def test_every_figure_is_drawn_in_the_pages_colours(browser, whole_page):
    browser.open(whole_page.as_uri())
    browser.evaluate(UNFOLD)
    drawn = browser.evaluate(
        "[...document.querySelectorAll('svg.figure')].map(s => { const box = s.getBoundingClientRect();"
        " const named = [s.getAttribute('aria-labelledby'), s.getAttribute('aria-describedby')];"
        " return [box.width > 600, box.height > 60, s.querySelectorAll('path, .mark').length >= 3,"
        "  named.every(id => document.getElementById(id).textContent.length > 10)]; })"
    )
    assert drawn == [[True] * 4] * 3
    # none of the drawing's stand-ins is left, and dark differs from light
    colours = "[...document.querySelectorAll('svg text')].map(t => getComputedStyle(t).fill)"
    light = browser.evaluate(colours)
    browser.open(whole_page.as_uri(), dark=True)
    assert len(light) > 50
    assert not set(light) & set(browser.evaluate(colours))


VISIBLE = """(what) => [...document.querySelectorAll(what)].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.top >= 0 && box.top < innerHeight && box.left >= 0 && box.right <= innerWidth + 1;
}).map(e => e.textContent)"""


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("which", ["whole_page", "two_runs"])
def test_the_first_screen_holds_picture_and_verdicts(browser, which, width, request):
    browser.open(request.getfixturevalue(which).as_uri(), width)
    assert len(browser.evaluate(f"({VISIBLE})('.verdicts li')")) >= 3
    assert len(browser.evaluate(f"({VISIBLE})('.overview figure .mark')")) >= (10 if width > 1000 else 0)
    if width == 1280 and which == "whole_page":  # seven tasks: everything else is folded
        assert browser.evaluate("document.scrollingElement.scrollHeight") < 5000


def test_a_mark_leads_to_its_items_by_keyboard(browser, two_runs):
    browser.open(two_runs.as_uri(), 1280)
    browser.evaluate("document.querySelector('.overview .mark[href]').focus()")
    browser.press("Enter", 13)
    at = "location.href.endsWith('out-items/r1t1.html#score-1') && document.readyState === 'complete'"
    assert any(browser.evaluate(at) for _ in range(200))


def test_a_table_that_scrolls_keeps_its_first_column(browser, two_runs):
    browser.open(two_runs.as_uri(), 800)
    browser.evaluate(UNFOLD)
    moved = browser.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(e => e.querySelector('table') && e.getClientRects().length"
        " && e.scrollWidth > e.clientWidth + 1).map(e => { e.scrollLeft = 1e6; const c = e.querySelector('tbody th');"
        " return [c.getBoundingClientRect().left - e.getBoundingClientRect().left,"
        "  c.getBoundingClientRect().width / e.clientWidth]; })"
    )
    assert moved
    assert all(abs(left) < 1 and share < 0.6 for left, share in moved)


# a table, and a column of it as the reader sees it
TABLE = "const table = [...document.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('%s'));"
COLUMN = "[...table.tBodies[0].rows].map(r => r.cells[2].dataset.value ?? r.cells[2].textContent)"


def test_tables_sort_by_keyboard(browser, whole_page):
    def in_table(code):
        return browser.evaluate(f"(() => {{ {TABLE % 'By way of scoring'} return {code}; }})()")

    browser.open(whole_page.as_uri())
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


def test_missing_values_are_sorted_last_both_ways(browser, tmp_path):
    content = run_file(tasks=["stereoset_en", "stereoset_de", "stereoset_fr"])
    content["tasks"]["stereoset_de"]["scores"]["ss"] |= {"value": None, "interval": None, "stderr": None, "note": "why"}
    made([write(tmp_path / "m.json", content)], tmp_path)
    browser.open((tmp_path / "out.html").as_uri())
    press = "table.tHead.rows[0].cells[2].querySelector('button').click()"
    for _ in range(2):
        assert browser.evaluate(f"(() => {{ {TABLE % 'Main scores'} {press}; return {COLUMN}; }})()")[-1] == "–"


@pytest.mark.parametrize("which", ["whole_page", "two_runs"])
def test_paper_is_white_and_cuts_nothing_off(browser, which, request):
    browser.open(request.getfixturevalue(which).as_uri(), 700, dark=True)  # A4 between its margins
    browser.evaluate("document.querySelector('details').open = true")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=dark)
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.evaluate(OVERFLOW) == 700
    parts = "[...document.querySelectorAll('main h2, main .overview *:not(title), main .strip .mark')]"
    assert browser.evaluate(f"{parts}.filter(e => !e.getClientRects().length && !e.closest('details')).length") == 0
    shown = "[...document.querySelectorAll('details')].map(d => getComputedStyle(d).display !== 'none')"
    assert browser.evaluate(shown) == [True] + [False] * (len(browser.evaluate(shown)) - 1)  # what is unfolded
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
    browser.call("Emulation.setEmulatedMedia", media="")
    assert pdf.count(b"/Type /Page\n") >= 2


def test_hostile_file_runs_nothing(browser, tmp_path):
    made([write(tmp_path / "h.json", hostile_file())], tmp_path)
    check_page(browser, (tmp_path / "out.html").as_uri(), 360, False)
    assert not any(event.get("method") == "Page.javascriptDialogOpening" for event in browser.events)
    assert "<script>alert(1)</script>" in browser.evaluate("document.querySelector('h1').textContent")
    assert set(browser.evaluate("[...document.links].map(a => a.protocol)")) <= {"file:", "https:"}
