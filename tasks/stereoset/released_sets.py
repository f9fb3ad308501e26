"""Multilingual StereoSet's released frames as items."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import write_whole
from lm_eval_bias.data.pickled_frames import read_frame
from lm_eval_bias.data.sources import cache_dir, locate, manifest
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TESTS, Item, check_items

logger = logging.getLogger("lm_eval.bias")

_LAYOUT = "2"  # of the Parquet files; a new one is a new file name


def check_columns(columns: Collection[str], term: str, test: str, where: str) -> None:
    """Refuse a table that lacks a column of the released frames' wide form: ``c1_id``, ``c1_sentence``, ...

    Args:
        columns: Their names.
        term: The column with the group that an item is about.
        test: ``intra`` or ``inter``.
        where: What to call the table in an error.

    Raises:
        BiasError: Names the first that is missing.
    """
    parts = ["id", "sentence", "gold_label", *(["word"] if test == "intra" else [])]
    needed = ["id", "bias_type", "target", "context", term, *(f"c{i}_{part}" for i in (1, 2, 3) for part in parts)]
    if missing := next((name for name in needed if name not in columns), None):
        raise BiasError(f"{where}: no column {missing!r}")


def item_of(row: Mapping[str, Any], term: str, test: str) -> Item:
    """A row of a table whose columns :func:`check_columns` has checked."""
    return {
        "id": row["id"],
        "test": test,
        "bias_type": row["bias_type"],
        "target": row["target"],
        "term": row[term],
        "context": row["context"],
        "candidates": [
            {
                "id": row[f"c{i}_id"],
                "label": row[f"c{i}_gold_label"],
                "sentence": row[f"c{i}_sentence"],
                "word": row[f"c{i}_word"] if test == "intra" else None,
            }
            for i in (1, 2, 3)
        ],
    }


def _converted(path: Path, digest: str) -> list[Item] | None:
    """The items of an earlier conversion; ``None`` where there is none that can be read."""
    if not path.is_file():
        return None
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        metadata = table.schema.metadata or {}
        items: list[Item] = table.to_pylist()
        # Parquet itself doesn't notice a changed letter
        if (metadata.get(b"sha256"), metadata.get(b"items")) == (digest.encode(), _fingerprint(items)):
            return items
    except (OSError, ValueError, TypeError, pyarrow.ArrowException) as error:
        logger.info("converting %s again (%s)", path, error)
    return None


def _fingerprint(items: Sequence[Item]) -> bytes:
    return hashlib.sha256(json.dumps(items).encode()).hexdigest().encode()


def _convert(items: list[Item], path: Path, digest: str) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(items).replace_schema_metadata({"sha256": digest, "items": _fingerprint(items)})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    try:
        write_whole(path, buffer.getvalue())
    except OSError as error:
        logger.debug("%s can't be kept for the next run, which will convert it again (%s)", path, error)


def read(language: str, test: str) -> list[Item]:
    """All items of one language and test, in the released order.

    The pinned pickle is verified and read by :mod:`.pickled_frames` once, and kept as Parquet in the cache.

    Raises:
        BiasError: An unknown language or test, data that cannot be had, or data that is not what it should be.
    """
    if language not in LANGUAGES:
        hint = did_you_mean(language, LANGUAGES)
        raise BiasError(f"StereoSet has no language {language!r}.{hint} Known: {', '.join(LANGUAGES)}")
    if test not in TESTS:
        raise BiasError(f"StereoSet has no test {test!r}: known are {', '.join(TESTS)}")
    name = f"stereoset_{language}_{test}"
    source = manifest().files[name]
    path = locate(name)
    parquet = cache_dir() / "converted" / f"{name}-{source.sha256[:16]}-{_LAYOUT}.parquet"
    items = _converted(parquet, source.sha256)
    if items is None:
        term = "target" if language == "en" else "target_original"
        frame = read_frame(path.read_bytes(), name)
        check_columns(frame, term, test, name)
        items = [item_of(dict(zip(frame, row, strict=True)), term, test) for row in zip(*frame.values(), strict=True)]
        check_items(items, name)
        _convert(items, parquet, source.sha256)
    return items


def read_all(language: str, tests: Sequence[str] = TESTS) -> list[Item]:
    """The items of one language and several tests; raises what :func:`read` raises."""
    return [item for test in tests for item in read(language, test)]
