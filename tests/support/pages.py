"""Pages of HTML: made by commands, read as a browser's parser would, and what holds for each of them."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import re
from collections import Counter
from pathlib import Path

from lm_eval_bias.cli.main import main
from lm_eval_bias.core import registry
from lm_eval_bias.core.benchmark import card_of

BREAK = "\0"  # between blocks of text
VOID = {"meta", "link", "br", "img", "input", "rect", "line", "use", "path"}
BLOCKS = set(
    "h1 h2 h3 h4 p li dt dd tr caption legend summary figcaption blockquote pre div title option text".split()
)
ALLOWED = set(
    "html head meta title link style body a header h1 h2 h3 h4 p nav ul li main section aside div span dl dt dd small "
    "strong em figure figcaption table caption thead tbody tr th td button details summary pre footer script "
    "svg desc defs g path line use text clippath rect pattern form label input select option i".split()
)


class Page(html.parser.HTMLParser):
    """Elements, attributes, tables and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.raw = {"script": "", "style": "", "data": ""}
        self.text: list[str] = []
        self.tables: list[list[list[str]]] = []  # rows of cells
        self.stack: list[str] = []
        self.feed(text)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        if (tag, ("type", "application/json")) in [(tag, a) for a in attrs]:
            tag = "data"  # which no browser runs
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        if tag in BLOCKS:
            self.text.append(BREAK)
        elif tag in ("td", "th", "small", "button", "span", "label", "select"):
            self.text.append(" ")

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.stack, f"</{tag}> without a beginning"
        if self.stack[-1] == "data":
            tag = "data"
        assert self.stack.pop() == tag
        if tag in BLOCKS:
            self.text.append(BREAK)

    def handle_data(self, data):
        if self.stack and self.stack[-1] in self.raw:
            self.raw[self.stack[-1]] += data
        else:
            self.text.append(data)
            if {"th", "td"} & set(self.stack):
                self.tables[-1][-1][-1] += data

    def values(self, name: str) -> list[str]:
        return [value for _, own, value in self.attributes if own == name]

    @property
    def said(self) -> str:
        """The text on one line."""
        return " ".join("".join(self.text).replace(BREAK, " ").split())

    @property
    def lines(self) -> str:
        """The text, a line for each block; texts of marks as well."""
        lines = (" ".join(line.split()) for line in "".join(self.text).split(BREAK))
        return "\n".join(filter(None, lines)) + "\n"


def check_closed(text: str) -> Page:
    """What holds for every page: nothing foreign in it, nothing loaded, every link leads somewhere."""
    found, cards = (
        Page(text),
        {card.link for card in map(card_of, registry.benchmarks()) if card},
    )
    assert set(found.tags) <= ALLOWED | {"data"}
    assert found.tags["script"] == found.tags["style"] == 1
    for tag, name, value in found.attributes:
        assert not name.startswith("on")
        assert name not in (
            "style",
            "src",
            "srcset",
            "action",
            "formaction",
            "ping",
            "background",
        )
        if name == "href":
            own = "#.*"
            assert (
                re.fullmatch(own, value)
                or value in cards
                or (tag, value) == ("link", "data:,")
            ), (tag, value)
        if "url(" in value:
            assert re.fullmatch(r"url\(#[\w.-]+\)", value)
    ids = found.values("id")
    assert len(ids) == len(set(ids))
    wanted = [
        v.lstrip("#")
        for t, n, v in found.attributes
        if n == "href" and v.startswith("#")
    ]
    wanted += [
        part for value in found.values("aria-labelledby") for part in value.split()
    ]
    assert set(wanted) <= set(ids)
    (given,) = (value for value in found.values("content") if "src" in value)
    policy = dict(part.strip().split(" ", 1) for part in given.split(";"))
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        digest = base64.b64encode(
            hashlib.sha256(found.raw[tag].encode()).digest()
        ).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    assert policy["default-src"] == "'none'"
    assert "unsafe" not in str(policy)
    return found


def made(paths, tmp_path: Path, *more: str) -> str:
    """The report's page about some runs, ``out.html``."""
    out = tmp_path / "out.html"
    assert main(["report", *map(str, paths), "-o", str(out), *more]) == 0
    return out.read_text(encoding="utf-8")
