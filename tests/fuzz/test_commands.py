"""Every command with every kind of path and argument that is none."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import strategies as st

from tests.fuzz.kit import command, fuzz, judged, refused


def _write(name, content):
    def make(folder, ending):
        path = folder / (name + ending)
        path.write_bytes(content)
        return str(path)

    return make


def _named(name):
    return lambda folder, ending: str(folder / name) + ending


def _folder(folder, ending):
    (folder / f"folder{ending}").mkdir()
    return str(folder / f"folder{ending}")


def _pipe(folder, ending):
    os.mkfifo(folder / f"pipe{ending}")
    return str(folder / f"pipe{ending}")


def _device(folder, ending):
    (folder / f"zeros{ending}").symlink_to("/dev/zero")
    return str(folder / f"zeros{ending}")


def _loop(folder, ending):
    (folder / f"loop{ending}").symlink_to(f"loop{ending}")
    return str(folder / f"loop{ending}")


def _sparse(folder, ending):
    path = folder / f"huge{ending}"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    return str(path)


PATHS = {
    "missing": _named("gone"),
    "empty": _write("empty", b""),
    "spaces": _write("spaces", b" \n\n \t\n"),
    "binary": _write("binary", bytes(range(256)) * 20),
    "not UTF-8": _write("latin", '{"text": "für", "gender": "f"}\n'.encode("latin-1")),
    "UTF-16": _write("utf16", '{"tasks": {}}'.encode("utf-16")),
    "deep": _write("deep", b"[" * 100_000),
    "deep objects": _write("deepo", b'{"a":' * 100_000),
    "many digits": _write("digits", b"[" + b"9" * 10_000 + b"]"),
    "a number": _write("number", b"1"),
    "a list": _write("list", b"[]"),
    "an object": _write("object", b"{}"),
    "no gzip": _write("gzip", b"\x1f\x8b\x08\x00broken"),
    "folder": _folder,
    "pipe": _pipe,
    "device": _device,
    "loop": _loop,
    "huge": _sparse,
    "unknown user": lambda folder, ending: f"~no-such-user-here/x{ending}",
    "too long": lambda folder, ending: "x" * 5000 + ending,
    "empty name": lambda folder, ending: "",
    "line break in its name": _named("a\nb\x1b[2J"),
    "not UTF-8 in its name": _named("\udcff\udcfe"),
}
COMMANDS = {
    "rescore log": (["rescore", "PATH"], "samples_occugender_2026-01-01T00-00-00.000000.jsonl"),
    "rescore predictions": (["rescore", "PATH", "--language", "en"], ".json"),
    "rescore packed predictions": (["rescore", "PATH", "--language", "en"], ".json.gz"),
    "rescore texts": (["rescore", "PATH", "--language", "de"], ".jsonl"),
    "rescore table": (["rescore", "PATH", "--language", "de"], ".csv"),
    "export": (["export", "PATH", "-o", "OUT/o.json"], ".jsonl"),
    "plot": (["plot", "PATH", "-o", "OUT"], ".jsonl"),
    "classify": (["classify", "PATH", "--classifier", "light", "--language", "de", "-o", "OUT/o.csv"], ".csv"),
    "classify lines": (["classify", "PATH", "--classifier", "head:none", "-o", "OUT/o.csv"], ".txt"),
    "classify objects": (["classify", "PATH", "--classifier", "head:none"], ".jsonl"),
    "classifier": (["classify", "TEXTS", "--classifier", "head:PATH"], ""),
    "train": (["train-regard", "--embeddings", "PATH", "-o", "OUT/head"], ".npz"),
    "compare": (["compare", "PATH", "PATH"], ".json"),
    "report": (["report", "PATH", "-o", "OUT/o.html"], ".json"),
    "leaderboard": (["leaderboard", "PATH", "-o", "OUT/o.html"], ".json"),
    "check": (["check", "PATH", "--policy", "POLICY"], ".json"),
    "policy": (["check", "RUN", "--policy", "PATH"], ".yaml"),
    "fetch": (["fetch", "PATH"], ""),
    "run items": (["run", "--tasks", "occugender_explicit", "--model", "bias-chance", "--metadata", "items=PATH"], ".csv"),
}  # fmt: skip
REPLACED = {"spaces", "empty"}  # a text of no lines has its own line of refusal


@pytest.fixture
def place(tmp_path, tiny_mirror):
    import json

    from tests.report.made_runs import run_file

    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "run.json").write_text(json.dumps(run_file(tasks=("stereoset_en",))))
    (tmp_path / "policy.yaml").write_text("bounds: [{task: stereoset_en, score: ss, max: 60}]\n")
    (tmp_path / "texts.txt").write_text("Die Frau lacht.\n")
    return tmp_path


def filled(place, arguments, path):
    names = {
        "OUT": str(place / "out"), "POLICY": str(place / "policy.yaml"), "RUN": str(place / "run.json"),
        "TEXTS": str(place / "texts.txt"), "PATH": path,
    }  # fmt: skip
    return [next((part.replace(k, v) for k, v in names.items() if k in part), part) for part in arguments]


@pytest.mark.parametrize("name", COMMANDS)
def test_paths_that_cannot_be_read(name, place):
    arguments, ending = COMMANDS[name]
    for kind, make in PATHS.items():
        folder = place / "in" / kind.replace(" ", "")
        folder.mkdir()
        said = refused(place, *filled(place, arguments, make(folder, ending)))
        assert len(said) < 2200, kind
