"""The manifest of pinned upstream files, and where each one is read from."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import check_plain, expanded

BASE_URL = "https://raw.githubusercontent.com"


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
    def pin(self) -> str:
        """What result files call it."""
        return f"{self.repository}@{self.commit}/{self.path}"

    def check(self, path: Path) -> str:
        """Why the file at ``path`` is not the pinned one; empty if it is.

        Raises:
            OSError: The file cannot be read.
        """
        check_plain(path)
        size = path.stat().st_size
        if size != self.size:
            return f"{'truncated' if size < self.size else 'too long'}: {size:,} bytes, expected {self.size:,}"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return "" if digest == self.sha256 else f"wrong SHA-256: {digest[:12]}…, expected {self.sha256[:12]}…"


@dataclass(frozen=True)
class Manifest:
    """All pinned files, by name and by the sets that tasks use."""

    files: dict[str, Source]
    sets: dict[str, list[str]]
    citations: dict[str, str]

    def resolve(self, names: list[str]) -> list[Source]:
        """The files that names of files or sets stand for; all files for no name.

        Raises:
            BiasError: An unknown name.
        """
        if not names:
            return list(self.files.values())
        sources: dict[str, Source] = {}
        for name in names:
            if name not in self.files and name not in self.sets:
                raise BiasError(
                    _of_task(name)
                    or f"no data named {name!r}.{did_you_mean(name, [*self.sets, *self.files])} "
                    f"Known sets: {', '.join(self.sets)}"
                )
            for member in self.sets.get(name, [name]):
                sources[member] = self.files[member]
        return list(sources.values())


def _of_task(name: str) -> str:
    """What to fetch for a task or group of this name; empty if there is none."""
    entries = catalog.entries()
    entry = entries.get(name)
    if entry is None or entry.path is None:
        return ""
    names = sorted({entries[task].data for task in entry.members or [name] if task in entries} - {""})
    if names:
        return f"the data of {name} are called {', '.join(names)}"
    return f"{name} needs no download: its data come with the package, or are yours"


@lru_cache(maxsize=1)
def manifest() -> Manifest:
    """All benchmarks' pinned files."""
    pins = Manifest({}, {}, {})
    for benchmark in registry.benchmarks():
        pinned = benchmark.folder / "sources.json"
        if pinned.is_file():
            raw = json.loads(pinned.read_text(encoding="utf-8"))
            pins.files.update((entry["name"], Source(**entry)) for entry in raw["files"])
            pins.sets.update(raw["sets"])
            pins.citations.update(raw["citations"])
    return pins


def hashes(name: str | None) -> dict[str, str]:
    """SHA-256 of a set's files, by the names that result files use; none without a name.

    Raises:
        BiasError: An unknown name.
    """
    return {source.pin: source.sha256 for source in manifest().resolve([name])} if name else {}


def mirror() -> Path | None:
    """The local mirror that ``LM_EVAL_BIAS_DATA`` names, if any.

    Raises:
        BiasError: The variable is set to something that is no folder.
    """
    value = os.environ.get("LM_EVAL_BIAS_DATA")
    if not value:
        return None
    path = expanded(value)
    if not os.path.isdir(path):
        raise BiasError(f"LM_EVAL_BIAS_DATA={value} is not a folder: set it to a mirror with <owner>/<repo>/<path>")
    return path


def mirrored_path(source: Source, folder: Path) -> Path:
    """Where a file lies in a mirror: ``<owner>/<repo>@<commit>/<path>``, else ``<owner>/<repo>/<path>``."""
    own = folder / f"{source.repository}@{source.commit}" / source.path
    return own if os.path.lexists(own) else folder / source.repository / source.path


def cache_dir() -> Path:
    """Folder of verified downloads: ``LM_EVAL_BIAS_CACHE``, else the user's cache directory."""
    value = os.environ.get("LM_EVAL_BIAS_CACHE")
    if value:
        return expanded(value)
    import platformdirs

    return Path(platformdirs.user_cache_dir("lm-eval-bias"))


def cached_path(source: Source) -> Path:
    """Where a file lies in the cache, by repository and commit."""
    return cache_dir() / source.repository / source.commit / source.path
