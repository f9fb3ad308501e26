"""The guides to packages of one's own do what they say: their files, installed, give what the page promises."""

import json
import re

import pytest

from lm_eval_bias.core import registry
from lm_eval_bias.custom_metrics.score import Score
from tests.support import doc_pages as pages
from tests.support.commands import command
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


@pytest.fixture
def built(tmp_path, monkeypatch):
    """The guide's folder, as if it were installed by its own pyproject.toml."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no TOML reader")
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    points = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"][
        registry.GROUP
    ]
    monkeypatch.chdir(tmp_path)
    install(monkeypatch, tmp_path, registry.GROUP, points)
    yield tmp_path
    monkeypatch.undo()
    forget(*points)


def test_guide(built, said):
    assert len(FILES) == 4
    output = {" ".join(one): said(*one) for one in COMMANDS}
    assert (
        " ".join(one[0] for one in COMMANDS)
        == "doctor ls run rescore report leaderboard run compare"
    )
    assert output["doctor --benchmark left_handed"].startswith("ok ")
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


def test_every_part_in_the_guide_is_one_of_the_class():
    table = GUIDE[GUIDE.index("| part |") : GUIDE.index("Data that are pinned")]
    for cell in re.findall(r"^\| (.*?) \|", table, flags=re.MULTILINE)[2:]:
        for name in re.findall(r"`(\w+)", cell):
            of_scores = name == "unanswered" or name in Score.__dataclass_fields__
            of_files = name in ("variants", "data")  # set when it is made; its folder
            assert of_scores or of_files or hasattr(registry.Benchmark, name), name


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
    for more, reason in (
        (["--tasks", "stereoset_en"], "only fills blanks"),
        (
            [
                "--tasks",
                "stereoset_en_intra",
                "--metadata",
                '{"masked": "pll_original"}',
            ],
            "has no effect on by-length",
        ),
    ):
        found = command("run", "--model", name, *more)
        assert found.status == 2
        assert reason in found.err
    monkeypatch.undo()
    forget(name)
