"""What translates: programs that fail in every way, tables by people, checkpoints and their language codes."""

import json
import os
import sys
from pathlib import Path
from unittest import mock

import pytest
import transformers
from tokenizers import Tokenizer, models

from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.stereoset.own_sets import jsonl, seq2seq_translation, translation_cache, translation_engines
from lm_eval_bias.tasks.stereoset.own_sets.translation_cache import PLACEHOLDERS, TranslationCache
from tests import tiny


def program(tmp_path, code, kind="command", **more):
    path = tmp_path / "program.py"
    path.write_text(f"import json, os, sys, time\nlines = [line.rstrip('\\n') for line in sys.stdin]\n{code}\n")
    return translation_engines.make(f"{kind}:{sys.executable} -S {path}", ("en", "it"), **more)


def test_a_program_answers_line_by_line(tmp_path):
    made = program(tmp_path, "for line in lines: print(os.environ['LM_EVAL_BIAS_TARGET'], line.upper())")
    assert made.translate(["one", "two\nlines", "drei ü"], "BLANK") == ["it ONE", "it TWO LINES", "it DREI Ü"]


def test_a_program_is_told_what_to_keep(tmp_path):
    code = """
for line in lines:
    asked = json.loads(line)
    answer = f"{asked['source']}>{asked['target']} {asked['text']} {asked['keep'][0]}"
    print(json.dumps({"translation": answer} if asked["text"] == "b" else answer))
"""
    made = program(tmp_path, code, kind="command-json")
    assert made.translate(["a", "b"], "XYZ") == ["en>it a XYZ", "en>it b XYZ"]
    halves = program(tmp_path, "for line in lines: print('\"\\\\ud800 a\"')", kind="command-json")
    assert halves.translate(["a"], "BLANK") == ["? a"]


def test_a_program_that_returns_its_queries_in_another_order(tmp_path):
    code = "for line in {}: print(json.dumps({{**json.loads(line), 'translation': 'x'}}))"
    given = ["a", "b\ud800  c", "d"]
    assert program(tmp_path, code.format("lines"), kind="command-json").translate(given, "BLANK") == ["x"] * 3
    with pytest.raises(BiasError, match="line 1 answers 'd', but the question was 'a'"):
        program(tmp_path, code.format("lines[::-1]"), kind="command-json").translate(given, "BLANK")


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("print('no model', file=sys.stderr); sys.exit(3)", "command", "it ended with status 3: no model"),
        ("print(lines[0])", "command", "1 lines came back for 2 texts"),
        ("print(*lines, 'more', sep='\\n')", "command", "3 lines came back for 2 texts"),
        ("", "command", "0 lines came back for 2 texts"),
        ("print('\\n'.join(lines)); sys.stdout.flush(); os.kill(os.getpid(), 9)", "command", "ended with status -9"),
        ("sys.stdout.buffer.write(b'\\xff\\n\\n')", "command", "byte 0 of what it wrote is not UTF-8"),
        ("while True: print('x' * 100_000)", "command", "its output doesn't end"),
        ("print('[1]'); print('\"a\"')", "command-json", "line 1: '[1]' is neither"),
        ("print('\"a\"'); print('a')", "command-json", "line 2: 'a' is neither"),
    ],
)
def test_a_program_that_fails(tmp_path, code, kind, said):
    with pytest.raises(BiasError, match="the translations so far are kept") as caught:
        program(tmp_path, code, kind).translate(["a", "b"], "BLANK")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "code",
    [
        "words = ' '.join(lines).split(); print(*words[1:], words[0], sep='\\n')",
        "import uuid\nfor line in lines: print(uuid.uuid4())",
        "print(*lines[::-1], sep='\\n')",
        "print(*sorted(lines, reverse=True), sep='\\n')",
    ],
)
def test_a_program_that_does_not_take_each_line_by_itself(tmp_path, code):
    with pytest.raises(BiasError, match=r"translates '[abc]' as .*: it must translate each line by itself"):
        program(tmp_path, code).translate(["a", "b", "c"], "BLANK")


