"""Names and texts in files of others that would command a terminal, a CI's log, a spreadsheet or a page."""

import csv
import io
import re

import pytest

from lm_eval_bias.core.csv_text import csv_text, guarded, unguarded
from lm_eval_bias.core.safe_stream import SafeStream, visible

HOSTILE = {
    "clears the screen": "a\x1b[2Jb",
    "writes into the clipboard": "a\x1b]52;c;aGk=\x07b",
    "links": "a\x1b]8;;http://x\x1b\\b",
    "an eight-bit command": "a\x9b2Jb",
    "NUL": "a\x00b",
    "a GitHub command": "::error file=x::b",
    "a GitHub command on a line of its own": "a\n::add-mask::b",
    "an indented GitHub command": "a\n  ::stop-commands::b",
    "an older GitHub command": "a ##[error]b",
    "an Azure command": "a ##vso[task.complete]b",
    "turned around": "a\u202egpj.b",
    "isolated": "a\u2066\u2069b",
    "no characters": "a\ufffe\uffffb",
    "half a character": "a\ud800b",
    "a carriage return": "a\rb",
    "a line separator": "a\u2028::warning::b",
    "unseen": "a\u200bb",
}
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)


def test_each_hostile_text_is_shown_and_not_obeyed():
    for kind, text in HOSTILE.items():
        out = io.StringIO()
        SafeStream(out).write(f"{text}\n")
        shown = out.getvalue()
        assert not UNSEEN.search(shown), kind
        assert not COMMAND.search(shown), kind
        assert shown.startswith("a") or text[0] == ":", kind
        assert not UNSEEN.search(visible(text)), kind


def test_a_line_in_pieces_is_no_command_either():
    out = io.StringIO()
    door = SafeStream(out)
    for piece in ("  ", ":", ":error::x\n", "a :", ":b\n"):
        door.write(piece)
    assert not COMMAND.search(out.getvalue())
    assert "a ::b" in out.getvalue()


@pytest.mark.parametrize(
    "formula",
    ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "\t=1", " =1", "'=1", "＝1", "=1\n=2"],
)
def test_no_cell_is_a_formula(formula):
    rows = list(csv.reader(io.StringIO(csv_text([formula], [[formula]]))))
    assert rows == [[f"'{formula}"], [f"'{formula}"]]
    assert unguarded(guarded(formula)) == formula


def test_a_table_holds_no_nul():
    """Python 3.10 can't write it, and programs in C end there."""
    assert csv_text(["a\0b"], []) == "a\\u0000b\n"
