"""Multilingual StereoSet's released frames as items."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.data.download import locate
from lm_eval_bias.data.pickled_frames import read_frame
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TESTS, Item, check_items


def read(language: str, test: str) -> list[Item]:
    """Read all items of one language and test, in the released order.

    Raises:
        BiasError: An unknown language or test, data that cannot be had, or data that is not what it should be.
    """
    if language not in LANGUAGES:
        hint = did_you_mean(language, LANGUAGES)
        raise BiasError(f"StereoSet has no language {language!r}.{hint} Known: {', '.join(LANGUAGES)}")
    if test not in TESTS:
        raise BiasError(f"StereoSet has no test {test!r}: known are {', '.join(TESTS)}")
    name = f"stereoset_{language}_{test}"
    term = "target" if language == "en" else "target_original"
    frame = read_frame(locate(name).read_bytes(), name)
    parts = ["id", "sentence", "gold_label", *(["word"] if test == "intra" else [])]
    needed = ["id", "bias_type", "target", "context", term, *(f"c{i}_{part}" for i in (1, 2, 3) for part in parts)]
    if missing := next((column for column in needed if column not in frame), None):
        raise BiasError(f"{name}: no column {missing!r}")
    items: list[Item] = [
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
                    "word": row[f"c{i}_word"] if test == "intra" else None,
                }
                for i in (1, 2, 3)
            ],
        }
        for cells in zip(*frame.values(), strict=True)
        for row in [dict(zip(frame, cells, strict=True))]
    ]
    check_items(items, name)
    return items


def read_all(language: str, tests: Sequence[str] = TESTS) -> list[Item]:
    """Read the items of one language and several tests; raises what :func:`read` raises."""
    return [item for test in tests for item in read(language, test)]
