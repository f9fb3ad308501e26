"""What a translation's folder holds, damaged: sheets, tables, kept translations, decisions."""

import json

from hypothesis import strategies as st

from lm_eval_bias.tasks.stereoset.own_sets import (
    csv_io,
    item_texts,
    review_decisions,
    review_sheet,
    translation_cache,
    translation_engines,
)
from tests.fuzz.kit import damaged, fuzz, mutated, taken
from tests.stereosets.test_review import item, sheet

ITEMS = {"i1": item(words=("lieb", "lieb", "=rund")), "i2": item("inter", ("Ja.", "", "So;"), "Wer?", "i2")}
RECORD = {"source": "a BLANK", "translation": "b", "engine": "en>it x", "placeholder": "XYZ"}
DECISION = {"id": "i1", "corrected": {"context": "c"}, "replaced": {}, "accepted": "v1", "comment": ""}


def written(tmp_path):
    sheet(tmp_path / "r.csv", ITEMS)
    return (tmp_path / "r.csv").read_bytes()


@fuzz(120, content=st.data())
def test_damaged_sheets(tmp_path, content):
    path = tmp_path / "damaged.csv"
    path.write_bytes(content.draw(damaged(written(tmp_path))))
    edits = taken(review_sheet.read, path)
    for edit in (edits or {}).values():
        assert edit.row["id"]
        assert set(edit.corrected) <= set(item_texts.NAMES)


@fuzz(60, content=damaged(csv_io.as_csv([["text", "translation"], ["a, b", "c"], ['"d"', "=e"]])))
def test_damaged_tables(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    table = taken(translation_engines.make, f"file:{tmp_path / 't.csv'}", ("en", "it"))
    if table is not None:
        assert all(answer is None or answer for answer in table.translate(["a, b", '"d"'], "BLANK"))


@fuzz(60, content=damaged("".join(json.dumps(RECORD | {"source": str(n)}) + "\n" for n in range(3)).encode()))
def test_damaged_memories(tmp_path, content):
    path = tmp_path / translation_cache.FILE
    path.write_bytes(content)
    kept = taken(translation_cache.TranslationCache, tmp_path)
    if kept is not None:
        assert len(kept) <= 3
        assert kept.placeholders([*kept, "BLANK"]) == kept.placeholders([*kept])


@fuzz(120, record=mutated(RECORD))
def test_changed_translations(tmp_path, record):
    (tmp_path / translation_cache.FILE).write_text(json.dumps(record) + "\n")
    kept = taken(translation_cache.TranslationCache, tmp_path)
    if kept is not None:
        text, translation = next(iter(kept.items()))
        assert (text + translation).encode()
        assert sum(kept.placeholders([text]).values()) == ("BLANK" in text)


@fuzz(120, record=mutated(DECISION))
def test_changed_decisions(tmp_path, record):
    (tmp_path / review_decisions.FILE).write_text(json.dumps(record) + "\n")
    for decision in (taken(review_decisions.read, tmp_path) or {}).values():
        assert all(text.encode() is not None for text in decision.corrected.values())
