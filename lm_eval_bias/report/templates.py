"""Documents from the templates beside this module, which say in their names what they are written in.

HTML pages extend ``base.html.j2``: self-contained, loading nothing and running no script but their own. The
Content-Security-Policy names the page's own style sheet and script by their hashes, so that even markup that slipped
through could neither run nor load anything. In ``.md.j2`` and ``.tex.j2`` every expression is escaped as well, and
stands in ``<< >>``: braces are LaTeX's own. What lacks a template in its language has Markdown's, or LaTeX's.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache

import jinja2
import markupsafe

from lm_eval_bias.core import __version__
from lm_eval_bias.core.files import packaged_text
from lm_eval_bias.core.numbers import join_some
from lm_eval_bias.core.safe_stream import visible
from lm_eval_bias.report import escaping, pictures, tables

_PACKAGE = "lm_eval_bias.report"
ENDINGS = {
    "html": "html",
    "md": "md",
    "latex": "tex",
    "text": "txt",
}  # of the templates, by format


def _environment(**options: object) -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 (each language has its own escaping, HTML's is asked for below)
        loader=jinja2.PackageLoader(_PACKAGE, package_path="."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,  # type: ignore[arg-type]
    )
    environment.globals.update(version=__version__, markup=escaping.Markup)
    return environment


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@lru_cache
def _assets() -> Mapping[str, str]:
    """Read the pages' style sheet and script, and build the policy that allows these."""
    css = packaged_text(_PACKAGE, "page.css")
    script = packaged_text(_PACKAGE, "table.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # hashed as they are: the only markup besides the figures that is not escaped
    return {
        "css": markupsafe.Markup(css),  # noqa: S704
        "script": markupsafe.Markup(script),  # noqa: S704
        "policy": policy,
    }


_OF_TEXTS = {"variable_start_string": "<<", "variable_end_string": ">>", "block_start_string": "<%",
             "block_end_string": "%>", "comment_start_string": "<#", "comment_end_string": "#>",
             "keep_trailing_newline": True}  # fmt: skip
_MOST = 40  # names in a list


@lru_cache(maxsize=1)
def _environments() -> dict[str, jinja2.Environment]:
    html = _environment(autoescape=True, finalize=escaping.page)
    html.globals.update(series=pictures.series, places=pictures.places, assets=_assets)
    markdown = _environment(finalize=escaping.markdown, **_OF_TEXTS)
    markdown.globals.update(
        table=tables.markdown_table,
        verbatim=escaping.markdown_code,
        comment=None,
        cited=escaping.cited,
        heading=lambda text: escaping.Markup(f"**{text}.**"),
        end="",
        some=lambda names: escaping.markdown(join_some(names, _MOST)),
    )
    latex = _environment(finalize=escaping.latex, **_OF_TEXTS)
    latex.globals.update(
        tabular=tables.latex_tabular,
        comment=escaping.latex_comment,
        cited=lambda keys: escaping.Markup(rf"\cite{{{','.join(keys)}}}"),
        heading=lambda text: escaping.Markup(rf"\paragraph{{{text}.}}{{\sloppy"),
        end=escaping.Markup(r"\par}"),
        some=lambda names: escaping.breakable(escaping.latex(join_some(names, _MOST))),
    )
    # for terminals: Markdown's templates, with nothing to escape and tables set in columns
    text = _environment(finalize=visible, **_OF_TEXTS)
    text.globals.update(markdown.globals, table=tables.text_table, some=join_some)
    return {"html": html, "xml": html, "md": markdown, "tex": latex, "txt": text}


def render(template: str, **context: object) -> str:
    """Fill in one of this package's templates.

    Args:
        template: File name, such as ``report.html.j2``.
        context: What the template asks for; anything missing is an error. Text is escaped.
    """
    stem, language, _ = template.split(".")
    names = [f"{stem}.{ending}.j2" for ending in (language, "md", "tex")]
    chosen = _environments()[language].select_template(names)
    return chosen.render(**context)
