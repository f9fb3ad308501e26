"""Finds phrases that read as translated or say nothing, in the pages and in the texts of the code.

Run by pre-commit and ``make check``; prints a line for each find and then ends with status 1.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "*.md",
    ".github/*.md",
    "docs/**/*.md",
    "tasks/*/README.md",
    "tests/*/README.md",
    "benchmarks/README.md",
    "simulations/README.md",
    "results/README.md",
)
FIRST, LONGEST = (
    ("README.md", "docs/start.md"),
    35,
)  # pages whose sentences are short, in words
# data, not messages: prompts, words that answers are searched for, synthetic answers
DATA = re.compile(
    r"(prompts|planted_\w+|answer_\w+|regard_texts|set_texts|filters)\.py$"
)
AVOIDED = {
    r"\b(is|are) (its|their|the \w+'s) affair\b": "depends on it",
    r"\bmake up for one another\b": "balance each other",
    r"\blooks? without gain\b": "evaluations without improvement",
    r"\b(could|can)(n't|'t| not|not)? be had\b": "could not be downloaded",
    r"\bis told by so few\b": "has too few groups",
    r"\bin sight of\b": "having seen",
    r"\bin spite of the reasons\b": "although it is listed",
    r"\bleave \w+ away\b": "leave out",
    r"\bas it shall\b|\bit shall\b": "as it should",
    r"\b(simply|obviously|of course|needless to say|note that)\b": "nothing",
    r"\b(utili[sz]e|leverage|seamless(ly)?|state-of-the-art|cutting-edge)\b": "plain words",
    r"\be\.g\.|\bi\.e\.": "such as, that is",
    r"\bplease\b(?! (report it|read|cite))": "the imperative",
    r"\b(TODO|FIXME|XXX)\b": "what is missing",
}
# names of earlier releases, and the field's
NAMES = {
    r"\bhabits?\b": "position bias, length bias",
    r"\b(caveats?|cautions?|remarks?)\b": "diagnostic, warning or note",
    r"\bplant(s|ed|ing)?\b": "synthetic bias",
    r"\bown (prompts|sets?)\b": "custom prompts, custom set",
    r"\bunsaid\b": "no claim",
    r"\b(border(?!:)|doors?)\b": "tokenization boundary, stream, interface",
    r"\bunreadable\b": "unparsed",
    r"\bsoundness\b": "integrity",
    r"\bheld against\b": "compared with",
}
AVOIDED |= NAMES
# in what the program prints
PRINTED = {
    **AVOIDED,
    r"\b(can|could)(n't|'t|’t|not)? be told\b": "is (not) significant, clear or known",
    r"\b(is|are) told (of|by)\b": "says about, is known from",
    r"\b(doesn't|don't) tell\b(?! \w+ from| \w+ apart)": "doesn't say, doesn't record",
    r"\bstands? (there|twice|in|on|under|behind|above|beside)\b": "is, appears",
    r"\bl(ies|ying|ay|ie) (there|beside|in the package)\b": "is",
    r"(?<!there )\b(is|are|was|were) no (?!longer\b|choice\b)\w+": "is not",
    r"\bno (valid|plain|JSON|CSV|UTF-8|torch)\b": "not (a) valid ...",
    r"\bhad? (been )?made anew\b|\banew\b": "again",
    r"\bgo(es)? on (from|with|where)\b|\bcommand goes on\b": "resume, continue",
    r"\b(pass(es|ed)|passing) over (?!the\b)": "skip",
    r"\bmend (it|them|the)\b": "repair, correct",
    r"\b(put|set) (in|into) words\b": "describe",
    r"\bthan need be\b": "than necessary",
    r"\b[Ss]o (low|high|many|few) an?\b": "this low",
    r"\btake(s)? (its|their) place\b": "replace",
    r"\bgive the same command\b": "run the same command",
    r"\bfor want of\b": "because there is no",
    r"\bask for one\b|\bthan asked\b": "give one",
}


def paragraphs(page: str) -> Iterator[str]:
    """Return the paragraphs, items and cells of Markdown, without code."""
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        if token.type == "inline":
            parts = token.children or ()
            yield "".join(
                p.content
                if p.type == "text"
                else "CODE" * (p.type == "code_inline") or " "
                for p in parts
            )


def printed(code: str) -> Iterator[str]:
    """Return the texts of several words in a module, docstrings left out."""
    tree = ast.parse(code)
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    left_out |= {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if id(node) not in left_out and isinstance(node, (ast.Constant, ast.JoinedStr)):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}"
                for part in parts
            )
            if len(text.split()) > 2:
                yield text


def faults(text: str, phrases: dict[str, str], flags: int = 0) -> Iterator[str]:
    """Find the phrases in a text that should not be there, each with what to write."""
    for phrase, better in phrases.items():
        if match := re.search(phrase, text, flags):
            yield f"{match[0]!r} in {text[:100]!r}: write {better}"


def main() -> int:
    """Check all pages and all code."""
    found = []
    for page in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        name = page.relative_to(ROOT).as_posix()
        phrases = AVOIDED
        if name == "CHANGELOG.md":  # which has the old names
            phrases = {key: AVOIDED[key] for key in AVOIDED.keys() - NAMES.keys()}
        for text in paragraphs(page.read_text(encoding="utf-8")):
            found += [
                f"{name}: {fault}" for fault in faults(text, phrases, re.IGNORECASE)
            ]
            sentences = re.split(r"(?<=[.!?:])\s+", text) if name in FIRST else []
            found += [
                f"{name}: shorten {one!r}"
                for one in sentences
                if len(one.split()) > LONGEST
            ]
    for folder in ("lm_eval_bias", "tasks", "custom_metrics"):
        for module in sorted((ROOT / folder).rglob("*.py")):
            texts = (
                []
                if DATA.search(module.name)
                else printed(module.read_text(encoding="utf-8"))
            )
            found += [
                f"{module.relative_to(ROOT)}: {fault}"
                for text in texts
                for fault in faults(text, PRINTED)
            ]
    print(*found, sep="\n", end="\n" * bool(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
