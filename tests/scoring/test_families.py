"""Each model family's answers against plain transformers, one input at a time, written from the paper's definitions.

The items hold every language's special cases: the blank twice, glued to letters, behind a no-break space; words of one
and of several tokens; contexts without final punctuation.
"""

import math

import pytest
import torch
import transformers
from lm_eval.api.instance import Instance

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import CLOZE, NEXT_SENTENCE
from lm_eval_bias.harness import registration
from lm_eval_bias.models.masked_lm import HFMaskedLM
from lm_eval_bias.models.next_sentence.nsp_model import HFNextSentence, NSPConfig, make_head, save
from lm_eval_bias.scoring import questions
from lm_eval_bias.tasks.stereoset import hooks
from tests.support import tiny

LANGUAGES = ["en", "de", "es", "fr", "tr"]


@pytest.fixture(autouse=True)
def _registered():
    registration.register()


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Threads cost such small models more than they bring."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    made = {}

    def get(name, **options):
        key = (name, *options.items())
        if key not in made:
            made[key] = getattr(tiny, name)(tmp_path_factory.mktemp(name), **options)
        return made[key]

    return get


def ask(model, language, test, variants=False, **metadata):
    """All (document, candidate, answer) of a language's items."""
    fixed = {"language": language, "tests": [test], "variants": variants}
    asked = [(doc, i, q) for doc in hooks.documents(fixed, **metadata) for i, q in enumerate(hooks.questions(doc))]
    instances = [Instance(q.kind, doc, q.arguments, i) for doc, i, q in asked]
    answers = getattr(model, asked[0][2].kind)(instances)
    assert len(answers) == len(asked) >= 6
    return [(doc, doc["candidates"][i], answer) for (doc, i, _), answer in zip(asked, answers, strict=True)]


def harness_hf(where, **options):
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=where, device="cpu", dtype="float32", batch_size=5, **options)


class Plain:
    """A model of plain transformers and its tokenizer, float32, one input a forward."""

    def __init__(self, auto_class, where):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(where)
        self.model = auto_class.from_pretrained(where, dtype=torch.float32).eval()

    def logs(self, ids, **more):
        with torch.no_grad():
            return self.model(torch.tensor([ids]), **more).logits[0].double().log_softmax(-1)


def perplexity_score(logs):
    """Eq. 4, with its base 2."""
    return 2 ** (sum(value / math.log(2) for value in logs) / len(logs))


def first_then_rest(plain, ids, bos):
    """Every token's log-probability; the start token is the first token's context alone."""
    start, rest = plain.logs([bos])[0, ids[0]].item(), plain.logs(ids)
    return [start] + [rest[i - 1, ids[i]].item() for i in range(1, len(ids))]


