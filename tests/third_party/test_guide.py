"""The guides to packages of one's own do what they say: their files, installed, give what the page promises."""

import json
import re
import shutil

import pytest

from lm_eval_bias.core import registry
from tests.support import doc_pages as pages
from tests.support.packages import forget, install
from tests.support.places import ROOT

GUIDE = (ROOT / "docs" / "add-a-benchmark.md").read_text(encoding="utf-8")
FILES = dict(
    re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
)
COMMANDS = [
    line.removeprefix("lm-eval-bias ").split()
    for block in re.findall(
        r"^```sh\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL
    )
    for line in block.splitlines()
    if line.startswith("lm-eval-bias ")
]


def installed_from(folder, monkeypatch):
    """Install a package by its own pyproject.toml; its folder is the current one then."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][registry.GROUP]
    monkeypatch.chdir(folder)
    install(monkeypatch, folder, registry.GROUP, points)
    return points


@pytest.fixture
def built(tmp_path, monkeypatch, said):
    """The guide's folder, written by its first command."""
    monkeypatch.chdir(tmp_path)
    said(*COMMANDS[0])
    folder = tmp_path / "left-handed"
    points = installed_from(folder, monkeypatch)
    yield folder
    monkeypatch.undo()
    forget(*points)


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Installs a copy of a package of ``docs/examples``."""
    installed = []

    def make(name):
        folder = tmp_path / name
        compiled = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "docs" / "examples" / name, folder, ignore=compiled)
        installed.extend(installed_from(folder, monkeypatch))
        return folder

    yield make
    monkeypatch.undo()
    forget(*installed)


def test_new_writes_what_the_page_shows(built):
    written = {
        path.relative_to(built).as_posix(): path.read_text()
        for path in built.rglob("*.*")
        if path.is_file() and "dist-info" not in str(path)
    }
    assert written == FILES


def test_guide(built, said):
    output = {" ".join(one): said(*one) for one in COMMANDS[1:]}
    assert (
        " ".join(one[0] for one in COMMANDS)
        == "new doctor ls run rescore rescore report leaderboard run compare"
    )
    assert (
        output["doctor --benchmark left_handed"]
        == "ok       left_handed: no mistake found; tasks that were run: 1\n"
    )
    assert "left_share" in output["ls left_handed"]
    assert "left_share" in output["compare out other"]
    (score,) = (
        entry["scores"]["left_share"]
        for entry in json.loads(said("rescore", "out", "--json"))
    )
    assert score["interval"][0] < score["value"] < score["interval"][1]
    assert score["dof"] == 3
    page = (built / "report.html").read_text()
    assert re.search(
        rf"{score['value']:.1f}.*\[{score['interval'][0]:.1f}, {score['interval'][1]:.1f}\]",
        page,
    )


@pytest.mark.parametrize(
    ("name", "tasks", "score"),
    [
        ("italian-bbq", "italian_bbq", "diff_bias_amb"),
        ("cv-choice", "cv_choice,cv_choice_gen", "rate_gap"),
    ],
)
def test_examples(name, tasks, score, example, said, tmp_path):
    """Doctor finds nothing, a synthetic bias comes back, and everything people read can be made."""
    benchmark = tasks.partition(",")[0]
    example(name)
    number = tasks.count(",") + 1
    assert (
        said("doctor", "--benchmark", benchmark)
        == f"ok       {benchmark}: no mistake found; tasks that were run: {number}\n"
    )
    folders = [tmp_path / sign for sign in ("against", "along")]
    for folder, strength in zip(folders, (-0.5, 0.5), strict=True):
        model = ["--model", "bias-dial", "--model_args", f"strength={strength},noise=0"]
        said("run", "--tasks", tasks, *model, "--log_samples", "--output_path", folder)
        scored = json.loads(said("rescore", folder, "--json"))
        assert len(scored) == number
        for entry in scored:
            assert entry["scores"][score]["value"] * strength > 0
    said("report", *folders, "-o", tmp_path / "page.html")
    assert score in said("compare", *folders)


def test_guide_to_model_families(said, tmp_path, tiny_mirror, monkeypatch):
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    page = "docs/add_a_model_family.md"
    (tmp_path / "my_models.py").write_text(
        dict(pages.blocks(page, "python"))["my_models.py"]
    )
    project = tomllib.loads(dict(pages.blocks(page, "toml"))["pyproject.toml"])[
        "project"
    ]
    ((name, target),) = project["entry-points"]["lm_eval.models"].items()
    install(monkeypatch, tmp_path, "lm_eval.models", {name: target})
    monkeypatch.chdir(tmp_path)
    pip, *commands = pages.blocks(page, "sh")[0][1].splitlines()
    assert pip == "pip install -e ."
    for line in commands:
        assert "stereoset_en_intra" in said(*line.split()[1:])
    assert commands[-1] == "lm-eval-bias compare out/1 out/2"
    monkeypatch.undo()
    forget(name)
