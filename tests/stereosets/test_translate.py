"""``stereoset translate``: sheets from every spreadsheet program, and the whole path."""

import re
import sys

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset import custom_sets
from lm_eval_bias.tasks.stereoset.commands import translate
from lm_eval_bias.tasks.stereoset.stereoset_items import read_all
from tests.support.commands import command
from tests.support.example_items import DUTCH, ENGLISH, fill, sheet

EMPTY = dict.fromkeys(translate.COLUMNS, "")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"id": "i1", "contxt": "a"}, "needs the columns id, test"),
        ({}, "item ''"),
        ({"id": "nobody"}, "item 'nobody'"),
        ({"id": "i1", "accept": "perhaps"}, "item 'i1'"),
        ({"id": "i1", "comment": '"a'}, "CSV"),
    ],
)
def test_sheets_that_cannot_be_understood(tmp_path, content, named):
    path = tmp_path / "t.csv"
    row = EMPTY | {"comment": "a"} | content
    path.write_text("\n".join(map(",".join, (row.keys(), row.values()))))
    with pytest.raises(BiasError, match=rf"{path}.*{re.escape(named)}"):
        translate.read_sheet(path, ["i1", "i2"])


@pytest.mark.parametrize("source", [*ENGLISH, *DUTCH])
def test_an_item_goes_through_its_row(source):
    assert translate.translated(source, EMPTY | translate.texts_of(source)) == source


def italian(text):
    """A translation of a text: letters turned round, what isn't a word as it was."""
    words = re.findall(r"BLANK|\w+|\W+", text)
    return "".join(word if word == "BLANK" else word[::-1].lower() for word in words)


def test_the_whole_path_with_a_person(tmp_path, tiny_mirror):
    out, path = tmp_path / "it", tmp_path / "it" / "translation.csv"
    arguments = ("stereoset", "translate", "--to", "it", "-o", str(out))
    command(*arguments)
    sources = {item["id"]: item for item in read_all("en")}
    texts = {}
    for name, source in sources.items():
        own = {part: italian(text) for part, text in translate.texts_of(source).items()}
        labels = ("stereotype", "anti-stereotype", "unrelated")
        texts[name] = {
            part: own[part]
            for part in own
            if source["test"] == "inter" or part not in labels
        }
    bad, equal = (
        list(sources)[0],
        next(name for name in sources if sources[name]["test"] == "intra"),
    )
    texts[bad]["context"] = "BLANK BLANK."
    texts[equal]["stereotype word"] = texts[equal]["unrelated word"]
    fill(path, texts)

    done = command(*arguments)
    assert done.status == 1
    assert (
        f"{len(sources) - 2} of {len(sources)} items are ready, 2 need a person"
        in done.out
    )
    rows = sheet(path)
    assert {name for name, row in rows.items() if row["reasons"]} == {
        bad,
        equal,
    }
    assert "the same word" in rows[equal]["reasons"]
    found = {
        item["id"]: item for item in custom_sets.read(out / "stereoset_it.json").items
    }
    assert found.keys() == sources.keys() - {bad, equal}
    for name, item in found.items():
        assert texts[name].items() <= translate.texts_of(item).items()

    # corrected, and accepted as it is
    other = {"stereotype word": "parola", "stereotype": "x y z", "accept": "x"}
    fill(
        path,
        {
            bad: {"context": italian(sources[bad]["context"]), "comment": "twice"},
            equal: other,
        },
    )
    assert command(*arguments).status == 0
    done = custom_sets.read(out / "stereoset_it.json").items
    assert [item["id"] for item in done] == list(sources)
    assert (sheet(path)[bad]["comment"], sheet(path)[bad]["reasons"]) == ("twice", "")

    # what no task can have can't be accepted
    fill(path, {bad: {"context": ".", "accept": "x"}, equal: {"context": "senza"}})
    done = command(*arguments)
    assert (done.status, bad in done.err) == (2, True)


PROGRAM = """import sys
for line in sys.stdin.read().splitlines():
    words = line.replace("BLANK", "vuoto").split()
    print(" ".join(word if "XYZ" in word else word[::-1].capitalize() for word in words[::-1])[:400] + MARK)
"""


def program(tmp_path, code):
    path = tmp_path / "program.py"
    path.write_text(code)
    return f"{sys.executable} {path}"


def test_a_program_fills_what_is_empty(tmp_path, tiny_mirror):
    out, path = tmp_path / "it", tmp_path / "it" / "translation.csv"
    arguments = ("stereoset", "translate", "--to", "it", "-o", str(out))
    command(*arguments)
    intra = next(own["id"] for own in read_all("en") if own["test"] == "intra")
    fill(path, {intra: {"unrelated word": "mia"}})
    code = PROGRAM.replace("MARK", '"."')
    done = command(*arguments, "--with", program(tmp_path, code))
    assert done.status in (0, 1)
    rows = sheet(path)
    row = rows[intra]
    assert row["unrelated word"] == "mia"  # a person wrote it
    # its BLANK was lost, and came back as XYZ
    assert row["context"].count("BLANK") == row["source context"].count("BLANK")
    assert "vuoto" not in row["context"].lower()
    assert row["stereotype"] == ""  # the context with the word in its blank
    # neither the capital letter nor the full stop of a word that stands alone
    assert row["stereotype word"] == row["source stereotype word"][::-1].lower()
    assert all(row["target"] and row["context"] for row in rows.values())
    assert (out / "stereoset_it.json").is_file()


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("print('one line')", "wrote 1 lines"),
        ("raise SystemExit('no model')", "ended with 1: no model"),
    ],
)
def test_a_program_that_fails(tmp_path, tiny_mirror, code, named):
    out = tmp_path / "it"
    arguments = ("stereoset", "translate", "--to", "it", "-o", str(out), "--with")
    done = command(*arguments, program(tmp_path, code))
    assert (done.status, named in done.err, out.exists()) == (2, True, False)
    assert command(*arguments, "/no/such/program").status == 2
