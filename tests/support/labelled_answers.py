"""Answers that people labelled by reading them: of this checkout, and those beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from lm_eval_bias.scoring import answer_extraction
from lm_eval_bias.scoring.answer_extraction import ChoiceExtractor, Option
from lm_eval_bias.scoring.free_answers import without_thoughts
from lm_eval_bias.tasks.occugender import hooks
from lm_eval_bias.tasks.occugender.answer_extraction import read as read_gender
from tests.support.places import ROOT

GOLDEN = ROOT / "tests" / "golden"


@cache
def labelled(pattern: str = "labelled_a*.jsonl") -> list[dict[str, Any]]:
    """Return all labelled answers: ``right`` is what is taken, ``none``, or why nothing is in brackets."""
    paths = [
        *GOLDEN.glob(pattern),
        *(ROOT.parent / "shared" / "answers").glob("*.jsonl"),
    ]
    rows = []
    for path in sorted(paths):
        for line in path.read_text(encoding="utf-8").splitlines():
            rows.append({"source": f"shared {path.stem}", **json.loads(line)})
    return rows


def reader(language: str, options: Sequence[Any]) -> ChoiceExtractor:
    """Return the reader of answers to options, each a text or several."""
    texts = [(one,) if isinstance(one, str) else tuple(one) for one in options]
    return answer_extraction.reader(tuple(map(Option, "ABCDEFGHIJKL", texts)), language)


def read(row: dict[str, Any]) -> str:
    """Return what is taken, or ``none`` unless the label says why."""
    kind, text = row.get("kind"), row["text"]
    if kind:
        words = hooks.genders_by_word(None, kind)
        said = read_gender(text, kind, words, row.get("sentence", ""))
    else:
        own = reader(row["language"], row["options"])
        said = own.read(without_thoughts(text), row.get("cut", False))
    return said if said[0] != "[" or row["right"][:1] == "[" else "none"
