"""Writes tests/golden/scores.csv, what scores say of themselves in data: ``python -m tests.support.score_facts``."""

import csv

import numpy as np

from lm_eval_bias.core import registry
from tests.support.places import ROOT
from tests.support.random_records import CASES

FILE = ROOT / "tests" / "golden" / "scores.csv"
FIELDS = ("low", "high", "neutral", "unit", "higher_is_better", "has_stderr", "headline", "largest")


def rows():
    """A row per score of a benchmark's random records, in the order of its scores."""
    for name, case in CASES.items():
        for score in registry.get(name).scores(case.make(np.random.default_rng(0)), detailed=True):
            facts = [str(getattr(score, field)) for field in FIELDS]
            yield [name, score.name, *facts, str(score.table is not None)]


if __name__ == "__main__":
    with FILE.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([["benchmark", "score", *FIELDS, "is_compared"], *rows()])
