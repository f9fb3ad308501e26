"""Multilingual StereoSet's released frames as items."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.data.pickled_frames import read_frame
from lm_eval_bias.data.sources import locate
from lm_eval_bias.tasks.stereoset.stereoset_items import TESTS, Item


def read(language: str, test: str) -> list[Item]:
    """Read all items of one language and test, in the released order; a :class:`BiasError` if they cannot be had."""
    name = f"stereoset_{language}_{test}"
    term = "target" if language == "en" else "target_original"
    frame = read_frame(locate(name).read_bytes(), name)
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
                    "word": row[f"c{i}_word"] if test == "intra" else None,
                }
                for i in (1, 2, 3)
            ],
        }
        for cells in zip(*frame.values(), strict=True)
        for row in [dict(zip(frame, cells, strict=True))]
    ]


def read_all(language: str, tests: Sequence[str] = TESTS) -> list[Item]:
    """Read the items of one language and several tests; raises what :func:`read` raises."""
    return [item for test in tests for item in read(language, test)]
