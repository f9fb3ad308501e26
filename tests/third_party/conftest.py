"""The distribution of this folder, as if it were installed."""

import shutil
from pathlib import Path

import pytest

from lm_eval_bias.core import registry
from tests.support.packages import forget, install

HERE = Path(__file__).parent


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a copy of the package, with other text in a file or more at the end of ``benchmark.py``."""

    def make(file="", old="", new="", more=""):
        folder = tmp_path / "others"
        own = folder / "age_stereotypes"
        compiled = shutil.ignore_patterns("__pycache__")
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(HERE / "age_stereotypes", own, ignore=compiled)
        if file:
            text = (own / file).read_text()
            assert old in text
            (own / file).write_text(text.replace(old, new))
        with (own / "benchmark.py").open("a") as benchmark:
            benchmark.write(more)
        install(
            monkeypatch,
            folder,
            registry.GROUP,
            {"age_stereotypes": "age_stereotypes.benchmark:BENCHMARK"},
        )
        return own

    yield make
    monkeypatch.undo()
    forget("age_stereotypes")


@pytest.fixture
def installed(package):
    """The package without a change."""
    return package()
