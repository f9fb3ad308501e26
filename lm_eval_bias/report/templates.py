"""Documents from the templates beside this module, which say in their names what they are written in.

HTML pages extend ``base.html.j2``: self-contained, loading nothing and running no script but their own. The
Content-Security-Policy names the page's own style sheet and script by their hashes, so that even markup that slipped
through could neither run nor load anything. In ``.md.j2`` and ``.tex.j2`` every expression is escaped as well; LaTeX's
braces stay its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

import jinja2
import markupsafe

from lm_eval_bias.core import __version__, pen
from lm_eval_bias.core.wording import short
from lm_eval_bias.report import dots, escaping, svg, tables

SCRIPTS = ("table.js", "marks.js", "items.js")
ENDINGS = {"html": "html", "md": "md", "latex": "tex", "text": "txt"}  # of the templates, by format


def _resource(name: str) -> str:
    return resources.files("lm_eval_bias.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a Content-Security-Policy names an inline style sheet or script."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _environment(**options: object) -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 (each language has its own escaping, HTML's is asked for below)
        loader=jinja2.PackageLoader("lm_eval_bias.report", package_path="."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,  # type: ignore[arg-type]
    )
    environment.globals["version"] = __version__
    return environment


def _html() -> jinja2.Environment:
    css, script = _resource("page.css"), "".join(map(_resource, SCRIPTS))
    policy = (
        f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = _environment(autoescape=True, finalize=escaping.page)
    # ours, and hashed as they are: the only markup besides the figures that is not escaped
    environment.globals.update(css=markupsafe.Markup(css), script=markupsafe.Markup(script), policy=policy)  # noqa: S704
    environment.globals.update(series=pen.series, short=short, dots=dots, inline=svg.inline)
    return environment


def _latex() -> jinja2.Environment:
    environment = _environment(
        finalize=escaping.latex,
        keep_trailing_newline=True,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )
    environment.globals.update(table=tables.latex_table, verbatim=escaping.latex_comment)
    return environment


@lru_cache(maxsize=1)
def _environments() -> dict[str, jinja2.Environment]:
    markdown = _environment(finalize=escaping.markdown, keep_trailing_newline=True)
    markdown.globals.update(table=tables.markdown_table, verbatim=escaping.markdown_code)
    # for terminals: Markdown's templates, with nothing to escape and tables set in columns
    text = _environment(finalize=escaping.text, keep_trailing_newline=True)
    text.globals.update(table=tables.text_table)
    return {"html": _html(), "md": markdown, "tex": _latex(), "txt": text}


@lru_cache
def _with_further(names: tuple[str, ...]) -> Mapping[str, str]:
    """Style sheet and script of all pages with further ones behind them, and the policy that allows these instead."""
    shared = _environments()["html"].globals
    longer, policy = {}, str(shared["policy"])
    for kind, ending in (("css", ".css"), ("script", ".js")):
        text = str(shared[kind]) + "".join(_resource(name) for name in names if name.endswith(ending))
        longer[kind] = markupsafe.Markup(text)  # noqa: S704 (ours as well)
        policy = policy.replace(_hash(str(shared[kind])), _hash(text))
    return {**longer, "policy": policy}


def render(template: str, further: tuple[str, ...] = (), **context: object) -> str:
    """A document from one of this package's templates.

    Args:
        template: File name, such as ``report.html.j2``.
        further: Style sheets and scripts of this page alone.
        context: What the template asks for; anything missing is an error. Text is escaped.
    """
    environment = _environments()[template.split(".")[1]]
    template = template.replace(".txt.", ".md.")
    return environment.get_template(template).render(**(_with_further(further) if further else {}), **context)
