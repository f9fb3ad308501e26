"""Items of StereoSet (three candidates with their roles, about a target term), and the published ones."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from itertools import product

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.stereoset import LANGUAGES as LANGUAGES
from lm_eval_bias.tasks.stereoset import TESTS

TEST_NAMES = {"inter": "between sentences", "intra": "within sentences"}
LABELS = ("stereotype", "anti-stereotype", "unrelated")
TEST_KEYS = {
    "inter": "intersentence",
    "intra": "intrasentence",
}  # in StereoSet's files, and the authors' predictions


# An item: its id, test, bias_type, target, term (the English target term: its class and cluster in every language),
# context, and candidates, each with id, label, sentence, and the word that fills the blank (None between sentences).
# As a document also: benchmark, language, options (the ways of scoring), variants (the generative scores that are
# compared), order (which candidates the letters of a prompt stand for), dataset (the file of a data set that is not the
# published one).


def read(language: str, test: str) -> list[Data]:
    """Read the published items of a language and test, in their order; a :class:`BiasError` if they cannot be had."""
    import pandas

    name = f"stereoset_{language}_{test}"
    content = sources.locate(name).read_bytes()
    if hashlib.sha256(content).hexdigest() != sources.manifest().files[name].sha256:
        raise BiasError(f"{name}: the file changed while it was read: not opened")
    term = "target" if language == "en" else "target_original"
    frame = pandas.read_pickle(io.BytesIO(content))  # noqa: S301 (these very bytes have the pinned SHA-256)
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
        for row in frame.to_dict("records")
    ]


def read_all(language: str, tests: Sequence[str] = TESTS) -> list[Data]:
    """Read the published items of several tests; raises what :func:`read` raises."""
    return [item for test in tests for item in read(language, test)]


def spread(items: Iterable[Data]) -> list[Data]:
    """Take items in turn from every target term and test, so that any beginning (``--limit``) is spread over the data.

    >>> items = [{"term": t, "test": s, "id": t + s + str(i)} for t in "ab" for s in ("inter", "intra") for i in (1, 2)]
    >>> [item["id"] for item in spread(items)]
    ['ainter1', 'aintra1', 'bintra1', 'binter1', 'aintra2', 'ainter2', 'binter2', 'bintra2']
    """
    queues = grouped(((item["term"], item["test"]), item) for item in items)
    terms = dict.fromkeys(term for term, _ in queues)
    turns = range(max(map(len, queues.values()), default=0))
    ordered: list[Data] = []
    for number, (turn, term) in enumerate(product(turns, terms)):
        # which test comes first follows the Thue-Morse sequence: ranks that take every n-th item get as much of both
        for test in TESTS if number.bit_count() % 2 == 0 else TESTS[::-1]:
            ordered += queues.get((term, test), [])[turn : turn + 1]
    return ordered
