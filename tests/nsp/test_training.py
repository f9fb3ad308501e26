"""Training end to end with tiny models: what is saved answers as it was measured, and a stop changes nothing."""

import json
import random

import numpy as np
import pytest
import transformers
from lm_eval.api.instance import Instance
from safetensors.torch import load_file

from lm_eval_bias.core.questions import NextSentence
from lm_eval_bias.models.next_sentence import (
    nsp_model,
    nsp_training,
    sentence_pairs,
)
from lm_eval_bias.models.next_sentence.nsp_settings import TrainingSettings
from tests.support import tiny
from tests.support.commands import command

UNSEEN = 88  # pairs of a look at what is held out


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        name: getattr(tiny, name)(folder / name) for name in ("gpt2", "llama", "t5")
    }


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder, draw, some = (
        tmp_path_factory.mktemp("articles"),
        random.Random(3),
        "the woman man was who".split(),
    )
    for number in range(40):
        lines = [
            f"{' '.join(draw.choices(some, k=5)).capitalize()} {draw.randrange(1000)}."
            for _ in range(12)
        ]
        (folder / f"{number}.txt").write_text(" ".join(lines), encoding="utf-8")
    return str(folder)


@pytest.fixture
def quick(models, texts):
    """Settings of a training of seconds: 16 pairs an update."""
    trainer = {
        "use_cpu": True,
        "max_steps": 6,
        "eval_steps": 2,
        "gradient_accumulation_steps": 2,
    }
    return lambda name, **more: TrainingSettings(
        models[name], texts, "en", trainer=trainer, batch_size=8,
        max_length=96, body_rate=1e-3, held_out=0.2, **more,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_the_saved_model_answers_as_it_was_measured(name, quick, tmp_path):
    told = nsp_training.train(quick(name), tmp_path / "out")
    made = sentence_pairs.sentences(quick(name), tmp_path / "sentences")
    pairs = sentence_pairs.draw(made, quick(name))["test"].tolist()
    texts = made[:]["text"]
    model = nsp_model.HFNextSentence(str(tmp_path / "out"), device="cpu", batch_size=3)
    questions = [NextSentence(texts[a], texts[b], {}) for a, b, _ in pairs]
    answers = model.next_sentence(
        [Instance(q.kind, {}, q.arguments, 0) for q in questions]
    )
    right = [
        (score > 0.5) == bool(follows)
        for (score, _), (_, _, follows) in zip(answers, pairs, strict=True)
    ]
    assert told["test"]["accuracy"] == pytest.approx(np.mean(right))
    assert told["test"]["pairs"] == len(pairs) == told["pairs"]["test"] == UNSEEN
    assert nsp_model.read(tmp_path / "out")[0].training == json.loads(json.dumps(told))


def test_settings_of_the_paper(tmp_path):
    def found(family, **more):
        given = nsp_training._arguments(
            TrainingSettings("x", "x", "en", **more), family, tmp_path
        )
        return [
            given.per_device_train_batch_size,
            given.gradient_accumulation_steps,
            given.learning_rate,
        ]

    assert TrainingSettings("x", "x", "en").head_rate == 1e-3
    assert found("causal") == [4, 16, 5e-6]
    assert found("seq2seq") == [8, 8, 1e-4]
    assert found("seq2seq", body_rate=1e-3, batch_size=32) == [32, 2, 1e-3]
    made = nsp_training._arguments(TrainingSettings("x", "x", "en"), "causal", tmp_path)
    assert (made.lr_scheduler_type, made.max_grad_norm) == ("cosine_with_restarts", 1.0)
    assert made.get_warmup_steps(300) == 3


def test_the_command(models, texts, tmp_path):
    out = str(tmp_path / "out")
    given = ["--model", models["llama"], "--corpus", texts, "--language", "en", "-o"]
    sizes = "--batch_size 4 --held_out 0.2 --max_length 32 --trainer use_cpu=true,max_steps=2,eval_steps=1"
    done = command("nsp", "train", *given, out, *sizes.split())
    assert done.status == 0
    assert f"pretrained={out}" in done.out
    assert (tmp_path / "out").exists()


def test_after_a_kill_training_goes_on_to_the_same_weights(
    quick, tmp_path, monkeypatch
):
    asked = quick("gpt2", patience=99)
    whole = nsp_training.train(asked, tmp_path / "whole")
    step, seen = transformers.Trainer.training_step, []

    def noted(self, *args, **kwargs):
        if len(seen) == 11:  # in the last update
            raise KeyboardInterrupt
        seen.append(self.state.global_step)
        return step(self, *args, **kwargs)

    monkeypatch.setattr(transformers.Trainer, "training_step", noted)
    with pytest.raises(KeyboardInterrupt):
        nsp_training.train(asked, tmp_path / "stopped")
    (work,) = tmp_path.glob("stopped.*.work")
    assert not (tmp_path / "stopped").exists()
    seen.clear()
    again = nsp_training.train(asked, tmp_path / "stopped")
    assert seen == [4, 4, 5, 5]  # from the last checkpoint on
    assert not work.exists()
    (one, other) = (
        load_file(tmp_path / name / "model.safetensors")
        for name in ("stopped", "whole")
    )
    assert one.keys() == other.keys()
    assert all(value.equal(other[key]) for key, value in one.items())
    assert again == whole


@pytest.mark.slow
def test_what_can_be_learned_is_learned(models, tmp_path):
    """Sentences name what their article is about, one of three things: 5 in 6 pairs can be told right."""
    folder, draw = tmp_path / "texts", random.Random(5)
    folder.mkdir()
    for number in range(60):
        name = ["gardener", "engineer", "flowers"][number % 3]
        lines = [f"The {name} {name} {draw.randrange(10**4)}." for _ in range(12)]
        (folder / f"{number:02}.txt").write_text(" ".join(lines), encoding="utf-8")
    trainer = {
        "use_cpu": True,
        "max_steps": 250,
        "gradient_accumulation_steps": 1,
        "eval_steps": 50,
    }
    sizes = {"batch_size": 16, "held_out": 0.1, "body_rate": 3e-3}
    asked = TrainingSettings(
        models["llama"], str(folder), "en", **sizes, trainer=trainer
    )
    told = nsp_training.train(asked, tmp_path / "out")
    # better than chance beyond doubt
    assert told["test"]["interval"][0] > 0.6
