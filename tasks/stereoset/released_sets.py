"""Multilingual StereoSet's released frames as items: three candidates each, with their roles and target term."""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.data.download import locate
from lm_eval_bias.data.pickled_frames import read_frame
from lm_eval_bias.data.sources import cache_dir, manifest
from lm_eval_bias.errors import BiasError, did_you_mean
from lm_eval_bias.files import write_whole
from lm_eval_bias.scoring.questions import BLANK

logger = logging.getLogger("lm_eval.bias")

LANGUAGES = {"en": "English", "de": "German", "es": "Spanish", "fr": "French", "tr": "Turkish"}
TESTS = ("inter", "intra")
LABELS = ("stereotype", "anti-stereotype", "unrelated")
_LAYOUT = "2"  # of the Parquet files; a new one is a new file name

Item = dict[str, Any]


def check_items(items: Sequence[Item], where: str) -> None:
    """Refuse items that cannot be scored: doubled ids, other than the three labels, a missing blank or text.

    Args:
        items: As :func:`read` returns them.
        where: What to call them in an error.

    Raises:
        BiasError: The first thing that is wrong, with the item's id.
    """
    seen: set[str] = set()
    for item in items:
        at = f"{where}, item {item['id']}"
        labels = [candidate["label"] for candidate in item["candidates"]]
        for label in labels:
            if label not in LABELS:
                raise BiasError(f"{at}: unknown label {label!r}: must be one of {', '.join(LABELS)}")
        if sorted(labels) != sorted(LABELS):
            raise BiasError(f"{at}: labels {', '.join(labels)}: each of {', '.join(LABELS)} is needed once")
        for name in (item["id"], *(candidate["id"] for candidate in item["candidates"])):
            if name in seen:
                raise BiasError(f"{at}: the id {name} stands there twice")
            seen.add(name)
        if item["bias_type"] not in BIAS_TYPES:
            raise BiasError(f"{at}: unknown bias type {item['bias_type']!r}: must be one of {', '.join(BIAS_TYPES)}")
        if item["test"] == "intra" and BLANK not in item["context"]:
            raise BiasError(f"{at}: the context holds no {BLANK}")
        texts = [item["context"], item["term"], *(candidate["sentence"] for candidate in item["candidates"])]
        texts += [candidate["word"] for candidate in item["candidates"] if item["test"] == "intra"]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise BiasError(f"{at}: an empty context, target, word or sentence")


def from_frame(columns: Mapping[str, list[Any]], term: str, test: str, where: str) -> list[Item]:
    """A table's rows as items.

    Args:
        columns: Of the wide form of the released frames: ``id``, ``bias_type``, ``target``, ``context``, ``c1_id``, ...
        term: The column with the group that an item is about.
        test: ``intra`` or ``inter``.
        where: What to call the table in an error.

    Raises:
        BiasError: A column is missing.
    """
    word = ["word"] if test == "intra" else []
    needed = ["id", "bias_type", "target", "context", term]
    needed += [f"c{i}_{part}" for i in (1, 2, 3) for part in ("id", "sentence", "gold_label", *word)]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise BiasError(f"{where}: no column {missing[0]!r}")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [
        {
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
                    "word": row[f"c{i}_word"] if word else None,
                }
                for i in (1, 2, 3)
            ],
        }
        for row in rows
    ]


def _converted(path: Path, digest: str) -> list[Item] | None:
    """The items of an earlier conversion; ``None`` where there is none that can be read."""
    if not path.is_file():
        return None
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        told = table.schema.metadata or {}
        rows: list[Item] = table.to_pylist()
        # Parquet itself doesn't notice a changed letter
        if (told.get(b"sha256"), told.get(b"items")) == (digest.encode(), _fingerprint(rows)):
            return rows
    except (OSError, ValueError, TypeError, pyarrow.ArrowException) as error:
        logger.info("%s is converted again (%s)", path, error)
    return None


def _fingerprint(rows: Sequence[Item]) -> bytes:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest().encode()


def _convert(found: list[Item], path: Path, digest: str) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(found).replace_schema_metadata({"sha256": digest, "items": _fingerprint(found)})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, buffer.getvalue())
    except OSError as error:
        logger.info("%s is not kept for the next time (%s)", path, error)


def read(language: str, test: str) -> list[Item]:
    """All items of one language and test, in the released order.

    The pinned pickle is verified and read by :mod:`.pickled_frames` once, and kept as Parquet in the cache.

    Args:
        language: One of :data:`LANGUAGES`.
        test: ``intra`` or ``inter``.

    Returns:
        Items with ``id``, ``test``, ``bias_type``, ``target``, ``term`` (the English target term, the class and cluster
        of an item in every language), ``context`` and three ``candidates`` with ``id``, ``label``, ``sentence`` and,
        within sentences, ``word``.

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
    kept = cache_dir() / "converted" / f"{name}-{source.sha256[:16]}-{_LAYOUT}.parquet"
    found = _converted(kept, source.sha256)
    if found is None:
        term = "target" if language == "en" else "target_original"
        found = from_frame(read_frame(path.read_bytes(), name), term, test, name)
        check_items(found, name)
        _convert(found, kept, source.sha256)
    return found


def spread(found: Sequence[Item]) -> list[Item]:
    """The items in turn from every target term and test, so that any beginning (``--limit``) is spread over the data.

    >>> items = [{"term": t, "test": s, "id": t + s + str(i)} for t in "ab" for s in ("inter", "intra") for i in (1, 2)]
    >>> [item["id"] for item in spread(items)]
    ['ainter1', 'aintra1', 'bintra1', 'binter1', 'aintra2', 'ainter2', 'binter2', 'bintra2']
    """
    queues: dict[tuple[str, str], list[Item]] = {}
    for item in found:
        queues.setdefault((item["term"], item["test"]), []).append(item)
    terms = list(dict.fromkeys(term for term, _ in queues))
    longest = max((len(queue) for queue in queues.values()), default=0)
    ordered = []
    for number, (turn, term) in enumerate((turn, term) for turn in range(longest) for term in terms):
        # which test comes first follows the Thue-Morse sequence: ranks that take every n-th item get as much of both
        tests = TESTS if number.bit_count() % 2 == 0 else TESTS[::-1]
        ordered += [queues[term, test][turn] for test in tests if turn < len(queues.get((term, test), ()))]
    return ordered
