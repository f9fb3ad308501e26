"""The page of our own results says what the files in results/runs say."""

import importlib.util

from tests.support.places import ROOT


def test_the_page_is_made_of_the_result_files():
    place = ROOT / "docs" / "results_page.py"
    spec = importlib.util.spec_from_file_location("results_page", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert written == module.page(), "if this is what you want: make pictures"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (costs,) = (
        line for line in readme.splitlines() if "measured](docs/results" in line
    )
    for run in module.runs_of(module.QUICK):
        assert module.minutes(run) in costs
        assert f"{module.minutes(run)}:" in written
        folder, file = module.checkpoint(run).split("/")
        assert f"pretrained={folder},gguf_file={file}," in module.repeated(run)
    picture = module.picture().decode()
    for model in (module.SMOLLM2, module.GEMMA):
        assert f">{model}<" in picture
    assert (ROOT / "docs" / module.PICTURE).is_file()
