"""Trackers, where they are installed: their own libraries wrote it, here, and read it back."""

import importlib.util
import json
import math
import os
import struct
import sys

import pytest

from lm_eval_bias.exports import trackers
from lm_eval_bias.runs import printable_runs, run_discovery
from tests.exports.kit import NAN, a_run, cells, exported


def expected(content):
    """All numbers that must have arrived, by name."""
    numbers = {}
    for (task, name), cell in cells(content).items():
        low, high = cell["interval"] or (None, None)
        parts = {"": cell["value"], "_stderr": cell["stderr"], "_low": low, "_high": high}
        numbers |= {f"{task}/{name}{part}": number for part, number in parts.items() if number is not None}
    return numbers


def test_what_is_sent(tmp_path):
    path, content = a_run(tmp_path)
    runs, _ = run_discovery.read([path])
    numbers, left_out = trackers.metrics(printable_runs.runs(runs)[0], main_only=False)
    assert numbers == expected(content)
    assert {one.value.name for one in left_out} == {"ss", "acc_amb"}
    assert "stereoset_en/ss" not in numbers
    assert all(map(math.isfinite, numbers.values()))
    facts = trackers._facts(runs[0], main_only=False)
    assert facts["reads/stereoset_en/ss"].endswith(f"neutral at 50; no value: {NAN}")
    assert facts["reads/occugender_explicit/coverage"].endswith("; no neutral value")


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_one_line_where_it_is_not_installed(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    said = exported(capsys, a_run(tmp_path)[0], "--to", name, "-o", tmp_path / "out", status=2).err
    assert said.count("\n") == 1
    assert f"pip install {name}" in said
    assert not (tmp_path / "out").exists()


def _records(data):
    """The protocol buffers of a .wandb file: a LevelDB log behind a header of seven bytes."""
    from wandb.proto import wandb_internal_pb2

    place, whole = 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def test_wandb_is_offline_and_whole(tmp_path, capsys, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "online")  # a user's own setting doesn't send anything
    path, content = a_run(tmp_path)
    exported(capsys, path, "--to", "wandb", "-o", tmp_path / "out")
    assert os.environ["WANDB_MODE"] == "online"
    (file,) = (tmp_path / "out").rglob("offline-run-*/*.wandb")
    found, config = {}, {}
    for record in _records(file.read_bytes()):
        if record.WhichOneof("record_type") == "history":
            found |= {(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in record.history.item}
        elif record.WhichOneof("record_type") == "run":
            config |= {(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in record.run.config.update}
    assert {name: number for name, number in found.items() if not name.startswith("_")} == expected(content)
    assert config["model_args"] == "pretrained=owner/tiny,dtype=float32"


@pytest.mark.slow
def test_mlflow_reads_it_back(tmp_path, capsys):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    path, content = a_run(tmp_path)
    exported(capsys, path, "--to", "mlflow", "-o", tmp_path / "out")
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")
    (experiment,) = (one for one in client.search_experiments() if one.name == trackers.PROJECT)
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == "tiny"
    wanted = {trackers._allowed(name): number for name, number in expected(content).items()}
    assert run.data.metrics == pytest.approx(wanted, rel=1e-12)
    assert run.data.tags["dtype"] == "float32"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mlflow.db"]


def test_wandb_is_told_twice_to_stay_offline(tmp_path, capsys, monkeypatch):
    class Library:
        calls = []

        @staticmethod
        def Settings(**settings):
            return settings

        @classmethod
        def init(cls, **settings):
            cls.calls.append((os.environ["WANDB_MODE"], settings))
            return cls

        @classmethod
        def log(cls, numbers):
            cls.calls.append(numbers)

        @staticmethod
        def finish():
            pass

    monkeypatch.setattr(trackers, "_library", lambda name: Library)
    monkeypatch.setenv("WANDB_MODE", "online")
    path, content = a_run(tmp_path)
    exported(capsys, path, "--to", "wandb", "-o", tmp_path / "out")
    (mode, settings), numbers = Library.calls
    assert (mode, settings["mode"], settings["settings"]["mode"]) == ("offline", "offline", "offline")
    assert numbers == expected(content)
    assert os.environ["WANDB_MODE"] == "online"


def test_names_that_mlflow_allows():
    names = ["a/b", "a b", "a(b", "a)b", "ä"]
    assert len({trackers._allowed(name) for name in names}) == len(names)


@pytest.mark.skipif(importlib.util.find_spec("wandb") is not None, reason="it is installed here")
def test_a_preview_of_what_is_not_installed(tmp_path, capsys):
    said = exported(capsys, a_run(tmp_path)[0], "--to", "wandb", status=2).err
    assert "wandb can't be imported" in said


def test_a_preview_shows_the_numbers(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trackers, "_library", lambda name: None)
    path, content = a_run(tmp_path)
    said = exported(capsys, path, "--to", "wandb").out
    name, number = next(iter(expected(content).items()))
    assert f"{name} = {number!r}" in said
    assert "wandb sync" in said
