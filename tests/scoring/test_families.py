"""Each model family's answers against plain transformers, one input at a time, written from the paper's definitions.

The items hold every language's special cases: the blank twice, glued to letters, behind a no-break space; words of one
and of several tokens; contexts without final punctuation.
"""

import math

import pytest
import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.harness import registration
from lm_eval_bias.models.masked_lm import HFMaskedLM
from lm_eval_bias.models.next_sentence.nsp_model import (
    CausalNetwork,
    HFNextSentence,
    NSPConfig,
    save,
)
from lm_eval_bias.tasks.stereoset import hooks
from tests.support import tiny

LANGUAGES = ["en", "de", "es", "fr", "tr"]
SENTINEL = "<extra_id_0>"


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Threads cost such small models more than they bring."""
    registration.register()
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


def asked_of(language, test, variants=False, **metadata):
    """All (document, candidate, request) of a language's items."""
    fixed = {"language": language, "tests": [test], "variants": variants}
    return [
        (doc, doc["candidates"][i], Instance(question.kind, doc, question.arguments, i))
        for doc in hooks.documents(fixed, **metadata)
        for i, question in enumerate(hooks.questions(doc))
    ]


def ask(model, language, test, variants=False, **metadata):
    """All (document, candidate, answer) of a language's items."""
    docs, candidates, requests = zip(
        *asked_of(language, test, variants, **metadata), strict=True
    )
    answers = getattr(model, requests[0].request_type)(list(requests))
    assert len(answers) >= 6
    return list(zip(docs, candidates, answers, strict=True))


def hf(where, **options):
    return HFLM(
        pretrained=where,
        device="cpu",
        **{"dtype": "float32", "batch_size": 5} | options,
    )


def t5(where, **options):
    return hf(where, backend="seq2seq", **options)


def mlm(where, **options):
    return HFMaskedLM(where, device="cpu", **options)


def nsp(where, **options):
    return HFNextSentence(str(where), device="cpu", **options)


class Plain:
    """A model of plain transformers and its tokenizer, float32, one input a forward."""

    def __init__(self, auto_class, where):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(where)
        self.model = auto_class.from_pretrained(where, dtype=torch.float32).eval()

    def ids(self, text, special=False):
        return self.tokenizer.encode(text, add_special_tokens=special)

    def logs(self, ids, **more):
        with torch.no_grad():
            return (
                self.model(torch.tensor([ids]), **more)
                .logits[0]
                .double()
                .log_softmax(-1)
            )


def causal(where):
    return Plain(transformers.AutoModelForCausalLM, where)


def perplexity_score(logs):
    """Eq. 4, with its base 2."""
    return 2 ** (sum(value / math.log(2) for value in logs) / len(logs))


def mean_probability(logs):
    return sum(map(math.exp, logs)) / len(logs)


def first_then_rest(plain, ids, bos):
    """Every token's log-probability; the start token is the first token's context alone."""
    start, rest = plain.logs([bos])[0, ids[0]].item(), plain.logs(ids)
    return [start] + [rest[i - 1, ids[i]].item() for i in range(1, len(ids))]


def start_throughout(plain, ids, bos):
    logs = plain.logs([bos, *ids])
    return [logs[i, token].item() for i, token in enumerate(ids)]


def closed(doc):
    return doc["context"] if doc["context"][-1] in ".!?" else doc["context"] + "."


def hold(answers, expected, score_of=perplexity_score):
    """Hold answers against the log-probabilities that a document and a candidate should get."""
    counts = set()
    for doc, candidate, (score, count) in answers:
        logs = expected(doc, candidate)
        assert score == pytest.approx(score_of(logs), rel=1e-5)
        assert count == len(logs)
        counts.add(count)
    assert len(counts) > 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_causal_within_sentences(models, tiny_mirror, language):
    plain, model = causal(models("gpt2")), hf(models("gpt2"))
    scores = []
    for bos, logs_of in (("first", first_then_rest), ("all", start_throughout)):
        answers = ask(model, language, "intra", bos=bos)
        hold(
            answers,
            lambda _, candidate, f=logs_of: f(
                plain, plain.ids(candidate["sentence"]), 0
            ),
        )
        scores.append([score for *_, (score, _) in answers])
    assert scores[0] != pytest.approx(scores[1], rel=1e-3)


# llama's tokenizer puts its start token in front, XGLM's kind another one
@pytest.mark.parametrize(
    ("front", "start", "bos"),
    [("<s>", 1, "first"), ("<s>", 1, "all"), ("<|endoftext|>", 0, "all")],
)
def test_causal_whose_tokenizer_adds_a_token(models, tiny_mirror, bos, front, start):
    where = models("llama", front=front)
    plain, model = causal(where), hf(where)

    def within(doc, candidate):
        return start_throughout(plain, plain.ids(candidate["sentence"]), start)

    def between(doc, candidate):
        ids = plain.ids(f"{closed(doc)} {candidate['sentence']}")
        return start_throughout(plain, ids, start)[len(plain.ids(closed(doc))) :]

    hold(ask(model, "fr", "intra", bos=bos), within)
    hold(ask(model, "fr", "inter", bos=bos), between)


