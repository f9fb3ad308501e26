"""Releases of the harness: too old, too new, newer than tested, and those that read our entry points by themselves."""

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from packaging.version import Version

from lm_eval_bias.cli import setup
from lm_eval_bias.cli.main import main
from lm_eval_bias.harness import registration

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT.parent / "shared" / "harness"


def fresh(folder, *packages):
    """A Python of its own for what is installed here, with other packages and this checkout in front."""
    venv.create(folder, with_pip=False)
    (site,) = (folder / "lib").glob("python*/site-packages")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
    subprocess.run(
        [*install, site, *packages, ROOT], check=True, timeout=600, capture_output=True
    )
    here = next(p for p in sys.path if p.endswith("site-packages"))
    (site / "dependencies.pth").write_text(here + "\n")
    return site


def plugins_wheel():
    wheels = sorted(WHEELS.glob("lm_eval-*plugins*.whl"))
    if not wheels:
        pytest.skip("no harness that reads entry points (../shared/harness)")
    return wheels[-1]


@pytest.fixture
def with_plugins(tmp_path):
    """A Python whose harness reads entry points, and where this checkout is installed."""
    fresh(tmp_path / "env", plugins_wheel())
    return tmp_path / "env" / "bin" / "python"


@pytest.mark.slow
def test_the_harness_runs_our_tasks_and_models_by_itself(
    with_plugins, tmp_path, mirror
):
    from tests.support import tiny

    def run(*words):
        done = subprocess.run(
            [with_plugins, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
            env={
                "PATH": "",
                "HOME": str(tmp_path),
                "HF_HUB_OFFLINE": "1",
                "LM_EVAL_BIAS_DATA": str(mirror),
            },
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stdout

    where = f"pretrained={tiny.gpt2(tmp_path / 'model', positions=400)}"
    model = [
        "--model",
        "hf-packed",
        "--model_args",
        where,
        "--device",
        "cpu",
        "--limit",
        "2",
    ]
    model += ["--gen_kwargs", "max_gen_toks=4"]
    tasks = ["--tasks", "occugender,gg_bbq,gg_bbq_group_terms_gen"]
    run("-m", "lm_eval", "run", *tasks, *model, "--output_path", tmp_path / "theirs")
    run("-m", "lm_eval_bias", "run", *tasks, *model, "--output_path", tmp_path / "ours")
    found = []
    for name in ("theirs", "ours"):
        (path,) = (tmp_path / name).rglob("results_*.json")
        results = json.loads(path.read_text())["results"]
        # what the plain harness writes beside errors, which ours leaves out
        for scores in results.values():
            for key in [key for key in scores if "_stderr_stderr" in key]:
                del scores[key]
        found.append(results)
    assert {"occugender_implicit", "gg_bbq_names", "gg_bbq_group_terms_gen"} <= set(
        found[0]
    )
    assert found[0] == found[1]
    report = run("-m", "lm_eval_bias", "doctor").splitlines()
    assert any(line.startswith("ok       link not needed") for line in report)
    assert any(
        line.startswith("note") and "plugins is newer" in line for line in report
    )


@pytest.fixture
def installed(monkeypatch):
    """Another release of the harness than the installed one."""
    real = importlib.metadata.version

    def pretend(version):
        monkeypatch.setattr(
            importlib.metadata,
            "version",
            lambda name: version if name == "lm_eval" else real(name),
        )

    return pretend


def test_a_newer_harness_is_warned_about_once(installed, capsys, caplog):
    newest = registration.SUPPORTED["lm_eval"][1]
    for version, warnings in (("0.4.99", 1), (newest, 0)):
        installed(version)
        capsys.readouterr()
        caplog.clear()
        assert (
            main(
                [
                    "run",
                    "--model",
                    "bias-chance",
                    "--tasks",
                    "occugender_implicit",
                    "--limit",
                    "80",
                ]
            )
            == 0
        )
        # which of the two hears it depends on who set up logging before
        heard = capsys.readouterr().err, caplog.text
        warning = f"lm_eval 0.4.99 is newer than {newest}"
        assert max(text.count(warning) for text in heard) == warnings
    assert registration.examine("lm_eval")[0] == "ok"


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("0.4.11", "lm_eval 0.4.11 is older than 0.4.13"),
        ("0.5.0.dev1", "lm_eval 0.5.0.dev1 is too new"),
        ("0.5.1", "lm_eval 0.5.1 is too new"),
    ],
)
def test_a_harness_that_is_not_supported_is_refused_in_one_line(
    version, says, installed, capsys
):
    installed(version)
    assert (
        main(["run", "--model", "bias-chance", "--tasks", "occugender_implicit"]) == 2
    )
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err
    assert any(
        status == "problem" and says in text
        for status, text in setup.examine_installation()
    )


def pins(name):
    lines = [
        line.split(";")[0].strip() for line in (ROOT / name).read_text().splitlines()
    ]
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {
        re.sub(r"[-_.]+", "-", package).lower(): Version(version)
        for package, version in found
    }


def test_bounds_are_the_versions_that_were_tested():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = {}
    for requirement in project["dependencies"]:
        package, _, bounds = re.sub(r"\[.*?\]", "", requirement).partition(">=")
        bound, _, beyond = bounds.partition(",<")
        assert beyond == registration.BEYOND.get(package.replace("-", "_"), "")
        lowest[re.sub(r"[-_.]+", "-", package).lower()] = Version(bound)
    oldest, newest = pins("constraints-oldest.txt"), pins("constraints.txt")
    del lowest["torch"], oldest["torch"]  # see there
    assert {package: oldest[package] for package in lowest} == lowest
    for package, (low, high) in registration.SUPPORTED.items():
        assert Version(high) == newest[package.replace("_", "-")]
        assert package == "torch" or Version(low) == lowest[package.replace("_", "-")]
