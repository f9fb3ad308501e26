"""The pages of the documentation, and what stands in them: links, headings, blocks of code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.places import ROOT

PATTERNS = (
    "*.md", ".github/*.md", "docs/**/*.md", "tasks/*/README.md", "tests/*/README.md", "results/README.md",
)  # fmt: skip
PAGES = sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)})
_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    """A page's path in the checkout."""
    return path.relative_to(ROOT).as_posix()


def text(page: str) -> str:
    """The text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def tokens(path: Path) -> list[Token]:
    """The Markdown of a page, parsed."""
    return (
        MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))
    )


def links(path: Path) -> list[str]:
    """Where its links and pictures lead, those in HTML included."""
    found = []
    for token in tokens(path):
        inside = [
            child.attrs
            for child in token.children or ()
            if child.type in ("link_open", "image")
        ]
        found += [
            str(attributes.get("href") or attributes.get("src"))
            for attributes in inside
        ]
        if token.type == "html_block":
            found += re.findall(r'(?:src|srcset|href)="([^" ]+)"', token.content)
    return found


def anchors(path: Path) -> set[str]:
    """The names of its headings in addresses."""
    found: set[str] = set()
    every = tokens(path)
    for heading, content in zip(every, every[1:], strict=False):
        if heading.type == "heading_open":
            title = "".join(child.content for child in content.children or ())
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            repeated = sum(
                one == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", one) is not None
                for one in found
            )
            found.add(f"{slug}-{repeated}" if repeated else slug)
    return found


def blocks(page: str, kind: str) -> list[tuple[str, str]]:
    """Its fenced blocks of a kind, each with the file that it shows."""
    return [
        (file, body) for word, file, body in _BLOCK.findall(text(page)) if word == kind
    ]


def compare_output(page: str, printed: str) -> None:
    """What a page shows was printed, numbers but for their last digits; ``...`` stands for the rest."""
    number = re.compile(r"\d+\.\d+")
    by_form = {
        number.sub("#", " ".join(line.split())): line for line in printed.splitlines()
    }
    for _, block in blocks(page, "text"):
        for line in block.splitlines():
            if line.strip() == "..." or not line.strip(" -"):
                continue
            form = number.sub("#", " ".join(line.removesuffix("...").split()))
            forms = [
                one
                for one in by_form
                if one == form or (line.endswith("...") and one.startswith(form))
            ]
            assert forms, line
            for own, got in zip(
                number.findall(line), number.findall(by_form[forms[0]]), strict=False
            ):
                last = 0.1 ** len(
                    own.partition(".")[2]
                )  # other processors round otherwise
                assert float(got) == pytest.approx(float(own), abs=2 * last), line
