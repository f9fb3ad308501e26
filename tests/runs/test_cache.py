"""Files of models and of --use_cache, which know whose answers they hold."""

import os

import pytest

from lm_eval_bias.core import content_hashes
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import provenance
from tests.support.commands import refused


def test_another_models_answers_are_refused(tmp_path, monkeypatch):
    path = str(tmp_path / "new" / "cache")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    provenance.claim_cache(path, "hf", {"pretrained": "a", "batch_size": 1})
    provenance.claim_cache(
        path, "hf", {"pretrained": str(tmp_path / "a")}
    )  # the same, however it is named
    provenance.claim_cache(
        path, "hf-packed", {"pretrained": "a", "tokens_per_forward": 64}
    )
    for model, arguments in (
        ("hf", {"pretrained": "b"}),
        ("vllm", {"pretrained": "a"}),
        ("hf", {}),
        ("hf", {"pretrained": "a", "dtype": "bfloat16"}),
    ):
        with pytest.raises(BiasError, match="holds answers of another model"):
            provenance.claim_cache(path, model, arguments)


@pytest.mark.parametrize("argument", ["pretrained", "tokenizer", "peft", "delta"])
def test_a_model_that_was_trained_on_is_another_one(argument, tmp_path):
    folder, cache = tmp_path / "m", str(tmp_path / "c")
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weights = folder / "model.safetensors"
    weights.write_bytes(bytes(3 << 16))
    given = {"pretrained": "hub/name", argument: str(folder)}
    provenance.claim_cache(cache, "hf", given)
    (folder / "README.md").write_text("a card")
    provenance.claim_cache(cache, "hf", given)
    weights.write_bytes(bytes(3 << 15) + b"\1" + bytes((3 << 15) - 1))
    with pytest.raises(
        BiasError,
        match="holds answers of another model, or of other files of this model",
    ):
        provenance.claim_cache(cache, "hf", given)


@pytest.mark.parametrize("name", ["model.gguf", "heads.pt"])
def test_weights_of_the_same_size_are_told_by_their_time(name, tmp_path):
    path = tmp_path / name
    given = (
        {"nsp_weights": str(path)}
        if name == "heads.pt"
        else {"pretrained": str(tmp_path)}
    )
    identities = set()
    for time in (1, 1, 2):
        path.write_bytes(bytes(10))
        os.utime(path, (time, time))
        identities.add(provenance.identity("hf", given))
    assert len(identities) == 2


def test_what_is_no_cache_is_refused(tmp_path):
    (tmp_path / "c_rank0.db").write_bytes(b"no database" * 1000)
    arguments = [
        "run",
        "--model",
        "bias-chance",
        "--tasks",
        "occugender_debias_implicit_none",
    ]
    assert "file is not a database" in refused(
        tmp_path, *arguments, "--use_cache", str(tmp_path / "c")
    )
    (tmp_path / "file").write_text("")
    with pytest.raises(BiasError, match="can't be used"):
        provenance.claim_cache(str(tmp_path / "file" / "c"), "hf", {})


def test_hashes_of_a_checkpoint(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "notes.md").write_text("no part of it")
    whole = content_hashes.of_checkpoint(tmp_path)
    assert list(whole) == ["config.json", "model.safetensors"]
    assert (
        whole["config.json"]
        == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    )  # sha256sum
    assert list(content_hashes.of_checkpoint(tmp_path, "config.json")) == [
        "config.json"
    ]
