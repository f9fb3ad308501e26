"""Commands in process, the one way to refuse, a full disk."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lm_eval_bias.cli.main import main

ERROR = re.compile(r"lm-eval-bias( [\w-]+){0,2}: error: .*\S.*")


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


def command(*arguments: str) -> Outcome:
    """A command with streams as strict as a terminal's; whatever it raises is raised."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        for handler in logging.getLogger(
            "lm_eval"
        ).handlers:  # they keep the stream of the first command
            if isinstance(handler, logging.StreamHandler):
                stack.callback(setattr, handler, "stream", handler.stream)
                handler.stream = err
        try:
            status = main(list(arguments))
        except SystemExit as stop:  # argparse
            status = int(stop.code or 0)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Outcome(status, *texts)


def tree(folder: Path) -> dict[str, int]:
    """Every file of a folder with its time of change: what a command may not touch (but for its cache)."""
    found = {
        str(path): path
        for path in folder.rglob("*")
        if not {"cache", "__pycache__"} & {*path.relative_to(folder).parts}
    }
    return {
        name: 0 if path.is_dir() else path.lstat().st_mtime_ns
        for name, path in found.items()
    }


def check_refusal(outcome: Outcome) -> str:
    """The one line of a refusal."""
    assert outcome.status == 2, outcome
    started = (
        "Loading ",
        "Nothing will be saved",
    )  # what a run says before its model is there
    assert not [
        line for line in outcome.out.splitlines() if not line.startswith(started)
    ], outcome
    assert ERROR.fullmatch(outcome.err.rstrip("\n")), outcome.err
    return outcome.err.rstrip("\n")


def refused(folder: Path, *arguments: str) -> str:
    """The one line that a command refuses with; nothing is written."""
    before = tree(folder)
    line = check_refusal(command(*arguments))
    assert tree(folder) == before
    return line


@contextlib.contextmanager
def disk(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: the system refuses to write the rest, as it does on a full disk."""
    resource = pytest.importorskip("resource")
    before, writes_no_bytecode = (
        resource.getrlimit(resource.RLIMIT_FSIZE),
        sys.dont_write_bytecode,
    )
    sys.dont_write_bytecode = True  # cut bytecode would be read by all that comes after
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = writes_no_bytecode
