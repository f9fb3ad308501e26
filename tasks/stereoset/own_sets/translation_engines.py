"""What translates: a checkpoint of transformers, a program, or a file of translations made by people."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence, Set
from typing import Any, Protocol

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import expanded
from lm_eval_bias.tasks.stereoset.own_sets import csv_io
from lm_eval_bias.tasks.stereoset.own_sets.command_translation import Command
from lm_eval_bias.tasks.stereoset.own_sets.seq2seq_translation import Checkpoint

KINDS = {
    "hf": "hf:NAME_OR_FOLDER[,source=CODE,target=CODE,prefix=TEXT,beams=N,device=NAME,dtype=NAME,revision=NAME]",
    "command": "command:PROGRAM ARGUMENTS (reads one text per line, writes one translation per line)",
    "command-json": 'command-json:PROGRAM ARGUMENTS (reads {"text": ..., "keep": [...]} per line, writes JSON strings)',
    "file": "file:TABLE.csv or .tsv (two columns: text, translation)",
}
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

    def about(self) -> dict[str, Any]:
        """Provenance: what a data card says of it."""


class Table:
    """``file:``: two columns, a text and its translation by a person."""

    human = True
    batch = 1 << 20

    def __init__(self, name: str) -> None:
        """Read the table; a first row that says what the columns are is none of its texts.

        Raises:
            BiasError: It cannot be read, or translates a text in two ways.
        """
        path = expanded(name)
        self._name, self._translations = path.name, dict[str, str]()
        rows, raw = csv_io.rows(path)
        for number, row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells) or (number == 1 and cells[0].lower() in _HEADS):
                continue
            if len(cells) < 2 or any(cells[2:]):
                raise BiasError(f"{path} row {number}: {len(cells)} columns: two are needed, text and translation")
            text, translation = cells[:2]
            if self._translations.get(text, translation) != translation and translation:
                raise BiasError(f"{path} row {number}: {text[:60]!r} has a different translation above")
            if translation:
                self._translations[text] = translation
        self.identity = f"file:{self._name}"
        self._sha256 = hashlib.sha256(raw).hexdigest()

    def translate(self, texts: Sequence[str], keep: str) -> list[str | None]:
        """What the table says."""
        return [self._translations.get(text.strip()) for text in texts]

    def unknown(self, texts: Set[str]) -> int:
        """How many rows translate none of these texts (a head row among them)."""
        return len(self._translations.keys() - {text.strip() for text in texts})

    def about(self) -> dict[str, Any]:
        """Its name and SHA-256."""
        return {"engine": "file", "name": self._name, "sha256": self._sha256}


def make(spec: str, languages: tuple[str, str], batch: int | None = None, timeout: float = 600.0) -> Engine:
    """The engine that ``--engine`` names.

    Args:
        spec: As :data:`KINDS` says.
        languages: Source and target.
        batch: Texts at once; the engine's own number without one.
        timeout: Seconds that a program may take for a batch.

    Raises:
        BiasError: It is none, or cannot be had.
    """
    kind, colon, argument = spec.partition(":")
    if not colon or kind not in KINDS:
        raise BiasError(f"--engine {spec}: must be one of {'; '.join(KINDS.values())}")
    if not argument.strip():
        raise BiasError(f"--engine {spec}: nothing after the colon: {KINDS[kind]}")
    if batch is not None and batch < 1:
        raise BiasError(f"--batch_size {batch}: must be 1 or more")
    if not 0 < timeout <= threading.TIMEOUT_MAX:
        raise BiasError(f"--timeout {timeout:g}: must be a number of seconds above 0")
    if kind == "file":
        return Table(argument)
    if kind == "hf":
        return Checkpoint(argument, languages, batch or 16)
    return Command(argument, kind == "command-json", languages, batch or 256, timeout)
