"""Tables for papers compile, and fit their width and page: nothing overfull, in one column and in two."""

import re
import shutil
import subprocess

import pytest

from lm_eval_bias.cli.main import main
from tests.support.places import ROOT

RUNS = [
    ROOT / "results" / "runs" / f"{name}-quick"
    for name in ("smollm2-135m-instruct", "gemma-3-270m")
]
DOCUMENT = r"""\documentclass[%s]{article}
\usepackage[T1]{fontenc}
\usepackage{lmodern}
\usepackage[margin=2cm]{geometry}
\usepackage{adjustbox,booktabs,url}
\begin{document}
Text.
\input{tables}
\end{document}
"""


@pytest.mark.parametrize(
    ("command", "columns"),
    [("report", "two"), ("leaderboard", "one"), ("compare", "two")],
)
def test_tables_compile_and_fit(tmp_path, command, columns):
    if not shutil.which("pdflatex"):
        pytest.skip("no pdflatex (apt-get install texlive-latex-extra lmodern)")
    paths = list(map(str, RUNS))
    flags = ["--unpaired"] if command == "compare" else []
    flags += ["--column"] if columns == "two" else []
    tables = tmp_path / "tables.tex"
    assert main([command, *paths, "-o", str(tables), *flags]) == 0
    kind = "a4paper,twocolumn" if columns == "two" else "a4paper"
    (tmp_path / "paper.tex").write_text(DOCUMENT % kind)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path, capture_output=True, encoding="latin-1", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    found = re.findall(r"Overfull \\.box \(([\d.]+)pt", done.stdout)
    assert [points for points in found if float(points) > 2] == []
    assert "Float too large" not in done.stdout


@pytest.mark.parametrize("command", ["compare"])
def test_every_row_names_its_task_and_score(tmp_path, command):
    tables = tmp_path / "tables.tex"
    flags = ["--unpaired"] if command == "compare" else []
    assert main([command, *map(str, RUNS), "-o", str(tables), *flags]) == 0
    floats = tables.read_text().split("\\begin{table*}")[1:]
    assert len(floats) > 1
    for written in floats:
        _, inner = written.split("\\midrule\n")
        inner, notes = inner.split("\\bottomrule")
        rows = [
            tuple(cell.strip() for cell in row.split(" & ")[:2])
            for row in inner.strip().splitlines()
        ]
        if "by language" not in written:
            assert len(set(rows)) == len(rows)
            assert all(task and score for task, score in rows)
        for mark in (r"$\dagger$", r"$\ddagger$"):
            assert (mark in inner) == (f"{mark} " in notes)
