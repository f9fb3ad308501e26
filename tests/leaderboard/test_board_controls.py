"""The leaderboard's page in a browser: every control, with and without a script, on a phone."""

import json

import pytest

from lm_eval_bias.cli.main import main
from tests.support.made_runs import harness_form, run_of, write

MODELS = 5
TASKS = ["gg_bbq_names", "occugender_explicit", "stereoset_de"]


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The page of some models of several sizes, with its address and data."""
    folder = tmp_path_factory.mktemp("models")
    for number in range(MODELS):
        content = harness_form(run_of(f"org/model-{number}", TASKS, 3 * number))
        content["config"]["model_num_parameters"] = 4 * 10 ** (7 + number)
        write(folder / "runs" / f"results_{number}.json", content)
    out = folder / "board.html"
    assert main(["leaderboard", str(folder / "runs"), "-o", str(out)]) == 0
    assert main(["leaderboard", str(folder / "runs"), "-o", f"{out}.json"]) == 0
    data = json.loads((folder / "board.html.json").read_text(encoding="utf-8"))
    return browser, out.as_uri(), data


SHOWN = "[...document.querySelectorAll('#board tbody tr')].map(r => r.dataset.model)"
HEADS = "[...document.querySelectorAll('#board thead th')].map(h => h.dataset.score ?? h.dataset.benchmark ?? '')"


def choose(browser, name, value):
    field = f"document.forms[0].elements['{name}']"
    browser.evaluate(
        f"(() => {{ const f = {field}; if (f.type === 'checkbox') f.checked = {json.dumps(bool(value))}; "
        f"else f.value = {json.dumps(value)}; f.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    )


def test_every_filter_and_the_address(page):
    browser, url, data = page
    browser.open(url, 1280)
    name = data["models"][3]["model"]
    choose(browser, "q", name.upper())
    assert browser.evaluate(SHOWN) == [name]
    assert "q=" in browser.evaluate("location.hash")
    choose(browser, "q", "")

    choose(browser, "language", "de")
    languages = {score["id"]: score["language"] for score in data["scores"]}
    shown = [languages[head] for head in browser.evaluate(HEADS) if head]
    assert set(shown) == {"de"}
    choose(browser, "language", "")
    choose(browser, "benchmark", "gg_bbq")
    assert {head.split("_")[0] for head in browser.evaluate(HEADS) if head} == {"gg"}
    choose(browser, "benchmark", "")

    choose(browser, "size", "1e9-1e10")
    sizes = {model["model"]: model["parameters"] for model in data["models"]}
    found = browser.evaluate(SHOWN)
    assert found == [name for name, n in sizes.items() if 1e9 <= n < 1e10]
    choose(browser, "size", "")
    for name, value in (("items", "whole"), ("chance", True)):
        choose(browser, name, value)
    address = browser.evaluate("location.hash")
    browser.open(f"{url}{address}", 1280)
    assert browser.evaluate("document.forms[0].elements['items'].value") == "whole"
    assert browser.evaluate("document.forms[0].elements['chance'].checked") is True
    browser.evaluate("document.querySelector('button[type=reset]').click()")
    assert browser.evaluate("location.hash") == ""
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [400])
def test_axe_finds_nothing(page, width):
    axe = pytest.importorskip("axe_core_python", reason="pip install axe-core-python")
    from importlib import resources

    script = resources.files(axe).joinpath("axe.min.js").read_text(encoding="utf-8")
    browser, url, _ = page
    browser.open(f"{url}#open=gg_bbq", width)
    browser.evaluate(
        "document.querySelectorAll('details').forEach(d => { d.open = true; })"
    )
    browser.evaluate(f"{script}; 1")
    found = browser.evaluate(
        "axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
    )
    assert found == []


def test_without_a_script_the_whole_table_stands_there(page):
    browser, url, data = page
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(url, 1280)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.evaluate("document.getElementById('controls').hidden") is True
    heads = browser.evaluate(HEADS)
    assert {score["id"] for score in data["scores"]} <= set(heads)
    rows = browser.evaluate("document.querySelectorAll('#board tbody tr').length")
    assert rows == MODELS
