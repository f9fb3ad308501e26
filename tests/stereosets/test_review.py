"""The review sheet: written for spreadsheet programs, read from any of them, applied and checked."""

import csv
import io

import pytest
from hypothesis import strategies as st

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset.commands import review
from tests.support import example_items
from tests.support.example_items import LABELS
from tests.support.fuzzing import damaged, fuzz, taken


def item(test="intra", words=("lieb", "grob", "rund"), context="Der Hund ist BLANK.", name="i1"):
    return example_items.item(test, name, context, list(words), "Hund")


EQUAL = {
    "i1": item(words=("lieb", "lieb", "rund")),
    "i2": item(words=("lieb", "lieb", '"=rund;'), name="i2"),
    "i3": item(name="i3"),
}


def reviewed(path, items=EQUAL, found=None):
    """Items beside themselves, in their source's language."""
    return review.review(items, found or {name: review.texts_of(own) for name, own in items.items()}, "en", path)


def cells(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def edited(path, row, delimiter=",", encoding="utf-8-sig", end="\r\n", order=list, **changes):
    rows = cells(path)
    rows[row] |= changes
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, order(rows[0]), delimiter=delimiter, lineterminator=end, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes((out.getvalue() + delimiter * 3 + end).encode(encoding))


def test_a_sheet_lists_what_needs_a_person(tmp_path):
    path = tmp_path / "r.csv"
    states = reviewed(path)
    assert {name: state.open for name, state in states.items()} == {"i1": True, "i2": True, "i3": False}
    assert path.read_bytes().startswith(b"\xef\xbb\xbfid,test,bias type,term,reasons,accept,comment,")
    rows = review.read_sheet(path, EQUAL)
    assert list(rows) == ["i1", "i2"]
    assert "anti-stereotype" in rows["i1"]["reasons"]
    for name, row in rows.items():
        assert {part: row[part] for part in review.texts_of(EQUAL[name])} == review.texts_of(EQUAL[name])
    before = path.read_bytes()
    reviewed(path)
    assert path.read_bytes() == before
    path.unlink()
    reviewed(path, {"i3": EQUAL["i3"]})
    assert not path.exists()


@pytest.mark.parametrize(
    "how",
    [
        {"delimiter": ";"},
        {"delimiter": "\t"},
        {"encoding": "utf-8", "end": "\n"},
        {"end": "\r"},
        {"order": lambda columns: list(columns)[::-1]},
        {"order": lambda columns: ["id", "accept", "comment", "correct context", "correct unrelated word"]},
    ],
)
def test_sheets_of_every_spreadsheet_program(tmp_path, how):
    path = tmp_path / "r.csv"
    reviewed(path)
    edited(path, 1, accept="X")
    better = {"correct context": "Die Katze; sie ist BLANK.", "correct unrelated word": "=ründ", "comment": "ü"}
    edited(path, 0, **better, **how)
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
def test_sheets_that_cannot_be_understood(tmp_path, content, named):
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(BiasError) as caught:
        reviewed(tmp_path / "r.csv", {"i1": item(), "e1": item("inter", ("Ja.", "Nein.", "Brot."), "Wer?", "e1")})
    assert f"{tmp_path / 'r.csv'}" in str(caught.value)
    assert named in str(caught.value)
    assert (tmp_path / "r.csv").read_bytes() == content


def test_corrections_are_applied_with_what_follows_and_stay_in_the_sheet(tmp_path):
    path = tmp_path / "r.csv"
    reviewed(path)
    before = path.read_bytes()
    edited(path, 0, context="Der Wolf ist BLANK.")  # in its own column: it would be lost
    with pytest.raises(BiasError, match=r"row 2 \(item i1\)"):
        reviewed(path)
    path.write_bytes(before)
    edited(path, 0, **{"correct anti-stereotype word": "grob", "comment": "twice"})
    edited(path, 1, **{"correct anti-stereotype": "Der Hund ist sehr grob."})
    for _ in range(2):
        states = reviewed(path)
        assert [(state.way, state.open) for state in states.values()] == [
            ("corrected", False), ("corrected", False), ("translated", False)
        ]  # fmt: skip
        assert states["i1"].texts["anti-stereotype"] == "Der Hund ist grob."
        assert states["i2"].texts["anti-stereotype word"] == "sehr grob"
        assert (cells(path)[0]["comment"], cells(path)[0]["reasons"]) == ("twice", "")


def test_a_correction_that_fails_a_check_stays_with_its_reasons(tmp_path):
    path = tmp_path / "r.csv"
    reviewed(path)
    edited(path, 0, **{"correct anti-stereotype word": "RUND", "comment": "so?"})
    assert reviewed(path)["i1"].open
    row = cells(path)[0]
    assert "unrelated" in row["reasons"]
    assert (row["correct anti-stereotype word"], row["comment"], row["accept"]) == ("RUND", "so?", "")
    edited(path, 0, accept="x")
    state = reviewed(path)["i1"]
    assert (state.way, state.open, state.texts["anti-stereotype"]) == ("accepted", False, "Der Hund ist RUND.")
    edited(path, 1, **{"correct anti-stereotype word": ""})
    later = {"i1": review.texts_of(item(words=("nett", "nett", "rund")))}  # other texts than were seen
    assert reviewed(path, EQUAL, later)["i1"].open
    assert cells(path)[0]["accept"] == ""


def test_what_no_task_can_use_is_not_accepted(tmp_path):
    for number, own in enumerate((item(context="Der Hund ist LEER."), item())):
        path, found = tmp_path / f"{number}.csv", review.texts_of(own) if number == 0 else {"target": "Hund"}
        reviewed(path, {"i1": own}, {"i1": found})
        edited(path, 0, accept="x", comment="so")
        assert reviewed(path, {"i1": own}, {"i1": found})["i1"].open
        assert (cells(path)[0]["accept"], cells(path)[0]["comment"]) == ("", "so")
    words = {f"correct {label} word": word for label, word in zip(LABELS, ("lieb", "grob", "rund"), strict=True)}
    edited(path, 0, **{"correct context": "Der Hund ist BLANK."}, **words)
    assert reviewed(path, {"i1": own}, {"i1": found})["i1"].texts == review.texts_of(own)


@fuzz(80, data=st.data())
def test_damaged_sheets(tmp_path, data):
    path = tmp_path / "r.csv"
    path.unlink(missing_ok=True)
    reviewed(path)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    rows = taken(review.read_sheet, path, EQUAL)
    assert rows is None or (rows.keys() <= EQUAL.keys() and taken(reviewed, path))
