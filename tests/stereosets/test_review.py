"""The review sheet: written for spreadsheet programs, read from any of them, applied and checked."""

import re

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset.commands import review
from tests.support import example_items
from tests.support.example_items import fill, sheet


def item(words=("lieb", "grob", "rund"), context="Der Hund ist BLANK.", name="i1"):
    return example_items.item("intra", name, context, list(words), "Hund")


EQUAL = {
    "i1": item(("lieb", "lieb", "rund")),
    "i2": item(("lieb", "lieb", '"=rund;'), name="i2"),
    "i3": item(name="i3"),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.csv"


def reviewed(path, items=EQUAL, **found):
    """Items beside themselves, in their source's language, some with other texts."""
    texts = {name: review.texts_of(own) for name, own in items.items()} | found
    return review.review(items, texts, "en", path)


@pytest.mark.parametrize("how", [
    {"delimiter": ",", "end": "\r"},
    {"delimiter": "\t", "columns": lambda row: list(row)[::-1]},
    {"encoding": "utf-8", "end": "\n"},
    {"columns": lambda row: ["id", "accept", "comment", "correct context", "correct unrelated word"]},
])  # fmt: skip
def test_sheets_of_every_spreadsheet_program(path, how):
    assert [state.way for state in reviewed(path).values()] == ["left out", "left out", "translated"]
    assert path.read_bytes().startswith(b"\xef\xbb\xbfid,test,bias type,term,reasons,accept,comment,")
    texts, row = review.texts_of(EQUAL["i1"]), sheet(path)["i1"]
    assert {part: row[part] for part in texts} == {part: row[f"source {part}"] for part in texts} == texts
    better = {"correct context": "Die Katze; sie ist BLANK.", "correct unrelated word": "=ründ", "comment": "ü"}
    fill(path, {"i1": better, "i2": {"accept": "X"}}, **how)
    rows = review.read_sheet(path, EQUAL)
    assert better.items() <= rows["i1"].items()
    assert rows["i2"]["accept"] == "X"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"id,correct contxt\ni1,a\n", "'correct contxt'"),
        (b"accept,comment\nx,a\n", "'id'"),
        (b"id,accept\ni1,x\n\n,x\n", "row 4"),
        (b"id,accept\nnobody,x\n", "row 2: no item 'nobody'"),
        (b"id,accept\ni1,perhaps\n", "row 2 (item i1): accept 'perhaps'"),
        (b"id,accept\ni1,\ni1,x\n", "row 3 (item i1)"),
        (b"id,correct unrelated word\ne1,a\n", "row 2 (item e1): it has no 'unrelated word'"),
        (b"id,comment\ni1,\xe4\n", "byte 14"),
        (b'id,comment\ni1,"a\n', "line 2"),
    ],
)
def test_sheets_that_cannot_be_understood(path, content, named):
    path.write_bytes(content)
    with pytest.raises(BiasError, match=rf"{path}.*{re.escape(named)}"):
        reviewed(path, {"i1": item(), "e1": example_items.ENGLISH[0]})
    assert path.read_bytes() == content


def test_corrections_are_applied_with_what_follows_and_stay_in_the_sheet(path):
    reviewed(path)
    before = path.read_bytes()
    fill(path, {"i1": {"context": "Der Wolf ist BLANK."}})  # in its own column: it would be lost
    with pytest.raises(BiasError, match=r"row 2 \(item i1\)"):
        reviewed(path)
    path.write_bytes(before)
    word = {"correct anti-stereotype word": "grob", "comment": "twice"}
    fill(path, {"i1": word, "i2": {"correct anti-stereotype": "Der Hund ist sehr grob."}})
    for _ in range(2):
        states = reviewed(path)
        assert [state.way for state in states.values()] == ["corrected", "corrected", "translated"]
        assert states["i1"].texts["anti-stereotype"] == "Der Hund ist grob."
        assert states["i2"].texts["anti-stereotype word"] == "sehr grob"
        assert (sheet(path)["i1"]["comment"], sheet(path)["i1"]["reasons"]) == ("twice", "")


def test_a_correction_that_fails_a_check_stays_and_may_be_accepted_as_long_as_it_is_seen(path):
    reviewed(path)
    fill(path, {"i1": {"correct anti-stereotype word": "RUND"}})
    assert reviewed(path)["i1"].open
    row = sheet(path)["i1"]
    assert "unrelated" in row["reasons"]
    assert (row["correct anti-stereotype word"], row["accept"]) == ("RUND", "")
    fill(path, {"i1": {"accept": "x"}})
    state = reviewed(path)["i1"]
    assert (state.way, state.texts["anti-stereotype"]) == ("accepted", "Der Hund ist RUND.")
    assert reviewed(path, i1=review.texts_of(item(("nett", "nett", "nett"))))["i1"].open
    assert sheet(path)["i1"]["accept"] == ""
