"""What translates: tables by people, checkpoints and their language codes, and what is kept of them."""

from pathlib import Path

import pytest
import transformers
from tokenizers import Tokenizer, models

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.tasks.stereoset.commands import translate
from lm_eval_bias.tasks.stereoset.commands.seq2seq_translation import Checkpoint
from tests.support import tiny


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nllb", "--engine nllb: must be one of hf:"),
        ("command:cat", "must be one of hf:"),
        ("hf:/no/such,beam=4", "unknown option 'beam'. Did you mean beams?"),
        ("hf:x,beams=0", "must be a number from 1 to 100"),
    ],
)
def test_engines_that_are_none(given, said):
    with pytest.raises(BiasError) as caught:
        translate.make_engine(given, "it")
    assert said in str(caught.value)


TABLE = [["Text", "Translation"], ["a, b", "à; b"], ["gone", "via"], ["open", ""], ["", ""]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(("encoding", "end"), [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-8", "\r")])
def test_tables_of_every_spreadsheet_program(tmp_path, delimiter, encoding, end):
    path = tmp_path / "t.csv"
    rows = [delimiter.join(f'"{cell}"' for cell in row) for row in TABLE]
    path.write_bytes((end.join(rows) + end).encode(encoding))
    assert translate.TranslationTable(str(path)).translations == {"a, b": "à; b", "gone": "via"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b\na,c\n", "row 2: 'a' has a different translation above"),
        (b"a,b\nb,c,d\n", "row 2: 3 columns: two are needed"),
        (b"a,b\nb\n", "row 2: 1 columns: two are needed"),
        (b"a,\xe4\n", "is not UTF-8 text (byte 2): save it as UTF-8"),
        (b'a,b\n"c,d\n', "line 2: not CSV"),
    ],
)
def test_tables_that_cannot_be_understood(tmp_path, content, said):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(BiasError) as caught:
        translate.TranslationTable(str(tmp_path / "t.csv"))
    assert said in str(caught.value)


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
    assert len(translate.read_lines(path)) == 8
    path.write_bytes(path.read_bytes()[:-5])  # the end of a torn line
    second = Fake(str.upper)
    found = translate.translate_texts(texts, second, path, "en>it")
    assert second.asked == ["text 7", "text 8", "text 9"]
    assert found == {text: text.upper() for text in texts}
    before, other = path.read_bytes(), Fake(str.lower)
    other.identity = "other"
    assert translate.translate_texts(texts, other, path, "en>it")["text 1"] == "text 1"
    assert path.read_bytes().startswith(before)  # what another engine said stays


def test_damaged_lines_are_translated_again(tmp_path):
    path = tmp_path / "translated.jsonl"
    path.write_text('\n{"source": "a"}\n{\n[1]\n7')
    assert translate.read_lines(path) == [{"source": "a"}]


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
    assert italian.translate(texts) == answers
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
    with pytest.raises(BiasError, match=r"'aaaaa.*has more tokens than the model's 80"):
        italian.translate(["a", "a" * 100])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "no language 'en' in its tokenizer: add source=eng_Latn"),
        (",source=eng_Latn", "no language 'it' in its tokenizer: add target=ita_Latn"),
    ],
)
def test_what_a_checkpoint_is_not_told(nllb, options, said):
    with pytest.raises(BiasError) as caught:
        Checkpoint(f"{nllb}{options}", ("en", "it"), 8).translate(["a"])
    assert said in str(caught.value)


def test_t5_is_told_in_words(tmp_path):
    t5 = tiny.t5(tmp_path)
    with pytest.raises(BiasError, match="add prefix=translate English to German:"):
        Checkpoint(t5, ("en", "it"), 8).translate(["a"])
    with pytest.raises(BiasError, match="no language codes: leave out source= and target"):
        Checkpoint(f"{t5},target=it,prefix=x", ("en", "it"), 8).translate(["a"])
    made = Checkpoint(f"{t5},prefix=translate English to German: ", ("en", "it"), 8)
    assert made._translator[2:] == ({}, "translate English to German: ")
    assert len(made.translate(["The gardener", "flowers"])) == 2


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
        with pytest.raises(BiasError, match=r"but not 'it': add target=deu\|ita"):
            made._languages_for(tokenizer)
        return
    asked, prefix = made._languages_for(tokenizer)
    token, before = expected
    assert prefix == before
    assert asked == ({} if token is None else {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(token)})


def test_another_model_is_another_identity(nllb, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    assert Checkpoint(str(tmp_path), ("en", "it"), 8).identity != Checkpoint(nllb, ("en", "it"), 8).identity
    config = transformers.AutoConfig.from_pretrained(nllb)
    config._commit_hash = "1" * 40
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda name, **_: config)
    made = Checkpoint("someone/model,revision=v1", ("en", "it"), 8)
    assert made.identity == f"hf:someone/model at {'1' * 40}"
