"""``stereoset translate``: tables and models, what is kept of them, the whole path with a person, and kills."""

import codecs
import csv
import io
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
import transformers
from tokenizers import Tokenizer, models

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset import own_sets, stereoset_items
from lm_eval_bias.tasks.stereoset.commands import review, translate
from lm_eval_bias.tasks.stereoset.commands.seq2seq_translation import Checkpoint
from tests.support import tiny
from tests.support.forked import die_at
from tests.support.fuzzing import damaged, fuzz, taken

# --------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(("encoding", "end"), [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-8", "\r")])
def test_tables_of_every_spreadsheet_program(tmp_path, delimiter, encoding, end):
    table = [["Text", "Translation"], ["a, b", "à; b"], ["gone", "via"], ["open", ""], ["", ""]]
    rows = [delimiter.join(f'"{cell}"' for cell in row) for row in table]
    (tmp_path / "t.csv").write_bytes((end.join(rows) + end).encode(encoding))
    assert translate.TranslationTable(str(tmp_path / "t.csv")).translations == {"a, b": "à; b", "gone": "via"}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"a,b\na,c\n", "row 2: 'a'"),
        (b"a,b\nb,c,d\n", "row 2: 3 columns"),
        (b"a,b\nb\n", "row 2: 1 columns"),
        (b"a,\xe4\n", "byte 2"),
        (b'a,b\n"c,d\n', "line 2"),
    ],
)
def test_tables_that_cannot_be_understood(tmp_path, content, named):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(BiasError) as caught:
        translate.make_engine(f"file:{tmp_path / 't.csv'}", "it")
    assert named in str(caught.value)


