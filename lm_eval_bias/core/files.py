"""Files that users name, read within bounds, and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lm_eval_bias.core.errors import BiasError, one_line

if TYPE_CHECKING:
    import yaml
    from jsonschema import Draft202012Validator


T = TypeVar("T")

LARGEST = 1 << 28  # bytes of what is read whole
LARGEST_YAML = 1 << 20  # some thousand templates; the parser takes seconds for as much
# of a YAML text with what its aliases repeat: no more than one could write without any, and never many more than a
# short one has characters
MOST_NODES = LARGEST_YAML // 4
MOST_REPEATED = 10_000
UNFINISHED = ".unfinished-"  # how the folder begins in which a run is being written
# a format by a file's ending
ENDINGS = {
    ".txt": "text",
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
    ".csv": "csv",
    ".tex": "latex",
}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_RECORDS: list[dict[str, str]] = []


def expanded(path: str | Path) -> Path:
    """Replace ``~`` in a path; leave it where no such user is known.

    Raises:
        BiasError: It is empty, as an unset variable is: that would be the current folder.

    >>> str(expanded("~nobody-of-that-name/x"))
    '~nobody-of-that-name/x'
    """
    if not str(path):
        raise BiasError(
            "the path is empty: name a file or folder ('.' is the current one)"
        )
    return Path(os.path.expanduser(path))


def tasks_path() -> Path:
    """Return the folder of the task YAMLs, for ``lm_eval --include_path``."""
    return Path(str(resources.files("lm_eval_bias.tasks")))


def packaged_text(package: str, *parts: str) -> str:
    """Read a file that comes with a package."""
    return resources.files(package).joinpath(*parts).read_text(encoding="utf-8")


@functools.cache
def packaged_yaml(package: str, *parts: str) -> Any:
    """Read a YAML of a package, cached; callers must not change the content."""
    return parse_yaml(packaged_text(package, *parts), parts[-1])


@functools.cache
def schema_validator(package: str, name: str) -> Draft202012Validator:
    """Build the validator of a package's JSON Schema, which accepts finite numbers only."""
    import jsonschema

    draft = jsonschema.Draft202012Validator
    finite = draft.TYPE_CHECKER.redefine(
        "number",
        lambda checker, value: (
            checker.is_type(value, "integer")
            or (isinstance(value, float) and math.isfinite(value))
        ),
    )
    kind = jsonschema.validators.extend(draft, type_checker=finite)
    return kind(json.loads(packaged_text(package, name)))


def list_files(folder: Path, pattern: str = "*") -> list[Path]:
    """List the files below a folder, sorted; skip hidden folders, where unfinished runs are written.

    Folders that the harness names after the path of a local model (``.venv__lib__model``) are no hidden ones.
    """
    hidden = re.compile(rf"{re.escape(UNFINISHED)}|\.(?!.*__)")
    paths = (path for path in folder.rglob(pattern) if path.is_file())
    return sorted(
        path
        for path in paths
        if not any(map(hidden.match, path.relative_to(folder).parts[:-1]))
    )


def check_plain(path: Path, largest: int = LARGEST) -> None:
    """Refuse what isn't a regular file, or is too large.

    Raises:
        OSError: There is no such file, it is a folder, a pipe or a device, or it is too large.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(
            errno.EINVAL, "not a file but a folder, a pipe or a device", str(path)
        )
    if status.st_size > largest:
        raise OSError(errno.EFBIG, f"larger than {largest >> 20:,} MiB", str(path))


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Read a plain file's bytes; raises what :func:`check_plain` does."""
    check_plain(path, largest)
    content = path.read_bytes()
    for hashes in _RECORDS:
        hashes[os.path.abspath(path)] = hashlib.sha256(content).hexdigest()
    return content


def read_text(path: Path, encoding: str = "utf-8", largest: int = LARGEST) -> str:
    """Read a plain file's text, its line ends as they are; raises OSError or UnicodeDecodeError."""
    return read_bytes(path, largest).decode(encoding)


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, str]]:
    """Collect the SHA-256 of each file that :func:`read_text` and :func:`read_bytes` read, by absolute path."""
    _RECORDS.append({})
    try:
        yield _RECORDS[-1]
    finally:
        _RECORDS.pop()


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"the key {key!r} is given twice")
        made[key] = value
    return made


