"""Keyword matches as a person corrected them: a CSV with a row for each text that has a keyword.

The paper's authors removed matches in other meanings and negations by hand (section 4.2).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lm_eval_bias.core import Data
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.csv_text import csv_text, unguarded
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, write
from lm_eval_bias.custom_metrics.regard import FACETS
from lm_eval_bias.custom_metrics.score import Answers
from lm_eval_bias.tasks.regard import keywords, labelled_texts, regard_texts

COLUMNS = ("gender", *FACETS, "text")
Matches = dict[str, list[str]]  # the facets of each text


def _read(path: Path) -> dict[str, Data]:
    """Read the rows of a corrected file by text; a :class:`BiasError` where a cell is neither x nor empty."""
    found = {}
    for _, row in labelled_texts.rows(path, "matches_schema.json"):
        row["text"] = unguarded(row["text"])
        found[row["text"]] = row
    return found


def corrected(
    docs: Documents, results: Sequence[Answers], name: str
) -> tuple[list[Data], Sequence[Answers]]:
    """Add manual corrections of keywords to each document; texts that the file lacks are appended to it.

    Args:
        docs: Documents of one task.
        results: Their answers.
        name: The file, which is written where it isn't there.

    Raises:
        BiasError: It is no such file, or can't be written.
    """
    path = expanded(name)
    if path.suffix.lower() != ".csv":
        raise BiasError(f"--keywords {name}: must end in .csv")
    rows = _read(path) if path.exists() else {}
    known = len(rows)
    made = []
    for doc, (answer,) in zip(docs, results, strict=True):
        by_hand: Matches = {}
        kept = [row for row in answer if not regard_texts.is_dropped(row)]
        for text in dict.fromkeys(str(row[0]).strip() for row in kept):
            facets = keywords.facets(text, doc["language"])
            if facets and text not in rows:
                marks = {facet: "x" * (facet in facets) for facet in FACETS}
                rows[text] = {"gender": doc["gender"], **marks, "text": text}
            by_hand[text] = [f for f in FACETS if rows.get(text, {}).get(f)]
        made.append({**doc, "by_hand": by_hand})
    if len(rows) > known:
        _write(path, rows)
        print(
            f"lm-eval-bias: {path}: {len(rows) - known:,} texts with a keyword were added as they match; take away "
            "the x where a match means something else, and run this again",
            file=sys.stderr,
        )
    return made, results


def _write(path: Path, rows: Mapping[str, Data]) -> None:
    cells = ([row.get(name, "") for name in COLUMNS] for row in rows.values())
    write("\ufeff" + csv_text(COLUMNS, cells), str(path))
