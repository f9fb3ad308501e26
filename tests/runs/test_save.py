"""Result files appear whole or not at all."""

import errno
import json
import math
import os
import signal
from pathlib import Path

import pytest

from lm_eval_bias import files
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import atomic_save, provenance


class Tracker:
    """Writes in place and goes on where it can't, as the harness's does."""

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
def test_files_come_together_the_results_last(given, names, tmp_path, monkeypatch):
    tracker, moved = Tracker(tmp_path / given), []
    replace = atomic_save.os.replace

    def checked(a, b):
        assert moved or not files.under(tmp_path)
        moved.append(str(b))
        replace(a, b)

    monkeypatch.setattr(atomic_save.os, "replace", checked)
    atomic_save.save(tracker, *run())
    assert found(tmp_path) == names
    assert tracker.output_path == str(tmp_path / given)
    assert moved[-1].endswith("_1.json")


def test_without_samples_the_results_alone_are_saved(tmp_path):
    atomic_save.save(Tracker(tmp_path), run()[0], None)
    assert found(tmp_path) == ["model", "model/results_1.json"]


@pytest.mark.parametrize(("broken", "message", "left"), [
    ([("samples_t_2026", 3)], r"samples of t: 1 of 3 lines: .*saved: samples of t_2, results", ["results", LOGS[1]]),
    ([("samples_t_2026", 5)], r"samples of t: 2 of 3 lines", ["results", LOGS[1]]),
    ([("samples_t_2026", -1)], r"samples of t: not written", ["results", LOGS[1]]),
    ([("results", 40)], r"results: cut off \(Unterminated.*saved: samples of t, samples of t_2", LOGS),
    ([("results", -1)], r"results: not written", LOGS),
    ([("", -1)], r"samples of t: not written; samples of t_2: not written; results: not written.*nothing was", []),
    ([("", 0)], r"samples of t: 0 of 3 lines; samples of t_2: 0 of 1 lines; results: cut off .*nothing was", []),
])  # fmt: skip
def test_what_is_cut_off_is_told_and_what_is_whole_is_kept(broken, message, left, tmp_path):
    with pytest.raises(BiasError, match=message) as told:
        atomic_save.save(Tracker(tmp_path / "out", broken), *run())
    assert "\n" not in str(told.value)
    assert [path.name for path in files.under(tmp_path)] == [
        {"results": "results_1.json"}.get(name, name) for name in left
    ]
    assert not list((tmp_path / "out").glob(".*"))


def test_results_that_are_others_are_not_taken(tmp_path, monkeypatch):
    tracker = Tracker(tmp_path)
    write = tracker._write
    monkeypatch.setattr(tracker, "_write", lambda name, text: write(name, text.replace("\\u00fc", "u")))
    with pytest.raises(BiasError, match="results: another 'text' than the run's"):
        atomic_save.save(tracker, *run())


def test_what_breaks_leaves_nothing(tmp_path, monkeypatch):
    tracker = Tracker(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(atomic_save.os, "replace", None)
        with pytest.raises(TypeError):
            atomic_save.save(tracker, *run())
    assert found(tmp_path) == ["model"]  # an empty folder
    (tmp_path / "file").write_text("")
    with pytest.raises(BiasError, match="cannot be written: Not a directory"):
        atomic_save.save(Tracker(tmp_path / "file" / "out"), *run())


def test_a_disk_that_is_full_only_when_it_is_synchronized(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_save.os, "fsync", full)
    with pytest.raises(BiasError, match="results: No space left on device"):
        atomic_save.save(Tracker(tmp_path), *run())
    with pytest.raises(OSError, match="No space"):
        files.write_whole(tmp_path / "page.html", b"page")
    assert not files.under(tmp_path)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_leavings_of_killed_runs_are_removed_at_once_those_of_others_are_not(tmp_path):
    began, go_on = os.pipe(), os.pipe()
    children = {}
    for ending in ("goes on", "is killed"):
        children[ending] = os.fork()
        if not children[ending]:
            tracker = Tracker(tmp_path)
            write = tracker.save_results_samples

            def stop(ending=ending, write=write, **log):
                write(**log)
                os.write(began[1], b"x")
                if ending == "is killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                os.read(go_on[0], 1)

            tracker.save_results_samples = stop
            os.close(go_on[1])
            try:
                atomic_save.save(tracker, {"configs": {"t": {}}}, {"t": [1]})
            finally:
                os._exit(0)
        os.read(began[0], 1)
    os.waitpid(children["is killed"], 0)
    try:
        assert len(list(tmp_path.glob(".unfinished-*"))) == 2
        assert not files.under(tmp_path)  # nobody reads them
        atomic_save.save(Tracker(tmp_path), *run())
        (other,) = tmp_path.glob(".unfinished-*")
        assert (other / "model" / LOGS[0]).read_text() == "1\n"
    finally:
        os.close(go_on[1])
        os.waitpid(children["goes on"], 0)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_another_run_cleans_away_before_its_lock_is_held_is_replaced(tmp_path, monkeypatch):
    lock, taken = atomic_save._lock, []

    def late(folder):
        if not taken:
            taken.append(folder)
            atomic_save._clean(tmp_path)
        return lock(folder)

    monkeypatch.setattr(atomic_save, "_lock", late)
    atomic_save.save(Tracker(tmp_path), *run())
    assert sorted(os.listdir(tmp_path / "model")) == sorted([*LOGS, "results_1.json"])
    assert taken
    assert not taken[0].exists()


def test_file_systems_without_locks(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise NotImplementedError("no flock")

    monkeypatch.setattr(atomic_save.filelock.FileLock, "acquire", refuse)
    (tmp_path / ".unfinished-0").mkdir()
    atomic_save.save(Tracker(tmp_path), *run())
    assert sorted(os.listdir(tmp_path)) == [".unfinished-0", "model"]  # whose it is can't be known


def test_folders_named_after_hidden_paths_are_read(tmp_path):
    for name in (".venv__lib__model", ".git", ".unfinished-a__b", "model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results_1.json").write_text("{}")
    assert [path.parent.name for path in files.under(tmp_path)] == [".venv__lib__model", "model"]


def test_hashes_of_a_checkpoint(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "notes.md").write_text("no part of it")
    whole = provenance.files(tmp_path)
    assert list(whole) == ["config.json", "model.safetensors"]
    assert whole["config.json"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # sha256sum
    assert list(provenance.files(tmp_path, "config.json")) == ["config.json"]
    monkeypatch.setattr(provenance, "_MOST", 8)
    assert provenance.files(tmp_path)["model.safetensors"] == "7 bytes"
    json.dumps(whole)
