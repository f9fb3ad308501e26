"""Why texts end: kept in the log and the cache, told of draws that are alike, and what is made of cut ones."""

import pytest
import torch
from lm_eval.api.model import CachingLM

from lm_eval_bias.core.answers import EMPTY, ENDLESS, REFUSED, Text, reading
from lm_eval_bias.harness import registration
from lm_eval_bias.harness import servers as checks
from lm_eval_bias.scoring.answer_extraction import ChoiceExtractor, Option
from tests.support import servers, tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from lm_eval.models.huggingface import HFLM

    registration.register()
    folder = tiny.gpt2(tmp_path_factory.mktemp("model"))
    return HFLM(pretrained=folder, device="cpu", batch_size=4, dtype="float32")


def writes(model, rows, monkeypatch):
    """Let a model write these tokens, a row for each prompt of a batch."""

    def write(context, max_length, **_):
        width = max_length - context.shape[1]
        padded = [[*row, *[model.eot_token_id] * width][:width] for row in rows]
        return torch.cat([context, torch.tensor(padded)], dim=1)

    monkeypatch.setattr(model, "_model_generate", write)


def test_a_local_text_without_an_end_was_cut(model, tmp_path, monkeypatch):
    words = model.tok_encode(" she was patient. The old gardener waved")[:12]
    end = model.eot_token_id
    stop = model.tok_encode(" stop the old gardener here")[:12]
    assert " the" in model.tok_decode(stop)
    writes(model, [words, [*words[:2], end], stop, [end]], monkeypatch)
    asked = servers.ask_for(
        [f"Prompt {n}" for n in range(4)], max_gen_toks=12, until=[" the"]
    )
    CachingLM(model, str(tmp_path / "cache.db"))
    try:
        with checks.asking(model):
            texts = model.generated_text(asked)
        # what ended at a stop string or an end token wasn't cut
        assert [text.finish for text in texts] == ["length", "stop", "", "stop"]
        assert texts[0] == model.tok_decode(words)
        assert texts[2] == model.tok_decode(stop).split(" the")[0]
        # kept as it was, also for runs that don't ask for it
        monkeypatch.setattr(model, "_model_generate", None)
        again = model.generated_text(asked)
        assert [(text, text.finish) for text in again] == [
            (text, text.finish) for text in texts
        ]
    finally:
        model.set_cache_hook(type(model.cache_hook)(None))


READ = ChoiceExtractor([Option("A", ("A man",)), Option("B", ("A woman",))], "en").read


@pytest.mark.parametrize(
    ("text", "finish", "said"),
    [
        ("Let us look at the options. (B) The", "length", ENDLESS),
        ("Answer: B.\n\nThe text", "length", "B"),
        ("", "length", ENDLESS),
        ("", "content_filter", REFUSED),
        ("Sorry.", "refusal", REFUSED),
        ("I", "SAFETY", ENDLESS),
        ("B", "eos_token", "B"),
        ("", "error", EMPTY),
    ],
)
def test_what_is_made_of_texts_that_did_not_end_by_themselves(text, finish, said):
    assert reading(Text(text, finish), READ) == said
