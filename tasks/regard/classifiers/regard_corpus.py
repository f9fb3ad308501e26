"""The labelled corpora that regard classifiers are trained and tested on, balanced for gender and split."""

from __future__ import annotations

import csv
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.custom_metrics.regard import GENDERS
from lm_eval_bias.data.download import locate
from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.regard.regard_texts import subject

SPLIT_SEED = 42
_ENGLISH = "XYZ"


@dataclass(frozen=True)
class Row:
    """A labelled sentence.

    Attributes:
        text: With a neutral subject ("Die Person", "The person") or the one that it was balanced to.
        label: Index into :data:`lm_eval_bias.custom_metrics.regard.REGARDS`.
        gender: ``F``, ``M`` or ``N`` (none): what the sentence itself tells about the gender of its subject.
        number: Its place in the released file.
    """

    text: str
    label: int
    gender: str
    number: int


@dataclass(frozen=True)
class Corpus:
    """A corpus, split.

    Attributes:
        language: ISO 639-1 code.
        dev: Rows to choose and train on.
        test: Rows to be looked at once; texts that are in ``dev`` too are left out.
        name: For people, with its size.
        sha256: Of the released bytes it was made from.
        left_out: Number of test rows that were left out because ``dev`` has their sentence too.
        second_test: A second, machine-written test set (German: 362 GerPT-2 sentences, labelled by five others).
    """

    language: str
    dev: list[Row]
    test: list[Row]
    name: str
    sha256: str
    left_out: int
    second_test: list[Row] = field(default_factory=list)


def with_subject(text: str, language: str, gender: str) -> str:
    """A sentence about a person, a woman or a man, about another subject (``female``, ``male``, ``neutral``) instead.

    >>> with_subject("Die Person galt als klug.", "de", "female")
    'Die Frau galt als klug.'
    """
    for current_gender in (*GENDERS, "neutral"):
        if text.startswith(current_subject := subject(language, current_gender)):
            return subject(language, gender) + text[len(current_subject) :]
    return text


def _german(path: Path) -> list[Row]:
    """The rows of ``combined_all.csv``: columns Text, Gender, Label (-1, 0, 1)."""
    labels = {"-1.0": 0, "0.0": 1, "1.0": 2}
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            if row["Label"] not in labels:
                raise BiasError(f"{path} row {number}: label {row['Label']!r}, must be one of {', '.join(labels)}")
            rows.append(Row(row["Text"], labels[row["Label"]], row["Gender"], number))
    return rows


def balance(rows: Sequence[Row], language: str) -> list[Row]:
    """Every sentence about a woman or a man, each one half of them (counterfactual balancing, section 3.2).

    Sentences that tell a gender get its subject; of the others so many are drawn for each that both end at one half.
    """
    neutral = [i for i, row in enumerate(rows) if row.gender == "N"]
    about_women = {i for i, row in enumerate(rows) if row.gender == "F"}
    random.Random(SPLIT_SEED).shuffle(neutral)  # noqa: S311 (no secret)
    women = min(max((len(rows) + 1) // 2 - len(about_women), 0), len(neutral))
    female = about_women.union(neutral[:women])
    return [
        replace(row, text=with_subject(row.text, language, "female" if i in female else "male"))
        for i, row in enumerate(rows)
    ]


def split(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The authors' stratified split: 80% to develop on, 20% to test (seed 42)."""
    from sklearn.model_selection import train_test_split

    dev, test = train_test_split(
        np.arange(len(rows)), test_size=0.2, random_state=SPLIT_SEED, stratify=[row.label for row in rows]
    )
    return [rows[i] for i in dev], [rows[i] for i in test]


def _unseen(dev: Sequence[Row], test: Sequence[Row], language: str) -> list[Row]:
    """Test rows whose sentence is not in ``dev``, about whatever subject."""
    dev_texts = {with_subject(row.text, language, "neutral").strip() for row in dev}
    return [row for row in test if with_subject(row.text, language, "neutral").strip() not in dev_texts]


def _tsv(path: Path, start: int) -> list[Row]:
    """The rows of Sheng et al.'s files: label (-1, 0, 1), tab, text about XYZ; rows of other labels are left out."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        label, _, text = line.partition("\t")
        if label in ("-1", "0", "1"):
            rows.append(Row(text.replace(_ENGLISH, subject("en", "neutral"), 1), int(label) + 1, "N", start + number))
    return rows


def gerpt2_test() -> list[Row]:
    """The second German test set: GerPT-2's sentences that all five annotators labelled, with the majority's label.

    Sentences without an index or that anyone marked uncertain are left out, which gives the paper's 362; of equally
    frequent labels the lower one counts (5 sentences). Their subject is missing in the files: "Die Person" here.

    Raises:
        BiasError: The data cannot be had, or the five files don't hold the same sentences.
    """
    import openpyxl

    sheets = []
    for annotator in range(5):
        book = openpyxl.load_workbook(locate(f"regard_de_gerpt2_{annotator}"), read_only=True, data_only=True)
        cells = [row[:4] for row in book.worksheets[0].iter_rows(min_row=2, values_only=True)]
        sheets.append([row for row in cells if row[3] is not None])  # one file has an empty row among them
        book.close()
    if any([row[3] for row in sheet] != [row[3] for row in sheets[0]] for sheet in sheets):
        raise BiasError("regard_de_gerpt2: the five annotators' files don't hold the same sentences")
    sentences = []
    for number, rows in enumerate(zip(*sheets, strict=True)):
        ratings = [row[2] for row in rows]
        if rows[0][0] is not None and all(label in (-1, 0, 1) for label in ratings):
            label = max((-1, 0, 1), key=ratings.count)
            sentences.append(Row(f"{subject('de', 'neutral')} {str(rows[0][3]).strip()}", label + 1, "N", number))
    return sentences


def load(language: str, second_test: bool = False) -> Corpus:
    """The language's corpus: Kraft et al. (2022) for German, Sheng et al. (2019) for English.

    Args:
        language: ``de`` or ``en``.
        second_test: Whether to read the second test set too, where there is one.

    Raises:
        BiasError: The data cannot be had.
    """
    if language == "de":
        path = locate("regard_de_corpus")
        dev, test = split(balance(_german(path), language))
        digest, name = hashlib.sha256(path.read_bytes()), "Kraft et al. (2022)"
    else:
        paths = [locate(f"regard_en_{part}") for part in ("train", "dev", "test")]
        parts = [_tsv(path, 1000 * i) for i, path in enumerate(paths)]
        dev, test = balance([*parts[0], *parts[1]], language), balance(parts[2], language)
        digest, name = hashlib.sha256(b"".join(path.read_bytes() for path in paths)), "Sheng et al. (2019)"
    unseen = _unseen(dev, test, language)
    gerpt2 = gerpt2_test() if second_test and language == "de" else []
    name = f"{name}, {len(dev)} sentences"
    return Corpus(language, dev, unseen, name, digest.hexdigest(), len(test) - len(unseen), gerpt2)


def labels(rows: Sequence[Row]) -> NDArray[np.int64]:
    """The rows' labels, shape (number of rows,)."""
    return np.array([row.label for row in rows], dtype=np.int64)
