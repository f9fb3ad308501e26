"""Links between the pages of the checkout lead to a file, and to a heading where they name one."""

import re

import pytest
import yaml

from tests.support import doc_pages as pages
from tests.support.places import ROOT


@pytest.mark.parametrize("path", pages.PAGES, ids=pages.name)
def test_links(path):
    for target in pages.links(path):
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), target
            continue
        place, _, anchor = target.partition("#")
        file = (path.parent / place).resolve() if place else path
        assert file.exists(), f"{target}: there is no {file}"
        assert ROOT in file.parents, target
        if anchor and file.suffix == ".md":  # of pictures it says in which colours they show
            assert anchor in pages.anchors(file), f"{target}: no such heading, known: {sorted(pages.anchors(file))}"


def test_every_page_is_in_the_navigation_or_has_a_section():
    class Loader(yaml.SafeLoader):
        """Reads mkdocs.yml, which names a function."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=Loader)  # noqa: S506 (a SafeLoader)
    named = re.findall(r"[\w/-]+\.md", str(site["nav"]))
    assert len(named) == len(set(named))
    assert (site["theme"]["font"], site["extra"]["generator"]) == (False, False)
    assert {"search", "offline"} <= set(site["plugins"])


@pytest.mark.parametrize("folder", sorted(path.parent for path in ROOT.glob("tasks/*/benchmark.py")), ids=pages.name)
def test_every_benchmark_has_a_readme(folder):
    readme = folder / "README.md"
    own = [page for page in (f"docs/benchmarks/{folder.name}.md", f"docs/{folder.name}.md") if (ROOT / page).is_file()]
    told = [link for link in pages.links(readme) if link.startswith("../../docs/")]
    if own:  # the folder says what it is and leads there
        assert told[0] == f"../../{own[0]}"
    assert not own or len(readme.read_text(encoding="utf-8").splitlines()) <= 15
