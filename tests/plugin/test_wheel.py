"""The built wheel and the editable install, in clean environments outside the checkout."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from lm_eval_bias.core import catalog
from tests.support.places import ROOT

pytestmark = pytest.mark.slow


def run(*command, cwd):
    clean = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=900,
        env=clean,
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    return done.stdout


def new_environment(folder):
    venv.create(folder, with_pip=True, system_site_packages=False)
    python = folder / "bin" / "python"
    return python, run(
        python, "-c", "import site; print(site.getsitepackages()[0])", cwd=folder
    ).strip()


def environment(folder):
    """A new environment that sees the dependencies of this one, but not its install of the package."""
    python, site = new_environment(folder)
    here = next(p for p in sys.path if p.endswith("site-packages"))
    # .pth entries come after the environment's own packages
    Path(site, "dependencies.pth").write_text(f"{here}\n")
    return python


def check(python, cwd):
    listed = json.loads(run(python, "-m", "lm_eval_bias", "ls", "--json", cwd=cwd))
    assert {e["name"] for e in listed} == set(catalog.entries())
    out = cwd / "out"
    run(python, "-m", "lm_eval_bias", "run", "--tasks", "occugender_debias_implicit_1", "--model", "bias-chance",
        "--output_path", out, "--log_samples", cwd=cwd)  # fmt: skip
    assert "female_dominated_F" in run(
        python, "-m", "lm_eval_bias", "rescore", out, cwd=cwd
    )
    return run(python, "-c", "import lm_eval_bias as m; print(m.__file__)", cwd=cwd)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        folder,
        ROOT,
        cwd=folder,
    )
    (path,) = folder.glob("*.whl")
    return path


def test_wheel(tmp_path, wheel):
    python = environment(tmp_path / "env")
    run(python, "-m", "pip", "install", "-q", "--no-deps", wheel, cwd=tmp_path)
    where = check(python, tmp_path)
    assert str(tmp_path / "env") in where
    # from the checkout, ./lm_eval_bias shadows the wheel's, and its tasks are beside it
    listed = run(python, "-m", "lm_eval_bias", "path", cwd=ROOT)
    assert listed.strip() == str(ROOT / "tasks")
    names = set(run(python, "-m", "zipfile", "-l", wheel, cwd=tmp_path).split())
    assert {
        "lm_eval_bias/tasks/occugender/README.md",
        "lm_eval_bias/tasks/gg_bbq/sources.json",
    } <= names
    own = (
        "lm_eval_bias/results/runs",
        "lm_eval_bias/results/figures",
        "tests/",
        "lm_eval_bias/tests",
    )
    assert not any(name.startswith(own) for name in names)
    # a leaderboard needs the schema, the published scores and its template
    page = tmp_path / "board.html"
    run(
        python,
        "-m",
        "lm_eval_bias",
        "leaderboard",
        ROOT / "results" / "runs",
        "-o",
        page,
        cwd=tmp_path,
    )
    assert "Chen et al. 2025, Table 3" in page.read_text(encoding="utf-8")