def start_throughout(plain, ids, bos):
    logs = plain.logs([bos, *ids])
    return [logs[i, token].item() for i, token in enumerate(ids)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("bos", ["first", "all"])
def test_causal_within_sentences(models, tiny_mirror, language, bos):
    where = models("gpt2")
    plain = Plain(transformers.AutoModelForCausalLM, where)
    model = harness_hf(where)
    differs = False
    for _, candidate, (score, count) in ask(model, language, "intra", bos=bos):
        ids = plain.tokenizer.encode(candidate["sentence"])
        both = first_then_rest(plain, ids, 0), start_throughout(plain, ids, 0)
        expected, other = both if bos == "first" else both[::-1]
        assert score == pytest.approx(perplexity_score(expected), rel=1e-5)
        assert count == len(ids)
        differs |= abs(perplexity_score(other) / score - 1) > 1e-3
    assert differs


@pytest.mark.parametrize("bos", ["first", "all"])
def test_causal_whose_tokenizer_adds_a_start_token(models, tiny_mirror, bos):
    where = models("llama")
    plain = Plain(transformers.AutoModelForCausalLM, where)
    model = harness_hf(where)
    for _, candidate, (score, count) in ask(model, "fr", "intra", bos=bos):
        ids = plain.tokenizer.encode(candidate["sentence"], add_special_tokens=False)
        assert score == pytest.approx(perplexity_score(start_throughout(plain, ids, 1)), rel=1e-5)
        assert count == len(ids)
    for doc, candidate, (score, _) in ask(model, "fr", "inter", bos=bos):
        context = doc["context"] if doc["context"][-1] in ".!?" else doc["context"] + "."
        before = plain.tokenizer.encode(context, add_special_tokens=False)
        ids = plain.tokenizer.encode(f"{context} {candidate['sentence']}", add_special_tokens=False)
        expected = start_throughout(plain, ids, 1)[len(before) :]
        assert score == pytest.approx(perplexity_score(expected), rel=1e-5)


@pytest.mark.parametrize("bos", ["first", "all"])
def test_a_start_token_that_is_not_the_models_own(models, tiny_mirror, bos):
    where = models("llama", front="<|endoftext|>")  # XGLM's kind: another token in front than its start token
    plain = Plain(transformers.AutoModelForCausalLM, where)
    assert plain.tokenizer.bos_token_id == 1
    for _, candidate, (score, count) in ask(harness_hf(where), "en", "intra", bos=bos):
        ids = plain.tokenizer.encode(candidate["sentence"], add_special_tokens=False)
        assert score == pytest.approx(perplexity_score(start_throughout(plain, ids, 0)), rel=1e-5)
        assert count == len(ids)


def test_an_end_token_that_the_tokenizer_appends_is_part_of_its_encoding(models, tiny_mirror):
    # mGPT with its T5 tokenizer: the candidate starts where the context's own encoding, end token included, ends
    where = models("gpt2", end=True)
    plain = Plain(transformers.AutoModelForCausalLM, where)
    for doc, candidate, (score, count) in ask(harness_hf(where), "en", "inter"):
        context = doc["context"] if doc["context"][-1] in ".!?" else doc["context"] + "."
        cut = len(plain.tokenizer.encode(context))
        whole = plain.tokenizer.encode(f"{context} {candidate['sentence']}")
        assert whole[-1] == 0
        expected = first_then_rest(plain, whole, 0)[cut:]
        assert score == pytest.approx(perplexity_score(expected), rel=1e-5)
        assert count == len(expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_makes_no_ties(models, tiny_mirror, dtype):
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=models("gpt2"), device="cpu", dtype=dtype, batch_size=5)
    scores = [
        score for language in LANGUAGES for test in ("inter", "intra") for *_, (score, _) in ask(model, language, test)
    ]
    assert len(set(scores)) == len(scores)
    assert model.softmax_dtype is None  # as it was


def causal_parts(plain, doc, candidate, bos):
    """Log-probabilities of the context's tokens, of the candidate's after it, and of the candidate's alone."""
    logs_of = first_then_rest if bos == "first" else start_throughout
    context = doc["context"] if doc["context"][-1] in ".!?" else doc["context"] + "."
    length = len(plain.tokenizer.encode(context))
    together = logs_of(plain, plain.tokenizer.encode(context + " " + candidate["sentence"]), 0)
    return together[:length], together[length:], logs_of(plain, plain.tokenizer.encode(candidate["sentence"]), 0)


VARIANTS = {
    "gen": lambda x, c, u: perplexity_score(c),
    "gen_full": lambda x, c, u: perplexity_score(x + c),
    "gen_orig": lambda x, c, u: perplexity_score(u) / perplexity_score(x),
    "gen_pmi": lambda x, c, u: perplexity_score(c) / perplexity_score(u),
    "gen_full_ratio": lambda x, c, u: perplexity_score(x + c) / perplexity_score(u),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("bos", ["first", "all"])
def test_causal_variants_of_next_sentences(models, tiny_mirror, language, bos):
    where = models("gpt2")
    plain = Plain(transformers.AutoModelForCausalLM, where)
    model = harness_hf(where)
    expected = {}
    for doc, candidate, parts in ask(model, language, "inter", variants=True, bos=bos):
        own = causal_parts(plain, doc, candidate, bos)
        assert list(parts[1::2]) == [len(part) for part in own]
        assert list(parts[::2]) == pytest.approx([sum(part) for part in own], rel=1e-5)
        scores = hooks.candidate_scores({**doc, "candidates": [candidate]}, [parts])
        for name, formula in VARIANTS.items():
            expected[candidate["id"], name] = formula(*own)
            assert scores[name] == [pytest.approx(expected[candidate["id"], name], rel=1e-5)]
    for name in VARIANTS:  # the same, asked one by one
        for _, candidate, (score, _) in ask(model, language, "inter", bos=bos, inter=name):
            assert score == pytest.approx(expected[candidate["id"], name], rel=1e-5)


def unmasked(plain, doc, word, mask):
    """The paper's Figure 3: texts with one mask each, and the token to read."""
    # where a tokenizer marks the space before a word in its first token, that token is what belongs in the blank
    space = " " if doc["context"][: doc["context"].index("BLANK")].endswith(" ") else ""
    ids = plain.tokenizer.encode(space + word, add_special_tokens=False)
    for number, target in enumerate(ids):
        revealed = plain.tokenizer.decode(ids[:number])[len(space) if number and space else 0 :]
        if plain.tokenizer.decode(ids[:1]).startswith(" ") is False:
            revealed = plain.tokenizer.decode(ids[:number])
        yield doc["context"].replace("BLANK", revealed + mask), target


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_masked_within_sentences(models, tiny_mirror, language, family):
    where = models(family)
    plain = Plain(transformers.AutoModelForMaskedLM, where)
    lengths = set()
    for doc, candidate, (score, count) in ask(HFMaskedLM(where, device="cpu", batch_size=3), language, "intra"):
        found = []
        for text, target in unmasked(plain, doc, candidate["word"], plain.tokenizer.mask_token):
            ids = plain.tokenizer.encode(text)
            first = ids.index(plain.tokenizer.mask_token_id)
            assert ids.count(plain.tokenizer.mask_token_id) == doc["context"].count("BLANK")
            found.append(math.exp(plain.logs(ids)[first, target].item()))
        assert score == pytest.approx(sum(found) / len(found), rel=1e-5)
        assert count == len(found)
        lengths.add(count)
    assert max(lengths) > 1


def test_byte_level_words_carry_their_space(models, tiny_mirror):
    tokenizer = transformers.AutoTokenizer.from_pretrained(models("roberta"))
    from lm_eval_bias.scoring.questions import reveal

    (text, target), *_ = reveal(tokenizer, "She was BLANK!", "patient", "<mask>")
    assert text == "She was <mask>!"
    assert tokenizer.convert_ids_to_tokens(target).startswith("Ġ")
    (_, target), *_ = reveal(tokenizer, "BLANK she was", "patient", "<mask>")
    assert not tokenizer.convert_ids_to_tokens(target).startswith("Ġ")
    *_, (text, _) = reveal(tokenizer, "She was BLANKed!", "hurri", "<mask>")
    assert text.startswith("She was h")
    assert text.endswith("<mask>ed!")


@pytest.mark.parametrize("variant", ["pll_original", "pll_within_word_l2r"])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_pseudo_loglikelihoods(models, tiny_mirror, variant, family):
    where = models(family)
    plain = Plain(transformers.AutoModelForMaskedLM, where)
    for _, candidate, (score, count) in ask(HFMaskedLM(where, device="cpu"), "en", "intra", masked=variant):
        encoded = plain.tokenizer(candidate["sentence"])
        ids, words = encoded["input_ids"], encoded.word_ids()
        total = 0.0
        for i, word in enumerate(words):
            if word is None:
                continue
            hidden = list(ids)
            hidden[i] = plain.tokenizer.mask_token_id
            if variant == "pll_within_word_l2r":
                for j in range(i + 1, len(ids)):
                    if words[j] == word:
                        hidden[j] = plain.tokenizer.mask_token_id
            total += plain.logs(hidden)[i, ids[i]].item()
        assert score == pytest.approx(total, rel=1e-5)
        assert count == sum(word is not None for word in words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_masked_between_sentences(models, tiny_mirror, language):
    where = models("bert")
    plain = Plain(transformers.AutoModelForNextSentencePrediction, where)
    model = HFMaskedLM(where, device="cpu", batch_size=4)
    matters = False
    for doc, candidate, (score, _) in ask(model, language, "inter"):
        pair = plain.tokenizer(doc["context"], candidate["sentence"], return_tensors="pt")  # no full stop added
        assert set(pair["token_type_ids"][0].tolist()) == {0, 1}
        with torch.no_grad():
            logits = plain.model(**pair).logits[0].double()
            pair["token_type_ids"] = torch.zeros_like(pair["token_type_ids"])
            without = plain.model(**pair).logits[0].double()
        assert score == pytest.approx(logits.softmax(-1)[0].item(), rel=1e-5)
        matters |= abs(without.softmax(-1)[0].item() / score - 1) > 1e-3
    assert matters


def test_a_checkpoint_without_the_head_is_refused(models, tiny_mirror):
    where = models("bert", heads=False)
    asks = [NEXT_SENTENCE, CLOZE]
    assert "has no next-sentence head" in str(HFMaskedLM.refusal({"pretrained": where}, asks))
    assert HFMaskedLM.refusal({"pretrained": where}, [CLOZE]) is None
    assert HFMaskedLM.refusal({"pretrained": models("bert")}, asks) is None
    model = HFMaskedLM(where, device="cpu")
    with pytest.raises(BiasError, match="has no next-sentence head.*stereoset_<language>_intra"):
        ask(model, "en", "inter")
    with pytest.raises(BiasError, match="has no next-sentence head"):
        ask(HFMaskedLM(models("roberta"), device="cpu"), "en", "inter")
    assert ask(model, "en", "intra")


def test_a_tokenizer_of_another_model_is_refused(models, tiny_mirror):
    with pytest.raises(BiasError, match="don't belong together"):
        ask(HFMaskedLM(models("bert"), tokenizer=models("roberta"), device="cpu"), "en", "intra")


def test_the_head_is_looked_for_when_it_is_going_to_be_needed(models):
    with questions.expecting([NEXT_SENTENCE]), pytest.raises(BiasError, match="no next-sentence head"):
        HFMaskedLM(models("roberta"), device="cpu")
    HFMaskedLM(models("roberta"), device="cpu")


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs", b"\x80", None])
def test_damaged_checkpoints_are_one_line(models, tmp_path, content):
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(models("bert"), folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000] if content is None else content)
    assert HFMaskedLM.refusal({"pretrained": str(folder)}, [NEXT_SENTENCE]) is None
    with pytest.raises(BiasError, match="--model hf-mlm pretrained="):
        HFMaskedLM(str(folder), device="cpu")
    (folder / "other").write_bytes(content or b"text")
    with pytest.raises(BiasError, match="refused and not loaded"):
        HFNextSentence(models("gpt2"), nsp_weights=str(folder / "other"), device="cpu")


def test_models_of_another_family_are_refused(models):
    with pytest.raises(BiasError, match="hf-mlm"):
        HFMaskedLM(models("gpt2"), device="cpu")
    with pytest.raises(BiasError, match="no nsp_config.json|has no nsp_config.json"):
        HFNextSentence(models("gpt2"), device="cpu")


@pytest.mark.parametrize("language", LANGUAGES)
def test_t5_within_sentences(models, tiny_mirror, language):
    where = models("t5")
    plain = Plain(transformers.AutoModelForSeq2SeqLM, where)
    sentinel = plain.tokenizer.convert_tokens_to_ids("<extra_id_0>")
    for doc, candidate, (score, count) in ask(harness_hf(where, backend="seq2seq"), language, "intra"):
        found = []
        for text, target in unmasked(plain, doc, candidate["word"], "<extra_id_0>"):
            ids = plain.tokenizer.encode(text)
            assert ids[-1] == plain.tokenizer.eos_token_id
            logs = plain.logs(ids, decoder_input_ids=torch.tensor([[0, sentinel]]))
            found.append(math.exp(logs[1, target].item()))
        assert score == pytest.approx(sum(found) / len(found), rel=1e-5)
        assert count == len(found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_t5_between_sentences(models, tiny_mirror, language):
    where = models("t5")
    plain = Plain(transformers.AutoModelForSeq2SeqLM, where)
    for doc, candidate, (score, count) in ask(harness_hf(where, backend="seq2seq"), language, "inter"):
        context = doc["context"] if doc["context"][-1] in ".!?" else doc["context"] + "."
        encoder = plain.tokenizer.encode(context + " <extra_id_0>")
        decoder = [0, *plain.tokenizer.encode("<extra_id_0> " + candidate["sentence"])]
        logs = plain.logs(encoder, decoder_input_ids=torch.tensor([decoder]))
        own = [logs[i, decoder[i + 1]].item() for i in range(1, len(decoder) - 1)]  # not the sentinel, but </s>
        assert score == pytest.approx(perplexity_score(own), rel=1e-5)
        assert count == len(own)


def test_a_sentinel_that_the_tokenizer_loses_behind_letters(models, tiny_mirror):
    model = harness_hf(models("t5"), backend="seq2seq")
    plain = Plain(transformers.AutoModelForSeq2SeqLM, models("t5"))
    real, lost = model.tokenizer, []

    class Losing:
        """Sees the sentinel only behind a space, as mT5's tokenizer does."""

        def __getattr__(self, name):
            return getattr(real, name)

        def encode(self, text, **more):
            before, found, _ = text.partition("<extra_id_0>")
            if found and before and not before.endswith(" "):
                lost.append(text)
                text = text.replace("<extra_id_0>", "@")
            return real.encode(text, **more)

    model.tokenizer = Losing()
    sentinel = real.convert_tokens_to_ids("<extra_id_0>")
    for doc, candidate, (score, _) in ask(model, "en", "intra"):
        found = []
        for text, target in unmasked(plain, doc, candidate["word"], "<extra_id_0>"):
            if text in lost:
                ids = []
                for number, part in enumerate(text.split("<extra_id_0>")):
                    ids += ([sentinel] if number else []) + real.encode(part, add_special_tokens=False)
                ids.append(real.eos_token_id)
            else:
                ids = real.encode(text)
            logs = plain.logs(ids, decoder_input_ids=torch.tensor([[0, sentinel]]))
            found.append(math.exp(logs[1, target].item()))
        assert score == pytest.approx(sum(found) / len(found), rel=1e-5)
    assert lost


def test_encoder_decoders_without_sentinels_or_contexts_are_refused(models, tiny_mirror):
    model = harness_hf(models("t5"), backend="seq2seq")
    with pytest.raises(BiasError, match="an encoder-decoder model doesn't have"):
        ask(model, "en", "inter", variants=True)
    with pytest.raises(BiasError, match="inter=gen_pmi is for causal"):
        ask(model, "en", "inter", inter="gen_pmi")
    model.tokenizer = tiny.gpt2_tokenizer()
    with pytest.raises(BiasError, match="no <extra_id_0>.*T5"):
        ask(model, "en", "intra")


@pytest.fixture(scope="module")
def causal_nsp(models, tmp_path_factory):
    """A causal body with a head, saved in our layout, and the pieces that it was made of."""
    body = transformers.AutoModel.from_pretrained(models("gpt2")).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(models("gpt2"))
    torch.manual_seed(7)
    head = make_head(32)
    with torch.no_grad():
        head[2].weight.mul_(40)
    folder = tmp_path_factory.mktemp("nsp") / "model"
    save(folder, body, tokenizer, NSPConfig("causal", training={"corpus": "none"}), head)
    return folder, body, tokenizer, head


def head_score(body, tokenizer, head, context, candidate):
    ids = tokenizer.encode(context, add_special_tokens=False) + tokenizer.encode(candidate, add_special_tokens=False)
    with torch.no_grad():
        mean = body(torch.tensor([ids])).last_hidden_state[0].mean(0)
        for layer in (head[0], head[1], head[2]):
            mean = layer.weight @ mean + layer.bias
    return mean.double().softmax(-1)[1].item()


@pytest.mark.parametrize("language", LANGUAGES)
def test_causal_with_a_head(causal_nsp, tiny_mirror, language):
    folder, body, tokenizer, head = causal_nsp
    spread = set()
    for doc, candidate, (score, _) in ask(HFNextSentence(str(folder), device="cpu", batch_size=6), language, "inter"):
        expected = head_score(body, tokenizer, head, doc["context"], candidate["sentence"])  # no full stop added
        assert score == pytest.approx(expected, rel=1e-5)
        spread.add(round(score, 4))
    assert len(spread) > 3


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_authors_layout_of_weights(causal_nsp, models, tiny_mirror, tmp_path, wrapped):
    _, body, tokenizer, head = causal_nsp
    state = {f"module.core_model.{name}": value for name, value in body.state_dict().items()}
    embedding = state["module.core_model.wte.weight"]  # their script added a padding token
    state["module.core_model.wte.weight"] = torch.cat([embedding, torch.randn(1, embedding.shape[1])])
    for layer in range(2):  # buffers of old checkpoints
        state[f"module.core_model.h.{layer}.attn.bias"] = torch.ones(1, 1, 96, 96)
        state[f"module.core_model.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    state |= {f"module.nsp_head.{name}": value for name, value in head.state_dict().items()}
    path = tmp_path / "nsp.pt"
    torch.save({"model_state_dict": state, "epoch": 1} if wrapped else state, path)
    model = HFNextSentence(models("gpt2"), nsp_weights=str(path), device="cpu")
    for doc, candidate, (score, _) in ask(model, "en", "inter"):
        expected = head_score(body, tokenizer, head, doc["context"], candidate["sentence"])
        assert score == pytest.approx(expected, rel=1e-5)


def test_hostile_or_foreign_weights_are_refused(models, tmp_path):
    marker = tmp_path / "ran"

    class Hostile:
        def __reduce__(self):
            import os

            return os.system, (f"touch {marker}",)

    for name, content in {"a": Hostile(), "b": {"model_state_dict": {}, "scaler": Hostile()}}.items():
        torch.save(content, tmp_path / name)
        with pytest.raises(BiasError, match="refused and not loaded"):
            HFNextSentence(models("gpt2"), nsp_weights=str(tmp_path / name), device="cpu")
    assert not marker.exists()
    torch.save({"other": torch.ones(1)}, tmp_path / "c")
    with pytest.raises(BiasError, match="not the authors' layout"):
        HFNextSentence(models("gpt2"), nsp_weights=str(tmp_path / "c"), device="cpu")
    torch.save({"core_model.x": torch.ones(1)}, tmp_path / "d")
    with pytest.raises(BiasError, match="not the authors' layout"):
        HFNextSentence(models("gpt2"), nsp_weights=str(tmp_path / "d"), device="cpu")
    torch.save({"core_model.shared.weight": torch.ones(2, 2), "nsp_head.0.weight": torch.ones(1)}, tmp_path / "e")
    with pytest.raises(BiasError, match="doesn't fit"):
        HFNextSentence(models("gpt2"), nsp_weights=str(tmp_path / "e"), device="cpu")
    with pytest.raises(BiasError, match="nowhere: no such file"):
        HFNextSentence(models("gpt2"), nsp_weights=str(tmp_path / "nowhere"), device="cpu")


@pytest.mark.parametrize("step", [1, 2])
def test_t5_with_next_sentence_training(models, tiny_mirror, tmp_path, step):
    plain = Plain(transformers.AutoModelForSeq2SeqLM, models("t5"))
    folder = tmp_path / "model"
    config = NSPConfig("seq2seq", prefix="binary classification: ", read_step=step)
    save(folder, plain.model, plain.tokenizer, config)
    # untrained weights may well say the end token first, and `generate` would stop before the second step
    plain.model.generation_config.eos_token_id = None
    no, yes = (plain.tokenizer.encode(word, add_special_tokens=False)[-1] for word in "01")
    assert len(plain.tokenizer.encode("0", add_special_tokens=False)) == 2
    for doc, candidate, (score, _) in ask(HFNextSentence(str(folder), device="cpu", batch_size=4), "en", "inter"):
        pair = plain.tokenizer("binary classification: " + doc["context"], candidate["sentence"], return_tensors="pt")
        with torch.no_grad():
            # the authors read the second step of greedy generation
            made = plain.model.generate(
                **pair, max_length=3, do_sample=False, num_beams=1, output_logits=True, return_dict_in_generate=True
            )
        logits = made.logits[step - 1][0, [no, yes]].double()
        assert score == pytest.approx(logits.softmax(-1)[1].item(), rel=1e-5)


def test_a_model_with_next_sentence_training_has_no_clozes(causal_nsp, tiny_mirror):
    folder, *_ = causal_nsp
    assert "between-sentence questions" in str(HFNextSentence.refusal({}, [CLOZE]))
    with pytest.raises(BiasError, match="between-sentence questions"):
        ask(HFNextSentence(str(folder), device="cpu"), "en", "intra")


@pytest.mark.parametrize(
    ("content", "problem"),
    [("{", "damaged"), ('{"family": "causal", "x": 1}', "damaged")],
)
def test_a_damaged_configuration_is_refused(causal_nsp, tmp_path, content, problem):
    import shutil

    shutil.copytree(causal_nsp[0], tmp_path / "model")
    (tmp_path / "model" / "nsp_config.json").write_text(content)
    with pytest.raises(BiasError, match=problem):
        HFNextSentence(str(tmp_path / "model"), device="cpu")


@pytest.mark.parametrize("kind", ["hf", "hf-mlm", "hf-nsp", "t5"])
def test_scores_do_not_depend_on_the_batch_size(models, causal_nsp, tiny_mirror, kind):
    found = []
    for size in (1, 8, 64):
        made = {
            "hf": lambda size: harness_hf(models("gpt2")),
            "t5": lambda size: harness_hf(models("t5"), backend="seq2seq"),
            "hf-mlm": lambda size: HFMaskedLM(models("bert"), device="cpu", batch_size=size),
            "hf-nsp": lambda size: HFNextSentence(str(causal_nsp[0]), device="cpu", batch_size=size),
        }[kind](size)
        if kind in ("hf", "t5"):
            made.batch_size_per_gpu = size
        tests = ["inter"] if kind == "hf-nsp" else ["inter", "intra"]
        found.append(
            [answer[0] for language in ("en", "fr") for test in tests for *_, answer in ask(made, language, test)]
        )
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert found[2] == pytest.approx(found[0], rel=1e-4)


@pytest.mark.parametrize("kind", ["hf-mlm", "hf-nsp"])
def test_our_models_answer_from_the_cache(models, causal_nsp, tiny_mirror, tmp_path, kind, monkeypatch):
    from lm_eval.api.model import CachingLM

    made = HFMaskedLM(models("bert"), device="cpu") if kind == "hf-mlm" else HFNextSentence(causal_nsp[0], device="cpu")
    cached = CachingLM(made, str(tmp_path / "cache.db"))
    first = [answer for *_, answer in ask(cached, "en", "inter")]

    def fail(requests):
        raise AssertionError("asked again")

    monkeypatch.setattr(made, "_follow", fail)
    assert [answer for *_, answer in ask(cached, "en", "inter")] == first


@pytest.mark.parametrize("kind", ["hf-mlm", "hf-nsp"])
def test_a_stop_costs_no_more_than_the_part_in_work(models, causal_nsp, tiny_mirror, tmp_path, kind, monkeypatch):
    from lm_eval.api.model import CachingLM

    from lm_eval_bias.models import question_model

    monkeypatch.setattr(question_model, "_PARTS", 1)
    options = {"device": "cpu", "batch_size": 5}
    made = HFMaskedLM(models("bert"), **options) if kind == "hf-mlm" else HFNextSentence(causal_nsp[0], **options)
    whole = [answer for *_, answer in ask(made, "en", "inter")]  # of 12 questions
    follow, calls = made._follow, []

    def stops(requests):
        calls.append(len(requests))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return follow(requests)

    monkeypatch.setattr(made, "_follow", stops)
    with pytest.raises(KeyboardInterrupt):
        ask(CachingLM(made, str(tmp_path / "cache.db")), "en", "inter")
    calls[:] = [0, 0]
    again = [answer for *_, answer in ask(CachingLM(made, str(tmp_path / "cache.db")), "en", "inter")]
    assert calls == [0, 0, 5, 2]
    assert again == [pytest.approx(answer, rel=1e-5) for answer in whole]
