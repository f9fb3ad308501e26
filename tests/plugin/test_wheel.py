"""The built wheel and the editable install, in clean environments outside the checkout."""

import json
import os
import subprocess
import sys
import venv

import pytest

from lm_eval_bias import catalog
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def run(*command, cwd, **env):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=cwd, timeout=900, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-3000:]
    return done.stdout


def environment(folder):
    """A new environment that sees the dependencies of this one, but not its install of the package."""
    venv.create(folder, with_pip=True, system_site_packages=False)
    python = folder / "bin" / "python"
    site = run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=folder).strip()
    here = next(p for p in sys.path if p.endswith("site-packages"))
    # .pth entries come after the environment's own packages
    (folder / "deps.txt").write_text(here)
    with open(os.path.join(site, "dependencies.pth"), "w") as out:
        out.write(here + "\n")
    return python


def check(python, cwd):
    listed = json.loads(run(python, "-m", "lm_eval_bias", "ls", "--json", cwd=cwd))
    assert {e["name"] for e in listed} == set(catalog.entries())
    out = cwd / "out"
    run(python, "-m", "lm_eval_bias", "run", "--tasks", "occugender_debias_implicit_1", "--model", "bias-chance",
        "--output_path", out, "--log_samples", cwd=cwd)  # fmt: skip
    assert "female_dominated_F" in run(python, "-m", "lm_eval_bias", "rescore", out, cwd=cwd)
    return run(python, "-c", "import lm_eval_bias as m; print(m.__file__)", cwd=cwd)


def test_wheel(tmp_path):
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    python = environment(tmp_path / "env")
    run(python, "-m", "pip", "install", "-q", "--no-deps", wheel, cwd=tmp_path)
    where = check(python, tmp_path)
    assert str(tmp_path / "env") in where
    # from the checkout, ./lm_eval_bias shadows the wheel's, and its tasks are beside it
    listed = run(python, "-m", "lm_eval_bias", "path", cwd=ROOT)
    assert listed.strip() == str(ROOT / "tasks")
    # what a wheel must hold, and must not
    names = set(run(python, "-m", "zipfile", "-l", wheel, cwd=tmp_path).split())
    assert "lm_eval_bias/tasks/occugender/_occugender_base_yaml" in names
    assert "lm_eval_bias/tasks/occugender/data/templates.yaml" in names
    assert "lm_eval_bias/tasks/occugender/README.md" in names
    assert "lm_eval_bias/tasks/gg_bbq/sources.json" in names
    assert {"lm_eval_bias/results/schema.json", "lm_eval_bias/results/published/stereoset.csv"} <= names
    assert "lm_eval_bias/report/leaderboard.html.j2" in names
    assert not any(name.startswith(("lm_eval_bias/results/runs", "lm_eval_bias/results/figures")) for name in names)
    # a leaderboard needs the schema and the published scores, and the runs of whoever asks for it
    page = tmp_path / "board.html"
    run(python, "-m", "lm_eval_bias", "leaderboard", ROOT / "results" / "runs", "-o", page, cwd=tmp_path)
    assert "Chen et al. 2025, Table 3" in page.read_text(encoding="utf-8")
    assert not any(name.startswith(("tests/", "lm_eval_bias/tests")) for name in names)


def test_editable(tmp_path):
    python = environment(tmp_path / "env")
    run(python, "-m", "pip", "install", "-q", "setuptools>=77", "wheel", cwd=tmp_path)
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", ROOT, cwd=tmp_path)
    assert check(python, tmp_path).strip() == str(ROOT / "lm_eval_bias" / "__init__.py")
