"""The review sheet: written for spreadsheet programs, read from any of them, merged after the same checks."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_bias.errors import BiasError
from lm_eval_bias.report.escaping import unguarded
from lm_eval_bias.tasks.stereoset.own_sets import csv_io, item_texts, review_sheet, set_checks
from lm_eval_bias.tasks.stereoset.own_sets.review_decisions import Decision, Review

LABELS = ("stereotype", "anti-stereotype", "unrelated")


def item(test="intra", words=("lieb", "grob", "rund"), context="Der Hund ist BLANK.", name="i1"):
    sentences = [context.replace("BLANK", word) if test == "intra" else word for word in words]
    return {
        "id": name, "test": test, "bias_type": "gender", "target": "Hund", "term": "dog", "context": context,
        "candidates": [
            {"id": f"{name}{label}", "label": label, "sentence": sentence, "word": word if test == "intra" else None}
            for label, sentence, word in zip(LABELS, sentences, words, strict=True)
        ],
    }  # fmt: skip


def check_of(items):
    def check(name, texts):
        own = items[name]
        if len(texts) < len(item_texts.of(own)):
            return [set_checks.Finding("lacking", "item", "no translation yet")]
        return set_checks.check_item(item_texts.with_texts(own, texts), None, "de")

    return check


def sheet(path, items, found=None, decided=None, pending=None):
    found = found or {name: item_texts.of(own) for name, own in items.items()}
    rows = []
    for name, own in items.items():
        state = state_of(own, found[name], (decided or {}).get(name, Decision()), check_of(items))
        edit, findings = (pending or {}).get(name, (None, state.findings))
        rows.append(review_sheet.row_of(own, None, state.texts, findings, edit))
    review_sheet.write(path, rows)


def state_of(own, found, decision, check):
    return Review({own["id"]: own}, {own["id"]: found}, {own["id"]: decision}, check).state(own["id"])


def cells(path):
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def edited(path, row, **changes):
    rows = cells(path)
    rows[row] |= changes
    out = io.StringIO(newline="")
    csv.writer(out).writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    path.write_bytes(out.getvalue().encode("utf-8-sig"))


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(
    lambda text: text == text.strip()
) | st.sampled_from(["=1+1", "'=x", "+49", "-", "@me", '"', ";", "a,b", "''", "'+'", "=cmd|' /C calc'!A0"])


@given(st.lists(TEXT, min_size=1, max_size=4))
def test_any_text_survives_a_sheet_and_none_is_a_formula(texts):
    content = csv_io.as_csv([texts]).decode("utf-8-sig")
    row = next(csv.reader(io.StringIO(content, newline="")))
    assert [unguarded(cell) for cell in row] == texts
    assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_a_sheet_is_read_as_it_was_written(tmp_path):
    items = {"i1": item(words=("=lieb", "grob;", '"rund"')), "i2": item("inter", ("Ja.", "@Nein.", "-"), "Wer?", "i2")}
    sheet(tmp_path / "r.csv", items)
    assert (tmp_path / "r.csv").read_bytes().startswith(b"\xef\xbb\xbfid,test,bias type,term,reasons,accept,comment,")
    found = review_sheet.read(tmp_path / "r.csv")
    for name, own in items.items():
        assert {part: found[name].row[part] for part in item_texts.of(own)} == item_texts.of(own)
        assert (found[name].corrected, found[name].accept, found[name].comment) == ({}, False, "")
    before = (tmp_path / "r.csv").stat().st_mtime_ns
    sheet(tmp_path / "r.csv", items)
    assert (tmp_path / "r.csv").stat().st_mtime_ns == before
    review_sheet.write(tmp_path / "r.csv", [])
    assert not (tmp_path / "r.csv").exists()
    assert review_sheet.read(tmp_path / "r.csv") == {}


def as_program(path, delimiter=",", encoding="utf-8-sig", end="\r\n", order=None, head=""):
    rows = cells(path)
    columns = order(list(rows[0])) if order else list(rows[0])
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, delimiter=delimiter, lineterminator=end, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes((head + out.getvalue() + delimiter * 3 + end).encode(encoding))


@pytest.mark.parametrize(
    "how",
    [
        {"delimiter": ";"},
        {"delimiter": "\t", "encoding": "utf-16"},
        {"encoding": "utf-8", "end": "\n"},
        {"end": "\r"},
        {"order": lambda columns: columns[::-1]},
        {"order": lambda columns: [c for c in columns if not c.startswith("source ") and c != "version"]},
        {"order": lambda columns: ["id", "accept", "comment", "correct context", "correct unrelated word"]},
        {"order": lambda columns: [f" {c.upper()}" if c == "id" else c for c in columns]},
        {"delimiter": ";", "head": "sep=;\r\n"},
    ],
)
def test_sheets_of_every_spreadsheet_program(tmp_path, how):
    items = {"i1": item(), "i2": item(name="i2")}
    path = tmp_path / "r.csv"
    sheet(path, items)
    edited(
        path, 0, **{"correct context": "Die Katze; sie ist BLANK.", "correct unrelated word": "=ründ", "comment": "ü"}
    )
    edited(path, 1, accept="X")
    if how.get("order") and "ID" in how["order"](["id"])[0]:
        path.write_bytes(path.read_bytes().replace(b"id,", b" ID ,", 1))
        how = {}
    as_program(path, **how)
    found = review_sheet.read(path)
    assert found["i1"].corrected == {"context": "Die Katze; sie ist BLANK.", "unrelated word": "=ründ"}
    assert found["i1"].comment == "ü"
    assert (found["i2"].corrected, found["i2"].accept) == ({}, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"id,correct contxt\ni1,a\n", "unknown column 'correct contxt'. Did you mean correct context"),
        (b"id,notes\ni1,a\n", "unknown column 'notes'"),
        (b"id,accept,accept\ni1,x,\n", "the column 'accept' appears twice"),
        (b"name,accept\ni1,x\n", "unknown column 'name'"),
        (b"accept,comment\nx,a\n", "no column 'id'"),
        (b"id,accept\ni1,x\n\n,x\n", "row 4: no id"),
        (b"id,accept\ni1,perhaps\n", "row 2 (item i1): accept 'perhaps': must be x or empty"),
        (b"id,accept\ni1,\ni1,x\n", "row 3: the item i1 is also in a row above"),
        (b"id,accept\ni1,x,more\n", "row 2: a cell in a column without a name"),
        (b"id,comment\ni1,\xe4\n", "is not UTF-8: save it as 'CSV UTF-8'"),
        (b'id,comment\ni1,"a\n', "row 2: not CSV"),
    ],
)
def test_sheets_that_cannot_be_understood(tmp_path, content, said):
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(BiasError) as caught:
        review_sheet.read(tmp_path / "r.csv")
    assert said in str(caught.value)


def test_a_text_that_was_changed_in_its_own_column_is_not_lost(tmp_path):
    sheet(tmp_path / "r.csv", {"i1": item()})
    edited(tmp_path / "r.csv", 0, context="Der Wolf ist BLANK.")
    with pytest.raises(BiasError, match=r"row 2 \(item i1\): its original texts were changed: write better texts"):
        review_sheet.read(tmp_path / "r.csv")


def merged(path, items, decided=None, found=None):
    found = found or {name: item_texts.of(own) for name, own in items.items()}
    return Review(items, found, dict(decided or {}), check_of(items)).merge(review_sheet.read(path).values())


EQUAL = {"i1": item(words=("lieb", "lieb", "rund"))}


def test_a_correction_is_merged_and_what_follows_from_it(tmp_path):
    sheet(tmp_path / "r.csv", EQUAL)
    assert "anti-stereotype" in cells(tmp_path / "r.csv")[0]["reasons"]
    edited(tmp_path / "r.csv", 0, **{"correct anti-stereotype word": "grob", "comment": "twice"})
    made = merged(tmp_path / "r.csv", EQUAL)
    corrected = {"anti-stereotype word": "grob"}
    assert made.decisions == {"i1": Decision(corrected, {"anti-stereotype word": "lieb"}, "", "twice")}
    assert (made.pending, made.stale) == ({}, [])
    texts = state_of(EQUAL["i1"], item_texts.of(EQUAL["i1"]), made.decisions["i1"], check_of(EQUAL)).texts
    assert texts["anti-stereotype"] == "Der Hund ist grob."
    # the same sheet again, as after a kill between keeping the correction and writing the sheet
    assert merged(tmp_path / "r.csv", EQUAL, made.decisions).decisions == {}


def test_a_sentence_by_a_person_says_its_word(tmp_path):
    sheet(tmp_path / "r.csv", EQUAL)
    edited(tmp_path / "r.csv", 0, **{"correct anti-stereotype": "Der Hund ist sehr grob."})
    decision = merged(tmp_path / "r.csv", EQUAL).decisions["i1"]
    texts = state_of(EQUAL["i1"], item_texts.of(EQUAL["i1"]), decision, check_of(EQUAL)).texts
    assert (texts["anti-stereotype"], texts["anti-stereotype word"]) == ("Der Hund ist sehr grob.", "sehr grob")


def test_a_correction_that_fails_a_check_stays_with_its_reasons(tmp_path):
    path = tmp_path / "r.csv"
    sheet(path, EQUAL)
    edited(path, 0, **{"correct anti-stereotype word": "RUND", "comment": "so?"})
    made = merged(path, EQUAL)
    assert made.decisions == {}
    sheet(path, EQUAL, pending=made.pending)
    row = cells(path)[0]
    assert "unrelated" in row["reasons"]
    assert (row["correct anti-stereotype word"], row["comment"], row["accept"]) == ("RUND", "so?", "")
    edited(path, 0, accept="x")
    made = merged(path, EQUAL)
    state = state_of(EQUAL["i1"], item_texts.of(EQUAL["i1"]), made.decisions["i1"], check_of(EQUAL))
    assert state.accepted
    assert not state.open
    assert state.texts["anti-stereotype"] == "Der Hund ist RUND."


def test_what_was_accepted_is_what_was_seen(tmp_path):
    path = tmp_path / "r.csv"
    sheet(path, EQUAL)
    edited(path, 0, accept="x")
    made = merged(path, EQUAL)
    assert made.decisions["i1"].accepted == review_sheet.version(item_texts.of(EQUAL["i1"]))
    later = item_texts.of(item(words=("nett", "nett", "rund")))
    state = state_of(EQUAL["i1"], later, made.decisions["i1"], check_of(EQUAL))
    assert state.open
    # a sheet that shows earlier texts accepts nothing
    made = merged(path, EQUAL, found={"i1": later})
    assert (made.decisions, made.stale) == ({}, ["i1"])
    edited(path, 0, version="")
    assert merged(path, EQUAL, found={"i1": later}).stale == ["i1"]
    assert merged(path, EQUAL).decisions["i1"].accepted


def test_nothing_is_accepted_before_it_is_there(tmp_path):
    items = {"i1": item()}
    found = {"i1": {"target": "Hund"}}
    sheet(tmp_path / "r.csv", items, found)
    edited(tmp_path / "r.csv", 0, accept="x", comment="later")
    made = merged(tmp_path / "r.csv", items, found=found)
    assert made.decisions == {}
    assert made.pending["i1"][0].comment == "later"
    better = {"correct context": "Der Hund ist BLANK."} | {
        f"correct {label} word": word for label, word in zip(LABELS, ("lieb", "grob", "rund"), strict=True)
    }
    edited(tmp_path / "r.csv", 0, accept="", **better)
    decision = merged(tmp_path / "r.csv", items, found=found).decisions["i1"]
    assert state_of(items["i1"], found["i1"], decision, check_of(items)).texts == item_texts.of(items["i1"])


def test_a_correction_of_a_text_that_an_item_does_not_have(tmp_path):
    items = {"i1": item("inter", ("Ja.", "Nein.", "Brot."), "Wer?")}
    sheet(tmp_path / "r.csv", items)
    edited(tmp_path / "r.csv", 0, **{"correct unrelated word": "a"})
    with pytest.raises(BiasError, match=r"row 2 \(item i1\): it has no 'unrelated word' to correct"):
        merged(tmp_path / "r.csv", items)


def test_words_lose_what_their_source_does_not_have():
    source = item(words=("kind", "Hard", "very."), context="The dog is BLANK")
    said = {
        "Hund": "cane.",
        "The dog is BLANK": "Il cane è BLANK",
        "kind": "Gentile.",
        "Hard": "Duro",
        "very.": "Molto.",
    }
    found = item_texts.translated(source, said, "it", human=False)
    assert [found[f"{label} word"] for label in LABELS] == ["gentile", "Duro", "molto."]
    assert found["target"] == "cane"
    german = item_texts.translated(source, said, "de", human=False)
    assert german["stereotype word"] == "Gentile"
    assert item_texts.translated(source, said, "it", human=True)["stereotype word"] == "Gentile."


def test_what_no_task_can_use_is_not_accepted(tmp_path):
    items = {"i1": item(context="Der Hund ist LEER.")}
    sheet(tmp_path / "r.csv", items)
    edited(tmp_path / "r.csv", 0, accept="x", comment="so")
    made = merged(tmp_path / "r.csv", items)
    assert made.decisions == {}
    assert "BLANK" in cells(tmp_path / "r.csv")[0]["reasons"]