@fuzz(60, content=damaged(review.as_csv([["text", "translation"], ["a, b", "c"], ['"d"', "=e"]])))
def test_damaged_tables(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    table = taken(translate.make_engine, f"file:{tmp_path / 't.csv'}", "it")
    assert table is None or all(table.translations.values())


# --------------------------------------------------------------------------------- what is kept


class Fake:
    """An engine that does something to every text."""

    identity, batch = "fake", 4

    def __init__(self, does):
        self.does, self.asked = does, []

    def translate(self, texts):
        self.asked += texts
        return [self.does(text) for text in texts]


@pytest.mark.parametrize(
    ("does", "asked", "expected"),
    [
        (lambda text: text, 2, "A BLANK, b."),
        (lambda text: text.replace("BLANK", "VUOTO"), 3, "A BLANK, b."),
        (lambda text: text.replace("BLANK", "BLANK BLANK"), 3, "A BLANK, b."),
        (lambda text: text.replace("BLANK", "BLANKed"), 3, "A BLANK, b."),
        (str.lower, 3, "a blank, b."),
        (lambda text: text.replace("BLANK", "").replace("XYZ", "XYZs"), 3, "A , b."),
    ],
)
def test_blank_is_protected_by_what_comes_back(tmp_path, does, asked, expected):
    engine, path = Fake(does), tmp_path / "t.jsonl"
    found = translate.translate_texts(["A BLANK, b.", "plain"], engine, path, "en>it")
    assert found["A BLANK, b."] == expected
    assert len(engine.asked) == asked
    assert {line["source"]: line["translation"] for line in translate.read_lines(path)} == found


def test_what_was_translated_is_not_asked_again(tmp_path):
    texts, path = [f"text {number}" for number in range(10)] * 2, tmp_path / "t.jsonl"
    first = Fake(str.upper)

    def dies(text):
        if len(first.asked) > 8:
            raise BiasError("enough")
        return text.upper()

    first.does = dies
    with pytest.raises(BiasError, match="enough"):
        translate.translate_texts(texts, first, path, "en>it")
    path.write_bytes(path.read_bytes()[:-5])  # the end of a torn line
    second = Fake(str.upper)
    assert translate.translate_texts(texts, second, path, "en>it") == {text: text.upper() for text in texts}
    assert second.asked == ["text 7", "text 8", "text 9"]
    before, other = path.read_bytes(), Fake(str.lower)
    other.identity = "other"
    assert translate.translate_texts(texts, other, path, "en>it")["text 1"] == "text 1"
    assert path.read_bytes().startswith(before)  # what another engine said stays
    path.write_text('\n{"source": "a"}\n{\n[1]\n7')
    assert translate.read_lines(path) == [{"source": "a"}]


LINES = [{"source": str(number), "translation": "b", "engine": "en>it x"} for number in range(3)]


@fuzz(60, content=damaged("".join("\n" + json.dumps(line) for line in LINES).encode()))
def test_damaged_memories(tmp_path, content):
    (tmp_path / "translated.jsonl").write_bytes(content)
    translate.read_lines(tmp_path / "translated.jsonl")


# --------------------------------------------------------------------------------------- models


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
    revision = italian.about["revision"]
    assert italian.identity == f"hf:{Path(nllb).name} at {revision}, source=eng_Latn, target=ita_Latn"
    with pytest.raises(BiasError, match="the model's 80"):
        italian.translate(["a", "a" * 100])


@pytest.mark.parametrize(
    ("engine", "named"),
    [
        ("nllb", "--engine nllb: "),
        ("hf:/no/such,beam=4", "'beam'"),
        ("hf:x,beams=0", "beams=0"),
        ("hf:NLLB", "add source=eng_Latn"),
        ("hf:NLLB,source=eng_Latn", "add target=ita_Latn"),
        ("hf:T5", "add prefix="),
        ("hf:T5,target=it,prefix=x", "source= and target="),
        ("hf:EMPTY", "cannot be loaded"),
    ],
)
def test_engines_that_cannot_translate(nllb, tmp_path, engine, named):
    (tmp_path / "empty").mkdir()
    if "T5" in engine:
        engine = engine.replace("T5", tiny.t5(tmp_path / "t5"))
    with pytest.raises(BiasError) as caught:
        translate.make_engine(engine.replace("NLLB", nllb).replace("EMPTY", str(tmp_path / "empty")), "it").translate(
            ["a"]
        )
    assert named in str(caught.value)


def test_t5_is_told_in_words(tmp_path):
    t5, prefix = tiny.t5(tmp_path), "translate English to German: "
    told, plain = (Checkpoint(f"{t5},prefix={text}", ("en", "it"), 8) for text in (prefix, ""))
    assert told.translate(["flowers"]) == plain.translate([f"{prefix}flowers"])


@pytest.mark.parametrize(
    ("special", "options", "expected"),
    [
        (["__de__", "__it__", "__en__"], "", ("__it__", "")),
        (["de_DE", "it_IT", "en_XX"], "", ("it_IT", "")),
        ([">>de<<", ">>it<<"], "", (None, ">>it<< ")),
        (["<2de>", "<2it>"], ",target=de", (None, "<2de> ")),
        ([">>deu<<", ">>ita<<"], "", None),
        ([], "", (None, "")),
    ],
)
def test_every_way_to_name_a_language(tmp_path, special, options, expected):
    vocabulary = {piece: index for index, piece in enumerate(["<unk>", "it", "de", *special])}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>")), unk_token="<unk>",
        additional_special_tokens=[token for token in special if token[0] not in "<>"],
    )  # fmt: skip
    if expected and expected[0]:
        tokenizer.src_lang = None  # as tokenizers of several languages have it
    made = Checkpoint(str(tmp_path) + options, ("en", "it"), 8)
    if expected is None:
        with pytest.raises(BiasError, match=r"add target=deu\|ita"):
            made.languages_for(tokenizer)
        return
    token, before = expected
    asked = {} if token is None else {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(token)}
    assert made.languages_for(tokenizer) == (asked, before)


def test_another_model_is_another_identity(nllb, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    assert Checkpoint(str(tmp_path), ("en", "it"), 8).identity != Checkpoint(nllb, ("en", "it"), 8).identity
    config = transformers.AutoConfig.from_pretrained(nllb)
    config._commit_hash = "1" * 40
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda name, **_: config)
    assert Checkpoint("someone/model,revision=v1", ("en", "it"), 8).identity == f"hf:someone/model at {'1' * 40}"


# -------------------------------------------------------------------------------- the whole path


class Rot13(Checkpoint):
    """An engine that translates BLANK, makes one word of two (careless, careful) and loses ends."""

    def __init__(self, identity="rot13", batch=16):
        self.batch, self.identity, self.about = batch, identity, {"engine": "rot13"}

    def translate(self, texts):
        return [self.of(text.replace("careless", "careful")).rstrip("." if "Bread" in text else "") for text in texts]

    def of(self, text):
        return " ".join(word if "XYZ" in word else codecs.encode(word, "rot13") for word in text.split(" "))


def say(*arguments):
    return main(["stereoset", "translate", "--to", "it", *map(str, arguments)])


def made(out, engine=None, limit=None):
    """How many items an engine leaves to a person."""
    return translate.translate_set(out, "it", limit, engine or Rot13())[0]