VARIANTS = {
    "gen": lambda x, c, u: perplexity_score(c),
    "gen_full": lambda x, c, u: perplexity_score(x + c),
    "gen_orig": lambda x, c, u: perplexity_score(u) / perplexity_score(x),
    "gen_pmi": lambda x, c, u: perplexity_score(c) / perplexity_score(u),
    "gen_full_ratio": lambda x, c, u: perplexity_score(x + c) / perplexity_score(u),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("bos", "logs_of"), [("first", first_then_rest), ("all", start_throughout)]
)
def test_causal_variants_of_next_sentences(models, tiny_mirror, language, bos, logs_of):
    plain, model = causal(models("gpt2")), hf(models("gpt2"))
    for doc, candidate, parts in ask(model, language, "inter", variants=True, bos=bos):
        length = len(plain.ids(closed(doc)))
        together = logs_of(
            plain, plain.ids(f"{closed(doc)} {candidate['sentence']}"), 0
        )
        own = (
            together[:length],
            together[length:],
            logs_of(plain, plain.ids(candidate["sentence"]), 0),
        )
        assert list(parts) == pytest.approx(
            [value for part in own for value in (sum(part), len(part))], rel=1e-5
        )
        expected = {name: formula(*own) for name, formula in VARIANTS.items()}
        scores = hooks.candidate_scores({**doc, "candidates": [candidate]}, [parts])
        found = {name: scores[name][0] for name in VARIANTS}
        assert found == pytest.approx(expected, rel=1e-5)


def unmasked(plain, doc, word, mask):
    """The paper's Figure 3: texts with one mask each, and the token to read."""
    # where a tokenizer marks the space before a word in its first token, that token is what belongs in the blank
    space = " " if doc["context"][: doc["context"].index("BLANK")].endswith(" ") else ""
    ids = plain.ids(space + word)
    marks_spaces = plain.tokenizer.decode(ids[:1]).startswith(" ")
    for number, target in enumerate(ids):
        revealed = plain.tokenizer.decode(ids[:number])[
            len(space) if number and marks_spaces else 0 :
        ]
        yield doc["context"].replace("BLANK", revealed + mask), target


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_masked_within_sentences(models, tiny_mirror, language, family):
    plain = Plain(transformers.AutoModelForMaskedLM, models(family))
    mask = plain.tokenizer.mask_token_id

    def expected(doc, candidate):
        found = []
        for text, target in unmasked(
            plain, doc, candidate["word"], plain.tokenizer.mask_token
        ):
            ids = plain.ids(text, special=True)
            assert ids.count(mask) == doc["context"].count("BLANK")
            found.append(plain.logs(ids)[ids.index(mask), target].item())
        return found

    model = mlm(models(family), batch_size=3)
    hold(ask(model, language, "intra"), expected, mean_probability)


@pytest.mark.parametrize("language", LANGUAGES)
def test_masked_between_sentences(models, tiny_mirror, language):
    plain = Plain(transformers.AutoModelForNextSentencePrediction, models("bert"))
    matters = False
    for doc, candidate, (score, _) in ask(
        mlm(models("bert"), batch_size=4), language, "inter"
    ):
        pair = plain.tokenizer(
            doc["context"], candidate["sentence"], return_tensors="pt"
        )  # no full stop added
        assert set(pair["token_type_ids"][0].tolist()) == {0, 1}
        with torch.no_grad():
            probability = plain.model(**pair).logits[0].double().softmax(-1)[0].item()
            pair["token_type_ids"] = torch.zeros_like(pair["token_type_ids"])
            without = plain.model(**pair).logits[0].double().softmax(-1)[0].item()
        assert score == pytest.approx(probability, rel=1e-5)
        matters |= abs(without / score - 1) > 1e-3
    assert matters


