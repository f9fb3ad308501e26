"""The page in a real browser: what it loads, how it sorts, whether it can be read."""

import base64
import re

import pytest

from lm_eval_bias.cli.main import main
from tests.report.test_page import FIGURES
from tests.support.made_runs import harness_folder, hostile_file, run_file, write

SIZES = [(1000, False), (1000, True), (360, False), (360, True)]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """A page with occupations, two runs and long names."""
    folder = tmp_path_factory.mktemp("two")
    one = harness_folder(folder / "h")
    other = write(folder / "b.json", run_file("an-organisation/a-model-with-a-very-long-name-in-every-table", shift=9))
    out = folder / "two.html"
    assert main(["report", one, other, "-o", str(out)]) == 0
    return out


@pytest.mark.parametrize(("width", "dark"), SIZES)
def test_nothing_is_loaded_and_nothing_complained_of(browser, whole_page, width, dark):
    url = whole_page.as_uri()
    browser.open(url, width, dark=dark)
    assert browser.complaints() == []
    assert [request for request in browser.requests() if not request.startswith("data:")] == [url]
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


UNFOLD = "document.querySelectorAll('details').forEach(d => { d.open = true; })"


def test_every_figure_is_drawn(browser, whole_page):
    browser.open(whole_page.as_uri())
    browser.evaluate(UNFOLD)
    drawn = browser.evaluate(
        "[...document.querySelectorAll('svg.figure, .panels')].map(s => {"
        " const box = s.getBoundingClientRect();"
        " const named = [s.getAttribute('aria-labelledby'), s.getAttribute('aria-describedby')];"
        " return [named[0], box.width, box.height, s.querySelectorAll('path, .mark').length,"
        "  named.every(id => document.getElementById(id).textContent.length > 10)]; })"
    )
    assert {name.removesuffix("-title") for name, *_ in drawn} == FIGURES
    for name, width, height, paths, told in drawn:
        assert width > 600, name
        assert height > 60, name
        assert paths >= 3, name
        assert told, name
    # colours come from the page: none of the drawing's stand-ins is left, and dark differs from light
    colours = "[...document.querySelectorAll('svg text')].map(t => getComputedStyle(t).fill)"
    light = browser.evaluate(colours)
    browser.open(whole_page.as_uri(), dark=True)
    dark = browser.evaluate(colours)
    assert len(light) == len(dark) > 100
    assert not set(light) & set(dark)


VISIBLE = """(what) => [...document.querySelectorAll(what)].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.top >= 0 && box.top < innerHeight && box.left >= 0 && box.right <= innerWidth + 1;
}).map(e => e.textContent)"""


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("which", ["whole_page", "two_runs"])
def test_the_first_screen_holds_picture_and_verdicts(browser, which, width, request):
    browser.open(request.getfixturevalue(which).as_uri(), width)
    assert browser.evaluate(OVERFLOW) == width
    assert len(browser.evaluate(f"({VISIBLE})('.verdicts li')")) >= 3
    assert len(browser.evaluate(f"({VISIBLE})('.overview figure .mark')")) >= (10 if width > 1000 else 0)
    order = "[...document.querySelectorAll('main h2')].map(h => h.textContent)"
    assert browser.evaluate(order) == ["Verdicts", "Bias", "Abilities", "Read before the numbers", "Scores", "Details"]
    if width == 1280 and which == "whole_page":  # seven tasks: everything else is folded
        assert browser.evaluate("document.scrollingElement.scrollHeight") < 5000


def test_the_keyboard_goes_from_mark_to_mark_and_hears_their_numbers(browser, two_runs):
    browser.open(two_runs.as_uri(), 1280)
    marks = "[...document.querySelector('.overview figure').querySelectorAll('.mark')]"
    assert browser.evaluate(f"{marks}.filter(m => m.tabIndex === 0).length") == 1  # a figure is one stop of Tab
    stops = "[...document.querySelectorAll('.verdicts a')].pop().focus()"
    browser.evaluate(stops)
    browser.press("Tab", 9)
    spoken = []
    for key, code in (("ArrowRight", 39), ("ArrowDown", 40), ("ArrowLeft", 37), ("End", 35), ("Home", 36)):
        spoken.append(browser.evaluate("document.activeElement.getAttribute('aria-label')"))
        tip = "(() => { const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent; })()"
        assert browser.evaluate(tip) == spoken[-1]
        browser.press(key, code)
    assert spoken[1] == spoken[3]
    assert len(set(spoken)) == 4
    assert "gap towards the stereotype: " in spoken[0]
    assert "neutral 0" in spoken[0]
    assert browser.evaluate(f"{marks}.indexOf(document.activeElement)") == 0
    browser.press("Escape", 27)
    assert browser.evaluate(tip) == ""
    assert browser.complaints() == []