def read_json(path: Path) -> Any:
    """Read a file of results.

    Raises:
        BiasError: It can't be read, is no JSON, or too large.
    """
    try:
        # ten times a run of every task with every breakdown
        text = read_text(path, "utf-8-sig", largest=1 << 26)
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        problem = (
            getattr(error, "msg", None)
            or getattr(error, "reason", None)
            or ("nested too deeply" if isinstance(error, RecursionError) else error)
        )
        raise BiasError(f"truncated or damaged: not JSON ({problem})") from error
    except OSError as error:
        raise BiasError(f"cannot be read: {error.strerror}") from error


def parse_json(text: str | bytes) -> Any:
    """Parse JSON that this package or the harness wrote, NaN and infinities included; a ValueError where it is none.

    >>> parse_json("[1, NaN]"), parse_json(b'{"a": null}')
    ([1, nan], {'a': None})
    """
    import orjson

    try:
        return orjson.loads(text)  # several times as fast as json
    except orjson.JSONDecodeError:
        return json.loads(text)  # takes NaN, too


def parse_yaml(
    text: str, name: str, loader: Callable[[str], yaml.SafeLoader] | None = None
) -> Any:
    """Parse a YAML text, whose name appears in errors; ``None`` if it is empty.

    Raises:
        BiasError: It is no YAML, its values are none, a key is given twice, or its aliases repeat too much.
    """
    import yaml

    try:
        reader = (loader or yaml.SafeLoader)(text)
        node = reader.get_single_node()
        if node is None:
            return None
        _count_nodes(node, {}, min(MOST_NODES, len(text) + MOST_REPEATED))
        return reader.construct_document(node)
    except RecursionError as error:
        raise BiasError(f"{name}: not valid YAML (nested too deeply)") from error
    except (
        yaml.YAMLError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
        TypeError,
    ) as error:
        # beside its own errors the parser lets through what dates, numbers and tags that are none raise
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or one_line(error)
        raise BiasError(f"{name}{line}: not valid YAML ({problem})") from error


def _count_nodes(node: yaml.Node, known: dict[int, int], most: int) -> int:
    """Count the nodes of a YAML text with its aliases expanded.

    Args:
        node: Its root.
        known: The counts of nodes that have one, by identity; 0 of those that aren't done.
        most: So many there may be.

    Raises:
        yaml.MarkedYAMLError: A key is given twice, or aliases make more nodes than a person would write, or no end.
    """
    import yaml

    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) in known:
        return known[id(node)] or most
    known[id(node)] = 0
    children = list(node.value)
    if isinstance(node, yaml.MappingNode):
        keys = [key for key, _ in children]
        children = [*keys, *(value for _, value in children)]
        seen = set()
        for key in keys:
            if str(key.value) in seen:
                problem = f"the key {key.value!r} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(str(key.value))
    count = 1 + sum(_count_nodes(child, known, most) for child in children)
    if count >= most:
        problem = "its aliases repeat too much"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    known[id(node)] = count
    return count


@contextlib.contextmanager
def writing(place: object) -> Iterator[None]:
    """Turn an OSError within into a BiasError that names the path."""
    try:
        yield
    except OSError as error:
        raise BiasError(f"{place} cannot be written: {why(error)}") from error


def is_full(error: Exception) -> bool:
    """Return whether an error says that a disk is full or read-only; libraries have errors of their own for that.

    >>> is_full(OSError(errno.ENOSPC, "...")), is_full(RuntimeError("I/O error: No space left on device (os error 28)"))
    (True, True)
    """
    has_no_room = (
        *map(os.strerror, _FULL),
        "PytorchStreamWriter failed",
    )  # torch doesn't say why
    return getattr(error, "errno", None) in _FULL or any(
        reason in str(error) for reason in has_no_room
    )


def why(error: Exception) -> str:
    """Return the system's reason for an error, or what the error says where there is none.

    >>> why(OSError(28, "No space left on device", "file")), why(OSError("I/O error"))
    ('No space left on device', 'I/O error')
    """
    return getattr(error, "strerror", None) or one_line(error)