def sheet(folder):
    path = folder / "review.csv"
    rows = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")) if path.exists() else ()
    return {row["id"]: row for row in rows}


def save(folder, rows):
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(next(iter(rows.values()))), delimiter=";")
    writer.writeheader()
    writer.writerows(rows.values())
    (folder / "review.csv").write_bytes(out.getvalue().encode("utf-8-sig"))


def by_hand(item, number):
    """A translation by a person, of whatever has to differ."""
    texts = {}
    for place, (part, text) in enumerate(review.requested(item).items()):
        blanks = " e BLANK" * text.count("BLANK")
        texts[part] = f"parola {number} {'abcde'[place]}{blanks}{text[-1] if text[-1] in '.!?' else ''}"
    return texts | {"target": f"gruppo {item['term']}"}


def correct_all(folder):
    """Fill in the sheet as a person would."""
    rows = sheet(folder)
    for number, item in enumerate(stereoset_items.read_all("en")):
        for part, text in by_hand(item, number).items() if item["id"] in rows else ():
            rows[item["id"]][f"correct {part}"] = text
    save(folder, rows)


def accept_all(folder, names):
    save(folder, {name: row | ({"accept": "x"} if name in names else {}) for name, row in sheet(folder).items()})


def files(folder):
    """What a folder holds."""
    found = {path.name: path.read_text("utf-8-sig").replace(str(folder), "FOLDER") for path in folder.iterdir()}
    return {**found, "review.csv": sheet(folder)}


def test_a_table_with_every_text_is_a_complete_set(tmp_path, tiny_mirror, capsys):
    items, texts, table, out = stereoset_items.read_all("en"), {}, tmp_path / "table.csv", tmp_path / "it"
    for number, item in enumerate(items):
        texts |= {text: by_hand(item, number)[part] for part, text in review.requested(item).items()}
    rows = [("text", "translation"), *texts.items()]
    for missing in (1, 0):
        with table.open("w", newline="") as file:
            csv.writer(file).writerows(rows[: len(rows) - missing])
        assert say("--engine", f"file:{table}", "-o", out) == missing
        assert (out / "untranslated.csv").exists() == bool(missing)
        if missing:
            assert (out / "untranslated.csv").read_text("utf-8-sig") == f"{rows[-1][0]},\n"
            assert [row["reasons"] for row in sheet(out).values()] == ["unrelated word: no translation yet"]
    assert not sheet(out)
    found, expected = own_sets.read(out / "stereoset_it.json"), []
    for item in items:
        own = {part: texts[text] for part, text in review.requested(item).items()}
        expected.append(review.with_texts(item, review.completed(item, own, {})))
    assert found.items == expected
    assert found.provenance["engine"]["engine"] == "file"
    assert found.provenance["items"] == {"translated": len(items), "corrected": 0, "accepted": 0, "left out": 0}
    arguments = ["--include_path", str(out), "--tasks", "stereoset_it", "--model", "bias-chance"]
    assert main(["run", *arguments, "--output_path", str(tmp_path / "run"), "--log_samples"]) == 0
    samples = next((tmp_path / "run").rglob("samples_stereoset_it_*.jsonl")).read_text().splitlines()
    assert [json.loads(line)["doc"]["language"] for line in samples] == ["it"] * len(items)


def test_a_model_and_a_person(nllb, tmp_path, tiny_mirror):
    out = tmp_path / "it"
    arguments = ("--engine", f"hf:{nllb},source=eng_Latn,target=ita_Latn", "-o", out)
    assert say(*arguments, "--batch_size", "64") == 1
    asked = (out / translate.TRANSLATED).read_bytes()
    correct_all(out)
    assert say(*arguments) in (0, 1)
    assert (out / translate.TRANSLATED).read_bytes() == asked
    accept_all(out, sheet(out))  # what English itself has: BLANK twice, BLANK glued to letters
    assert say(*arguments) == 0
    found = own_sets.read(out / "stereoset_it.json")
    assert len(found.items) == len(stereoset_items.read_all("en"))
    assert found.provenance["engine"]["revision"].startswith("files ")
    assert found.provenance["items"]["corrected"] > found.provenance["items"]["accepted"] > 0
    assert own_sets.digest(out / "stereoset_it.json") in (out / "README.md").read_text()


