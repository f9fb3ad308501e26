"""What translates: a checkpoint of transformers, a program, or a file of translations made by people."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence, Set
from pathlib import Path
from typing import IO, Any, Protocol

from lm_eval_bias.errors import BiasError, printable
from lm_eval_bias.files import expanded
from lm_eval_bias.tasks.stereoset.own_sets import csv_io

KINDS = {
    "hf": "hf:NAME_OR_FOLDER[,source=CODE,target=CODE,prefix=TEXT,beams=N,device=NAME,dtype=NAME,revision=NAME]",
    "command": "command:PROGRAM ARGUMENTS (a text a line in, a translation a line out)",
    "command-json": 'command-json:PROGRAM ARGUMENTS (lines like {"text": ..., "keep": [...]}; answers are JSON texts)',
    "file": "file:TABLE.csv or .tsv (two columns: text, translation)",
}


_FEW = 64  # texts show whether a program takes each line by itself
_HEADS = ("text", "source", "source text", "english", "original")  # of a table's first column


class Engine(Protocol):
    """Translates texts.

    Attributes:
        identity: What its translations depend on; stands beside every one that is kept.
        batch: Texts that it takes at once.
        human: A person made the translations: they are taken as they are, and read again instead of kept.
    """

    identity: str
    batch: int
    human: bool

    def translate(self, texts: Sequence[str], keep: str) -> list[str | None]:
        """Translations in the order of the texts, ``None`` for what it doesn't have; ``keep`` should stay as it is."""

    def unknown(self, texts: Set[str]) -> int:
        """How many of the translations that a person made are of none of these texts."""

    def about(self) -> dict[str, Any]:
        """Provenance: what a data card says of it."""


class Table:
    """``file:``: two columns, a text and its translation by a person."""

    human = True
    batch = 1 << 20

    def __init__(self, given: str) -> None:
        """Read the table; a first row that says what the columns are is none of its texts.

        Raises:
            BiasError: It cannot be read, or translates a text in two ways.
        """
        path = expanded(given)
        self._name, self._found = path.name, dict[str, str]()
        rows, raw = csv_io.rows(path)
        for number, row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells) or (number == 1 and cells[0].lower() in _HEADS):
                continue
            if len(cells) < 2 or any(cells[2:]):
                raise BiasError(f"{path} row {number}: {len(cells)} columns: two are needed, text and translation")
            text, translation = cells[:2]
            if self._found.get(text, translation) != translation and translation:
                raise BiasError(f"{path} row {number}: {text[:60]!r} is translated in another way above")
            if translation:
                self._found[text] = translation
        self.identity = f"file:{self._name}"
        self._sha256 = hashlib.sha256(raw).hexdigest()

    def translate(self, texts: Sequence[str], keep: str) -> list[str | None]:
        """What the table says."""
        return [self._found.get(text.strip()) for text in texts]

    def unknown(self, texts: Set[str]) -> int:
        """How many rows translate none of these texts (a head row among them)."""
        return len(self._found.keys() - {text.strip() for text in texts})

    def about(self) -> dict[str, Any]:
        """Its name and SHA-256."""
        return {"engine": "file", "name": self._name, "sha256": self._sha256}


