"""Links between the pages of the checkout lead to a file, and to a heading where they name one."""

import re

import pytest

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
        if (
            anchor and file.suffix == ".md"
        ):  # of pictures it says in which colours they show
            assert anchor in pages.anchors(file), (
                f"{target}: no such heading, known: {sorted(pages.anchors(file))}"
            )
