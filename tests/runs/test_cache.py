"""Files of models and of --use_cache, which know whose answers they hold."""

import hashlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.gate import verdict
from lm_eval_bias.runs import harness_results, measurement, provenance
from tests.support import tiny
from tests.support.commands import command


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


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A cache of the Hub in which a name stands for a commit."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))

    def move(commit, name="org/model", file="config.json"):
        folder = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        (folder / "refs").mkdir(parents=True, exist_ok=True)
        (folder / "refs" / "main").write_text(commit)
        snapshot = folder / "snapshots" / commit
        snapshot.mkdir(parents=True, exist_ok=True)
        (snapshot / file).write_text("{}")

    return move


def test_weights_of_the_hub_are_told_by_their_commit(hub):
    """What a name stands for may have moved; an adapter is named beside its base."""
    hub("a" * 40)
    hub("c" * 40, "org/adapter", "adapter_config.json")
    given = {"pretrained": "org/model"}
    config = {"model": "hf", "model_args": given}
    block = {"model": provenance.weights(given)}
    made = harness_results.record({"config": config, "provenance": block})
    run = Run("model", Path("run.json"), {"t": SimpleNamespace(record=made)})
    assert verdict.of_weights(run, "org/model").passes
    tuned = verdict.of_weights(run, "pretrained=org/model,peft=org/adapter")
    assert tuned.problem == f"peft commit, commit: None in the run, {'c' * 40} there"
    hub("b" * 40)
    assert verdict.of_weights(run, f"pretrained=org/model,revision={'a' * 40}").passes
    moved = verdict.of_weights(run, "org/model").problem
    assert moved.endswith(f"{'a' * 40} in the run, {'b' * 40} there")
    with pytest.raises(BiasError, match="no model of the Hub in the cache"):
        verdict.of_weights(run, "org/unknown")


def test_a_gate_knows_which_weights_made_a_run(tmp_path, said):
    """Results of other weights don't pass."""
    model = tiny.gpt2(tmp_path / "model")
    out = str(tmp_path / "out")
    said("run", "--tasks", "occugender_implicit", "--limit", "20", "--model", "hf", "--model_args",
         f"pretrained={model}", "--device", "cpu", "--log_samples", "--output_path", out)  # fmt: skip
    policy = tmp_path / "policy.yaml"
    policy.write_text("refuse: [unproven_weights, cached_answers]\n")

    def check(*more):
        return command("check", out, "--policy", str(policy), *more)

    copied = Path(shutil.copytree(model, tmp_path / "copied"))
    weights = copied / "model.safetensors"
    # what sha256sum prints of the file stands in the report
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    printed = said("report", out, "--format", "md").replace("\\", "")
    assert f"{weights.name} {digest}" in printed
    assert check("--weights", str(copied)).status == 0
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    changed = check("--weights", str(copied))
    assert changed.status == 1
    assert "pretrained files, model.safetensors: " in " ".join(changed.out.split())


@pytest.mark.parametrize(
    ("proofs", "says"),
    [
        ({"pretrained files": {"model.safetensors": "abc"}}, "nothing proves"),
        ({"pretrained files": {}}, "nothing proves"),
        ({"tokenizer files": {"tokenizer.json": "0" * 64}}, "nothing proves"),
        ({"peft files": {"adapter.safetensors": "0" * 64}}, "nothing proves"),
        ({"pretrained commit": "main"}, "nothing proves"),
        ({"pretrained commit": "0" * 40}, ""),
        ({"pretrained files": {"model.safetensors": "0" * 64}}, ""),
    ],
)
def test_what_proves_weights(proofs, says):
    arguments = {"pretrained": "model", "tokenizer": "model"}
    config = {"model": "hf", "model_args": arguments, "model_sha": "1" * 40}
    record = harness_results.record({"config": config, "provenance": {"model": proofs}})
    assert measurement.are_proven(record) == (not says)
    assert record.cache is None  # nothing says that none was cached
    assert record.model.revision == "1" * 40
    of_a_client = {**config, "model_sha": "", "model_revision": "main"}
    assert harness_results.record({"config": of_a_client}).model.revision == "main"
    config["model_args"] = {**arguments, "peft": "adapter"}
    record = harness_results.record({"config": config, "provenance": {"model": proofs}})
    assert not measurement.are_proven(record)