REFUSED = {
    "another model's tokenizer": (
        lambda of: ask(mlm(of("bert"), tokenizer=of("roberta")), "en", "intra"),
        "tokenizer",
    ),
    "too long": (
        lambda of: ask(mlm(of("bert", positions=12)), "en", "intra"),
        "reads at most 12",
    ),
    "batch size": (lambda of: mlm(of("bert"), batch_size="many"), "--batch_size many"),
    "no trained model": (lambda of: nsp(of("gpt2")), "nsp_config.json"),
    "a family without a head": (
        lambda of: ask(mlm(of("roberta")), "en", "inter"),
        "next-sentence head",
    ),
    "no sentinels": (
        lambda of: ask(t5(of("t5"), tokenizer=of("gpt2")), "en", "intra"),
        SENTINEL,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_model_cannot_read_is_refused(name, models, tiny_mirror):
    work, says = REFUSED[name]
    with pytest.raises(BiasError, match=says):
        work(models)


def behind_sentinel(plain, encode):
    """What a T5 gives the tokens of a word, from texts encoded like this."""
    decoder = torch.tensor([[0, plain.tokenizer.convert_tokens_to_ids(SENTINEL)]])

    def expected(doc, candidate):
        texts = unmasked(plain, doc, candidate["word"], SENTINEL)
        return [
            plain.logs(encode(text), decoder_input_ids=decoder)[1, target].item()
            for text, target in texts
        ]

    return expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_t5(models, tiny_mirror, language):
    plain, model = (
        Plain(transformers.AutoModelForSeq2SeqLM, models("t5")),
        t5(models("t5")),
    )

    def between(doc, candidate):
        decoder = [0, *plain.ids(f"{SENTINEL} {candidate['sentence']}", special=True)]
        encoder = plain.ids(f"{closed(doc)} {SENTINEL}", special=True)
        logs = plain.logs(encoder, decoder_input_ids=torch.tensor([decoder]))
        return [
            logs[i, decoder[i + 1]].item() for i in range(1, len(decoder) - 1)
        ]  # not the sentinel, but </s>

    within = behind_sentinel(plain, lambda text: plain.ids(text, special=True))
    hold(ask(model, language, "intra"), within, mean_probability)
    hold(ask(model, language, "inter"), between)


def test_a_sentinel_that_the_tokenizer_loses_behind_letters(models, tiny_mirror):
    model, plain = (
        t5(models("t5")),
        Plain(transformers.AutoModelForSeq2SeqLM, models("t5")),
    )
    encode, lost = model.tokenizer.encode, []

    def losing(text, **more):
        """See the sentinel only behind a space, as mT5's tokenizer does."""
        before, found, _ = text.partition(SENTINEL)
        if found and before and not before.endswith(" "):
            lost.append(text)
            text = text.replace(SENTINEL, "@")
        return encode(text, **more)

    def expected(text):
        if text not in lost:
            return plain.ids(text, special=True)
        first, *parts = (plain.ids(part) for part in text.split(SENTINEL))
        sentinel = plain.tokenizer.convert_tokens_to_ids(SENTINEL)
        return [
            *first,
            *(token for part in parts for token in (sentinel, *part)),
            plain.tokenizer.eos_token_id,
        ]

    model.tokenizer.encode = losing
    hold(ask(model, "en", "intra"), behind_sentinel(plain, expected), mean_probability)
    assert lost


@pytest.fixture(scope="module")
def causal_nsp(models, tmp_path_factory):
    """A causal body with a head, saved in our layout, and the pieces that it was made of."""
    body = transformers.AutoModel.from_pretrained(models("gpt2")).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(models("gpt2"))
    torch.manual_seed(7)
    head = CausalNetwork(body).head
    with torch.no_grad():
        head[2].weight.mul_(40)
    folder = tmp_path_factory.mktemp("nsp") / "model"
    save(
        folder, body, tokenizer, NSPConfig("causal", training={"corpus": "none"}), head
    )
    return folder, body, tokenizer, head


def assert_scores_of_the_head(model, causal_nsp, language):
    _, body, tokenizer, head = causal_nsp
    spread = set()
    for doc, candidate, (score, _) in ask(model, language, "inter"):
        texts = doc["context"], candidate["sentence"]  # no full stop added
        ids = [
            token
            for text in texts
            for token in tokenizer.encode(text, add_special_tokens=False)
        ]
        with torch.no_grad():
            mean = body(torch.tensor([ids])).last_hidden_state[0].mean(0)
            for layer in head[:3]:
                mean = layer.weight @ mean + layer.bias
        assert score == pytest.approx(mean.double().softmax(-1)[1].item(), rel=1e-5)
        spread.add(round(score, 4))
    assert len(spread) > 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_causal_with_a_head(causal_nsp, tiny_mirror, language):
    assert_scores_of_the_head(nsp(causal_nsp[0], batch_size=6), causal_nsp, language)


@pytest.mark.parametrize("step", [1, 2])
def test_t5_with_next_sentence_training(models, tiny_mirror, tmp_path, step):
    plain = Plain(transformers.AutoModelForSeq2SeqLM, models("t5"))
    config = NSPConfig("seq2seq", prefix="binary classification: ", read_step=step)
    save(tmp_path / "model", plain.model, plain.tokenizer, config)
    # untrained weights may well say the end token first, and `generate` would stop before the second step
    plain.model.generation_config.eos_token_id = None
    assert len(plain.ids("0")) == 2
    answers = ask(nsp(tmp_path / "model", batch_size=4), "en", "inter")
    for doc, candidate, (score, _) in answers:
        pair = plain.tokenizer(
            "binary classification: " + doc["context"],
            candidate["sentence"],
            return_tensors="pt",
        )
        with torch.no_grad():  # the authors read the second step of greedy generation
            made = plain.model.generate(
                **pair,
                max_length=3,
                do_sample=False,
                num_beams=1,
                output_logits=True,
                return_dict_in_generate=True,
            )
        logits = made.logits[step - 1][
            0, [plain.ids("0")[-1], plain.ids("1")[-1]]
        ].double()
        assert score == pytest.approx(logits.softmax(-1)[1].item(), rel=1e-5)
