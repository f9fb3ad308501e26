"""Every command with every kind of path and argument that is none."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.commands import refused
from tests.support.made_runs import run_of, write

PATHS = {
    "missing": lambda path: None,
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "not UTF-8": '{"text": "für", "gender": "f"}\n'.encode("latin-1"),
    "deep": b"[" * 20_000,
    "a list": b"[]",
    "an object": b"{}",
    "no gzip": b"\x1f\x8b\x08\x00broken",
    "folder": os.mkdir,
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
}
COMMANDS = {
    "rescore log": (["rescore", "PATH"], "samples_occugender_2026-01-01T00-00-00.000000.jsonl"),
    "rescore predictions": (["rescore", "PATH", "--language", "en"], ".json"),
    "rescore texts": (["rescore", "PATH", "--language", "de"], ".jsonl"),
    "rescore table": (["rescore", "PATH", "--language", "de"], ".csv"),
    "classifier": (["rescore", "TEXTS", "--classifier", "head:PATH"], ""),
    "compare": (["compare", "PATH", "PATH"], ".json"),
    "report": (["report", "PATH", "-o", "OUT/o.html"], ".json"),
    "leaderboard": (["leaderboard", "PATH", "-o", "OUT/o.html"], ".json"),
    "check": (["check", "PATH", "--policy", "POLICY"], ".json"),
    "policy": (["check", "RUN", "--policy", "PATH"], ".yaml"),
    "fetch": (["fetch", "PATH"], ""),
    "run items": (["run", "--tasks", "occugender", "--model", "bias-chance", "--metadata", "items=PATH"], ".csv"),
}  # fmt: skip


@pytest.fixture
def place(tmp_path, tiny_mirror):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    write(tmp_path / "run.json", run_of(tasks=("stereoset_en",)))
    (tmp_path / "policy.yaml").write_text(
        "bounds: [{task: stereoset_en, score: ss, max: 60}]\n"
    )
    (tmp_path / "texts.csv").write_text("text,gender\nDie Frau lacht.,f\n")
    return tmp_path


def filled(place, arguments, path):
    names = {
        "OUT": "out",
        "POLICY": "policy.yaml",
        "RUN": "results_run.json",
        "TEXTS": "texts.csv",
    }
    files = {name: str(place / file) for name, file in names.items()} | {"PATH": path}
    return [
        next((part.replace(k, v) for k, v in files.items() if k in part), part)
        for part in arguments
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_paths_that_cannot_be_read(name, place):
    arguments, ending = COMMANDS[name]
    wrong = {}
    for kind, make in PATHS.items():
        path = (
            place
            / "in"
            / kind.replace(" ", "")
            / (ending if "_" in ending else f"given{ending}")
        )
        path.parent.mkdir()
        path.write_bytes(make) if isinstance(make, bytes) else make(path)
        try:
            assert len(refused(place, *filled(place, arguments, str(path)))) < 2200
        except (Exception, AssertionError) as error:  # noqa: BLE001 (all of them shall be named)
            wrong[kind] = f"{type(error).__name__}: {error}"[:500]
    assert wrong == {}


def test_a_reader_that_goes_away_is_no_error():
    code = "import sys; from lm_eval_bias.cli.main import main; sys.exit(main(['ls', '--json']))"
    piped = [
        "bash",
        "-c",
        '"$0" -c "$1" | head -c 10; exit "${PIPESTATUS[0]}"',
        sys.executable,
        code,
    ]
    done = subprocess.run(piped, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
