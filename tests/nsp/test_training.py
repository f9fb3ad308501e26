"""Training end to end with tiny models: what is saved answers as it was measured, and a stop changes nothing."""

import dataclasses
import json
import random
import re

import numpy as np
import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.errors import BiasError
from lm_eval_bias.models.next_sentence import (
    article_corpus,
    nsp_checkpoint,
    nsp_trainer,
    nsp_training,
    sentence_pairs,
)
from tests import tiny

TOPICS = [("the", "man", "was"), ("a", "woman", "is"), ("nurse", "doctor", "who")]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {"gpt2": tiny.gpt2(folder / "gpt2"), "llama": tiny.llama(folder / "llama"), "t5": tiny.t5(folder / "t5")}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Articles, each about one of some topics."""
    folder = tmp_path_factory.mktemp("texts")
    draw = random.Random(3)
    for number in range(40):
        words = TOPICS[number % len(TOPICS)]
        said = [" ".join([*draw.choices(words, k=4), str(draw.random())[2:5]]).capitalize() + "." for _ in range(12)]
        (folder / f"{number:03}.txt").write_text(" ".join(said), encoding="utf-8")
    return article_corpus.Corpus(str(folder), "en")


def quick(model, **more):
    given = {"max_steps": 6, "batch_size": 8, "accumulate": 2, "evaluate_every": 2, "longest": 96, "body_rate": 1e-3}
    return nsp_training.Settings(model, **{**given, "trainer": {"use_cpu": True}, **more})


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5"])
def test_the_saved_model_answers_as_it_was_measured(name, models, texts, tmp_path):
    from lm_eval.api.instance import Instance

    from lm_eval_bias.models.next_sentence.nsp_model import HFNextSentence
    from lm_eval_bias.scoring.questions import NextSentence

    told = nsp_training.train([texts], quick(models[name]), tmp_path / "out", held_out=0.2)
    assert 1 <= told["updates"] <= 6
    found = sentence_pairs.build([texts], tmp_path / "pairs", held_out=0.2)
    asked = [found.pair(row) for row in found.rows("test")]
    model = HFNextSentence(str(tmp_path / "out"), device="cpu", batch_size=3)
    questions = [NextSentence(pair.context, pair.candidate, {}) for pair in asked]
    answers = model.next_sentence([Instance(q.kind, {}, q.arguments, 0) for q in questions])
    right = [(score > 0.5) == bool(pair.follows) for (score, _), pair in zip(answers, asked, strict=True)]
    assert told["test"]["accuracy"] == np.mean(right)
    assert told["test"]["pairs"] == len(asked) == told["data"]["pairs"]["test"]["pairs"]
    config = nsp_checkpoint.read_config(tmp_path / "out")
    assert config.training == json.loads(json.dumps(told))
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"{100 * told['test']['accuracy']:.1f}%" in card
    assert told["data"]["sha256"][:16] in card


def weights(folder):
    from safetensors.torch import load_file

    return {f"{path.name} {name}": value for path in sorted(folder.glob("*.safetensors"))
            for name, value in load_file(path).items()}  # fmt: skip


def test_a_model_from_a_gguf_file_is_saved(texts, tmp_path):
    """transformers refuses to save such a model as it was loaded, which would be said after hours of training."""
    from lm_eval_bias.models.next_sentence.nsp_model import HFNextSentence

    pytest.importorskip("gguf")
    settings = quick(str(tmp_path), gguf_file=tiny.gguf(tmp_path))
    nsp_training.train([texts], settings, tmp_path / "out", held_out=0.2)
    assert weights(tmp_path / "out")
    HFNextSentence(str(tmp_path / "out"), device="cpu")


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_after_a_stop_no_example_is_repeated_or_skipped_and_the_model_is_the_same(
    name, models, texts, tmp_path, monkeypatch
):
    import transformers

    seen = []
    get = nsp_trainer.Examples.__getitem__
    stop = {"at": None}

    def noted(self, number):
        if len(self) == size:
            if stop["at"] == len(seen):
                raise KeyboardInterrupt
            seen.append(number)
        return get(self, number)

    monkeypatch.setattr(nsp_trainer.Examples, "__getitem__", noted)
    # before transformers 5, an epoch that was resumed ends without its last update where that is a smaller one
    size = 150 if int(transformers.__version__.split(".")[0]) >= 5 else 160
    asked = quick(models[name], max_steps=-1, patience=99)
    whole = nsp_training.train([texts], asked, tmp_path / "whole", 0.2, size)
    straight, seen[:] = list(seen), []
    assert sorted(straight[:size]) == list(range(size))
    stop["at"] = 7 * 16 + 5  # after update 7 of 10, the last checkpoint is that of 6
    with pytest.raises(KeyboardInterrupt):
        nsp_training.train([texts], asked, tmp_path / "stopped", 0.2, size)
    assert not (tmp_path / "stopped").exists()
    first, seen[:], stop["at"] = list(seen), [], None
    # what a kill in the midst of saving leaves
    half = tmp_path / "stopped.work" / "checkpoints" / "checkpoint-8"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    again = nsp_training.train([texts], asked, tmp_path / "stopped", 0.2, size)
    done = len(straight) - len(seen)
    assert 0 < done < len(first)
    assert first[:done] + seen == straight
    assert not (tmp_path / "stopped.work").exists()
    for key, value in weights(tmp_path / "whole").items():
        assert value.equal(weights(tmp_path / "stopped")[key]), key
    assert again == whole


@pytest.mark.parametrize("more", [{"max_steps": 4}, {"max_steps": 40, "patience": 1, "gain": 1.0}])
def test_a_stop_after_the_last_update_adds_none(more, models, texts, tmp_path, monkeypatch):
    asked = quick(models["gpt2"], **more)
    whole = nsp_training.train([texts], asked, tmp_path / "whole", 0.2)
    assert whole["updates"] == 4

    def stopped(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(nsp_checkpoint, "save", stopped)
        with pytest.raises(KeyboardInterrupt):
            nsp_training.train([texts], asked, tmp_path / "stopped", 0.2)
    assert nsp_training.train([texts], asked, tmp_path / "stopped", 0.2) == whole
    for key, value in weights(tmp_path / "whole").items():
        assert value.equal(weights(tmp_path / "stopped")[key]), key


def test_a_stopped_training_can_be_finished_by_hand(models, texts, tmp_path, monkeypatch):
    asked = quick(models["gpt2"], max_steps=12)
    with pytest.raises(BiasError, match="holds no checkpoint yet"):
        nsp_training.train([texts], asked, tmp_path / "out", 0.2, finish=True)
    get = nsp_trainer.Examples.__getitem__
    seen = []

    def noted(self, number):
        seen.append(number)
        if len(seen) > 7 * 16 + 3 * 88:  # after update 7 and three looks
            raise KeyboardInterrupt
        return get(self, number)

    with monkeypatch.context() as patched:
        patched.setattr(nsp_trainer.Examples, "__getitem__", noted)
        with pytest.raises(KeyboardInterrupt):
            nsp_training.train([texts], asked, tmp_path / "out", 0.2)
    checkpoints = {path.name: weights(path) for path in (tmp_path / "out.work" / "checkpoints").iterdir()}
    told = nsp_training.train([texts], asked, tmp_path / "out", 0.2, finish=True)
    assert (told["updates"], told["stopped"], len(told["looks"])) == (6, "stopped by hand", 3)
    best = max(told["looks"], key=lambda look: look["accuracy"])  # the first of the best
    assert told["best_update"] == best["update"]
    kept = checkpoints[f"checkpoint-{best['update']}"]
    saved = weights(tmp_path / "out")
    for name, value in saved.items():
        file, _, key = name.partition(" ")
        inner = f"head.{key}" if file == nsp_checkpoint.HEAD else f"body.{key}"
        assert value.equal(kept[f"model.safetensors {inner}"]), name


def test_other_settings_do_not_go_on_with_what_was_begun(models, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(nsp_trainer.Examples, "__getitem__", lambda self, number: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        nsp_training.train([texts], quick(models["gpt2"]), tmp_path / "out", 0.2)
    with pytest.raises(BiasError, match="training was started with seed 0, now it is 1"):
        nsp_training.train([texts], quick(models["gpt2"], seed=1), tmp_path / "out", 0.2)


def test_it_stops_when_accuracy_has_settled(models, texts, tmp_path):
    asked = quick(models["gpt2"], max_steps=50, body_rate=1e-9, head_rate=1e-9, patience=2)
    told = nsp_training.train([texts], asked, tmp_path / "out", 0.2)
    assert (told["updates"], told["best_update"]) == (6, 2)
    assert told["stopped"] == "held-out accuracy settled"


def test_a_look_is_taken_before_the_end_and_checkpoints_of_gradients_change_nothing(models, texts, tmp_path):
    asked = quick(models["llama"], max_steps=2, evaluate_every=100)
    told = nsp_training.train([texts], asked, tmp_path / "out", 0.2)
    assert [look["update"] for look in told["looks"]] == [told["best_update"]] == [2]
    saving = dataclasses.replace(asked, trainer={**asked.trainer, "gradient_checkpointing": True})
    nsp_training.train([texts], saving, tmp_path / "saving", 0.2)
    for key, value in weights(tmp_path / "out").items():
        assert value.allclose(weights(tmp_path / "saving")[key], atol=1e-6), key


def test_the_last_layers_alone(models, texts, tmp_path):
    import transformers

    before = transformers.AutoModel.from_pretrained(models["gpt2"]).state_dict()
    nsp_training.train([texts], quick(models["gpt2"], layers=1), tmp_path / "out", 0.2)
    after = transformers.AutoModel.from_pretrained(tmp_path / "out").state_dict()
    changed = {name for name, value in after.items() if not value.equal(before[name])}
    assert changed
    assert all(name.startswith("h.1.") for name in changed)
    with pytest.raises(BiasError, match="must be from 0 to 2"):
        nsp_training.train([texts], quick(models["gpt2"], layers=3), tmp_path / "other", 0.2)


def test_head_and_body_have_learning_rates_of_their_own(models, texts, tmp_path, monkeypatch):
    rates = []

    class Watched(nsp_trainer.EvaluationLine):
        def on_step_end(self, args, state, control, optimizer=None, **kwargs):
            rates.append(
                [(group["lr"], group["weight_decay"], len(group["params"])) for group in optimizer.param_groups]
            )

    monkeypatch.setattr(nsp_trainer, "EvaluationLine", Watched)
    nsp_training.train([texts], quick(models["gpt2"], max_steps=4, body_rate=2e-4, cycles=2), tmp_path / "out", 0.2)
    # one update of warm-up, then two half cosines over three updates
    shape = [1.0, 0.25, 0.75, 0.0]
    assert [{lr for lr, _, _ in groups} for groups in rates][0] == {2e-4, 1e-3}
    for groups, share in zip(rates[1:], shape[1:], strict=True):
        assert sorted({lr for lr, _, _ in groups}) == pytest.approx(sorted({2e-4 * share, 1e-3 * share}), abs=1e-9)
    assert sum(count for *_, count in rates[0]) == 2 * 12 + 4 + 6


def test_accuracy_is_clustered_by_article():
    right = np.array([1, 1, 1, 1, 0, 0, 1, 0])
    articles = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    found = nsp_training.accuracy(right, articles)
    # without each article 1/4, 5/6 and 4/6 of the pairs are right
    expected = (2 / 3 * sum((share - 5 / 8) ** 2 for share in (1 / 4, 5 / 6, 4 / 6))) ** 0.5
    assert found["accuracy"] == 5 / 8
    assert found["stderr"] == pytest.approx(expected, abs=1e-12)
    assert 0 < found["interval"][0] < 0.1 < 0.95 < found["interval"][1] < 1
    assert (found["pairs"], found["articles"]) == (8, 3)


def test_the_command(models, texts, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = [
        "nsp",
        "train",
        "--model",
        models["llama"],
        "--corpus",
        texts.source,
        "--language",
        "en",
        "-o",
        str(out),
    ]
    arguments += [
        "--max_steps",
        "2",
        "--batch_size",
        "4",
        "--accumulate",
        "1",
        "--held_out",
        "0.2",
        "--max_length",
        "32",
    ]
    assert main([*arguments, "--trainer", "use_cpu=true"]) == 0
    said = capsys.readouterr()
    assert "40 articles, 480 sentences" in said.out
    assert "update 1 of 2: held-out accuracy" in said.out + said.err
    assert f"pretrained={out}" in said.out.splitlines()[-1]
    assert main([*arguments, "--trainer", "use_cpu=true"]) == 2
    assert "exists already: name another folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--held_out", "0.7"], "--held_out 0.7"),
        (["--trainer", "seed=3"], "--trainer seed: this command"),
        (["--trainer", "sed=3"], "--trainer: .*sed"),
        (["--trainer", "bf16"], "must be KEY=VALUE"),
        (["--trainer", "report_to=clearml,use_cpu=true"], "training can't start: .*clearml"),
        (["--language", "nl"], "give one value for all, or one for each --corpus"),
        (["--corpus", "/nowhere/at/all"], "no such file or folder"),
        (["--model", "/nowhere/at/all"], "--model /nowhere/at/all"),
        (["--max_steps", "0"], "--max_steps 0"),
        (["--language", "English"], "--language English: must be a code"),
        (["--train_layers", "9"], "from 0 to 2"),
    ],
)
def test_bad_usage_is_one_line(more, says, models, texts, tmp_path, capsys):
    given = {"--model": models["gpt2"], "--corpus": texts.source, "-o": str(tmp_path / "out"), "--language": "en"}
    replaced = {key: value for key, value in given.items() if key not in more or key == "--language"}
    arguments = ["nsp", "train", *(part for item in replaced.items() for part in item), *more, "--batch_size", "4"]
    assert main(arguments) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("lm-eval-bias: error: ")
    assert re.search(says, line), line
    assert not (tmp_path / "out").exists()


def test_a_masked_model_is_refused(texts, tmp_path):
    with pytest.raises(BiasError, match="bert is neither a causal model"):
        nsp_training.train([texts], quick(tiny.bert(tmp_path / "bert")), tmp_path / "out", 0.2)


def test_settings_of_the_paper():
    found = nsp_training.Settings("x").filled("causal")
    assert (found.batch_size, found.accumulate, found.body_rate, found.head_rate) == (4, 16, 5e-6, 1e-3)
    found = nsp_training.Settings("x").filled("seq2seq")
    assert (found.batch_size, found.accumulate, found.body_rate) == (8, 8, 1e-4)
    assert dataclasses.replace(found, body_rate=1e-3).filled("seq2seq").body_rate == 1e-3
