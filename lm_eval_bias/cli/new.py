"""``lm-eval-bias new``: a package with a benchmark that runs, to be changed into one's own."""

from __future__ import annotations

import importlib.util
import keyword
import re
import string
from pathlib import Path

from lm_eval_bias.core import registry
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import packaged_text, write_together, writing

# by place: the template, and why the file is there
FILES = {
    "pyproject.toml": ("pyproject.toml", "an entry point, by which it is found"),
    "$name/__init__.py": ("__init__.py", "makes the folder a package"),
    "$name/benchmark.py": (
        "benchmark.py",
        "documents, records, scores, synthetic bias",
    ),
    "$name/$name.yaml": ("task.yaml", "a task: how documents are asked"),
    "$name/data/card.yaml": ("card.yaml", "what readers must know of its numbers"),
    "tests/test_$name.py": ("test.py", "doctor, as a test"),
    "README.md": ("README.md", "what it is, to be filled in"),
    "CITATION.cff": ("CITATION.cff", "how it is cited, to be filled in"),
    "LICENSE": ("LICENSE", "terms, to be filled in"),
}
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def new(name: str) -> None:
    """Write a package for your own benchmark.

    The package is a folder with the benchmark's name; what each file is for is printed.

    Args:
        name (NAME): the benchmark's: small letters, digits and underscores, such as left_handed
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise BiasError(
            f"{name}: no name for a package: take small letters, digits and underscores"
        )
    if name in registry.by_name() or importlib.util.find_spec(name):
        raise BiasError(f"{name}: there is already a package or benchmark of this name")
    project = name.replace("_", "-")
    folder = Path(project)
    if folder.exists():
        raise BiasError(f"{project}: there is already a file or folder of this name")
    class_name = name.title().replace("_", "")
    gaps = {"name": name, "project": project, "class_name": class_name}
    contents = {}
    reasons = {}
    for place, (template, reason) in FILES.items():
        path = folder / string.Template(place).substitute(gaps)
        text = packaged_text("lm_eval_bias.cli", "new_package", f"{template}.txt")
        contents[path] = string.Template(text).substitute(gaps).encode()
        reasons[str(path)] = reason
    with writing(project):
        write_together(contents)
    width = max(map(len, reasons))
    for path_text, reason in reasons.items():
        print(f"{path_text:{width}}  {reason}")
    print(
        f"\nNext, in {project}/: pip install -e . and lm-eval-bias doctor --benchmark {name}"
    )
