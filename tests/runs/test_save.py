"""Result files appear whole or not at all."""

import json
import os

import pytest

from lm_eval_bias import files
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import atomic_save, provenance


class Tracker:
    """Writes in place, as the harness's does."""

    def __init__(self, output_path):
        self.output_path = str(output_path)

    def write(self, results="{}"):
        from pathlib import Path

        path = Path(self.output_path)
        folder = path.parent if path.suffix == ".json" else path / "model"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{path.stem}_1.json" if path.suffix == ".json" else "results_1.json"
        (folder / "samples_t_1.jsonl").write_text("1\n")
        (folder / name).write_text(results)


def found(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(("given", "names"), [
    ("out", ["out", "out/model", "out/model/results_1.json", "out/model/samples_t_1.jsonl"]),
    ("out/a.json", ["out", "out/a_1.json", "out/samples_t_1.jsonl"]),
])  # fmt: skip
def test_files_come_together_the_results_last(given, names, tmp_path, monkeypatch):
    tracker, moved = Tracker(tmp_path / given), []
    replace = atomic_save.os.replace
    monkeypatch.setattr(atomic_save.os, "replace", lambda a, b: moved.append(str(b)) or replace(a, b))
    with atomic_save.whole(tracker):
        tracker.write()
        assert not files.under(tmp_path)
    assert found(tmp_path) == names
    assert tracker.output_path == str(tmp_path / given)
    assert moved[-1].endswith("_1.json")


def test_what_breaks_leaves_nothing(tmp_path, monkeypatch):
    tracker = Tracker(tmp_path)
    monkeypatch.setattr(atomic_save.os, "replace", None)
    with pytest.raises(TypeError), atomic_save.whole(tracker):
        tracker.write()
    assert found(tmp_path) == ["model"]  # an empty folder
    (tmp_path / "model").rmdir()
    with pytest.raises(BiasError, match="could not write the results"), atomic_save.whole(tracker):
        pass  # the harness only warns
    (tmp_path / "file").write_text("")
    with pytest.raises(BiasError, match="cannot be written"), atomic_save.whole(Tracker(tmp_path / "file" / "out")):
        pass


def test_leavings_of_killed_runs_are_removed_those_of_others_are_not(tmp_path, monkeypatch):
    import filelock

    for name in ("dead", "alive", "young"):
        (tmp_path / f".unfinished-{name}" / "model").mkdir(parents=True)
        (tmp_path / f".unfinished-{name}" / "model" / "results_0.json").write_text('{"resul')
    for name in ("dead", "alive"):
        os.utime(tmp_path / f".unfinished-{name}", (0, 0))
    assert not files.under(tmp_path)  # nobody reads them
    tracker = Tracker(tmp_path)
    lock = filelock.FileLock(tmp_path / ".unfinished-alive" / ".lock")
    with lock:
        os.utime(tmp_path / ".unfinished-alive", (0, 0))
        with atomic_save.whole(tracker):
            tracker.write()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".unfinished-alive", ".unfinished-young", "model"]


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
