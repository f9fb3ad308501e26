"""The prose of the documentation passes proselint, with the rules in .proselintrc.json."""

import itertools
import json
import re
import subprocess
import sys

import pytest

from tests.support import doc_pages as pages
from tests.support.places import ROOT


def complaints(folder):
    """What proselint says of each file in a folder: its name, a line for each complaint."""
    rules = ["--config", str(ROOT / ".proselintrc.json"), "--output-format", "json"]
    command = [sys.executable, "-m", "proselint", "check", *rules, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert not done.stderr, done.stderr
    files = json.loads(done.stdout)["result"]
    return {
        path.removeprefix(f"file://{folder.resolve()}/"): [
            f"{one['check_path']}: {one['message']} (paragraph {(one['pos'][0] + 3) // 4})"
            for one in file["diagnostics"]
        ]
        for path, file in files.items()
    }


def test_prose(tmp_path):
    pytest.importorskip("proselint", reason="no proselint: pip install '.[dev]'")
    for path in pages.PAGES:
        copy = tmp_path / pages.name(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        prose = re.sub(r"\d+(\.\d+){2,}", "VERSION", "\n\n–\n\n".join(pages.prose(path)))
        numbers = itertools.count()
        text = re.sub(r"\bCODE\b", lambda _, numbers=numbers: f"CODE{next(numbers)}", prose)
        copy.write_text(text, encoding="utf-8")  # no two pieces of code are the same word, repeated
    (tmp_path / "faults.md").write_text(
        "A very unique result is in close proximity.\n\n–\n\nThe the mean.", encoding="utf-8"
    )
    result = complaints(tmp_path)
    assert len(result.pop("faults.md")) >= 3
    assert {path: lines for path, lines in result.items() if lines} == {}