@pytest.mark.parametrize("number", [2, 3, 64, 65])
def test_a_program_that_answers_in_reverse_order(tmp_path, number):
    engine = program(tmp_path, "print(*lines[::-1], sep='\\n')")
    assert engine.translate(["one text tells nothing"], "BLANK") == ["one text tells nothing"]
    with pytest.raises(BiasError, match="it must translate each line by itself"):
        engine.translate([f"text {n}" for n in range(number)], "BLANK")


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path):
    code = "import subprocess; child = subprocess.Popen(['sh', '-c', 'sleep 5; touch survived'])"
    made = program(tmp_path, f"os.chdir({str(tmp_path)!r}); {code}; time.sleep(60)", timeout=1.0)
    with pytest.raises(BiasError, match=r"no answer to 1 texts within 1 s \(--timeout\)"):
        made.translate(["a"], "BLANK")
    # the child holds the program's output: reading it ends with its death, one way or the other
    assert not (tmp_path / "survived").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nllb", "--engine nllb: must be one of hf:"),
        ("aws:x", "must be one of hf:"),
        ("command:", "nothing after the colon"),
        ("command:a 'b", "No closing quotation"),
        ("command:/no/such/program", "cannot be started"),
        ("file:/no/such/table.csv", "cannot be read: No such file"),
        ("hf:/no/such,beam=4", "unknown option 'beam=4'. Did you mean beams?"),
        ("hf:x,beams=0", "must be a number from 1 to 100"),
        ("hf:/no/such/model", "cannot be loaded"),
    ],
)
def test_engines_that_are_none(given, said):
    with pytest.raises(BiasError) as caught:
        translation_engines.make(given, ("en", "it")).translate(["a"], "BLANK")
    assert said in str(caught.value)


TABLE = [["Text", "Translation"], ["a, b", "à; b"], ["gone", "via"], ["open", ""], ["", ""]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tables_of_every_spreadsheet_program(tmp_path, delimiter, encoding, end):
    path = tmp_path / ("t.tsv" if delimiter == "\t" else "t.csv")
    rows = [delimiter.join(f'"{cell}"' for cell in row) for row in TABLE]
    path.write_bytes((end.join(rows) + end).encode(encoding))
    made = translation_engines.make(f"file:{path}", ("en", "it"))
    assert made.translate(["a, b", "open", "other"], "BLANK") == ["à; b", None, None]
    assert made.unknown({"a, b", "open"}) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b\na,c\n", "row 2: 'a' has a different translation above"),
        (b"a,b\nb,c,d\n", "row 2: 3 columns: two are needed"),
        (b"a,b\nb\n", "row 2: 1 columns: two are needed"),
        (b"a,\xe4\n", "byte 2 is not UTF-8: save it as 'CSV UTF-8'"),
        (b'a,b\n"c,d\n', "row 2: not CSV"),
        ("a,b\n".encode("utf-16-le"), "NUL bytes: save it as 'CSV UTF-8'"),
    ],
)
def test_tables_that_cannot_be_understood(tmp_path, content, said):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(BiasError) as caught:
        translation_engines.make(f"file:{tmp_path / 't.csv'}", ("en", "it"))
    assert said in str(caught.value)


class Fake:
    """An engine that does something to every text."""

    human, identity, batch = False, "fake", 4

    def __init__(self, does):
        self.does, self.asked = does, []

    def translate(self, texts, keep):
        self.asked += texts
        return [self.does(text) for text in texts]


@pytest.mark.parametrize(
    ("does", "used", "translation"),
    [
        (str.lower, "__", "a BLANK, b."),
        (lambda text: text.replace("BLANK", "VUOTO"), "XYZ", "A BLANK, b."),
        (lambda text: text.replace("BLANK", "BLANK BLANK").replace("XYZ", "XYZs"), "__", "A BLANK, b."),
        (
            lambda text: text.replace("BLANK", "BLANKed").replace("XYZ", "").replace("__", "___"),
            "<b>1</b>",
            "A BLANK, b.",
        ),
        (lambda text: "".join(c for c in text if c in " []1,"), "[1]", " BLANK, "),
        (lambda text: "x", None, "x"),
        (lambda text: text, "BLANK", "A BLANK, b."),
    ],
)
def test_blank_is_protected_by_what_comes_back(tmp_path, does, used, translation):
    engine = Fake(does)
    kept = TranslationCache(tmp_path, "fake")
    translation_cache.translate(["A BLANK, b.", "plain"], engine, kept)
    assert kept["A BLANK, b."] == translation
    tried = len(PLACEHOLDERS) if used is None else PLACEHOLDERS.index(used) + 1
    assert len(engine.asked) == tried + 1
    record = json.loads((tmp_path / translation_cache.FILE).read_text().splitlines()[1])
    assert (record["source"], record["placeholder"]) == ("A BLANK, b.", used)
    assert kept.placeholders(["A BLANK, b.", "plain"]) == {used or "none": 1}


