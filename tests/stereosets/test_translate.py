"""``stereoset translate``: tables and models, what is kept of them, the whole path with a person, and kills."""

import codecs
import csv
import re
from pathlib import Path

import pytest
import transformers

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset import own_sets
from lm_eval_bias.tasks.stereoset.commands import review, translate
from lm_eval_bias.tasks.stereoset.commands.seq2seq_translation import Checkpoint
from lm_eval_bias.tasks.stereoset.stereoset_items import read_all
from tests.support import tiny
from tests.support.commands import command
from tests.support.example_items import fill, sheet


@pytest.mark.parametrize(
    ("engine", "named"),
    [
        ("file:TABLE a,b\na,c\n", "row 2: 'a'"),
        ("file:TABLE a,b\nb,c,d\n", "row 2: 3 columns"),
        ("hf:/no/such,beam=4", "'beam'"),
        ("hf:EMPTY", "cannot be loaded"),
        ("hf:NLLB", "add source=eng_Latn"),
        ("hf:NLLB,source=eng_Latn", "add target=ita_Latn"),
        ("hf:T5", "add prefix="),
    ],
)
def test_engines_that_cannot_translate(nllb, tmp_path, engine, named):
    (tmp_path / "empty").mkdir()
    engine, _, content = engine.partition(" ")
    (tmp_path / "t.csv").write_text(content)
    t5 = tiny.t5(tmp_path / "t5") if "T5" in engine else ""
    for name, place in (("TABLE", tmp_path / "t.csv"), ("EMPTY", tmp_path / "empty"), ("NLLB", nllb), ("T5", t5)):
        engine = engine.replace(name, str(place))
    with pytest.raises(BiasError, match=re.escape(named)):
        translate.make_engine(engine, "it").translate(["a"])


class Stopped(Exception):
    """What ends an engine."""


class Fake(Checkpoint):
    """An engine that does something to every text, up to a number of texts."""

    def __init__(self, does, identity="fake", most=1000):
        self.does, self.identity, self.most, self.batch, self.asked = does, identity, most, 4, []
        self.about = {"engine": identity}

    def translate(self, texts):
        self.asked += texts
        if len(self.asked) > self.most:
            raise Stopped
        return [self.does(text) for text in texts]


@pytest.mark.parametrize(("does", "asked", "expected"), [
    (str, 2, "A BLANK, b."),
    (lambda text: text.replace("BLANK", "VUOTO"), 3, "A BLANK, b."),
    (lambda text: text.replace("BLANK", "BLANK BLANK"), 3, "A BLANK, b."),
    (lambda text: text.replace("BLANK", "BLANKed"), 3, "A BLANK, b."),
    (str.lower, 3, "a blank, b."),
    (lambda text: text.replace("BLANK", "").replace("XYZ", "XYZs"), 3, "A , b."),
])  # fmt: skip
def test_blank_is_protected_by_what_comes_back(tmp_path, does, asked, expected):
    engine, path = Fake(does), tmp_path / "t.jsonl"
    found = translate.translate_texts(["A BLANK, b.", "plain"], engine, path, "en>it")
    assert (found["A BLANK, b."], len(engine.asked)) == (expected, asked)
    assert {line["source"]: line["translation"] for line in translate.read_lines(path)} == found


def test_what_was_translated_is_not_asked_again(tmp_path):
    texts, path = [f"text {number}" for number in range(10)] * 2, tmp_path / "t.jsonl"
    translate.translate_texts(texts[:8], Fake(str.upper), path, "en>it")
    path.write_bytes(path.read_bytes()[:-5] + b"\n{\n[1]\n7")  # torn and damaged lines
    again = Fake(str.upper)
    assert translate.translate_texts(texts, again, path, "en>it") == {text: text.upper() for text in texts}
    assert again.asked == ["text 7", "text 8", "text 9"]
    before = path.read_bytes()
    assert translate.translate_texts(texts, Fake(str.lower, "other"), path, "en>it")["text 1"] == "text 1"
    assert path.read_bytes().startswith(before)  # what another engine said stays


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    return tiny.nllb(tmp_path_factory.mktemp("nllb"))


def test_language_tokens(nllb):
    german, italian = (
        Checkpoint(f"{nllb},source=eng_Latn,target={code}", ("en", "xx"), 8) for code in ("deu_Latn", "ita_Latn")
    )
    texts = ["The gardener was BLANK.", "A neighbour", "flowers"]
    answers = italian.translate(texts)
    assert all(answers)
    assert german.translate(texts) != answers
    # what transformers itself says with these tokens set by hand
    tokenizer = transformers.AutoTokenizer.from_pretrained(nllb, src_lang="eng_Latn")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(nllb)
    encoded = tokenizer(texts[:1], return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])[0] == "eng_Latn"
    forced = tokenizer.convert_tokens_to_ids("ita_Latn")
    found = model.generate(**encoded, forced_bos_token_id=forced, num_beams=1, do_sample=False, max_new_tokens=78)
    assert found[0, 1] == forced
    assert " ".join(tokenizer.decode(found[0], skip_special_tokens=True).split()) == answers[0]
    assert italian.identity.startswith(f"hf:{Path(nllb).name} at {italian.about['revision']}, ")
    assert italian.identity != german.identity
    with pytest.raises(BiasError, match="the model's 80"):
        italian.translate(["a", "a" * 100])


