"""The notebook of the documentation runs from its first cell to its last, offline, and what it writes compiles."""

import ast
import json

import pytest

from tests.support.papers import compile_paper
from tests.support.places import ROOT

NOTEBOOK = json.loads((ROOT / "docs" / "from_run_to_paper.ipynb").read_text("utf-8"))
CODE = {
    cell["id"]: "".join(cell["source"])
    for cell in NOTEBOOK["cells"]
    if cell["cell_type"] == "code"
}


def run_cell(source, names):
    """Run a cell and return what a notebook would show: the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return None


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What each cell shows, the names that they leave, and the folder that they ran in."""
    folder = tmp_path_factory.mktemp("notebook")
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("LM_EVAL_BIAS_CACHE", str(folder / "cache"))
        shown = {ident: run_cell(source, names) for ident, source in CODE.items()}
    return shown, names, folder


def test_outputs_show_themselves(ran):
    shown, names, _ = ran
    for ident in ("load", "report", "compare", "methods"):
        assert shown[ident]._repr_html_().startswith("<")
    values = names["leb"].scores(names["runs"])
    gaps = values[values.score == "stereotype_gap"].groupby("run").value.mean()
    assert list(gaps.round(1)) == [0.1, 0.4]  # as they were simulated


def test_what_it_writes_is_a_paper(ran):
    _, names, folder = ran
    for name in (
        "report.html",
        "tables.tex",
        "comparison.tex",
        "methods.tex",
        "runs.bib",
    ):
        assert (folder / name).stat().st_size > 100
    assert names["figures"]
    for name in names["figures"]:
        assert (folder / "figures" / name).is_file()
    compile_paper(folder)
