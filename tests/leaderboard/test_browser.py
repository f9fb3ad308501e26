"""The page in a real browser: it loads nothing, fits a narrow screen, and its ranks sort by keyboard."""

import pytest

from lm_eval_bias.cli.main import main
from tests.conftest import ROOT
from tests.leaderboard.boards import run_data, write


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    values = {
        "b-worst": 0.2,
        "a-best": 0.9,
        "an-organisation/a-model-with-a-long-name": 0.5,
        "<script>x()</script>": 0.51,
    }
    for i, (name, value) in enumerate(values.items()):
        write(folder / "runs", f"run{i}", run_data(name, acc_amb=(value, 0.02)))
    write(folder / "runs", "unranked", run_data("c-none", acc_amb={"value": None, "stderr": None, "interval": None,
                                                                   "note": "why"}))  # fmt: skip
    out = folder / "board.html"
    assert main(["leaderboard", str(folder / "runs"), str(ROOT / "results"), "-o", str(out)]) == 0
    return out.as_uri()


@pytest.mark.parametrize(("width", "dark"), [(1000, False), (1000, True), (360, False), (360, True)])
def test_nothing_is_loaded_complained_of_or_too_wide(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [page]
    assert browser.evaluate("document.scrollingElement.scrollWidth") <= width


def test_ranks_sort_by_keyboard_and_missing_ones_stay_last(browser, page):
    browser.open(page)
    wanted = "gg_bbq_group_terms: main"
    table = f"[...document.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('{wanted}'))"
    heads = browser.evaluate(f"[...{table}.tHead.rows[0].cells].map(c => c.textContent.trim())")
    column = heads.index("acc_amb: rank")
    shown = f"[...{table}.tBodies[0].rows].map(r => r.cells[{column}].textContent.trim())"
    browser.evaluate(f"{table}.tHead.rows[0].cells[{column - 1}].querySelector('button').focus()")
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.textContent.trim()") == "acc_amb: rank"
    browser.press("Enter", 13)
    assert browser.evaluate(shown) == ["1 of 4", "2-3 of 4", "2-3 of 4", "4 of 4", "–", "–"]
    browser.press("Enter", 13)
    assert browser.evaluate(shown) == ["4 of 4", "2-3 of 4", "2-3 of 4", "1 of 4", "–", "–"]
