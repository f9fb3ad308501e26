"""The files of --use_cache know whose answers they hold."""

import os

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.runs import provenance


def test_another_models_answers_are_refused(tmp_path):
    path = str(tmp_path / "new" / "cache")
    provenance.claim_cache(path, "hf", {"pretrained": "a", "batch_size": 1})
    provenance.claim_cache(path, "hf-packed", {"pretrained": "a", "tokens_per_forward": 64})
    for model, arguments in (("hf", {"pretrained": "b"}), ("vllm", {"pretrained": "a"}), ("hf", {})):
        with pytest.raises(BiasError, match="holds answers of another model"):
            provenance.claim_cache(path, model, arguments)
    with pytest.raises(BiasError, match="another model"):
        provenance.claim_cache(path, "hf", {"pretrained": "a", "dtype": "bfloat16"})


def test_a_folder_is_the_same_however_it_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    provenance.claim_cache("c", "hf", {"pretrained": "m"})
    provenance.claim_cache("c", "hf", {"pretrained": str(tmp_path / "m")})


@pytest.mark.parametrize("argument", ["pretrained", "tokenizer", "peft", "delta"])
def test_a_model_that_was_trained_on_is_another_one(argument, tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weights = folder / "model.safetensors"
    weights.write_bytes(bytes(3 << 16))
    given = {"pretrained": "hub/name", argument: str(folder)}
    provenance.claim_cache(str(tmp_path / "c"), "hf", given)
    (folder / "README.md").write_text("a card")
    provenance.claim_cache(str(tmp_path / "c"), "hf", given)
    weights.write_bytes(bytes(3 << 15) + b"\1" + bytes((3 << 15) - 1))
    with pytest.raises(BiasError, match="holds answers of another model, or of other files of this model"):
        provenance.claim_cache(str(tmp_path / "c"), "hf", given)


@pytest.mark.parametrize("name", ["model.gguf", "heads.pt"])
def test_weights_of_the_same_size_are_told_by_their_time(name, tmp_path):
    path = tmp_path / name
    given = {"nsp_weights": str(path)} if name == "heads.pt" else {"pretrained": str(tmp_path)}
    identities = set()
    for time in (1, 1, 2):
        path.write_bytes(bytes(10))
        os.utime(path, (time, time))
        identities.add(provenance.identity("hf", given))
    assert len(identities) == 2


def test_what_is_no_cache_is_one_line(tmp_path, capsys):
    (tmp_path / "c_rank0.db").write_bytes(b"no database" * 1000)
    arguments = ["run", "--model", "bias-chance", "--tasks", "occugender_debias_implicit_none"]
    assert main([*arguments, "--use_cache", str(tmp_path / "c")]) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lm-eval-bias: error")]
    assert "file is not a database" in error[0]
    (tmp_path / "file").write_text("")
    with pytest.raises(BiasError, match="can't be used"):
        provenance.claim_cache(str(tmp_path / "file" / "c"), "hf", {})
