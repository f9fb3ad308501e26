"""Pages: one self-contained HTML file that loads nothing and runs no script but its own.

Every page extends ``base.html.j2`` and is made by :func:`render`. Whatever comes from a file is escaped by Jinja2; the
Content-Security-Policy names the page's own style sheet and script by their hashes, so that even markup that slipped
through could neither run nor load anything.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from lm_eval_bias import __version__


@dataclass(frozen=True)
class Column:
    """A table's column.

    Attributes:
        label: Its heading.
        numeric: Whether its cells are numbers: set right and sorted by value.
    """

    label: str
    numeric: bool = False


@dataclass(frozen=True)
class Cell:
    """A table's cell.

    Attributes:
        text: What is shown.
        value: What it is sorted by where the text alone would sort wrongly; ``None`` sorts by the text, ``nan`` last.
        note: A remark or an interval, in small print below the text.
    """

    text: str
    value: float | None = None
    note: str = ""

    @property
    def whole(self) -> str:
        """Text and note on one line, for tables of text."""
        return f"{self.text} {self.note}" if self.note else self.text

    @property
    def key(self) -> str:
        """The sorting key as the page's script reads it; empty where there is none."""
        return "" if self.value is None or math.isnan(self.value) else repr(float(self.value))


@dataclass(frozen=True)
class Table:
    """A table that readers can sort by each column, with keyboard or mouse.

    Attributes:
        caption: What it shows.
        columns: Headings.
        rows: Cells, one per column; the first is the row's heading.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]] = field(default_factory=list)


def _resource(name: str) -> str:
    return resources.files("lm_eval_bias.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a Content-Security-Policy names an inline style sheet or script."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    css, script = _resource("page.css"), _resource("table.js")
    policy = (
        f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("lm_eval_bias.report", package_path="."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # ours, and hashed as they are: the only markup besides the figures that is not escaped
    own = {"css": Markup(css), "script": Markup(script), "policy": policy, "version": __version__}  # noqa: S704
    made.globals.update(own)
    return made


def render(template: str, **context: Any) -> str:
    """A page from one of this package's templates.

    Args:
        template: File name, such as ``report.html.j2``; it extends ``base.html.j2``.
        context: What the template asks for; anything missing is an error. Text is escaped.
    """
    return _environment().get_template(template).render(**context)
