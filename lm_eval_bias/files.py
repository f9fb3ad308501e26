"""Files that users name; files that are written whole or not at all, and found where they are whole."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from lm_eval_bias.errors import BiasError, one_line

try:
    import fcntl
except ModuleNotFoundError:  # no POSIX: leavings of killed processes stay
    fcntl = None  # type: ignore[assignment]

LARGEST = 1 << 30
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
UNFINISHED = ".unfinished-"  # how the folder begins in which a run is being written
_TEMPORARY = ".lm-eval-bias-"  # how a file begins, ending in .tmp, that is being written
_BEGINNING = 1 << 16  # bytes
_ATTEMPTS = 5


def expanded(path: str | Path) -> Path:
    """A path with ``~`` replaced; as it is where no such user is known.

    Raises:
        BiasError: It is empty, as an unset variable is: that would be the current folder.

    >>> str(expanded("~nobody-of-that-name/x"))
    '~nobody-of-that-name/x'
    """
    if not str(path):
        raise BiasError("the path is empty: name a file or folder ('.' is the current one)")
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
        raise OSError(errno.EINVAL, "not a regular file but a pipe or a device", str(path))
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
            raise OSError(errno.EINVAL, "it holds NUL bytes: it is damaged or not UTF-8", str(path))


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
        raise BiasError(f"{place} cannot be written: {why(error)}") from error


@contextlib.contextmanager
def room(place: object, remedy: str) -> Iterator[None]:
    """Say in one line that a disk is full, whatever library noticed it.

    Raises:
        BiasError: For any error within that says so.
    """
    try:
        yield
    except Exception as error:
        if not is_full(error):
            raise
        raise BiasError(f"{place} cannot be written: {why(error)}: {remedy}") from error


def is_full(error: Exception) -> bool:
    """Whether an error says that a disk is full or read-only; libraries have errors of their own for that.

    >>> is_full(OSError(errno.ENOSPC, "...")), is_full(RuntimeError("I/O error: No space left on device (os error 28)"))
    (True, True)
    """
    text = str(error)
    return (
        getattr(error, "errno", None) in _FULL
        or any(os.strerror(code) in text for code in _FULL)
        or "PytorchStreamWriter failed" in text  # torch doesn't say why
    )


def why(error: Exception) -> str:
    """The system's reason for an error, or what the error says where the system gave none.

    >>> why(OSError(28, "No space left on device", "file")), why(OSError("I/O error"))
    ('No space left on device', 'I/O error')
    """
    return getattr(error, "strerror", None) or one_line(error)


def same(path: Path, other: Path) -> bool:
    """Whether two paths, whatever links are on them, lead to one file that is there."""
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False


def write_whole(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that nobody ever reads a half-written one.

    Raises:
        OSError: The folder cannot be written; what was there before stays.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files that belong together as :func:`write_whole` does, none before all are on the disk.

    Raises:
        OSError: A folder cannot be written; what was there before stays.
    """
    for folder in {path.parent for path in contents}:
        remove_abandoned(folder)
    temporaries: dict[Path, str] = {}
    with contextlib.ExitStack() as locked:  # until they have their places
        try:
            for path, content in contents.items():
                handle, temporaries[path] = _temporary(path.parent)
                out = locked.enter_context(os.fdopen(handle, "wb"))
                out.write(content)
                out.flush()
                os.fsync(handle)  # where blocks are allocated late, a full disk shows only now
                if fcntl is None:
                    out.close()
                os.chmod(temporaries[path], 0o644)
            for path, temporary in temporaries.items():
                os.replace(temporary, path)
        except BaseException:
            for temporary in temporaries.values():
                Path(temporary).unlink(missing_ok=True)
            raise


def _temporary(folder: Path) -> tuple[int, str]:
    """A new file whose lock is held: another process takes it for a killed one's until then."""
    for _ in range(_ATTEMPTS):
        handle, name = tempfile.mkstemp(dir=folder, prefix=_TEMPORARY, suffix=".tmp")
        with contextlib.suppress(OSError):  # a file system without locks, where nobody can take it for abandoned
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(name):
            return handle, name
        os.close(handle)
    raise FileNotFoundError(errno.ENOENT, "a file that was just written is gone", name)


def remove_abandoned(folder: Path) -> None:
    """Remove from a folder what processes left that were killed while they wrote a file: nobody holds its lock."""
    for path in folder.glob(f"{_TEMPORARY}*.tmp") if fcntl is not None else ():
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(handle)


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


def replace_folder(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder of files, in place of one that may be there, which stays until the new one is whole.

    Raises:
        OSError: The place cannot be written; what was there before stays.
    """
    old = None
    try:
        with whole_folder(folder) as temporary:
            write_together({temporary / name: content for name, content in contents.items()})
            temporary.chmod(0o755)
            if folder.exists():
                old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.")) / folder.name
                os.replace(folder, old)
    finally:
        if old is not None:
            if not folder.exists():
                os.replace(old, folder)
            shutil.rmtree(old.parent, ignore_errors=True)


def under(folder: Path, pattern: str = "*") -> list[Path]:
    """The files below a folder in a fixed order, but for hidden folders: what is being written lies in them.

    Folders that the harness names after the path of a local model (``.venv__lib__model``) are no hidden ones.
    """
    paths = (path for path in folder.rglob(pattern) if path.is_file())
    return sorted(p for p in paths if not any(_is_hidden(part) for part in p.relative_to(folder).parts[:-1]))


def _is_hidden(name: str) -> bool:
    """Whether a folder's name is one to pass over.

    >>> _is_hidden(".git"), _is_hidden(".unfinished-a__b"), _is_hidden(".venv__lib__model"), _is_hidden("model")
    (True, True, False, False)
    """
    return name.startswith(".") and ("__" not in name or name.startswith(UNFINISHED))
