"""Result files appear whole or not at all."""

import errno
import json
import math
import os
from pathlib import Path

import pytest

from lm_eval_bias.core import content_hashes, files
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.evaluation import evaluate


class Tracker:
    """Writes in place and goes on where it can't, as the harness's does."""

    push_results_to_hub = push_samples_to_hub = False

    def __init__(self, output_path, broken=()):
        self.output_path, self._broken = str(output_path), broken

    def _write(self, name, text):
        path = Path(self.output_path)
        folder = path.parent if path.suffix == ".json" else path / "model"
        folder.mkdir(parents=True, exist_ok=True)
        cut = next((length for start, length in self._broken if name.startswith(start)), None)
        if cut != -1:
            (folder / name).write_text(text[:cut])

    def save_results_aggregated(self, results, samples):
        path = Path(self.output_path)
        results["task_hashes"] = {}
        self._write(f"{path.stem}_1.json" if path.suffix == ".json" else "results_1.json", json.dumps(results))

    def save_results_samples(self, task_name, samples):
        self._write(f"samples_{task_name}_{DATE}.jsonl", "".join(f"{json.dumps(sample)}\n" for sample in samples))


DATE = "2026-11-23T07-27-59.398192"
LOGS = [f"samples_{task}_{DATE}.jsonl" for task in ("t", "t_2")]


def run():
    results = {"configs": {"t": {}, "t_2": {}}, "results": {"t": {"score": math.nan}}, "text": "ü"}
    return results, {"t": [1, 2, 3], "t_2": [4], "a group": []}


def found(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(("given", "names"), [
    ("out", ["out", "out/model", "out/model/results_1.json", *(f"out/model/{log}" for log in LOGS)]),
    ("out/a.json", ["out", "out/a_1.json", *(f"out/{log}" for log in LOGS)]),
])  # fmt: skip
def test_all_files_are_there(given, names, tmp_path):
    evaluate.save(Tracker(tmp_path / given), *run())
    assert found(tmp_path) == names


@pytest.mark.parametrize(("broken", "message", "left"), [
    ([("samples_t_2026", 3)], "1 of 3 files could not be written; with --use_cache", ["results", LOGS[1]]),
    ([("samples_t_2026", -1)], "1 of 3 files could", ["results", LOGS[1]]),
    ([("results", 40)], "1 of 3 files could", LOGS),
    ([("", 0)], "3 of 3 files could", []),
])  # fmt: skip
def test_what_is_cut_off_is_told_and_what_is_whole_is_kept(broken, message, left, tmp_path):
    with pytest.raises(BiasError, match=message) as told:
        evaluate.save(Tracker(tmp_path / "out", broken), *run())
    assert "\n" not in str(told.value)
    assert [path.name for path in files.under(tmp_path)] == [
        {"results": "results_1.json"}.get(name, name) for name in left
    ]
    assert not list((tmp_path / "out").glob(".*"))


def test_a_disk_that_is_full_only_when_it_is_synchronized(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(evaluate.os, "fsync", full)
    with pytest.raises(BiasError, match="cannot be written: No space left on device"):
        evaluate.save(Tracker(tmp_path), *run())
    with pytest.raises(OSError, match="No space"):
        files.write_whole(tmp_path / "page.html", b"page")
    assert not files.under(tmp_path)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_folders_named_after_hidden_paths_are_read(tmp_path):
    for name in (".venv__lib__model", ".git", ".unfinished-a__b", "model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results_1.json").write_text("{}")
    assert [path.parent.name for path in files.under(tmp_path)] == [".venv__lib__model", "model"]


def test_hashes_of_a_checkpoint(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "notes.md").write_text("no part of it")
    whole = content_hashes.of_checkpoint(tmp_path)
    assert list(whole) == ["config.json", "model.safetensors"]
    assert whole["config.json"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # sha256sum
    assert list(content_hashes.of_checkpoint(tmp_path, "config.json")) == ["config.json"]