def test_what_needs_a_person_and_what_they_say(tmp_path, tiny_mirror):
    out = tmp_path / "it"
    assert made(out)
    rows = sheet(out)
    assert "the same" in rows["intra2"]["reasons"]
    there = {item["id"] for item in own_sets.read(out / "stereoset_it.json").items}
    assert there.isdisjoint(rows)
    assert there | set(rows) == {item["id"] for item in stereoset_items.read_all("en")}
    kept = translate.read_lines(out / translate.TRANSLATED)
    assert {line["translation"].count("BLANK") - line["source"].count("BLANK") for line in kept} == {0}
    assert len({line["source"] for line in kept}) == len(kept)

    rows["intra2"]["correct anti-stereotype word"] = "incurante"
    save(out, rows)
    made(out, limit=1)  # rows of items that a run is not about stay
    assert sheet(out)["intra2"]["correct anti-stereotype word"] == "incurante"
    assert made(out)
    found = {item["id"]: item for item in own_sets.read(out / "stereoset_it.json").items}
    assert [c["word"] for c in found["intra2"]["candidates"] if c["label"] == "anti-stereotype"] == ["incurante"]

    # as it is: it enters, and is said to
    rest = sheet(out).keys() - {"intra2"}
    accept_all(out, rest)
    assert not made(out)
    provenance = own_sets.read(out / "stereoset_it.json").provenance
    assert (provenance["items"]["corrected"], provenance["items"]["accepted"]) == (1, len(rest))
    assert main(["stereoset", "validate", str(out / "stereoset_it.json")]) == 0  # what was accepted stays so
    (out / "README.md").write_text("mine\n")
    before = files(out)
    assert not made(out)
    assert files(out) == before  # nothing new: the same files, and so the same hash

    # another engine: what was translated, corrected and accepted stays
    assert not made(out, Rot13("rot13 anew"))
    assert len(translate.read_lines(out / translate.TRANSLATED)) == 2 * len(kept)
    assert sheet(out) == before["review.csv"]


def test_a_published_language_is_run_with_metadata_and_an_empty_set_leaves_no_file(tmp_path, tiny_mirror):
    _, said = translate.translate_set(tmp_path / "de", "de", None, Rot13())
    assert f'{{"dataset": "{tmp_path / "de" / "stereoset_de.json"}"}}' in said
    assert not list((tmp_path / "de").glob("*.yaml"))
    (tmp_path / "t.csv").write_text("text,translation\n")
    table = translate.TranslationTable(str(tmp_path / "t.csv"))
    assert translate.translate_set(tmp_path / "de", "de", None, table)[0] == len(stereoset_items.read_all("en"))
    assert not (tmp_path / "de" / "stereoset_de.json").exists()


def test_a_sheet_that_cannot_be_understood_is_said_before_anything_is_asked(tmp_path, tiny_mirror):
    (tmp_path / "review.csv").write_text("id,accept\nnobody,x\n")
    with pytest.raises(BiasError, match="review.csv row 2"):
        made(tmp_path)
    assert len(list(tmp_path.glob("*.*"))) == 1


def killed(at, number, out):
    """A run in a process of its own that is killed when a function is called for the n-th time; its status."""
    child = os.fork()
    if child == 0:
        try:
            die_at(at, number)
            sys.stdout = sys.stderr = io.StringIO()
            os._exit(bool(made(out, Rot13(batch=4))))
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


MOMENTS = ["os:fsync", "os:replace", "lm_eval_bias.tasks.stereoset.commands.translate:restore"]


def test_killed_at_any_moment_and_continued(tmp_path, tiny_mirror):
    whole = tmp_path / "whole" / "it"
    assert made(whole, Rot13(batch=4))
    correct_all(whole)
    made(whole, Rot13(batch=4))
    draw, deaths = random.Random(20261122), 0
    for attempt in range(4):
        out = tmp_path / str(attempt) / "it"
        for corrected in (False, True):
            if corrected:
                correct_all(out)
            for _ in range(3):
                status = killed(draw.choice(MOMENTS[: 2 if corrected else 3]), draw.randint(1, 2), out)
                assert status in (-signal.SIGKILL, 0, 1)
                deaths += status == -signal.SIGKILL
            made(out, Rot13(batch=4))
        for temporary in out.glob(".lm-eval-bias-*.tmp"):  # of a process that was killed while it wrote
            temporary.unlink()
        assert files(out) == files(whole)
        kept = [line["source"] for line in translate.read_lines(out / translate.TRANSLATED)]
        assert len(kept) == len(set(kept))
    assert deaths >= 8
