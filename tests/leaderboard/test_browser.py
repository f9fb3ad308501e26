"""The page in a real browser: tabs by keyboard, filters, sorting, the saved table, what stays in its address."""

import csv
import io

import pytest

from lm_eval_bias.cli.main import main
from tests.support.boards import run_data
from tests.support.made_runs import write
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    values = {
        "b-worst": 0.2, "a-best": 0.9, "an-organisation/a-model-with-a-long-name": 0.5, "<script>x()</script>": 0.51,
        "an-organisation/a-model-with-a-name-that-is-longer-than-any-column-is-wide": None,
    }  # fmt: skip
    nothing = {"value": None, "stderr": None, "interval": None, "note": "why"}
    for i, (name, value) in enumerate(values.items()):
        made = run_data(name, acc_amb=(value, 0.02) if value else nothing, diff_bias_amb=(0.01 * i, 0.02))
        write(folder / "runs" / f"run{i}.json", made)
    out = folder / "board.html"
    assert main(["leaderboard", str(folder / "runs"), str(ROOT / "results"), "-o", str(out)]) == 0
    return out.as_uri()


PANEL = "document.querySelector('[role=tabpanel]:not([hidden])')"
HEADS = f"[...{PANEL}.querySelectorAll('thead th')].filter(c => c.checkVisibility())"
TABLE = f"{PANEL}.querySelector('table')"
# what is shown, by model
SHOWN = f"[...{TABLE}.querySelectorAll('tbody tr')].filter(r => r.checkVisibility()).map(r => r.cells[0].title)"
TABS = "[...document.querySelectorAll('[role=tab]')]"
STATUS = "document.querySelector('[role=search] output').textContent"
COLUMNS = f"{HEADS}.slice(1).map(c => c.querySelector('small').textContent + ':' + c.querySelector('button').title)"


MODEL, KIND = "document.querySelector('[role=search] input')", "document.querySelector('[role=search] select')"


def choose(browser, field, value):
    """A value of a filter or checkbox, as a reader chooses it."""
    browser.evaluate(
        f"(() => {{ const f = {field}; f.type === 'checkbox' ? f.checked = {value} : f.value = {value};"
        " f.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def pick(browser, score, wanted="true"):
    choose(browser, f'document.querySelector(`.picker [value="{score}"]`)', wanted)


def open_at(browser, address, *size, **scheme):
    """Open the page at an address of its own, which would be no load from another place in it."""
    browser.open("about:blank")
    browser.open(address, *size, **scheme)


def test_one_benchmark_at_a_time_by_keyboard(browser, page):
    browser.open(page)
    browser.call("Emulation.setFocusEmulationEnabled", enabled=True)
    names = browser.evaluate(f"{TABS}.map(t => t.textContent)")
    browser.evaluate(f"{TABS}[0].focus()")
    for key, place in (("ARROW_RIGHT", 1), ("END", -1), ("ARROW_RIGHT", 0)):
        browser.press(key)
        assert browser.evaluate("document.activeElement.textContent") == names[place]
        chosen = f"{TABS}.filter(t => t.ariaSelected === 'true').map(t => t.textContent)"
        shown = "[...document.querySelectorAll('[role=tabpanel]:not([hidden])')].map(p => p.ariaLabel)"
        assert browser.evaluate(chosen) == browser.evaluate(shown) == [names[place]]
    browser.evaluate(f"{TABS}[2].click()")
    assert browser.evaluate(f"{PANEL}.ariaLabel") == names[2]


def test_accuracies_sort_highest_first_and_missing_values_stay_last(browser, page):
    open_at(browser, f"{page}#tab=gg_bbq&model=&kind=run&gg_bbq=gg_bbq_group_terms:acc_amb")
    browser.evaluate(f"{HEADS}[1].querySelector('button').focus()")
    for direction, first in (("descending", "a-best"), ("ascending", "b-worst")):
        browser.press("ENTER")
        assert browser.evaluate(f"{HEADS}[1].ariaSort") == direction
        own = [name for name in browser.evaluate(SHOWN) if not name.startswith("SmolLM2")]
        assert own[0] == first
        assert own[-1].startswith("an-organisation/a-model-with-a-name")


def test_search_and_source_agree_and_are_announced(browser, page):
    browser.open(page)
    everything = browser.evaluate(SHOWN)
    assert browser.evaluate(STATUS) == f"{len(everything)} of {len(everything)} models"
    assert browser.evaluate("document.querySelector('[role=search] output').ariaLive") == "polite"
    choose(browser, MODEL, "'LONG-name organisation/'")
    assert browser.evaluate(SHOWN) == ["an-organisation/a-model-with-a-long-name"]
    assert browser.evaluate(STATUS) == f"1 of {len(everything)} models"
    choose(browser, MODEL, "''")
    browser.evaluate(f"{TABS}.find(t => t.textContent === 'Multilingual StereoSet').click()")
    choose(browser, KIND, "'published'")
    published = browser.evaluate(SHOWN)
    assert len(published) > 3
    assert "SmolLM2-135M-Instruct" not in published
    # a model without a value in what is shown goes as well
    turkish = browser.evaluate("document.querySelector('.picker input[value*=_tr\\\\:]').value")
    for value in browser.evaluate(COLUMNS):
        pick(browser, value, "false")
    assert browser.evaluate(SHOWN) == []
    pick(browser, turkish)
    assert 0 < len(browser.evaluate(SHOWN)) < len(published)


def test_the_address_keeps_tab_filters_and_columns(browser, page):
    browser.open(page)
    browser.evaluate(f"{TABS}[1].click()")
    choose(browser, MODEL, "'mistral & 7B'")
    first = browser.evaluate(COLUMNS)[0]
    pick(browser, first, "false")
    told = f"[location.href, {PANEL}.ariaLabel, {MODEL}.value, {COLUMNS}]"
    before = browser.evaluate(told)
    open_at(browser, before[0])
    assert browser.evaluate(told) == before
    assert first not in before[3]
    # a link to a tab, as it is without a script
    open_at(browser, f"{page}#board-occugender")
    assert browser.evaluate(f"{PANEL}.id") == "board-occugender"
    assert browser.complaints() == []


def test_what_is_shown_is_saved_as_csv(browser, page):
    browser.open(page)
    choose(browser, MODEL, "'a'")
    pick(browser, "gg_bbq_group_terms:acc_amb")
    saved = browser.evaluate(
        """new Promise(resolve => {
          URL.createObjectURL = blob => { blob.text().then(resolve); return "blob:x"; };
          HTMLAnchorElement.prototype.click = function () {};
          document.querySelector('[role=search] button').click();
        })"""
    )
    head, *rows = csv.reader(io.StringIO(saved))
    score = "gg_bbq_group_terms: acc_amb"
    assert head[:5] == ["model", "about", score, f"{score}, 95% interval", f"{score}, rank"]
    assert [row[0] for row in rows] == browser.evaluate(SHOWN)
    (best,) = (row for row in rows if row[0] == "a-best")
    assert (best[2:5], len(best)) == (["90.0%", "[86.0, 94.0]", "1 of 4"], len(head))
