"""Text corpora for ``lm-eval-bias nsp train`` out of prose that Debian packages ship: one .txt file an article.

    python tests/performance/nsp_corpora.py de corpora/de

Downloads the packages below with ``apt-get download`` (after an ``apt-get update``; nothing is installed), keeps the
paragraphs of running text in their HTML, DocBook and Mallard pages and prints what came out of which. Needs Debian or a
system made from it. The same versions of the packages give the same files.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess  # noqa: S404
import sys
import tempfile
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from sentencex import segment
from tabulate import tabulate

from lm_eval_bias.cli.output import Parser
from lm_eval_bias.core.errors import BiasError, one_line

LEAST_SENTENCES = 10
LEAST_WORDS = 8


class Source(NamedTuple):
    """Pages of a package; ``{}`` stands for the language.

    Attributes:
        package: Its name.
        pages: Pattern of its pages below ``/usr/share``.
        languages: Those it has.
        names: How it writes them, where that isn't the code.
        splits: Headings that begin a new article, where a page holds several.
    """

    package: str
    pages: str
    languages: str
    names: dict[str, str] = {}
    splits: tuple[str, ...] = ()


LOCALES = {"en": "en-US", "de": "de-DE", "fr": "fr-FR", "es": "es-ES", "tr": "tr-TR"}
CHAPTERS = ("h1", "h2")
# Left out: lists of links (neither sec* nor app* in anarchism), references of functions (internals in lilypond, all but
# guide in LibreOffice).
SOURCES = [
    Source("anarchism", "doc/anarchism/html/[as][pe][pc]*.html", "en", splits=CHAPTERS),
    Source("bibletime-data", "doc/bibletime-data/*/html/{}/*.html", "en de fr es"),
    Source("debian-handbook", "doc/debian-handbook/html/{}/*.html", "en de fr es tr", LOCALES),
    Source("debian-history", "doc/debian-history/docs/*.{}.html", "en de fr es"),
    Source("debian-reference-{}", "debian-reference/*.{}.html", "en de fr es", splits=CHAPTERS),
    Source("developers-reference", "developers-reference/*.html", "en", splits=CHAPTERS),
    Source("developers-reference-{}", "developers-reference/{}/*.html", "de fr", splits=CHAPTERS),
    Source("evolution-common", "help/{}/evolution/*.page", "en de fr es", {"en": "C"}),
    Source("gimp-help-{}", "gimp/2.0/help/{}/*.html", "en de fr es"),
    Source("gnome-user-docs", "help/{}/gnome-help/*.page", "en de fr es", {"en": "C"}),
    Source("gnucash-docs", "doc/gnucash-docs/gnucash-*-{}/*.html", "en de"),
    Source("installation-guide-amd64", "doc/installation-guide-amd64/{}/*.html", "en de fr es"),
    Source("kicad-doc-{}", "doc/kicad/help/{}/*.html", "en", splits=CHAPTERS),
    Source("kmymoney-common", "doc/HTML/{}/kmymoney/*.docbook", "en de"),
    Source("kstars-data", "doc/HTML/{}/kstars/*.docbook", "en fr es"),
    Source("libreoffice-help-en-us", "libreoffice/help/en-US/text/*/guide/*.html", "en"),
    Source("libreoffice-help-{}", "libreoffice/help/{}/text/*/guide/*.html", "de fr es tr"),
    Source("lilypond-doc-html", "doc/lilypond/html/Documentation/[!i]*/*.html", "en"),
    Source("lilypond-doc-html-{}", "doc/lilypond/html/Documentation/*/*.{}.html", "de fr es"),
    Source("maint-guide", "doc/maint-guide/html/*.en.html", "en", splits=CHAPTERS),
    Source("maint-guide-{}", "doc/maint-guide-{}/html/*.{}.html", "de fr es", splits=CHAPTERS),
    Source("stellarium-data", "stellarium/**/description.{}.utf8", "en es"),
]
# Words that tell these languages from each other: translated pages hold untranslated paragraphs.
COMMON = {
    "en": "the of and to is that with are for be this by you from".split(),
    "de": "der die das und nicht ist den mit ein eine zu sie auf wird".split(),
    "fr": "le les et est dans pour une du vous au qui par sur ce".split(),
    "es": "el los y por con una las del para como lo este su al".split(),
    "tr": "ve bir bu için ile olarak olan daha gibi her çok ya sonra veya".split(),
}

PARAGRAPHS = {"p", "para"}
DROPPED_INLINE = set("comment footnote indexterm info media script style svg title".split())
DROPPED = DROPPED_INLINE | set(
    "address aside caption footer form head header math mediaobject nav pre programlisting screen table".split()
)
BLOCKS = (DROPPED - DROPPED_INLINE) | set(
    "blockquote body dd div dl dt h1 h2 h3 h4 h5 h6 hr itemizedlist li listitem ol orderedlist section ul".split()
)


class _Pages(HTMLParser):
    """Collects paragraphs, in a new list from each heading on that begins an article."""

    def __init__(self, splits: Iterable[str]) -> None:
        super().__init__()
        self.articles: list[list[str]] = [[]]
        self._splits = set(splits)
        self._dropped: list[str] = []
        self._text: list[str] | None = None

    def _end(self) -> None:
        if self._dropped:
            return
        if self._text is not None:
            self.articles[-1].append(" ".join("".join(self._text).split()))
        self._text = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in BLOCKS or tag in PARAGRAPHS:
            self._end()
        if tag in DROPPED or ("class", "MAC") in attrs:  # LibreOffice's help names keys for two systems
            self._dropped.append(tag)
        elif self._dropped:
            return
        elif tag in self._splits:
            self.articles.append([])
        elif tag in PARAGRAPHS or (tag == "div" and ("class", "para") in attrs):
            self._text = []
        elif self._text is not None and tag in ("guimenuitem", "guisubmenu"):
            self._text.append(" ")  # DocBook's menus stand without a space between their entries

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS or tag in PARAGRAPHS:
            self._end()
        if tag in self._dropped:
            while self._dropped.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._text is not None and not self._dropped:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._end()


def running(text: str, language: str) -> bool:
    """Whether a paragraph is a language's running text: whole sentences and no command, list, menu or foreign text."""
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", text)]
    counts = {code: sum(word in common for word in words) for code, common in COMMON.items()}
    solid = text.replace(" ", "")
    return (
        len(words) >= LEAST_WORDS
        and text.lstrip("\"'„“”«»‘‚(¿¡ ")[:1].isupper()
        and re.search(r"[.!?…][\"'“”«»‘’)]*$", text) is not None
        and sum(map(str.isalpha, solid)) >= 0.85 * len(solid)
        and 0 < counts[language] == max(counts.values())
        and re.search(r"&\w+;|https?://|www\.|©|[{}<>|\\=]", text) is None
    )


