"""Pinned upstream files: their manifest, and where each is read from: a mirror, the cache, or a download."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from lm_eval_bias.core import redaction, registry
from lm_eval_bias.core.benchmark import folder_of
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import expanded, progress, usual_mode, why

BASE_URL = "https://raw.githubusercontent.com"
_LOCAL = "set LM_EVAL_BIAS_DATA to a local mirror"


@dataclass(frozen=True)
class Source:
    """One pinned upstream file.

    Attributes:
        name: Name that ``fetch`` takes.
        repository: ``owner/name`` of the upstream repository.
        commit: Full commit hash.
        path: Path inside the repository.
        sha256: Hash of the file's bytes, hexadecimal.
        size: Size in bytes.
        licence: As its repository states it.
        citation: Key into the manifest's citations.
    """

    name: str
    repository: str
    commit: str
    path: str
    sha256: str
    size: int
    licence: str
    citation: str

    @property
    def url(self) -> str:
        """Where the file is downloaded from (``LM_EVAL_BIAS_BASE_URL`` replaces the host, for a company mirror)."""
        base = os.environ.get("LM_EVAL_BIAS_BASE_URL", BASE_URL).rstrip("/")
        return f"{base}/{self.repository}/{self.commit}/{self.path}"

    @property
    def shown(self) -> str:
        """The download address without keys and passwords."""
        return str(redaction.arguments(self.url))

    @property
    def pin(self) -> str:
        """The file's name in result files."""
        return f"{self.repository}@{self.commit}/{self.path}"

    def check(self, path: Path) -> str:
        """Explain why the file at ``path`` isn't the pinned one; empty if it is.

        Raises:
            OSError: The file cannot be read.
        """
        size = path.stat().st_size
        actual = f"{size:,} bytes"
        if size == self.size:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest == self.sha256:
                return ""
            actual = f"{actual} with SHA-256 {digest[:12]}…"
        return f"{actual}, expected {self.size:,} bytes with {self.sha256[:12]}…"


@dataclass(frozen=True)
class Manifest:
    """All pinned files, by name and by the sets that tasks use."""

    files: dict[str, Source]
    sets: dict[str, list[str]]
    citations: dict[str, str]

    def resolve(self, names: list[str]) -> list[Source]:
        """Resolve names of files or sets to files; all files without names.

        Raises:
            BiasError: An unknown name.
        """
        if not names:
            return list(self.files.values())
        sources = {}
        for name in names:
            if name not in self.files and name not in self.sets:
                hint = did_you_mean(name, [*self.sets, *self.files])
                raise BiasError(
                    f"no data named {name!r}.{hint} Known sets: {', '.join(self.sets)}"
                )
            for member in self.sets.get(name, [name]):
                sources[member] = self.files[member]
        return list(sources.values())


@lru_cache(maxsize=1)
def manifest() -> Manifest:
    """Collect all benchmarks' pinned files."""
    pins = Manifest({}, {}, {})
    for benchmark in registry.benchmarks():
        pinned = folder_of(benchmark) / "sources.json"
        if pinned.is_file():
            raw = json.loads(pinned.read_text(encoding="utf-8"))
            pins.files.update(
                (entry["name"], Source(**entry)) for entry in raw["files"]
            )
            pins.sets.update(raw["sets"])
            pins.citations.update(raw["citations"])
    return pins


def hashes(name: str | None) -> dict[str, str]:
    """Return the SHA-256 of a set's files, by the names that result files use; none without a name.

    Raises:
        BiasError: An unknown name.
    """
    if not name:
        return {}
    return {source.pin: source.sha256 for source in manifest().resolve([name])}


def mirror() -> Path | None:
    """Return the local mirror that ``LM_EVAL_BIAS_DATA`` names, if any.

    Raises:
        BiasError: The variable is set to something that is no folder.
    """
    value = os.environ.get("LM_EVAL_BIAS_DATA")
    if not value:
        return None
    path = expanded(value)
    if not os.path.isdir(path):
        raise BiasError(
            f"LM_EVAL_BIAS_DATA={value} is not a folder: set it to a mirror with <owner>/<repo>/<path>"
        )
    return path


def mirrored_path(source: Source, folder: Path) -> Path:
    """Find where a file lies in a mirror: ``<owner>/<repo>@<commit>/<path>``, else ``<owner>/<repo>/<path>``."""
    pinned = folder / f"{source.repository}@{source.commit}" / source.path
    if os.path.lexists(pinned):
        return pinned
    return folder / source.repository / source.path


