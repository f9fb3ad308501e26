"""The files of --use_cache know whose answers they hold."""

import sqlite3

import pytest

from lm_eval_bias.cli.main import main
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import cache_ownership


def test_another_models_answers_are_refused(tmp_path):
    path = str(tmp_path / "new" / "cache")
    cache_ownership.claim(path, "hf", {"pretrained": "a", "batch_size": 1})
    cache_ownership.claim(path, "hf-packed", {"pretrained": "a", "tokens_per_forward": 64})
    for model, arguments in (("hf", {"pretrained": "b"}), ("vllm", {"pretrained": "a"}), ("hf", {})):
        with pytest.raises(BiasError, match="holds answers of another model"):
            cache_ownership.claim(path, model, arguments)
    with pytest.raises(BiasError, match="another model"):
        cache_ownership.claim(path, "hf", {"pretrained": "a", "dtype": "bfloat16"})


def test_a_folder_is_the_same_however_it_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    cache_ownership.claim("c", "hf", {"pretrained": "m"})
    cache_ownership.claim("c", "hf", {"pretrained": str(tmp_path / "m")})


def test_a_file_of_the_harness_is_taken(tmp_path):
    with sqlite3.connect(tmp_path / "c_rank0.db") as database:
        database.execute("CREATE TABLE unnamed (key TEXT PRIMARY KEY, value BLOB)")
    for name in "ab":
        cache_ownership.claim(str(tmp_path / "c"), "hf", {"pretrained": name})


def test_every_rank_has_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    cache_ownership.claim(str(tmp_path / "c"), "hf", {})
    assert [path.name for path in tmp_path.iterdir()] == ["c_rank1.db"]


def test_what_is_no_cache_is_one_line(tmp_path, capsys):
    (tmp_path / "c_rank0.db").write_bytes(b"no database" * 1000)
    arguments = ["run", "--model", "bias-chance", "--tasks", "occugender_debias_implicit_none"]
    assert main([*arguments, "--use_cache", str(tmp_path / "c")]) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lm-eval-bias: error")]
    assert "file is not a database" in error[0]
    (tmp_path / "file").write_text("")
    with pytest.raises(BiasError, match="cannot be used"):
        cache_ownership.claim(str(tmp_path / "file" / "c"), "hf", {})