def test_marks_say_their_numbers_to_the_pointer(browser, whole_page):
    browser.open(whole_page.as_uri(), 1280)
    browser.evaluate(UNFOLD)
    for figure in (".overview figure", "#stereoset figure", "#regard figure:last-of-type"):
        place = browser.evaluate(
            f"(() => {{ const m = document.querySelector('{figure} .mark'); m.scrollIntoView({{block: 'center'}});"
            " const b = m.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
        box = (
            "(() => { const b = document.querySelector('.tip').getBoundingClientRect(); return [b.left, b.right]; })()"
        )
        left, right = browser.evaluate(box)
        assert 0 <= left < right <= 1280
        assert re.search(r"\d", browser.evaluate("document.querySelector('.tip').textContent"))
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        assert browser.evaluate("document.querySelector('.tip').hidden")


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


def test_long_names_are_short_and_at_hand(browser, two_runs):
    browser.open(two_runs.as_uri(), 1280)
    name = "an-organisation/a-model-with-a-very-long-name-in-every-table"
    seen = browser.evaluate(
        "[...document.querySelectorAll('.verdicts .long')].map(e => [e.title, e.children[0].textContent,"
        " e.children[0].ariaHidden, e.children[1].textContent])"
    )
    assert [name, "an-organisation/…e-in-every-table", "true", name] in seen


# a table's column as the reader sees it
COLUMN = "[...table.tBodies[0].rows].map(r => r.cells[%d].dataset.value ?? r.cells[%d].textContent)"
TABLE = "const table = [...document.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('%s'));"


def test_tables_sort_by_keyboard(browser, whole_page):
    browser.open(whole_page.as_uri())
    browser.evaluate(UNFOLD)
    setup = TABLE % "By way of scoring"
    column = f"(() => {{ {setup} return {COLUMN % (2, 2)}; }})()"
    before = browser.evaluate(column)
    # the heading before ours, then one press of Tab
    browser.evaluate(f"(() => {{ {setup} table.tHead.rows[0].cells[1].querySelector('button').focus(); }})()")
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.textContent") == "stereotypes preferred"
    outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press("Enter", 13)
    assert [float(v) for v in browser.evaluate(column)] == sorted(map(float, before))
    directions = f"(() => {{ {setup} return [...table.tHead.rows[0].cells].map(c => c.ariaSort); }})()"
    assert browser.evaluate(directions) == ["none", "none", "ascending", "none"]
    browser.press(" ", 32)
    assert [float(v) for v in browser.evaluate(column)] == sorted(map(float, before), reverse=True)
    assert browser.evaluate(directions) == ["none", "none", "descending", "none"]


def test_missing_values_are_sorted_last_both_ways(browser, tmp_path):
    content = run_file(tasks=["stereoset_en", "stereoset_de", "stereoset_fr"])
    content["tasks"]["stereoset_de"]["scores"]["ss"] |= {"value": None, "interval": None, "stderr": None, "note": "why"}
    out = tmp_path / "m.html"
    assert main(["report", write(tmp_path / "m.json", content), "-o", str(out)]) == 0
    browser.open(out.as_uri())
    setup = TABLE % "Main scores"
    for _ in range(2):
        browser.evaluate(f"(() => {{ {setup} table.tHead.rows[0].cells[2].querySelector('button').click(); }})()")
        assert browser.evaluate(f"(() => {{ {setup} return {COLUMN % (2, 2)}; }})()")[-1] == "–"


OVERFLOW = "document.scrollingElement.scrollWidth"


@pytest.mark.parametrize("which", ["whole_page", "two_runs"])
def test_no_sideways_scroll_on_a_narrow_screen(browser, which, request):
    browser.open(request.getfixturevalue(which).as_uri(), 360)
    browser.evaluate(UNFOLD)
    assert browser.evaluate(OVERFLOW) == 360
    # what is wider scrolls in a box that the keyboard reaches
    boxes = browser.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth"
        " && getComputedStyle(e).overflowX === 'auto').map(e => [e.tabIndex, e.getAttribute('role'), e.ariaLabel])"
    )
    assert boxes  # drawings of a fixed width
    assert all(tab == 0 and role == "region" and label for tab, role, label in boxes)