def rot13(text):
    """A translation that translates BLANK, makes one word of two (careless, careful), loses an end and adds some."""
    words = text.replace("careless", "careful").split(" ")
    said = " ".join(word if "XYZ" in word else codecs.encode(word, "rot13") for word in words)
    return f"{said.capitalize()}." if len(words) == 1 else said.rstrip(".") if "Bread" in text else said


def made(out, limit=None, **more):
    """How many items an engine leaves to a person."""
    return translate.translate_set(out, "it", limit, Fake(rot13, **more))[0]


def files(folder):
    """What a folder holds."""
    found = {path.name: path.read_text("utf-8-sig").replace(str(folder), "FOLDER") for path in folder.iterdir()}
    return {**found, "review.csv": sheet(folder / "review.csv")}


def test_a_table_with_every_text_is_a_complete_set(tmp_path, tiny_mirror):
    items, table, out = read_all("en"), tmp_path / "table.csv", tmp_path / "it"
    every = dict.fromkeys(text for item in items for text in review.requested(item).values())
    ends = {text: text[-1] if text[-1] in ".!?" else "" for text in every}
    texts = {text: f"parola {n}{' e BLANK' * text.count('BLANK')}{ends[text]}" for n, text in enumerate(every)}
    rows = [("Text", "Translation"), ("another", ""), *texts.items()]
    for missing in (1, 0):
        with table.open("w", newline="") as file:
            csv.writer(file).writerows(rows[: len(rows) - missing])
        arguments = ("--to", "it", "--engine", f"file:{table}", "-o", str(out))
        assert command("stereoset", "translate", *arguments).status == missing
        assert (out / "untranslated.csv").exists() == (out / "review.csv").exists() == bool(missing)
        if missing:
            assert (out / "untranslated.csv").read_text("utf-8-sig") == f"{rows[-1][0]},\n"
            assert [row["reasons"][:15] for row in sheet(out / "review.csv").values()] == ["unrelated word:"]
    found, expected = own_sets.read(out / "stereoset_it.json"), []
    for item in items:
        own = {part: texts[text] for part, text in review.requested(item).items()}
        expected.append(review.with_texts(item, review.completed(item, own, {})))
    assert found.items == expected
    assert found.provenance["items"] == {"translated": len(items), "corrected": 0, "accepted": 0, "left out": 0}


def test_what_needs_a_person_and_what_they_say(tmp_path, tiny_mirror):
    out, path = tmp_path / "it", tmp_path / "it" / "review.csv"
    assert made(out) == len(rows := sheet(path))
    assert "the same" in rows["intra2"]["reasons"]
    there = {item["id"]: item for item in own_sets.read(out / "stereoset_it.json").items}
    assert there.keys().isdisjoint(rows)
    words = [candidate["word"] for item in there.values() for candidate in item["candidates"] if candidate["word"]]
    assert {"xvaq", "friragrra"} <= set(words)  # in small letters, as kind and seventeen are
    assert there.keys() | set(rows) == {item["id"] for item in read_all("en")}

    fill(path, {"intra2": {"correct anti-stereotype word": "incurante"}})
    made(out, limit=1)  # rows of items that a run is not about stay
    assert made(out) == len(rows) - 1
    (found,) = (item for item in own_sets.read(out / "stereoset_it.json").items if item["id"] == "intra2")
    assert [c["word"] for c in found["candidates"] if c["label"] == "anti-stereotype"] == ["incurante"]

    # as it is: it enters, and is said to
    fill(path, dict.fromkeys(rows.keys() - {"intra2"}, {"accept": "x"}))
    assert made(out) == 0
    counts = own_sets.read(out / "stereoset_it.json").provenance["items"]
    assert (counts["corrected"], counts["accepted"]) == (1, len(rows) - 1)
    assert own_sets.digest(out / "stereoset_it.json") in (out / "README.md").read_text()
    assert command("stereoset", "validate", str(out / "stereoset_it.json")).status == 0  # what was accepted stays so
    (out / "README.md").write_text("mine\n")
    before = files(out)
    assert made(out) == 0
    assert files(out) == before  # nothing new: the same files, and so the same hash
    assert made(out, identity="anew") == 0  # another engine: what was translated, corrected and accepted stays
    assert sheet(path) == before["review.csv"]
    # what can't be understood is said before anything is asked
    path.write_text("id,accept\nnobody,x\n")
    with pytest.raises(BiasError, match="review.csv row 2"):
        made(out, identity="once more", most=0)


def test_stopped_at_any_text_and_continued(tmp_path, tiny_mirror):
    made(tmp_path / "whole")
    for most in range(0, 40, 12):
        out = tmp_path / str(most)
        with pytest.raises(Stopped):
            made(out, most=most)
        with pytest.raises(Stopped):  # the next batch, and no more
            made(out, most=4)
        kept = len(translate.read_lines(out / translate.TRANSLATED))
        made(out)
        assert files(out) == files(tmp_path / "whole")
    assert kept > 30
