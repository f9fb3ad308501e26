"""The pairs that Dutch, French and English share, as documents."""

from __future__ import annotations

import csv

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.files import packaged_yaml
from lm_eval_bias.custom_metrics.score import Answers, Record
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.shared import bbq_records
from lm_eval_bias.tasks.shared.pair_choices import LETTERS

# the Dutch file is Mac OS Roman, but for a word in UTF-8
_ENCODINGS = {"nl": "mac_roman"}
_IN_UTF_8 = "é".encode().decode("mac_roman")
# pairs that in Dutch or French say the same of another name or group, each with the first of these
SAME_FRAME = {"514": "506", "1094": "15"}


def dataset(language: str, **metadata: object) -> Data:
    """Make a language's documents by split, in the file's order."""
    raw = sources.locate(f"crows_pairs_{language}").read_bytes()
    text = raw.decode(_ENCODINGS.get(language, "utf-8")).replace(_IN_UTF_8, "é")
    docs = []
    for row in csv.DictReader(text.splitlines(keepends=True)):
        more = row["sent_more"].strip()
        less = row["sent_less"].strip() or more  # one is missing in French: a tie
        doc = {
            "benchmark": "crows_pairs_parallel",
            "language": language,
            "id": row["id"],
            "bias_type": row["bias_type"],
            "direction": row["stereo_antistereo"],
            "frame": SAME_FRAME.get(row["id"], row["id"]),
            "sentences": [more, less],
        }
        docs.append(doc)
    return {"test": docs}


def choices(language: str, **metadata: object) -> Data:
    """Make the documents of pairs as lettered options by split, all pairs in one order, then in the other.

    Orders and pairs follow each other so that whoever writes two letters in turn takes neither sentence more often.
    """
    first = []
    for number, pair in enumerate(dataset(language)["test"]):
        fields = {**pair, "benchmark": "crows_pairs_choices", "sentence": pair["frame"]}
        fields |= {"choices": fields.pop("sentences"), "letters": LETTERS[:2]}
        fields |= {"biased_choice": 0, "order": [0, 1] if number % 4 < 2 else [1, 0]}
        first.append(fields)
    again = [{**doc, "order": doc["order"][::-1]} for doc in first]
    return {"test": [*first, *again[::2], *again[1::2]]}


def prompt(doc: Facts) -> str:
    """Write the question."""
    prompts = packaged_yaml(__package__, "data/question.yaml")
    return prompts[doc["language"]].format(options=bbq_records.options(doc))


def record(doc: Facts, answers: Answers) -> Record:
    """Return both sentences' log-likelihoods and numbers of tokens, as floats."""
    (more, more_tokens), (less, less_tokens) = answers
    tokens = max(int(more_tokens), 1), max(int(less_tokens), 1)
    first, second = map(len, doc["sentences"])
    return {
        "pair": doc["frame"],
        "more": float(more),
        "more_tokens": tokens[0],
        "less": float(less),
        "less_tokens": tokens[1],
        "lengths": {"characters": (first, second), "tokens": tokens},
        "takes_first": None if more == less else bool(more > less),
    }
