"""Everything that the program prints is plain English: help, messages, notes and sentences."""

import argparse
import ast
import re

import pytest

from lm_eval_bias.cli import main as cli
from tests.docs.test_doc_style import AVOIDED
from tests.support.places import ROOT

# what reads as if translated, beside what documentation avoids
TRANSLATED = {
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
    r"\bas it shall\b|\bit shall\b": "as it should",
    r"\b[Ss]o (low|high|many|few) an?\b": "this low",
    r"\btake(s)? (its|their) place\b": "replace",
    r"\bgive the same command\b": "run the same command",
    r"\bfor want of\b": "because there is no",
    r"\bask for one\b|\bthan asked\b": "give one",
}
PHRASES = AVOIDED | TRANSLATED
# data, not messages: prompts, words that answers are searched for, planted answers
DATA = re.compile(r"(prompts|planted_\w+|answer_\w+|regard_texts|set_texts|filters)\.py$")


def command_parsers():
    """Each command with its parser."""
    return {name: cli.parser(name, command) for name, command in (cli.verbs() | cli.own_commands()).items()}


def own_options(name, parser):
    """The options of a command that are ours: most of ``run`` are the harness's."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    if name == "run":
        actions = [a for a in actions if a.dest in ("suite", "estimate", "table")]
    return [action for action in actions if action.dest != "help"]


def printed(path):
    """The texts of several words in a module, with their lines, docstrings left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    left_out |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) not in left_out and isinstance(node, (ast.Constant, ast.JoinedStr)):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
            if len(text.split()) > 2:
                yield node.lineno, text


def faults(text):
    """The phrases in a text that should not be there, each with what to write."""
    found = ((re.search(phrase, text), better) for phrase, better in PHRASES.items())
    return [f"{match[0]!r}: write {better}" for match, better in found if match]


MODULES = [
    path
    for folder in ("lm_eval_bias", "tasks", "custom_metrics")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not DATA.search(path.name)
]


@pytest.mark.parametrize("folder", ["lm_eval_bias", "tasks", "custom_metrics"])
def test_phrases_that_are_avoided(folder):
    texts = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for path in MODULES
        if path.is_relative_to(ROOT / folder)
        for line, text in printed(path)
        for fault in faults(text)
    ]
    assert not texts, "\n".join(texts)


def test_an_avoided_phrase_is_noticed(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""It stands there twice."""\nname = 1\nraise ValueError(f"the key {name} stands there twice")\n')
    assert [(line, faults(text)) for line, text in printed(path)] == [(3, ["'stands there': write is, appears"])]


def test_every_command_says_what_it_is_for():
    for name, purpose in ((n, one.help) for n, one in (cli.verbs() | cli.own_commands()).items()):
        assert re.match(r"[a-z]+ ", purpose), name
        assert not purpose.endswith("."), name


@pytest.mark.parametrize(("name", "parser"), command_parsers().items(), ids=lambda one: one if type(one) is str else "")
def test_help_of_options(name, parser):
    options = own_options(name, parser)
    assert options
    for action in options:
        text = action.help
        assert text, action.dest
        assert text.strip() == text, action.dest
        assert re.search(r"[^.]$|\.\.\.$", text), action.dest
        # the harness begins with a capital, so what stands among its flags does, too
        starts = r"[A-Z]" if name == "run" else r"[a-z.\-]|[A-Z]\w*[A-Z]|--"
        assert re.match(starts, text), f"{action.dest}: {text}"
        assert not faults(text), f"{action.dest}: {faults(text)}"


@pytest.mark.parametrize("name", ["ls", "doctor", "path"])
def test_a_command_without_a_description_of_its_own_says_its_purpose(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    purpose = cli.verbs()[name].help
    assert f"{purpose[0].upper()}{purpose[1:]}." in " ".join(capsys.readouterr().out.split())