def test_what_was_translated_is_not_asked_again(tmp_path):
    texts = [f"text {number}" for number in range(10)] * 2
    first = Fake(str.upper)

    def dies(text):
        if len(first.asked) > 8:
            raise BiasError("enough")
        return text.upper()

    first.does = dies
    with pytest.raises(BiasError, match="enough"):
        translation_cache.translate(texts, first, TranslationCache(tmp_path, "fake"))
    path = tmp_path / translation_cache.FILE
    assert len(path.read_text().splitlines()) == 8
    path.write_bytes(path.read_bytes()[:-5])  # the end of a torn line
    second = Fake(str.upper)
    translation_cache.translate(texts, second, TranslationCache(tmp_path, "fake"))
    assert second.asked == ["text 7", "text 8", "text 9"]
    assert dict(TranslationCache(tmp_path, "fake")) == {text: text.upper() for text in texts}
    with pytest.raises(BiasError, match=r"of another engine or revision \(fake; now: other\)"):
        TranslationCache(tmp_path, "other")


@pytest.mark.parametrize("line", ["{", "[]", '{"source": "a", "translation": 1, "engine": "fake"}', '{"source": "a"}'])
def test_a_damaged_memory_is_named(tmp_path, line):
    good = json.dumps({"source": "a", "translation": "b", "engine": "fake", "placeholder": None})
    (tmp_path / translation_cache.FILE).write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(BiasError, match=r"translated\.jsonl line 2: damaged"):
        TranslationCache(tmp_path)


@pytest.fixture(scope="module")
def nllb(tmp_path_factory):
    return tiny.nllb(tmp_path_factory.mktemp("nllb"))


def test_language_tokens(nllb):
    german, italian = (
        seq2seq_translation.Checkpoint(f"{nllb},source=eng_Latn,target={code}", ("en", "xx"), 8)
        for code in ("deu_Latn", "ita_Latn")
    )
    texts = ["The gardener was BLANK.", "A neighbour", "flowers"]
    answers = italian.translate(texts, "BLANK")
    assert all(answers)
    assert german.translate(texts, "BLANK") != answers
    assert italian.translate(texts, "BLANK") == answers
    # what transformers itself says with these tokens set by hand
    tokenizer = transformers.AutoTokenizer.from_pretrained(nllb, src_lang="eng_Latn")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(nllb)
    encoded = tokenizer(texts[:1], return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])[0] == "eng_Latn"
    forced = tokenizer.convert_tokens_to_ids("ita_Latn")
    found = model.generate(**encoded, forced_bos_token_id=forced, num_beams=1, do_sample=False, max_new_tokens=78)
    assert found[0, 1] == forced
    assert " ".join(tokenizer.decode(found[0], skip_special_tokens=True).split()) == answers[0]
    assert italian.identity == f"hf:{Path(nllb).name} at {italian.revision}, source=eng_Latn, target=ita_Latn"
    other = seq2seq_translation.Checkpoint(f"{nllb},source=deu_Latn,target=ita_Latn", ("en", "it"), 8)
    other.translate(texts, "BLANK")
    assert other._translator[1].convert_ids_to_tokens(other._translator[1]("a")["input_ids"])[0] == "deu_Latn"
    beams = seq2seq_translation.Checkpoint(f"{nllb},source=eng_Latn,target=ita_Latn,beams=3", ("en", "it"), 8)
    assert all(beams.translate(texts, "BLANK"))
    assert beams.about()["decoding"] == "beam search, 3 beams"


def test_an_interrupted_model_says_what_it_would_have_said(nllb, tmp_path):
    texts = ["A neighbour waved.", "flowers and", "two words", "The gardener", "A BLANK."]

    def engine():
        return seq2seq_translation.Checkpoint(f"{nllb},source=eng_Latn,target=ita_Latn", ("en", "it"), 2)

    (tmp_path / "whole").mkdir()
    translation_cache.translate(texts, engine(), TranslationCache(tmp_path / "whole", "x"))
    whole = (tmp_path / "whole" / translation_cache.FILE).read_text()
    dying = engine()
    real, calls = engine().translate, []

    def interrupted(batch, keep):
        calls.append(batch)
        if len(calls) == 7:  # five for the first batch, with BLANK, one for the second
            raise KeyboardInterrupt
        return real(batch, keep)

    dying.translate = interrupted
    with pytest.raises(KeyboardInterrupt):
        translation_cache.translate(texts, dying, TranslationCache(tmp_path, "x"))
    done = (tmp_path / translation_cache.FILE).read_text()
    assert whole.startswith(done)
    assert 0 < len(done) < len(whole)
    translation_cache.translate(texts, engine(), TranslationCache(tmp_path, "x"))
    assert (tmp_path / translation_cache.FILE).read_text() == whole