def cache_dir() -> Path:
    """Return the folder of verified downloads: ``LM_EVAL_BIAS_CACHE``, else the user's cache directory."""
    import pooch

    value = os.environ.get("LM_EVAL_BIAS_CACHE")
    return expanded(value) if value else Path(pooch.os_cache("lm-eval-bias"))


def cached_path(source: Source) -> Path:
    """Return where a file lies in the cache, by repository and commit."""
    return cache_dir() / source.repository / source.commit / source.path


def is_cached(source: Source) -> bool:
    """Return whether the cache holds the pinned file."""
    try:
        return not source.check(cached_path(source))
    except OSError:
        return False


def locate(name: str) -> Path:
    """Return the verified file of a manifest entry: from the local mirror, the cache, or a download.

    Args:
        name: A file's name in the manifest.

    Returns:
        A path whose content has the pinned SHA-256.

    Raises:
        BiasError: It cannot be had, in one line that names the file and the remedy.
    """
    source = manifest().files[name]
    local = mirror()
    if local is not None:
        return _from_mirror(source, local)
    path = cached_path(source)
    if is_cached(source):
        return path
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        raise BiasError(
            f"{name} is not in the cache ({cache_dir()}) and HF_HUB_OFFLINE is set: run 'lm-eval-bias fetch {name}' "
            f"while online, or {_LOCAL}"
        )
    return _download(source)


def _from_mirror(source: Source, local: Path) -> Path:
    path = mirrored_path(source, local)
    try:
        mismatch = source.check(path)
    except OSError as error:
        raise BiasError(
            f"{source.name}: {path} can't be read ({error.strerror}): complete the mirror (revision {source.commit}), "
            "or unset LM_EVAL_BIAS_DATA to download it"
        ) from None
    if mismatch:
        raise BiasError(
            f"{source.name}: {path} is not the pinned file ({mismatch}): put revision {source.commit} of {source.path} "
            f"there, or beside other revisions in {local / source.repository}@{source.commit}"
        )
    return path


def _download(source: Source) -> Path:
    """Download a file into the cache, with one retry; only the pinned file is stored."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    path = cached_path(source)
    cache = pooch.create(
        path.parent,
        base_url="",
        registry={path.name: source.sha256},
        urls={path.name: source.url},
        retry_if_failed=1,
    )
    try:
        write = partial(_write, source.size)
        return Path(cache.fetch(path.name, downloader=write))
    except requests.RequestException as error:
        reason = type(error).__name__
        if error.response is not None:
            reason = f"HTTP {error.response.status_code}"
        raise BiasError(
            f"{source.name}: {source.shown} can't be downloaded ({reason}): try again later, check the network and, if "
            f"it is set, LM_EVAL_BIAS_BASE_URL, or {_LOCAL}"
        ) from None
    except OSError as error:
        raise BiasError(
            f"{source.name}: the cache {cache_dir()}: cannot be written ({why(error)}): set LM_EVAL_BIAS_CACHE to "
            f"another folder, or {_LOCAL}"
        ) from None
    except ValueError:
        raise BiasError(
            f"{source.name}: {source.shown} is not the pinned file (wrong SHA-256): not stored; try again, or {_LOCAL}"
        ) from None


def _write(size: int, url: str, path: str, cache: object) -> None:
    """Download to a temporary file, at most as many bytes as the pinned file has.

    Raises:
        requests.RequestException: The server fails.
        ValueError: It sends more.
    """
    import requests

    with (
        requests.get(url, stream=True, timeout=30) as response,
        open(path, "wb") as out,
    ):
        response.raise_for_status()
        for piece in response.iter_content(1 << 16):
            if out.tell() + len(piece) > size:
                raise ValueError(f"larger than {size:,} bytes")
            out.write(piece)
    os.chmod(path, usual_mode())  # others may read it where a cache is shared


def fetch(names: Iterable[str]) -> list[tuple[Source, Path]]:
    """Fetch and verify the named files or sets (all without names).

    Raises:
        BiasError: An unknown name, or a file that cannot be had; what came before it stays in the cache.
    """
    wanted = manifest().resolve(list(names))
    return [(source, locate(source.name)) for source in progress(wanted, "Fetching")]
