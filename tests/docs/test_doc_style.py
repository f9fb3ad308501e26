"""The README can be read in one go, the first page has short sentences, and no phrase on any page stops a reader."""

import re

import pytest

from tests.support import doc_pages as pages
from tests.support.places import ROOT

README = ROOT / "README.md"
START = ROOT / "docs" / "start.md"
LONGEST = 35  # words in a sentence of the README and of the first page

# what reads as if translated, or says nothing
AVOIDED = {
    r"\b(is|are) (its|their|the \w+'s) affair\b": "depends on it",
    r"\bmake up for one another\b": "balance each other",
    r"\blooks? without gain\b": "evaluations without improvement",
    r"\b(could|can)(n't|'t| not|not)? be had\b": "could not be downloaded",
    r"\bis told by so few\b": "has too few groups",
    r"\bin sight of\b": "having seen",
    r"\bin spite of the reasons\b": "although it is listed",
    r"\bleave \w+ away\b": "leave out",
    r"\bas it shall\b": "as it should",
    r"\b(simply|obviously|of course|needless to say|note that)\b": "nothing",
    r"\b(utili[sz]e|leverage|seamless(ly)?|state-of-the-art|cutting-edge)\b": "plain words",
    r"\be\.g\.|\bi\.e\.": "such as, that is",
    r"\bplease\b(?! (report it|read|cite))": "the imperative",
}


def sentences(paragraph):
    """The sentences of a paragraph."""
    return [one for one in re.split(r"(?<=[.!?:])\s+", paragraph) if one]


def test_readme_is_short():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    commands = re.findall(r"^    (make \w+)", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert commands == ["make demo", "make test"]


@pytest.mark.parametrize("paragraph", [*pages.prose(README), *pages.prose(START)])
def test_sentences_of_the_first_pages(paragraph):
    for sentence in sentences(paragraph):
        assert len(sentence.split()) <= LONGEST, sentence


def test_a_long_sentence_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("A `b c` d.\n" + "word " * 36 + "\n")
    (paragraph,) = pages.prose(page)
    assert [len(one.split()) for one in sentences(paragraph)] == [3, 36]


@pytest.mark.parametrize("path", pages.PAGES, ids=pages.name)
def test_phrases_that_are_avoided(path):
    for paragraph in pages.prose(path):
        for phrase, better in AVOIDED.items():
            match = re.search(phrase, paragraph, flags=re.IGNORECASE)
            assert match is None, f"{match[0]!r} in {paragraph[:200]!r}: write {better}"


@pytest.mark.parametrize("path", [p for p in pages.PAGES if ROOT / "tasks" not in p.parents], ids=pages.name)
def test_nothing_is_left_to_fill_in(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if re.fullmatch(r"[A-Z0-9_]{3,}|.*\b(TODO|FIXME|XXX)\b.*", line)]


def test_pictures_of_the_readme_are_small():
    pictures = [target for target in pages.links(README) if target.endswith(".png")]
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 250_000
