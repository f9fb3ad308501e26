"""What a repository needs around the code: workflows, forms and the citation agree with pyproject.toml."""

import re

import pytest
import yaml

import lm_eval_bias
from tests.support import doc_pages as pages
from tests.support.places import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


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
