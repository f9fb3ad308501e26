"""The pages of the documentation, and what stands in them: links, headings, blocks of code."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.places import ROOT

PATTERNS = (
    "*.md", ".github/*.md", "docs/**/*.md", "tasks/*/README.md", "tests/*/README.md", "results/README.md",
    "benchmarks/README.md", "simulations/README.md",
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


def is_shell(token: Token) -> bool:
    """Whether it is a block of a shell's lines: indented, or fenced as one."""
    kind = token.info.split()[0] if token.info else ""
    return token.type == "code_block" or (
        token.type == "fence" and kind in ("sh", "bash")
    )


def outputs(page: str) -> list[tuple[str, str]]:
    """Its blocks of output, each with the block of commands above it."""
    above = ""
    found = []
    for token in tokens(ROOT / page):
        if is_shell(token):
            above = token.content
        elif token.type == "fence" and token.info == "text":
            found.append((token.content, above))
    return found


def compare_output(block: str, printed: str) -> None:
    """What a block shows was printed, numbers but for their last digits; ``...`` stands for the rest."""
    number = re.compile(r"\d+\.\d+")
    by_form = defaultdict(list)
    for line in printed.splitlines():
        numbers = list(map(float, number.findall(line)))
        by_form[number.sub("#", " ".join(line.split()))].append(numbers)
    for line in block.splitlines():
        if line.strip() == "..." or not line.strip(" -"):
            continue
        form = number.sub("#", " ".join(line.removesuffix("...").split()))
        got = list(by_form.get(form, ()))
        for one, rows in by_form.items():
            if line.endswith("...") and one.startswith(form):
                got += rows
        own = number.findall(line)
        # other processors round otherwise
        near = [
            pytest.approx(float(text), abs=2 * 0.1 ** len(text.partition(".")[2]))
            for text in own
        ]
        assert any(row[: len(near)] == near for row in got), line
