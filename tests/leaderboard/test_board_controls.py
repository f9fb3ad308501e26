"""The leaderboard's page in a browser: search, order, and what axe says of it."""

import pytest

from lm_eval_bias.cli.main import main
from tests.support.made_runs import harness_form, run_of, write
from tests.support.places import ROOT

TASKS = ["gg_bbq_names", "occugender_explicit", "stereoset_de"]


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The page of this project's runs and some models beside them."""
    folder = tmp_path_factory.mktemp("models")
    for number in range(3):
        content = harness_form(run_of(f"org/model-{number}", TASKS, 3 * number))
        write(folder / "runs" / f"results_{number}.json", content)
    out = folder / "board.html"
    runs = [str(folder / "runs"), str(ROOT / "results")]
    assert main(["leaderboard", *runs, "-o", str(out)]) == 0
    return browser, out.as_uri()


ROWS = (
    "[...document.querySelectorAll('.board tbody tr')].filter(r => r.checkVisibility())"
)


def test_search_and_order(page):
    browser, url = page
    browser.open(url, 1280)
    whole = browser.evaluate(f"{ROWS}.length")
    heads = "document.querySelectorAll('.board thead th')"
    column = f"[...{heads}].findIndex(h => h.textContent.startsWith('GG-BBQ'))"
    texts = f"(i => {ROWS}.map(r => r.cells[i].dataset.value ?? ''))({column})"
    for _ in ("ascending", "descending"):
        browser.evaluate(f"{heads}[{column}].querySelector('button').click()")
        values = browser.evaluate(texts)
        able = [float(value) for value in values if value]
        assert "" in values  # who is unable, or wasn't run, comes last in every order
        assert values[len(able) :] == [""] * (whole - len(able))
        assert able in (sorted(able), sorted(able)[::-1])
    search = "document.querySelector('input[type=search]')"
    browser.evaluate(f"{search}.value = 'MODEL-1'")
    browser.evaluate(f"{search}.dispatchEvent(new Event('input'))")
    assert browser.evaluate(f"{ROWS}.length") == 1
    assert browser.complaints() == []


def test_axe_finds_nothing(page):
    axe = pytest.importorskip("axe_core_python", reason="pip install axe-core-python")
    from importlib import resources

    script = resources.files(axe).joinpath("axe.min.js").read_text(encoding="utf-8")
    browser, url = page
    browser.open(url, 400)
    browser.evaluate(
        "document.querySelectorAll('details').forEach(d => { d.open = true; })"
    )
    browser.evaluate(f"{script}; 1")
    found = browser.evaluate(
        "axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
    )
    assert found == []