def articles(page: str, language: str, splits: Iterable[str] = ()) -> list[list[str]]:
    """The paragraphs of running text in a page, by article.

    Args:
        page: HTML, DocBook or Mallard.
        language: Whose text to keep.
        splits: Headings that begin a new article.
    """
    parser = _Pages(splits)
    parser.feed(page)
    parser.close()
    found = []
    for texts in parser.articles:
        # references: [12], [Mutual Aid, p. 3], [Op. Cit., pp. 1-2]
        texts = [re.sub(r"\s*\[(?:\d+|[^\[\]]*(?:\bpp?\.|Cit\.)[^\[\]]*)\]", "", text) for text in texts]
        found.append([text for text in texts if running(text, language)])
    return found


def _output(*command: str, folder: Path | None = None) -> str:
    try:
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout  # noqa: S603
    except FileNotFoundError:
        raise BiasError(f"{command[0]} isn't there: this needs Debian or a system made from it") from None
    except subprocess.CalledProcessError as error:
        said = " ".join(line for line in error.stderr.splitlines() if not line.startswith("W:"))
        raise BiasError(f"{' '.join(command)}: {said}") from None


def licences(package: str, share: Path) -> str:
    """The licences that a package's copyright file names."""
    documents = share / "doc" / package
    if documents.is_symlink():
        return f"see {documents.readlink()}"
    text = (documents / "copyright").read_text("utf-8", "replace")
    named = re.findall(r"^License: *(\S.*)", text, re.M) or re.findall(r"common-licenses/([\w.+-]+\w)", text)
    return ", ".join(sorted(set(named))) or "see its copyright file"


def read(source: Source, language: str, folder: Path) -> tuple[str, str, dict[str, list[str]]]:
    """Fetch and read a package.

    Args:
        source: What to read.
        language: Which language of it.
        folder: An empty folder to work in.

    Returns:
        Its version, its licences and its articles by name.
    """
    name = source.names.get(language, language)
    package = source.package.format(language)
    _output("apt-get", "download", "-q", package, folder=folder)
    archive = next(folder.glob("*.deb"))
    _output("dpkg-deb", "-x", str(archive), str(folder))
    found = {}
    share = folder / "usr" / "share"
    pattern = Path(source.pages.replace("{}", name))
    above = share.joinpath(*itertools.takewhile(lambda part: "*" not in part, pattern.parts))
    for path in sorted(share.glob(str(pattern))):
        page = path.read_text("utf-8", "replace")
        for number, article in enumerate(articles(page, language, source.splits)):
            parts = [package, *path.relative_to(above).with_suffix("").parts]
            found["-".join(parts + ([f"{number:02}"] if source.splits else []))] = article
    if not found:
        raise BiasError(f"{package}: no pages at /usr/share/{pattern}")
    return _output("dpkg-deb", "-f", str(archive), "Version").strip(), licences(package, share), found


def make(language: str, output: Path) -> str:
    """Write a language's corpus and tell of what it is made."""
    sources = [source for source in SOURCES if language in source.languages.split()]
    packages = {}
    for source in sources:
        print(f"{source.package.format(language)} ...", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            packages[source.package.format(language)] = read(source, language, Path(folder))
    seen: set[str] = set()  # what pages repeat, or a whole book beside its chapters, is taken once
    rows = []
    for package, (version, licence, found) in packages.items():
        kept, sentences, words = 0, 0, 0
        for name, article in found.items():
            own = [text for text in dict.fromkeys(article) if text not in seen]
            count = sum(len(list(segment(language, text))) for text in own)
            if count >= LEAST_SENTENCES:
                seen.update(own)
                (output / f"{name}.txt").write_text("\n\n".join(own) + "\n", "utf-8")
                kept, sentences, words = kept + 1, sentences + count, words + sum(len(text.split()) for text in own)
        rows.append([package, version, kept, sentences, words, licence])
    rows.append(["all", "", *(sum(row[i] for row in rows) for i in (2, 3, 4)), ""])
    return tabulate(rows, ["package", "version", "articles", "sentences", "words", "licences"], "simple", intfmt=",")


def main() -> None:
    """Command line."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=sorted(COMMON))
    parser.add_argument("output", type=Path, help="folder to make; must not be there yet")
    args = parser.parse_args()
    if args.output.exists():
        parser.error(f"{args.output}: is there already")
    try:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=args.output.parent, prefix=".") as folder:
            made = Path(folder) / args.output.name
            made.mkdir()
            table = make(args.language, made)
            os.replace(made, args.output)
    except (BiasError, OSError) as error:
        parser.error(one_line(error))
    print(table)


if __name__ == "__main__":
    main()
