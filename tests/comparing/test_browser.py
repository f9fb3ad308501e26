"""The page of a comparison in a real browser."""

import json

import pytest

from lm_eval_bias.cli.main import main
from tests.support.chromium import OVERFLOW, check_page

TASKS = "occugender_debias_implicit_none,occugender_debias_implicit_1"
LONG = "an-organisation/a-model-with-a-name-that-is-longer-than-any-column-is-wide"


def _run(folder, seed, name=None, lean=0.0):
    arguments = ["--model", "bias-chance", "--model_args", f"seed={seed}", "--output_path", str(folder)]
    assert main(["run", "--tasks", TASKS, *arguments, "--log_samples"]) == 0
    if name is None:
        return str(folder)
    for path in folder.rglob("samples_*"):
        samples = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for sample in samples:
            del sample["resps"]
            for answer, gender in zip(sample["filtered_resps"], sample["doc"]["genders"], strict=True):
                answer[0] = str(float(answer[0]) + lean * (gender == sample["doc"]["group"]))
        path.write_text("\n".join(map(json.dumps, samples)), encoding="utf-8")
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    for scores in content["results"].values():
        scores.clear()
    content["config"]["model_args"] = {"pretrained": name}
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Three sides: one that differs, with a long name, and one whose name is no markup."""
    root = tmp_path_factory.mktemp("page")
    runs = [_run(root / "a", 1), _run(root / "b", 2, LONG, 1.0), _run(root / "c", 3, "<script>alert(1)</script>")]
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
    assert len(marks) == 20  # five scores of two tasks and two sides
    filled = sum(not hollow for _, hollow in marks)
    assert 0 < filled < 20
    told = int(browser.evaluate("document.querySelector('p.muted').textContent.match(/(\\d+) of 20/)[1]"))
    assert filled == told
    assert len({shape for shape, _ in marks}) == 2


def test_paper_has_every_column(browser, page):
    browser.open(page, 720)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.evaluate(OVERFLOW) <= 720
    shown = "e => e.checkVisibility() && e.getBoundingClientRect().right <= 720"
    assert browser.evaluate(f"[...document.querySelectorAll('main > section > .scroll td, figure')].every({shown})")
    browser.call("Emulation.setEmulatedMedia", media="")
