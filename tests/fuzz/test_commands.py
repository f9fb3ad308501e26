"""Every command with every kind of path and argument that is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import strategies as st

from lm_eval_bias.cli.main import main
from tests.support.fuzzing import command, disk, fuzz, judged, refused
from tests.support.made_runs import run_file


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


PATHS = {
    "missing": _named("gone"),
    "empty": _write("empty", b""),
    "spaces": _write("spaces", b" \n\n \t\n"),
    "binary": _write("binary", bytes(range(256)) * 20),
    "not UTF-8": _write("latin", '{"text": "für", "gender": "f"}\n'.encode("latin-1")),
    "deep": _write("deep", b"[" * 100_000),
    "a list": _write("list", b"[]"),
    "an object": _write("object", b"{}"),
    "no gzip": _write("gzip", b"\x1f\x8b\x08\x00broken"),
    "folder": _folder,
    "pipe": _pipe,
    "device": _device,
    "loop": _loop,
    "too long": lambda folder, ending: "x" * 5000 + ending,
    "empty name": lambda folder, ending: "",
}
COMMANDS = {
    "rescore log": (["rescore", "PATH"], "samples_occugender_2026-01-01T00-00-00.000000.jsonl"),
    "rescore predictions": (["rescore", "PATH", "--language", "en"], ".json"),
    "rescore packed predictions": (["rescore", "PATH", "--language", "en"], ".json.gz"),
    "rescore texts": (["rescore", "PATH", "--language", "de"], ".jsonl"),
    "rescore table": (["rescore", "PATH", "--language", "de"], ".csv"),
    "export": (["export", "PATH", "--to", "predictions", "-o", "OUT/o.json"], ".jsonl"),
    "classify": (["regard", "classify", "PATH", "--classifier", "light", "--language", "de", "-o", "OUT/o"], ".csv"),
    "classify lines": (["regard", "classify", "PATH", "--classifier", "head:none", "-o", "OUT/o.csv"], ".txt"),
    "classify objects": (["regard", "classify", "PATH", "--classifier", "head:none"], ".jsonl"),
    "classifier": (["regard", "classify", "TEXTS", "--classifier", "head:PATH"], ""),
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
    (tmp_path / "run.json").write_text(json.dumps(run_file(tasks=("stereoset_en",))))
    (tmp_path / "policy.yaml").write_text("bounds: [{task: stereoset_en, score: ss, max: 60}]\n")
    (tmp_path / "texts.txt").write_text("Die Frau lacht.\n")
    return tmp_path


def filled(place, arguments, path):
    names = {
        "OUT": str(place / "out"), "POLICY": str(place / "policy.yaml"), "RUN": str(place / "run.json"),
        "TEXTS": str(place / "texts.txt"), "PATH": path, "LOGS": str(place / "logs"),
        "SECOND": str(place / "second.json"),
    }  # fmt: skip
    return [next((part.replace(k, v) for k, v in names.items() if k in part), part) for part in arguments]


@pytest.mark.parametrize("name", COMMANDS)
def test_paths_that_cannot_be_read(name, place):
    arguments, ending = COMMANDS[name]
    wrong = {}
    for kind, make in PATHS.items():
        folder = place / "in" / kind.replace(" ", "")
        folder.mkdir()
        try:
            said = refused(place, *filled(place, arguments, make(folder, ending)))
            assert len(said) < 2200
        except (Exception, AssertionError) as error:  # noqa: BLE001 (all of them shall be named)
            wrong[kind] = f"{type(error).__name__}: {error}"[:500]
    assert wrong == {}


# ---- arguments ----

JUNK = [
    "",
    " ",
    "-1",
    "1e400",
    "nan",
    "9" * 5000,
    "x" * 5000,
    "\udcff",
    "a\nb\x1b[2J",
    "[",
    "{}",
    "%s",
    "..",
    "--",
    "-",
]
FLAGS = {
    "rescore": ["--language", "--classifier", "--words", "--json"],
    "export": ["--to", "--name", "--scores", "--organization", "--dataset", "-o", "--language", "--variant"],
    "regard classify": ["--classifier", "--language", "--column", "-o"],
    "regard train": ["--language", "--encoder", "-o"],
    "compare": ["--by", "--base", "--scores", "--correction", "--format", "-o"],
    "report": ["-o", "--format", "--name"],
    "leaderboard": ["-o", "--format"],
    "check": ["--policy", "--json", "--junit", "--markdown", "--github"],
    "ls": ["--json", "--suites", "--card"],
    "fetch": [],
}
GIVEN = ["RUN", "LOGS", "TEXTS", "POLICY"]


@pytest.fixture
def inputs(place, small_run, monkeypatch):
    shutil.copytree(small_run, place / "logs")
    (place / "second.json").write_text(json.dumps(run_file(tasks=("stereoset_en",), shift=1)))
    monkeypatch.chdir(place / "out")
    return place


@st.composite
def command_lines(draw):
    name = draw(st.sampled_from(sorted(FLAGS)))
    value = st.sampled_from([*JUNK, *GIVEN, "en", "de", "json", "OUT/o.json", "OUT/o.csv", "OUT"])
    option = st.tuples(st.sampled_from(FLAGS[name] or ["--no-such-flag"]), value)
    options = draw(st.lists(st.one_of(option, st.tuples(st.sampled_from(JUNK))), max_size=3))
    first = draw(st.lists(st.sampled_from([*GIVEN, *JUNK]), min_size=1, max_size=2))
    return [*name.split(), *first, *[part for own in options for part in own]]


def emptied(folder):
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@fuzz(10, start="inputs", line=command_lines())
def test_command_lines_of_any_words(inputs, line):
    judged(inputs, *filled(inputs, line, ""))
    emptied(inputs / "out")


WRITERS = {
    "report": ["report", "RUN", "--format", "json"],
    "leaderboard": ["leaderboard", "RUN", "--format", "csv"],
    "compare": ["compare", "RUN", "SECOND", "--unpaired"],
    "classify": ["regard", "classify", "TEXTS", "--classifier", "light"],
    "export": ["export", "LOGS", "--to", "predictions"],
    "export card": ["export", "RUN", "--to", "model-card"],
}
NOWHERE = ["RUN/o.csv", "x" * 5000 + ".csv", "", "/dev/null/o.csv", "OUT"]


@pytest.mark.parametrize("name", WRITERS)
def test_outputs_that_cannot_be_written(name, inputs):
    for place in NOWHERE:
        refused(inputs, *filled(inputs, [*WRITERS[name], "-o", place], ""))


@pytest.mark.parametrize("name", WRITERS)
def test_outputs_on_a_full_disk(name, inputs):
    for before in ("", "mine"):
        if before:
            (inputs / "out" / "o.csv").write_text(before)
        with disk(20):
            line = refused(inputs, *filled(inputs, [*WRITERS[name], "-o", "OUT/o.csv"], ""))
        assert "cannot be written: File too large" in line


@pytest.mark.parametrize("line", [["ls", "--json"], ["rescore", "LOGS"], ["report", "RUN", "--format", "md"]])
def test_a_full_disk_behind_standard_output(line, inputs, monkeypatch, capsys):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main([part for part in filled(inputs, line, "")]) == 2
        monkeypatch.undo()
    *_, error = capsys.readouterr().err.splitlines()
    assert error.startswith("lm-eval-bias: error: standard output")
    assert error.endswith("cannot be written: No space left on device")


@pytest.mark.parametrize("name", ["\udcff\udcfe", "a\nb\x1b[2J"])
def test_names_of_any_bytes_are_taken(name, inputs):
    folder = inputs / name
    (inputs / "logs").rename(folder)
    for line in (
        ["rescore", str(folder)],
        ["report", str(folder), "-o", f"{folder}/page.md"],
        ["leaderboard", str(folder)],
        ["check", str(folder), "--policy", str(inputs / "policy.yaml"), "--json"],
        ["regard", "classify", str(inputs / "texts.txt"), "--classifier", "light", "-o", f"{folder}/o.csv"],
    ):
        outcome = command(*line)
        assert outcome.status in (0, 1), outcome
    run = ["run", "--tasks", "occugender_implicit", "--model", "bias-chance", "--limit", "1"]
    assert command(*run, "--output_path", str(folder / "again")).status == 0


def test_a_reader_that_goes_away_is_no_error():
    code = "import sys; from lm_eval_bias.cli.main import main; sys.exit(main(['ls', '--json']))"
    done = subprocess.run(
        ["bash", "-c", '"$0" -c "$1" | head -c 10; exit "${PIPESTATUS[0]}"', sys.executable, code],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
