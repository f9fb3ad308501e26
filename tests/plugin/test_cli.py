"""The command line as a user sees it."""

import inspect
import json
import subprocess
import sys

import pytest
from lm_eval import simple_evaluate
from lm_eval.config.evaluate_config import EvaluatorConfig

from lm_eval_bias.cli.main import main
from lm_eval_bias.harness import running

LIGHT = [[], ["--help"], ["path"], ["ls"], ["fetch", "--help"], ["rescore", "--help"]]


def test_light_commands_import_neither_torch_nor_the_harness():
    code = f"""
import contextlib, sys, lm_eval_bias
heavy = {{"torch", "transformers", "datasets", "lm_eval"}}
assert not {{*heavy, "numpy", "scipy"}} & set(sys.modules)
from lm_eval_bias.cli.main import main
for arguments in {LIGHT}:
    with contextlib.suppress(SystemExit):
        main(arguments)
    assert not heavy & set(sys.modules), arguments
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_ls_of_languages(said):
    listed = json.loads(said("ls", "--language", "ko,de", "--json"))
    spoken = {e["language"] for e in listed if e["kind"] == "task"}
    assert spoken == {"ko", "de"}
    out = said("ls", "stereoset", "--language", "de")
    assert "stereoset_de" in out
    assert "stereoset_en" not in out


OF_EXTRAS = [
    ("sentencex", "regard", "run --tasks regard_de --model bias-chance"),
    ("sklearn", "regard", "rescore texts.csv --classifier light"),
    ("sentence_transformers", "regard", "regard train"),
    ("sentencex", "train", "nsp train --model x --corpus x --language en -o nsp"),
    (
        "gguf",
        "gguf",
        "run --tasks occugender --model hf --model_args pretrained=x,gguf_file=y",
    ),
]


@pytest.mark.parametrize(("package", "extra", "line"), OF_EXTRAS)
def test_a_missing_extra_is_named(
    package, extra, line, capsys, monkeypatch, tmp_path, tiny_mirror
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.csv").write_text("text,gender\nDie Frau lacht.,f\n")
    monkeypatch.setitem(sys.modules, package, None)
    assert main(line.split()) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert package in error
    assert error.endswith(f'pip install "lm-eval-bias[{extra}]"')


def test_every_argument_of_the_harness_is_passed_on():
    given = running.arguments(
        EvaluatorConfig(seed=[1, 2, 3, 4]),
        simple_evaluate,
        "model",
        "manager",
        "tracker",
    )
    assert set(inspect.signature(simple_evaluate).parameters) - set(given) == {
        "bootstrap_iters"
    }
    assert (given["random_seed"], given["fewshot_random_seed"]) == (1, 4)
