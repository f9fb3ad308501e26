"""What the fuzz tests share: properties with two profiles, commands in process, the one way to refuse, damage."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lm_eval_bias.cli.main import main
from lm_eval_bias.core.errors import BiasError

PASSED_OVER = re.compile(r"^lm-eval-bias: skipped: .*\n", re.MULTILINE)
ERROR = re.compile(r"lm-eval-bias( [\w-]+){0,2}: error: .*\S.*")


def fuzz(examples: int, start: str = "tmp_path", **drawn: st.SearchStrategy[Any]) -> Callable[..., Any]:
    """A property of a fixture (``start``) and of drawn values.

    The same examples at every run, four times as many under ``-m slow``; others with ``--hypothesis-seed``."""

    def decorate(holds: Callable[..., None]) -> Any:
        @pytest.mark.parametrize("profile", [pytest.param("default"), pytest.param("long", marks=pytest.mark.slow)])
        def test(profile: str, request: pytest.FixtureRequest) -> None:
            given_by = request.getfixturevalue(start)

            @settings(
                max_examples=examples * (4 if profile == "long" else 1),
                derandomize=request.config.getoption("--hypothesis-seed", None) is None,
                database=None,
                deadline=None,
                print_blob=profile == "long",
                suppress_health_check=list(HealthCheck),
            )
            @given(**drawn)
            def once(**values: Any) -> None:
                holds(given_by, **values)

            # hypothesis derives the seed from the function's name and source
            once.hypothesis.inner_test.__qualname__ = holds.__qualname__
            once()

        test.__name__, test.__doc__, test.__module__ = holds.__name__, holds.__doc__, holds.__module__
        return test

    return decorate


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
        for handler in logging.getLogger("lm_eval").handlers:  # they keep the stream of the first command
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
    found = {str(path): path for path in folder.rglob("*") if "cache" not in path.relative_to(folder).parts}
    return {name: 0 if path.is_dir() else path.lstat().st_mtime_ns for name, path in found.items()}


def check_refusal(outcome: Outcome) -> str:
    """The one line of a refusal."""
    assert outcome.status == 2, outcome
    started = ("Loading ", "Nothing will be saved")  # what a run says before its model is there
    assert not [line for line in outcome.out.splitlines() if not line.startswith(started)], outcome
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
    before, writes_no_bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # cut bytecode would be read by all that comes after
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = writes_no_bytecode


def judged(folder: Path, *arguments: str) -> Outcome:
    """A command that may take its input, or refuse it in one line (behind what it passed over)."""
    before = tree(folder)
    outcome = command(*arguments)
    if outcome.status == 2:
        check_refusal(replace(outcome, err=PASSED_OVER.sub("", outcome.err)))
        assert tree(folder) == before
    else:
        assert outcome.status in (0, 1), outcome
    return outcome


def taken(read: Callable[..., Any], *arguments: Any) -> Any:
    """What a function makes of its input; ``None`` where it refuses it as it should, and nothing else passes."""
    with contextlib.suppress(BiasError):
        return read(*arguments)
    return None


# ---- damage ----

JUNK = [
    None, True, False, 0, -1, 10**400, 1.5, 1e308, float("nan"), float("inf"), "", " ", "\ud800", "a\nb\x1b[2J\u202e",
    "x" * 3000, "<b>&amp;{{ 7 }}", [], {}, [None], [[[1]]], {"a": {"b": []}}, [float("nan"), float("nan")],
]  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to every part of plain data but the whole."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*at, key)
        yield from places(part, (*at, key))


@st.composite
def mutated(draw: Any, value: Any) -> Any:
    """Plain data of which one to three parts are gone, doubled or something else."""
    changed = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        # a place of few parts as often as one of many
        ways = list(places(changed))
        if not ways:
            break
        depth = draw(st.sampled_from(sorted({len(way) for way in ways})))
        way = draw(st.sampled_from([way for way in ways if len(way) == depth]))
        inside = changed
        for step in way[:-1]:
            inside = inside[step]
        how = draw(st.sampled_from(["replace", "replace", "remove", "double"]))
        if how == "remove":
            del inside[way[-1]]
        elif how == "double" and isinstance(inside, list):
            inside.insert(way[-1], copy.deepcopy(inside[way[-1]]))
        else:
            inside[way[-1]] = copy.deepcopy(draw(st.sampled_from(JUNK)))
    return changed


@st.composite
def damaged(draw: Any, content: bytes) -> bytes:
    """Bytes that were cut, changed, repeated, or are others altogether."""
    how = draw(st.sampled_from(["cut", "change", "insert", "repeat", "other"]))
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    few = draw(st.binary(min_size=1, max_size=8))
    return {
        "cut": content[:at],
        "change": content[:at] + few + content[at + len(few) :],
        "insert": content[:at] + few + content[at:],
        "repeat": content[:at] + content[: at // 2] + content[at:],
        "other": few,
    }[how]