@pytest.mark.parametrize(
    ("options", "languages", "said"),
    [
        ("", ("en", "it"), "no language 'en' in its tokenizer: add source=eng_Latn"),
        ("source=eng_Latn", ("en", "it"), "no language 'it' in its tokenizer: add target=ita_Latn"),
        ("source=eng_Latn,target=BLANK", ("en", "it"), "no language 'BLANK' in its tokenizer"),
        ("source=eng_Latn,target=ita_Latn,dtype=float99", ("en", "it"), "float99: not a torch dtype"),
        ("source=eng_Latn,target=ita_Latn,device=abacus", ("en", "it"), "cannot be loaded"),
    ],
)
def test_what_a_checkpoint_is_not_told(nllb, options, languages, said):
    with pytest.raises(BiasError) as caught:
        translation_engines.make(f"hf:{nllb}" + (f",{options}" if options else ""), languages).translate(["a"], "BLANK")
    assert said in str(caught.value)


def test_a_text_that_is_too_long_for_a_checkpoint(nllb):
    made = seq2seq_translation.Checkpoint(f"{nllb},source=eng_Latn,target=ita_Latn", ("en", "it"), 8)
    with pytest.raises(BiasError, match=r"'aaaaa.*has more tokens than the model's 80"):
        made.translate(["a", "a" * 100], "BLANK")


def test_t5_is_told_in_words(tmp_path):
    t5 = tiny.t5(tmp_path)
    with pytest.raises(BiasError, match="add prefix=translate English to German:"):
        seq2seq_translation.Checkpoint(t5, ("en", "it"), 8).translate(["a"], "BLANK")
    with pytest.raises(BiasError, match="no language codes: leave out source= and target"):
        seq2seq_translation.Checkpoint(f"{t5},target=it,prefix=x", ("en", "it"), 8).translate(["a"], "BLANK")
    for prefix in ("", "translate English to German: "):
        made = seq2seq_translation.Checkpoint(f"{t5},prefix={prefix}", ("en", "it"), 8)
        model, tokenizer, asked, before = made._load()
        spy = mock.Mock(side_effect=tokenizer, batch_decode=tokenizer.batch_decode)
        made._translator = (model, spy, asked, before)
        model.generate = mock.Mock(return_value=tokenizer(["flowers"], return_tensors="pt")["input_ids"])
        assert made.translate(["The gardener"], "BLANK") == ["flowers"]
        assert spy.call_args.args == ([f"{prefix}The gardener"],)


@pytest.mark.parametrize(
    ("special", "options", "expected"),
    [
        (["__de__", "__it__", "__en__"], "", ("__it__", "")),
        (["de_DE", "it_IT", "en_XX"], "", ("it_IT", "")),
        ([">>de<<", ">>it<<"], "", (None, ">>it<< ")),
        (["<2de>", "<2it>"], ",target=de", (None, "<2de> ")),
        ([">>deu<<", ">>ita<<"], "", "but not 'it': add target=deu|ita"),
        ([">>deu<<", ">>ita<<"], ",target=ita", (None, ">>ita<< ")),
        ([], "", (None, "")),
    ],
)
def test_every_way_to_name_a_language(tmp_path, special, options, expected):
    vocabulary = {piece: index for index, piece in enumerate(["<unk>", "it", "de", *special])}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>")), unk_token="<unk>",
        additional_special_tokens=[token for token in special if token[0] not in "<>"],
    )  # fmt: skip
    if expected[0]:
        tokenizer.src_lang = None  # as tokenizers of several languages have it
    made = seq2seq_translation.Checkpoint(str(tmp_path) + options, ("en", "it"), 8)
    if isinstance(expected, str):
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
        with pytest.raises(BiasError) as caught:
            made._languages_for(tokenizer)
        assert expected in str(caught.value)
        return
    asked, prefix = made._languages_for(tokenizer)
    token, before = expected
    assert prefix == before
    assert asked == ({} if token is None else {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(token)})


def test_another_model_in_the_same_folder_is_another_identity(nllb, tmp_path):
    first = seq2seq_translation.Checkpoint(nllb, ("en", "it"), 8).identity
    (tmp_path / "config.json").write_text("{}")
    assert seq2seq_translation.Checkpoint(str(tmp_path), ("en", "it"), 8).identity != first


def test_a_checkpoint_of_the_hub_is_named_by_its_commit(nllb, monkeypatch):
    config = transformers.AutoConfig.from_pretrained(nllb)
    config._commit_hash = "1" * 40
    named = []
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda name, **_: named.append(name) or config)
    made = seq2seq_translation.Checkpoint("someone/model,revision=v1", ("en", "it"), 8)
    assert (named, made.identity) == (["someone/model"], f"hf:someone/model at {'1' * 40}")


def test_what_is_kept_is_on_the_disk(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr("os.fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    for number in range(3):
        jsonl.append(tmp_path / "l.jsonl", [{"source": "a" * number}])
        assert sizes[-1] == (tmp_path / "l.jsonl").stat().st_size
    assert len(sizes) == 3
