"""Files that are written whole or not at all, and found where they are whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that nobody ever reads a half-written one.

    Raises:
        OSError: The folder cannot be written; what was there before stays.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def under(folder: Path, pattern: str = "*") -> list[Path]:
    """The files below a folder in a fixed order, but for hidden folders: what is being written lies in them."""
    found = (path for path in folder.rglob(pattern) if path.is_file())
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(folder).parts[:-1]))
