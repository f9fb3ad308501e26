"""The site is built without a warning, and nothing on its pages asks another host for anything."""

import logging
import re

import pytest

from tests.support.places import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it."""
    pytest.importorskip("material", reason="no mkdocs-material: pip install '.[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    warned = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warned.append(record.getMessage())
    logging.getLogger("mkdocs").addHandler(handler)
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
    logging.getLogger("mkdocs").removeHandler(handler)
    assert not warned
    return folder


def test_no_page_asks_another_host(site):
    html = sorted(site.rglob("*.html"))
    assert len(html) > 30
    for page in html:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(
            r'<(?:script|img|iframe|source)[^>]+(?:src|srcset)="?(?:https?:)?//', text
        ), page
        assert not re.findall(
            r'<link[^>]+rel="?(?!canonical)[^>]+href="?(?:https?:)?//', text
        ), page
