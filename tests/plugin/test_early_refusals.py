"""What a run can refuse at once it refuses before anything large is imported, or before a model is loaded."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lm_eval_bias.core import catalog
from lm_eval_bias.core.benchmark import Benchmark, repeats
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.evaluation import preflight
from tests.support.fuzzing import refused

HF = ("--model", "hf", "--model_args", "pretrained=gpt2")
REFUSALS = [
    ([*HF, "--tasks", "occugender", "--metadata", "words=/no/such/file"], "no word set named '/no/such/file'"),
    ([*HF, "--tasks", "occugender", "--metadata", "word_probability=x"], "word_probability='x': must be one of"),
    (
        [*HF, "--tasks", "occugender,hellaswag", "--metadata", "words=/no/such/file"],
        "no word set named '/no/such/file'",
    ),
    ([*HF, "--tasks", "gg_bbq", "--metadata", "wording=9"], "wording=9: must be a number"),
    ([*HF, "--tasks", "gg_bbq", "--metadata", "by_value=x"], "by_value='x': must be true or false"),
    ([*HF, "--tasks", "stereoset_de", "--metadata", "bos=x"], "bos='x': must be one of"),
    ([*HF, "--tasks", "stereoset_en", "--metadata", "dataset=/no/such"], "/no/such: cannot be read"),
    ([*HF, "--tasks", "regard_en", "--metadata", "repeats=x"], "repeats='x': must be a whole number"),
    ([*HF, "--tasks", "regard_en", "--metadata", "classifier=lihgt"], "Did you mean light?"),
    (["--model", "hf", "--model_args", "pretrained=/no/such", "--tasks", "occugender"], "no such folder"),
    ([*HF, "--tasks", "gg_bbq_names", "--samples", '{"gg_bbq_names": [-1]}'], "must be a list of document numbers"),
]
LARGE = ("torch", "transformers", "datasets", "lm_eval.tasks", "lm_eval.evaluator")


def test_refused_before_anything_large_is_imported(tiny_mirror, tmp_path):
    script = (
        "import json, sys\n"
        "from lm_eval_bias.cli.main import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    print(main(['run', *arguments]), [name for name in json.loads(sys.argv[2]) if name in sys.modules])\n"
    )
    arguments = [json.dumps([arguments for arguments, _ in REFUSALS]), json.dumps(LARGE)]
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.stdout.splitlines() == ["2 []"] * len(REFUSALS), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(REFUSALS)
    for line, (_, text) in zip(lines, REFUSALS, strict=True):
        assert text in line


@pytest.mark.parametrize(("device", "says"), [
    ("cdua", "device type at start of device string: cdua"),
    ("cuda:9", "CUDA"),
    ("mps:5", "mps"),
])  # fmt: skip
@pytest.mark.parametrize("place", ["flag", "config"])
def test_a_device_that_is_not_there(device, says, place, tmp_path, tiny_mirror):
    (tmp_path / "run.yaml").write_text(f"device: '{device}'\n")
    given = ["--device", device] if place == "flag" else ["--config", str(tmp_path / "run.yaml")]
    for model in ("hf", "hf-packed", "hf-mlm"):
        line = refused(
            tmp_path, "run", "--tasks", "stereoset_en", "--model", model, "--model_args", "pretrained=a/b", *given
        )
        assert f"--device {device}: " in line
        assert says in line


def test_the_default_device_may_be_missing_and_one_that_is_named_may_not(monkeypatch):
    import torch

    def missing(*_, device):
        raise RuntimeError("No CUDA GPUs are available")

    config = SimpleNamespace(
        model="hf", device="cuda:0", limit=None, tasks=["occugender_implicit"], metadata={}, samples=None
    )
    config.model_args = config.include_path = None
    monkeypatch.setattr(preflight, "check_model", lambda config: None)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", missing)
        preflight.before_loading(config, catalog.entries(), None)
        with pytest.raises(BiasError, match="--device cuda:0: No CUDA GPUs are available"):
            preflight.before_loading(config, catalog.entries(), "cuda:0")
    config.device = "cpu"
    preflight.before_loading(config, catalog.entries(), "cpu")


def test_repeats_are_an_option_of_benchmarks_that_have_it():
    class Plain(Benchmark):
        record = scores = None

    class Sampled(Plain):
        options = ("repeats",)

    assert repeats(Plain(), {"repeats": "x"}) is None
    assert repeats(Sampled(), {}) is None
    assert repeats(Sampled(), {"repeats": 3}) == 3
    for value in (0, True, "3", 2.0):
        with pytest.raises(BiasError, match="must be a whole number of 1 or more"):
            repeats(Sampled(), {"repeats": value})
