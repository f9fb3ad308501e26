"""What people read, as objects: a report, a comparison or a board, with a method for every format."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lm_eval_bias.core import files
from lm_eval_bias.core.csv_text import csv_of
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import FORMATS
from lm_eval_bias.report import tables, templates


class Output:
    """A report, comparison or board; a notebook shows its page, or its text.

    Attributes:
        formats: Those that it can be written in.
        template: Of its page and its texts: ``TEMPLATE.html.j2`` and so on.
        inputs: Files that it was made from, which it never overwrites.
    """

    formats: Sequence[str] = FORMATS
    template: str = ""
    inputs: Sequence[str | Path] = ()

    def context(self) -> Mapping[str, object]:
        """Return the context of its templates."""
        raise NotImplementedError

    def records(self) -> Iterable[Mapping[str, object]]:
        """Return the rows of its CSV."""
        raise NotImplementedError

    def data(self) -> object:
        """Return everything in it as plain data."""
        return list(self.records())

    def html(self) -> str:
        """Write a page that needs no network."""
        return self._filled("html")

    def markdown(self) -> str:
        """Write Markdown."""
        return self._filled("md")

    def latex(self) -> str:
        """Write LaTeX tables, as wide as the page."""
        return self._filled("latex")

    def text(self) -> str:
        """Write for a terminal."""
        return self._filled("text")

    def csv(self) -> str:
        """Write its records as CSV."""
        return csv_of(self.records())

    def json(self) -> str:
        """Write its data as JSON."""
        return tables.json_text(self.data(), indent=1)

    def _filled(self, style: str) -> str:
        name = f"{self.template}.{templates.ENDINGS[style]}.j2"
        return templates.render(name, **self.context())

    def render(self, style: str) -> str:
        """Write it in one of its formats.

        Args:
            style: One of :attr:`formats`.

        Raises:
            BiasError: It has no such format.
        """
        if style not in self.formats:
            known = ", ".join(self.formats)
            raise BiasError(f"format={style!r}: unknown. Known: {known}")
        return str(getattr(self, "markdown" if style == "md" else style)())

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write it to a file, whole or not at all.

        Args:
            path: The file.
            format: One of :attr:`formats`; by default by the file's ending.

        Raises:
            BiasError: An unknown format, or a file that can't be written or that this was made from.
        """
        style = format or files.format_of(str(path), self.formats, "path")
        files.check_place(str(path), list(map(str, self.inputs)), "path")
        files.write(self.render(style), str(path))

    def __str__(self) -> str:
        return self.render("text" if "text" in self.formats else "md")

    def _repr_html_(self) -> str:
        """Show the page in a frame of its own, which no notebook's styles reach."""
        if "html" not in self.formats:
            return f'<pre style="white-space:pre-wrap">{html.escape(self.text())}</pre>'
        page = html.escape(self.html())
        return (
            '<iframe sandbox="allow-scripts allow-popups" style="width:100%;height:40em;border:0" '
            f'title="lm-eval-bias {self.template}" srcdoc="{page}"></iframe>'
        )
