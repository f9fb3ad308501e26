"""Verified, atomic download of pinned files (pooch does the transfer)."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.data.sources import Source, cache_dir, cached_path, manifest, mirror, mirrored_path

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOCAL = "set LM_EVAL_BIAS_DATA to a local mirror"
_TRUE = {"1", "true", "yes", "on"}


class _Meter:
    """Progress bar that stops a download which outgrows the pinned size."""

    def __init__(self, source: Source, output_file: str) -> None:
        from tqdm import tqdm

        self._source = source
        self._path = output_file
        self._bar: Any = tqdm(
            total=source.size, unit="B", unit_scale=True, desc=source.name, disable=not sys.stderr.isatty()
        )
        self.total = 0  # pooch sets it; the pinned size is the one that counts

    def update(self, _: int) -> None:
        """Look at the file itself: pooch reports whole chunks, also for parts of one."""
        size = os.path.getsize(self._path)
        if size > self._source.size:
            raise BiasError(f"{self._source.url} sends more than the expected {self._source.size:,} bytes: not stored")
        self._bar.update(size - self._bar.n)

    def reset(self) -> None:
        """Pooch resets and refills the bar at the end; ours is exact already."""

    def close(self) -> None:
        """Finish the bar."""
        self._bar.close()


def offline() -> bool:
    """Whether ``HF_HUB_OFFLINE`` forbids the network."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE


def locate(name: str) -> Path:
    """The verified file of a manifest entry: from the local mirror, the cache, or downloaded now.

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
    if _is_good(source, path):
        return path
    if offline():
        raise BiasError(
            f"{name} is not in the cache ({cache_dir()}) and HF_HUB_OFFLINE is set: run 'lm-eval-bias fetch {name}' "
            f"while online, or {_LOCAL}"
        )
    return _download(source, path)


def _from_mirror(source: Source, local: Path) -> Path:
    path = mirrored_path(source, local)
    try:
        mismatch = source.check(path)
    except OSError as error:
        raise BiasError(
            f"{source.name}: {path} can't be read ({error.strerror}): complete the mirror (revision {source.commit}), "
            "or unset LM_EVAL_BIAS_DATA to download it"
        ) from error
    if mismatch:
        raise BiasError(
            f"{source.name}: {path} is not the pinned file ({mismatch}): put revision {source.commit} of {source.path} "
            f"there, or beside other revisions in {local / source.repository}@{source.commit}"
        )
    return path


def _is_good(source: Source, path: Path) -> bool:
    try:
        return path.is_file() and not source.check(path)
    except OSError:
        return False


def _download(source: Source, path: Path) -> Path:
    import filelock

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{path}.lock"):
            if not _is_good(source, path):
                _transfer(source, path)
    except OSError as error:
        raise BiasError(f"{source.name}: {_explain(error, path)}") from error
    return path


def _explain(error: OSError, path: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no disk space left in {path.parent}: free some space, or set LM_EVAL_BIAS_CACHE to another disk"
    return (
        f"the cache {cache_dir()} cannot be written ({error.strerror or error}): set LM_EVAL_BIAS_CACHE to a writable "
        f"folder, or {_LOCAL}"
    )


def _transfer(source: Source, path: Path) -> None:
    """Download into a folder beside ``path``, verify, rename; one retry for a broken connection.

    The folder is this file's own, so that the next attempt clears away what one that was killed has left.
    """
    import pooch
    import requests
    import urllib3

    def download(url: str, output_file: str, pooch_: Any) -> None:
        meter = _Meter(source, output_file)
        try:
            get = pooch.HTTPDownloader(
                progressbar=meter, chunk_size=1 << 16, timeout=30, headers={"Accept-Encoding": "identity"}
            )
            get(url, output_file, pooch_)
        finally:
            meter.close()
        if mismatch := source.check(Path(output_file)):
            raise BiasError(f"{source.url} is not the pinned file ({mismatch}): not stored; try again, or {_LOCAL}")

    folder = path.with_name(f".{path.name}.part")
    shutil.rmtree(folder, ignore_errors=True)
    pooch.get_logger().setLevel("WARNING")
    keeper = pooch.create(
        path=str(folder),
        base_url="",
        registry={path.name: f"sha256:{source.sha256}"},
        urls={path.name: source.url},
        retry_if_failed=1,
    )
    try:
        os.replace(keeper.fetch(path.name, downloader=download), path)
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else "?"
        raise BiasError(f"{source.name}: {source.url} answered HTTP {status}: try again later, or {_LOCAL}") from error
    except requests.Timeout as error:
        raise BiasError(f"{source.name}: {source.url} did not answer in time: try again, or {_LOCAL}") from error
    except requests.ConnectionError as error:
        raise BiasError(f"{source.name}: no connection to {source.url}: check the network, or {_LOCAL}") from error
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema,
            urllib3.exceptions.HTTPError) as error:  # fmt: skip
        raise BiasError(
            f"{source.name}: {source.url} is not an address: set LM_EVAL_BIAS_BASE_URL to an http(s) address, or "
            "unset it"
        ) from error
    except requests.RequestException as error:
        raise BiasError(
            f"{source.name}: the download of {source.url} broke off ({type(error).__name__}): try again, or {_LOCAL}"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fetch(names: Iterable[str]) -> list[tuple[Source, Path]]:
    """Make the named files or sets (all for none) available and verified.

    Raises:
        BiasError: An unknown name, or a file that cannot be had; what came before it stays in the cache.
    """
    return [(source, locate(source.name)) for source in manifest().resolve(list(names))]
