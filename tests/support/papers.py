"""A paper compiled as authors would."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest


def compile_paper(folder: Path) -> None:
    """Make ``paper.pdf`` of ``paper.tex`` with its bibliography; no error, nothing undefined, nothing too wide."""
    for tool in ("pdflatex", "bibtex", "pdftotext"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool} (Debian: texlive-latex-extra, poppler-utils)")
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for command in (latex, ["bibtex", "paper"], latex, latex):
        done = subprocess.run(
            command, cwd=folder, capture_output=True, encoding="latin-1", check=False
        )
        assert done.returncode == 0, done.stdout[-2000:]
    for problem in ("undefined", "multiply", "Float too large"):
        assert problem not in done.stdout
    found = re.findall(r"Overfull \\.box \(([\d.]+)pt", done.stdout)
    assert [points for points in found if float(points) > 2] == []