def usual_mode(mode: int = 0o666) -> int:
    """Apply the user's umask to a mode."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mode & ~mask


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as :func:`write_together` does several; raises OSError where that fails."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files atomically, through temporary files beside them: all of them or none.

    Folders that are missing are made, and removed again where something goes wrong.

    Raises:
        OSError: A folder cannot be written; what was there before stays.
    """
    temporaries = {}
    missing = {
        parent: None
        for path in contents
        for parent in reversed(path.parents)
        if not parent.exists()
    }
    try:
        for folder in missing:
            folder.mkdir(exist_ok=True)
        for path, content in contents.items():
            handle, temporaries[path] = tempfile.mkstemp(
                dir=path.parent, prefix=".lm-eval-bias-", suffix=".tmp"
            )
            with os.fdopen(handle, "wb") as out:
                out.write(content)
                out.flush()
                os.fsync(
                    handle
                )  # where blocks are allocated late, a full disk shows only now
            # a file that is replaced keeps its mode
            mode = path.stat().st_mode if path.exists() else usual_mode()
            os.chmod(temporaries[path], stat.S_IMODE(mode))
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
    except BaseException:
        for temporary in temporaries.values():
            Path(temporary).unlink(missing_ok=True)
        for folder in reversed(missing):
            with contextlib.suppress(
                OSError
            ):  # never made, or another process has written there
                folder.rmdir()
        raise


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes the new one at the end; nothing half-written is left.

    Raises:
        OSError: The place cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield temporary
        os.chmod(temporary, usual_mode(0o777))
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def split_name(argument: str) -> tuple[str, str]:
    """Split ``NAME=PATH``; the name is empty if the whole is a path.

    >>> split_name("base=out/1"), split_name("out/lr=3")
    (('base', 'out/1'), ('', 'out/lr=3'))
    """
    name, _, path = argument.partition("=")
    if not name or not path or "/" in name or expanded(argument).exists():
        return "", argument
    return name, path


def format_of(path: str, formats: Sequence[str], flag: str = "-o") -> str:
    """Return the format that a file's ending stands for.

    Raises:
        BiasError: It stands for none of these.

    >>> format_of("board.TEX", FORMATS)
    'latex'
    """
    ending = Path(path).suffix.lower()
    style = ENDINGS.get(ending)
    if style not in formats:
        known = ", ".join(end for end, name in ENDINGS.items() if name in formats)
        raise BiasError(
            f"{flag} {path}: no format goes with {ending or 'no ending'}: end it with {known}, or name a format"
        )
    return str(style)


def check_place(
    output: str | None, inputs: Sequence[str] = (), flag: str = "-o"
) -> None:
    """Refuse a file that can't be written, or that would replace what is read, before the work for it is done.

    Args:
        output: The file; ``None`` is standard output.
        inputs: Files and folders that the command reads, perhaps as ``NAME=PATH``.
        flag: What names the file.

    Raises:
        BiasError: Its folder can't be made or written; it is a folder, is named like a run's file or is an input,
            also by a link.
    """
    if output is None:
        return
    path = expanded(output)
    with writing(output):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        folder = next(parent for parent in path.parents if parent.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass
    if re.fullmatch(r"results_.*\.json|samples_.*\.jsonl", path.name):
        raise BiasError(
            f"{flag} {output}: a run's own files have this name: name another file"
        )
    if os.path.realpath(path) in (
        os.path.realpath(expanded(split_name(source)[1])) for source in inputs
    ):
        raise BiasError(
            f"{flag} {output}: this file is also an input and would be overwritten: name another file"
        )


def writable(data: object) -> Any:
    r"""Return data that UTF-8 can encode; lone surrogates, which servers may send, are escaped.

    >>> writable({"a": ["\ud800"]}), writable("ü")
    ({'a': ['\\ud800']}, 'ü')
    """
    import orjson

    try:
        orjson.dumps(data, default=str, option=orjson.OPT_NON_STR_KEYS)
        return data
    except TypeError:
        return _written_out(data)


def _written_out(data: object) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, Mapping):
        return {_written_out(key): _written_out(data[key]) for key in data}
    if isinstance(data, list | tuple):
        return list(map(_written_out, data))
    return data


def write(text: str, output: str) -> None:
    """Write text whole to a file, or raise a BiasError."""
    with writing(output):
        write_whole(expanded(output), text.encode("utf-8", "backslashreplace"))


def write_new(text: str, path: Path, flag: str) -> None:
    """Write text whole to a file that isn't there yet, as ``flag`` asks, or raise a BiasError."""
    if path.exists():
        raise BiasError(f"{flag}: {path} exists already")
    write(text, str(path))


def progress(steps: Sequence[T], name: str) -> Iterable[T]:
    """Show a progress bar for steps that take more than a second, on a terminal's standard error."""
    from tqdm import tqdm

    return tqdm(steps, desc=name, delay=1.0, leave=False, disable=None)