class Command:
    """``command:`` and ``command-json:``: a program of the user's, started for every batch, without a shell."""

    human = False

    def __init__(self, line: str, as_json: bool, languages: tuple[str, str], batch: int, timeout: float) -> None:
        """Find the program.

        Raises:
            BiasError: There is no command, or it can't be taken apart.
        """
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise BiasError(f"--engine command:{line}: {error}") from error
        if not self._words:
            raise BiasError("--engine command: needs a program, as in --engine 'command:apertium en-es'")
        self._json, self._languages, self._timeout = as_json, languages, timeout
        self.batch = batch
        self._alike = as_json  # whether it is known to treat every line by itself
        self.identity = f"{'command-json' if as_json else 'command'}:{shlex.join(self._words)}"

    def unknown(self, texts: Set[str]) -> int:
        """None: no person made them."""
        return 0

    def about(self) -> dict[str, Any]:
        """The command line."""
        return {"engine": "command", "command": shlex.join(self._words)}

    def translate(self, texts: Sequence[str], keep: str) -> list[str | None]:
        """The program's answers to one batch.

        Raises:
            BiasError: It can't be started, fails, takes too long, or doesn't answer every text with one line.
        """
        found = self._ask(texts, keep)
        if not self._alike:
            self._check_order(texts[:_FEW], found, keep)
            self._alike = True
        return list(found)

    def _check_order(self, texts: Sequence[str], found: Sequence[str], keep: str) -> None:
        """Ask again in reverse: a program that joins lines to sentences gives as many back, but moves words between."""
        again = self._ask(texts[::-1], keep)[::-1]
        for text, one, other in zip(texts, found, again, strict=False):
            if one != other:
                raise BiasError(
                    f"--engine {self.identity}: translates {text[:60]!r} as {one[:60]!r}, and in another order of the "
                    f"texts as {other[:60]!r}: it has to take each line by itself, and always alike (or to speak "
                    "command-json)"
                )

    def _ask(self, texts: Sequence[str], keep: str) -> list[str]:
        flat = [" ".join(text.split()) for text in texts]
        if self._json:
            source, target = self._languages
            asked = [{"text": text, "source": source, "target": target, "keep": [keep]} for text in flat]
            flat = [json.dumps(question, ensure_ascii=False) for question in asked]
        output = self._run("".join(f"{line}\n" for line in flat))
        lines = output.removesuffix("\n").split("\n") if output else []
        if len(lines) != len(texts):
            raise self._wrong(f"{len(lines):,} lines came back for {len(texts):,} texts")
        return [self._answer(line, number) for number, line in enumerate(lines, start=1)]

    def _answer(self, line: str, number: int) -> str:
        if not self._json:
            return line.strip()
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            found = found.get("translation")
        if not isinstance(found, str):
            raise self._wrong(f'line {number}: {line[:60]!r} is neither a JSON text nor {{"translation": TEXT}}')
        return " ".join(found.encode("utf-8", "replace").decode().split())

    def _wrong(self, why: str) -> BiasError:
        return BiasError(f"--engine {self.identity}: {why}; what was translated before is kept")

    def _run(self, given: str) -> str:
        source, target = self._languages
        environment = {**os.environ, "LM_EVAL_BIAS_SOURCE": source, "LM_EVAL_BIAS_TARGET": target}
        largest = 64 * len(given.encode()) + (1 << 20)
        with tempfile.TemporaryFile() as entered, tempfile.TemporaryFile() as said:
            entered.write(given.encode("utf-8", "replace"))
            entered.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - the user's own command
                    self._words, stdin=entered, stdout=subprocess.PIPE, stderr=said, env=environment,
                    start_new_session=True,
                )  # fmt: skip
            except (OSError, ValueError) as error:
                raise self._wrong(f"cannot be started ({getattr(error, 'strerror', None) or error})") from error
            late = threading.Event()

            def stop() -> None:
                late.set()
                _kill(process)

            timer = threading.Timer(self._timeout, stop)
            timer.start()
            try:
                assert process.stdout is not None
                output = process.stdout.read(largest + 1)
                if len(output) > largest:
                    raise self._wrong("it writes without end")
                status = process.wait()
            finally:
                timer.cancel()
                if process.returncode is None:
                    _kill(process)
                    process.wait()
            if late.is_set():
                raise self._wrong(f"no answer to {given.count(chr(10)):,} texts within {self._timeout:g} s (--timeout)")
            if status:
                raise self._wrong(f"it ended with status {status}{_last_words(said)}")
        try:
            return output.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise self._wrong(f"byte {error.start} of what it wrote is not UTF-8") from error


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program that wasn't waited for yet, and what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_words(said: IO[bytes]) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - 2_000))
    lines = [line for line in said.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f": {printable(lines[-1].strip())[:200]}" if lines else ""


def make(given: str, languages: tuple[str, str], batch: int | None = None, timeout: float = 600.0) -> Engine:
    """The engine that ``--engine`` names.

    Args:
        given: As :data:`KINDS` says.
        languages: Source and target.
        batch: Texts at once; the engine's own number without one.
        timeout: Seconds that a program may take for a batch.

    Raises:
        BiasError: It is none, or cannot be had.
    """
    kind, colon, rest = given.partition(":")
    if not colon or kind not in KINDS:
        raise BiasError(f"--engine {given}: must be one of {'; '.join(KINDS.values())}")
    if not rest.strip():
        raise BiasError(f"--engine {given}: nothing behind the colon: {KINDS[kind]}")
    if batch is not None and batch < 1:
        raise BiasError(f"--batch_size {batch}: must be 1 or more")
    if not 0 < timeout <= threading.TIMEOUT_MAX:
        raise BiasError(f"--timeout {timeout:g}: must be a number of seconds above 0")
    if kind == "file":
        return Table(rest)
    if kind == "hf":
        from lm_eval_bias.tasks.stereoset.own_sets import seq2seq_translation

        return seq2seq_translation.Checkpoint(rest, languages, batch or 16)
    return Command(rest, kind == "command-json", languages, batch or 256, timeout)


def digest_of(folder: Path) -> str:
    """A short hash of a local checkpoint's files."""
    from lm_eval_bias.runs.provenance import files

    return hashlib.sha256(json.dumps(files(folder), sort_keys=True).encode()).hexdigest()[:16]
