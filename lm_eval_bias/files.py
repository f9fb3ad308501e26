"""Files that users name; files that are written whole or not at all, and found where they are whole."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lm_eval_bias.errors import BiasError

LARGEST = 1 << 30
_BEGINNING = 1 << 16  # bytes


def expanded(path: str | Path) -> Path:
    """A path with ``~`` replaced; as it is where no such user is known.

    Raises:
        BiasError: It is empty, as an unset variable is: that would be the current folder.

    >>> str(expanded("~nobody-of-that-name/x"))
    '~nobody-of-that-name/x'
    """
    if not str(path):
        raise BiasError("an empty path: name a file or folder ('.' is the current one)")
    return Path(os.path.expanduser(path))


def check_plain(path: Path, largest: int = LARGEST) -> None:
    """Refuse what would be read for ever, or doesn't fit into memory.

    Raises:
        OSError: There is no such file, it is a folder, a pipe or a device, or it is too large.
    """
    try:
        status = os.stat(path)
    except ValueError as error:  # a name that can't be one
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no plain file: a pipe or a device", str(path))
    if status.st_size > largest:
        raise OSError(errno.EFBIG, f"larger than {largest >> 20:,} MiB", str(path))


def check_no_zeros(path: Path) -> None:
    """Refuse a file of text that begins with what no text holds, before it is read: a disk image, a hole, UTF-16.

    Raises:
        OSError: It cannot be read, or holds a NUL byte among its first ones; see :func:`check_plain`.
    """
    check_plain(path, 1 << 62)
    with path.open("rb") as file:
        if b"\0" in file.read(_BEGINNING):
            raise OSError(errno.EINVAL, "it holds NUL bytes: damaged, or no UTF-8", str(path))


def read_text(path: Path, encoding: str = "utf-8", largest: int = LARGEST) -> str:
    """A plain file's text, its line ends as they are.

    Raises:
        OSError: It cannot be read; see :func:`check_plain`.
        UnicodeDecodeError: It is no such text.
    """
    return read_bytes(path, largest).decode(encoding)


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """A plain file's bytes.

    Raises:
        OSError: It cannot be read; see :func:`check_plain`.
    """
    check_plain(path, largest)
    content = path.read_bytes()
    for hashes in _RECORDS:
        hashes[os.path.abspath(path)] = hashlib.sha256(content).hexdigest()
    return content


_RECORDS: list[dict[str, str]] = []


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, str]]:
    """SHA-256 of every file that :func:`read_text` and :func:`read_bytes` read meanwhile, by its absolute path."""
    _RECORDS.append({})
    try:
        yield _RECORDS[-1]
    finally:
        _RECORDS.pop()


@contextlib.contextmanager
def writing(place: object) -> Iterator[None]:
    """Say in one line that a place cannot be written.

    Raises:
        BiasError: For any OSError within.
    """
    try:
        yield
    except OSError as error:
        raise BiasError(f"{place} cannot be written: {error.strerror}") from error


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


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside a new one, which it becomes at the end; nothing half-written is left.

    Raises:
        OSError: The place cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield temporary
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def under(folder: Path, pattern: str = "*") -> list[Path]:
    """The files below a folder in a fixed order, but for hidden folders: what is being written lies in them."""
    paths = (path for path in folder.rglob(pattern) if path.is_file())
    return sorted(p for p in paths if not any(part.startswith(".") for part in p.relative_to(folder).parts[:-1]))
