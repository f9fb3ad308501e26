"""``validate stereoset FILE --review SHEET``: a set of one's own, corrected through the same sheet."""

import csv
import io
import json

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.tasks.stereoset.own_sets import item_texts, set_files
from lm_eval_bias.tasks.stereoset.own_sets.set_files import DataSet
from tests.stereosets.test_review import edited, item

ITEMS = [
    item(name="good"),
    item(name="twin", words=("lieb", "lieb", "rund")),
    item("inter", ("Er ist lieb.", "Er ist grob.", ""), "Wer ist das?", "empty"),
    item(name="lost", context="Der Hund ist LEER."),
]


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "set.json"
    set_files.write(path, DataSet("de", ITEMS, {"made by": "hand"}))
    return path


def validate(*arguments):
    return main(["stereoset", "validate", *map(str, arguments), "--source", "none"])


def rows(path):
    return {r["id"]: n for n, r in enumerate(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))}


def refused(capsys, *arguments):
    capsys.readouterr()
    assert validate(*arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_a_set_of_ones_own_is_corrected_through_a_sheet(tmp_path, given, capsys):
    sheet, better = tmp_path / "sheet.csv", tmp_path / "better.json"
    before = given.read_bytes()
    assert validate(given, "--review", sheet) == 1
    said = capsys.readouterr().out
    assert f"for a person: {sheet}: " in said
    assert f"  lm-eval-bias validate stereoset {given} --review {sheet} -o BETTER.json\n" in said
    assert list(rows(sheet)) == ["empty", "twin", "lost"]
    edited(sheet, rows(sheet)["twin"], accept="x")
    edited(sheet, rows(sheet)["empty"], **{"correct unrelated": "Brot ist rund.", "comment": "so"})
    edited(sheet, rows(sheet)["lost"], accept="x", **{"correct stereotype word": "brav"})
    filled = sheet.read_bytes()
    assert "decides about 2 items: name the file for the result with -o" in refused(capsys, given, "--review", sheet)
    assert sheet.read_bytes() == filled
    assert validate(given, "--review", sheet, "-o", better) == 1
    said = capsys.readouterr().out
    assert f"data set written: {better}\n" in said
    assert f"  lm-eval-bias validate stereoset {better} --review {sheet} -o {better}\n" in said
    assert given.read_bytes() == before
    made = set_files.read(better)
    assert made.provenance["made by"] == "hand"
    assert made.provenance["reviewed"]["corrected"] == ["empty"]
    assert list(made.provenance["reviewed"]["accepted"]) == ["twin"]
    texts = {own["id"]: item_texts.of(own) for own in made.items}
    assert texts["empty"]["unrelated"] == "Brot ist rund."
    assert texts["lost"] == item_texts.of(ITEMS[3])
    assert list(rows(sheet)) == ["lost"]
    assert "exists already" in refused(capsys, given, "--review", sheet, "-o", better)

    # in place; what was accepted stays so until its texts change
    edited(sheet, 0, accept="", **{"correct context": "Der Hund ist BLANK."})
    capsys.readouterr()
    assert validate(better, "--review", sheet, "-o", better, "--json") == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert not sheet.exists()
    made = set_files.read(better)
    assert {own["id"]: item_texts.of(own) for own in made.items}["lost"]["unrelated"] == "Der Hund ist rund."
    changed = [
        item_texts.with_texts(own, {**item_texts.of(own), "target": "Wolf"}) if own["id"] == "twin" else own
        for own in made.items
    ]
    set_files.write(better, DataSet("de", changed, made.provenance))
    assert validate(better) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-o", "x.json"], "-o names the data set that --review corrects"),
        (["--review", "s.csv", "-o", "x.csv"], "-o x.csv: must end in .json"),
        (["--review", "/no/such/s.csv"], "/no/such/s.csv cannot be written"),
        (["--review", "unknown.csv"], "unknown.csv row 2: no item 'nobody' in the data set"),
    ],
)
def test_refused_in_one_line(tmp_path, given, capsys, monkeypatch, more, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unknown.csv").write_text("id,accept\nnobody,x\n")
    assert said in refused(capsys, given, *more)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set.json", "unknown.csv"]


def test_a_sheet_needs_ids_and_labels(tmp_path, capsys):
    path = tmp_path / "set.json"
    set_files.write(path, DataSet("de", [ITEMS[0], ITEMS[0]], {}))
    assert "item good appears twice" in refused(capsys, path, "--review", tmp_path / "s.csv")
    odd = item(name="odd")
    odd["candidates"][0]["label"] = "unrelated"
    set_files.write(path, DataSet("de", [odd], {}))
    assert "item odd: --review needs each of the labels" in refused(capsys, path, "--review", tmp_path / "s.csv")


@pytest.mark.slow
def test_the_published_german_set_can_be_reviewed(tmp_path, mirror, capsys):
    sheet = tmp_path / "de.csv"
    assert main(["stereoset", "validate", "de", "--review", str(sheet)]) == 1
    found = rows(sheet)
    assert len(found) > 30
    before = sheet.read_bytes()
    assert main(["stereoset", "validate", "de", "--review", str(sheet)]) == 1
    assert sheet.read_bytes() == before
