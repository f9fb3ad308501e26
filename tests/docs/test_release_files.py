"""What a repository needs around the code: workflows, forms and the citation agree with pyproject.toml."""

import re

import pytest
import yaml

import lm_eval_bias
from tests.support import doc_pages as pages
from tests.support.places import ROOT

FLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FLOWS
}
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_targets_of_the_workflows_are_in_the_makefile():
    steps = [
        s
        for flow in WORKFLOWS.values()
        for job in flow["jobs"].values()
        for s in job["steps"]
    ]
    targets = {
        target
        for step in steps
        for target in re.findall(r"\bmake ([\w-]+)", step.get("run", ""))
    }
    assert {"check", "docs", "dist", "check-dist", "audit", "test-oldest"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE), target
        assert re.search(rf"^\.PHONY:.* {target}\b", MAKEFILE, flags=re.MULTILINE), (
            target
        )


def test_what_is_published_is_built_by_pinned_tools_alone():
    for flow, job in (("release", "build"), ("ci", "wheel")):
        commands = [
            step["run"]
            for step in WORKFLOWS[flow]["jobs"][job]["steps"]
            if "run" in step
        ]
        assert [line for line in commands if not line.startswith("test ")][
            -1
        ].startswith("make dist")
        assert "install" not in " ".join(commands)
    tools = (ROOT / "build-tools.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert all(
        re.fullmatch(r"[\w-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}", line)
        for line in tools
    )
    assert "--require-hashes" in MAKEFILE
    assert "--no-isolation" in MAKEFILE


def test_what_security_names_is_there():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[^`]+)`", text)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "path",
    [path for path in pages.PAGES if path.name != "CHANGELOG.md"],
    ids=pages.name,
)
def test_only_pinned_sources_are_installed(path):
    text = path.read_text(encoding="utf-8")
    by_name = (
        r"pip install \S*lm-eval-bias(\[\w+\])?[\"'`\s]*$"  # anybody can register it
    )
    assert not re.search(by_name, text, flags=re.MULTILINE)
    assert set(re.findall(r"git\+\$\w+@([^\"\s]+)", text)) <= {"$COMMIT"}


def test_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == lm_eval_bias.__version__
    assert f'version = "{citation["version"]}"' in PROJECT
    assert f'license = "{citation["license"]}"' in PROJECT
    released = f"## {citation['version']} ({citation['date-released']})\n"
    assert released in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
