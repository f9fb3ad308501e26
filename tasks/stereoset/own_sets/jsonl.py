"""Files of JSON lines that grow while work is done, and survive a kill at any moment."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.files import read_bytes, writing


def read(path: Path, needed: Sequence[str]) -> list[dict[str, Any]]:
    """The records of a file; none where there is no file.

    A last line without its line end was torn by a kill: it is cut off, so that the next one doesn't continue it.

    Raises:
        BiasError: A line that is damaged otherwise (each needs texts in the ``needed`` fields), with its number.
    """
    try:
        raw = read_bytes(path)
        end = raw.rfind(b"\n") + 1
        if end < len(raw):
            os.truncate(path, end)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error
    records = []
    for number, line in enumerate(raw[:end].splitlines(), start=1):
        try:
            record = json.loads(line)
            json.dumps(record, ensure_ascii=False).encode()  # half a character, among others, is none
        except (ValueError, RecursionError) as error:
            raise BiasError(f"{path} line {number}: damaged: not JSON; remove the line") from error
        if not isinstance(record, dict) or not all(isinstance(record.get(name), str) for name in needed):
            raise BiasError(f"{path} line {number}: damaged: {', '.join(needed)} are needed, as texts; remove the line")
        records.append(record)
    return records


def append(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Add records in one piece, on the disk before it returns; a :class:`BiasError` if they cannot be written."""
    content = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode("utf-8", "replace")
    with writing(path):
        size = path.stat().st_size if path.exists() else 0
        try:
            with path.open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(path, size)
            raise