# WCAG 2: the contrast of each text with the first opaque ground behind it, where it is less than it must be
CONTRAST = """(() => {
  const read = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = c => { const [r, g, b] = c.map(v => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = read(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c.slice(0, 3); }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255]; };
  // text in a drawing stands on the last filled shape before it that holds its middle
  const behind = t => { const box = t.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    let found = ground(t.closest('svg'));
    for (const s of t.closest('svg').querySelectorAll('path')) {
      if (s.compareDocumentPosition(t) & Node.DOCUMENT_POSITION_PRECEDING || s.closest('defs')) continue;
      const f = getComputedStyle(s).fill, b = s.getBoundingClientRect();
      if (!f.startsWith('rgb') || x < b.left || x > b.right || y < b.top || y > b.bottom) continue;
      found = read(f).slice(0, 3); }
    return found; };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement, text = node.textContent.trim();
    if (!text || ['SCRIPT', 'STYLE', 'title', 'desc'].includes(e.tagName) || !e.getClientRects().length) continue;
    const drawn = e.closest('svg'), style = getComputedStyle(e);
    const [a, b] = [light(read(drawn ? style.fill : style.color).slice(0, 3)), light(drawn ? behind(e) : ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([text, ratio]);
  }
  return bad;
})()"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("which", ["whole_page", "two_runs"])
def test_contrast_is_aa(browser, which, dark, request):
    browser.open(request.getfixturevalue(which).as_uri(), dark=dark)
    browser.evaluate(UNFOLD)
    assert browser.evaluate(CONTRAST) == []


def test_paper_is_white_and_shows_what_is_unfolded(browser, whole_page):
    browser.open(whole_page.as_uri(), dark=True)
    browser.evaluate("document.querySelector('details').open = true")
    browser.call(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    shown = browser.evaluate(
        "[...document.querySelectorAll('details')].map(d => getComputedStyle(d).display !== 'none')"
    )
    assert shown[0]
    assert not any(shown[1:])
    browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("which", ["whole_page", "two_runs"])
def test_nothing_is_cut_off_on_paper(browser, which, request):
    browser.open(request.getfixturevalue(which).as_uri(), 700)  # A4 between its margins
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.evaluate(OVERFLOW) == 700
    parts = "[...document.querySelectorAll('main h2, main .overview *:not(.long > [aria-hidden]), main .strip .mark')]"
    assert browser.evaluate(f"{parts}.filter(e => !e.getClientRects().length && !e.closest('details')).length") == 0
    # names are whole, since paper has nothing to point at
    names = "[...document.querySelectorAll('.long')].filter(e => e.getClientRects().length)"
    assert browser.evaluate(f"{names}.every(e => e.innerText.trim() === e.title)")
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
    browser.call("Emulation.setEmulatedMedia", media="")
    assert 5 <= pdf.count(b"/Type /Page\n") <= 60
    assert len(pdf) > 100_000


@pytest.fixture(scope="module")
def item_page(two_runs):
    """The items of the run that has a sample log."""
    return two_runs.with_name("two-items") / "r1t1.html"


@pytest.mark.parametrize(("width", "dark"), SIZES)
def test_items_can_be_read_and_load_nothing(browser, item_page, width, dark):
    browser.open(item_page.as_uri(), width, dark=dark)
    assert browser.evaluate("[...document.querySelectorAll('details')].some(d => d.open)") is False
    browser.evaluate(UNFOLD)
    assert browser.evaluate(OVERFLOW) == width
    assert browser.evaluate(CONTRAST) == []
    assert browser.complaints() == []
    assert [request for request in browser.requests() if not request.startswith("data:")] == [item_page.as_uri()]


def test_items_are_picked_by_keyboard(browser, two_runs, item_page):
    browser.open(two_runs.as_uri(), 1280)
    browser.evaluate("document.querySelector('.overview .mark[href]').focus()")  # a mark leads to its items
    browser.press("Enter", 13)
    at = "location.href.endsWith('two-items/r1t1.html#score-1') && document.readyState === 'complete'"
    assert any(browser.evaluate(at) for _ in range(200))
    browser.evaluate("document.querySelector('details summary').focus()")
    browser.press("Enter", 13)
    shown = "[...document.querySelectorAll('details')[0].querySelectorAll('ol > li')].filter(i => i.offsetParent)"
    assert browser.evaluate(f"{shown}.length") == 40
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.dataset.facet") == "kind"
    browser.press("ArrowDown", 40)
    assert browser.evaluate(f"{shown}.map(i => i.dataset.kind)") == ["most"] * 20
    assert browser.evaluate("document.querySelector('output').textContent") == "20 of 40 shown"
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.parentElement.textContent").startswith("jobs")
    browser.press("ArrowDown", 40)
    first = browser.evaluate("document.activeElement.value")
    assert browser.evaluate(f"{shown}.every(i => i.textContent.includes('{first}'))")
    assert browser.complaints() == []


def test_hostile_file_runs_nothing(browser, tmp_path):
    out = tmp_path / "h.html"
    assert main(["report", write(tmp_path / "h.json", hostile_file()), "-o", str(out)]) == 0
    browser.open(out.as_uri(), 360)
    assert browser.complaints() == []
    assert [request for request in browser.requests() if not request.startswith("data:")] == [out.as_uri()]
    assert not any(event.get("method") == "Page.javascriptDialogOpening" for event in browser.events)
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.images.length") == 0
    assert "<script>alert(1)</script>" in browser.evaluate("document.querySelector('h1').textContent")
    assert browser.evaluate(OVERFLOW) == 360
    links = browser.evaluate("[...document.links].map(a => a.protocol)")
    assert set(links) <= {"file:", "https:"}
