"""Pages of the site that don't lie in docs/: READMEs of the checkout, and references made from the code.

A hook of mkdocs. Links are written for the checkout. Where their target is a page of the site they lead there. Where
it is a file of the code they lead to the repository, if ``extra: repository`` in mkdocs.yml names it, and are plain
text otherwise.
"""

from __future__ import annotations

import html
import io
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import math_to_image
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import reference_pages  # noqa: E402

# pages whose text lies elsewhere in the checkout
INCLUDED = {
    "reference/changes.md": "CHANGELOG.md",
    "results.md": "results/README.md",
    "benchmarks/es_bbq.md": "tasks/es_bbq/README.md",
    "benchmarks/kobbq.md": "tasks/kobbq/README.md",
}
_PAGES = {text: page for page, text in INCLUDED.items()} | {"README.md": "index.md"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_MATH = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^( *)```(\w+) file=(\S+)$", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from elsewhere."""
    for page, text in INCLUDED.items():
        files.append(
            File.generated(
                config, page, content=(ROOT / text).read_text(encoding="utf-8")
            )
        )
    for page, content in reference_pages.pages().items():
        files.append(File.generated(config, page, content=content))
    files.append(File.generated(config, "board.html", content=board()))
    return files


def board() -> str:
    """Make the leaderboard of this project's own runs, beside the papers' models."""
    import lm_eval_bias

    return lm_eval_bias.leaderboard(os.path.relpath(ROOT / "results")).html()


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links to pages of the site, fill in the repository's address, and title code blocks with their files."""
    here, repository = page.file.src_uri, config.extra["repository"].rstrip("/")
    folder = posixpath.dirname(INCLUDED.get(here, f"docs/{here}"))

    def link(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        found = _PAGES.get(path)
        if path == "results":  # the leaderboard of these runs
            found = "board.html"
        if path.startswith("docs/"):
            found = path.removeprefix("docs/")
        elif path.startswith("results/figures/"):
            found = f"images/{posixpath.basename(path)}"
        if found is not None:
            target = posixpath.relpath(found, posixpath.dirname(here) or ".")
            return f"{mark}[{text}]({target}{'#' + anchor if anchor else ''})"
        if repository:
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            return f"[{text}]({repository}/{kind}/main/{path})"
        return text

    parts = re.split(r"(^ *```.*?^ *```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    text = "".join(
        part if part.lstrip().startswith("```") else _LINK.sub(link, part)
        for part in parts
    )
    if repository:
        text = text.replace("git+$REPOSITORY@", f"git+{repository}@")
    text = _MATH.sub(lambda match: equation(match[1]), text)
    return _FENCE.sub(r'\1``` { .\2 title="\3" }', text)


def equation(latex: str) -> str:
    """Draw an equation in the colour of the text around it: no script is needed to read it."""
    drawn = io.BytesIO()
    settings = {"svg.hashsalt": latex, "mathtext.fontset": "cm"}
    grounds = dict.fromkeys(("figure.facecolor", "savefig.facecolor"), "none")
    with matplotlib.rc_context(settings | grounds):
        math_to_image(f"${latex}$", drawn, FontProperties(size=15), format="svg")
    svg = drawn.getvalue().decode()
    ours = r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|\n\s*"
    svg = re.sub(ours, "", svg, flags=re.DOTALL)
    picture = svg[svg.index("<svg") :].replace("<svg", '<svg fill="currentColor"', 1)
    label = html.escape(latex)
    return f'<p class="equation" role="img" aria-label="{label}">{picture}</p>'


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Have the theme's search take our script instead of one on another host."""
    script = posixpath.relpath(
        "javascripts/search_worker.js", posixpath.dirname(page.file.src_uri) or "."
    )
    return output.replace("https://unpkg.com/iframe-worker/shim", script)


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Do the same on the page for addresses that don't exist."""
    return output_content.replace(
        "https://unpkg.com/iframe-worker/shim", "javascripts/search_worker.js"
    )
