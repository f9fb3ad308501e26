"""A paper of the two shipped quick runs, made by the commands alone: it compiles, fits, and names what it shows."""

import re
import subprocess

import pytest

import lm_eval_bias as leb
from lm_eval_bias.cli.main import main
from lm_eval_bias.core.numbers import bracketed, shown
from lm_eval_bias.report import parts
from tests.support.papers import compile_paper
from tests.support.places import ROOT

RUNS = [
    ROOT / "results" / "runs" / f"{name}-quick"
    for name in ("smollm2-135m-instruct", "gemma-3-270m")
]
DOCUMENT = r"""\documentclass[%s]{article}
\usepackage[T1]{fontenc}
\usepackage{times}
\usepackage[margin=2cm]{geometry}
\usepackage{adjustbox,booktabs,graphicx,url}
\graphicspath{{figures/}}
\begin{document}
\input{methods}
\input{tables}
\input{compare}
\input{board}
\input{figures/figures}
\bibliographystyle{plain}
\bibliography{cite}
\end{document}
"""


@pytest.mark.parametrize("columns", ["one", "two"])
def test_a_paper_without_an_edit_by_hand(tmp_path, columns):
    paths = list(map(str, RUNS))
    tasks = ["--tasks", ",".join(task for task in leb.load(*RUNS)[0].tasks)]
    for command, name, *flags in (
        ("report", "tables.tex", *tasks, "--figures", tmp_path / "figures"),
        ("compare", "compare.tex", "--unpaired"),
        ("leaderboard", "board.tex"),
        ("methods", "methods.tex"),
        ("cite", "cite.bib"),
    ):
        given = [command, *paths, "-o", tmp_path / name, *flags]
        assert main(list(map(str, given))) == 0
    kind = "a4paper,twocolumn" if columns == "two" else "a4paper"
    (tmp_path / "paper.tex").write_text(DOCUMENT % kind)
    compile_paper(tmp_path)
    read = ["pdftotext", "-layout", tmp_path / "paper.pdf", "-"]
    text = subprocess.run(read, capture_output=True, encoding="utf-8", check=True)
    lines = [
        re.sub(r"[^\w.,%[\]-]+", " ", line.replace("−", "-"))
        for line in text.stdout.splitlines()
    ]
    for run in leb.load(*RUNS):
        for task in run.tasks.values():
            value = parts.primary(task)
            wanted = f"{task.task} .*{re.escape(f'{shown(value)} {bracketed(value)}')}"
            assert any(re.search(wanted, line) for line in lines), wanted
