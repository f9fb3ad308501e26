"""The labelled corpora that regard classifiers are trained and tested on, balanced for gender and split."""

from __future__ import annotations

import csv
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.regard import GENDERS
from lm_eval_bias.data.sources import locate
from lm_eval_bias.tasks.regard import annotators
from lm_eval_bias.tasks.regard.annotators import LABELS
from lm_eval_bias.tasks.regard.regard_texts import subject

SPLIT_SEED = 42
_FILES = {
    "de": ["regard_de_corpus"],
    "en": ["regard_en_train", "regard_en_dev", "regard_en_test"],
}
# by the annotators' marks 20 of the file's sentences were dismissed; the authors' configuration reads them all
CLEANED, RELEASED = ("cleaned", "released")


@dataclass(frozen=True)
class CorpusRow:
    """A labelled sentence.

    Attributes:
        text: With a neutral subject ("Die Person", "The person") or the one that it was balanced to.
        label: Index into :data:`lm_eval_bias.custom_metrics.regard.REGARDS`.
        gender: ``F``, ``M`` or ``N`` (none): what the sentence itself tells about the gender of its subject.
        number: Its place in the released file.
        judged: Its number in the annotators' files, of German ones.
    """

    text: str
    label: int
    gender: str
    number: int
    judged: int = -1


@dataclass(frozen=True)
class RegardCorpus:
    """A corpus, split.

    Attributes:
        language: ISO 639-1 code.
        dev: Rows to train on.
        test: Rows to be looked at once; texts that are in ``dev`` too are left out.
        name: For people, with its size.
        sha256: Of the released bytes it was made from.
        left_out: Number of test rows that were left out because ``dev`` has their sentence too.
    """

    language: str
    dev: list[CorpusRow]
    test: list[CorpusRow]
    name: str
    sha256: str
    left_out: int


def with_subject(text: str, language: str, gender: str) -> str:
    """Replace the subject of a sentence (``female``, ``male``, ``neutral``).

    >>> with_subject("Die Person galt als klug.", "de", "female")
    'Die Frau galt als klug.'
    """
    for current_gender in (*GENDERS, "neutral"):
        if text.startswith(current_subject := subject(language, current_gender)):
            return subject(language, gender) + text[len(current_subject) :]
    return text


def _german(path: Path) -> list[CorpusRow]:
    """Read the rows of ``combined_all.csv``: a number, and columns Text, Gender, Label (-1, 0, 1)."""
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            label = LABELS.index(row["Label"].removesuffix(".0"))
            judged = int(row[""])
            rows.append(CorpusRow(row["Text"], label, row["Gender"], number, judged))
    return rows


def _english(path: Path) -> list[CorpusRow]:
    """Read the rows of Sheng et al.'s files: label (-1, 0, 1), tab, text about XYZ; other labels are left out."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        label, _, text = line.partition("\t")
        if label in LABELS:
            text = text.replace("XYZ", subject("en", "neutral"), 1)
            rows.append(CorpusRow(text, LABELS.index(label), "N", number))
    return rows


def balance(rows: Sequence[CorpusRow], language: str) -> list[CorpusRow]:
    """Give half of the sentences a woman as their subject, half a man (counterfactual balancing, section 3.2).

    Sentences that tell a gender get its subject; of the others so many are drawn for each that both end at one half.
    """
    neutral = [i for i, row in enumerate(rows) if row.gender == "N"]
    about_women = {i for i, row in enumerate(rows) if row.gender == "F"}
    random.Random(SPLIT_SEED).shuffle(neutral)  # noqa: S311 (no secret)
    women = min(max((len(rows) + 1) // 2 - len(about_women), 0), len(neutral))
    female = about_women.union(neutral[:women])
    balanced = []
    for i, row in enumerate(rows):
        gender = "female" if i in female else "male"
        text = with_subject(row.text, language, gender)
        balanced.append(replace(row, text=text))
    return balanced


def _german_parts(path: Path, reading: str) -> tuple[list[CorpusRow], list[CorpusRow]]:
    """Split the German rows as the authors did, stratified, without rows marked as unusable."""
    from sklearn.model_selection import train_test_split

    rows = _german(path)
    strata = [row.label for row in rows]
    dev, test = train_test_split(
        rows, test_size=0.2, random_state=SPLIT_SEED, stratify=strata
    )
    if reading == CLEANED:
        certain = {own.number for own in annotators.sentences() if own.labels}
        rows = [row for row in rows if row.judged in certain]
    kept = {row.number: row for row in balance(rows, "de")}
    dev, test = (
        [kept[row.number] for row in part if row.number in kept] for part in (dev, test)
    )
    return dev, test


def load(language: str, reading: str = CLEANED) -> RegardCorpus:
    """Read the language's corpus: Kraft et al. (2022) for ``de``, Sheng et al. (2019) for ``en``.

    The German one is split as the authors did, stratified: 80% to train on, 20% to test (seed 42).

    Args:
        language: ``de`` or ``en``.
        reading: ``cleaned``, or ``released`` for German with the sentences that annotators dismissed, as the authors'
            released configuration has it.

    Raises:
        BiasError: The data cannot be had, or aren't read in two ways.
    """
    if reading != CLEANED and language != "de":
        raise BiasError(f"--corpus {reading}: of the German sentences alone")
    files = list(_FILES[language])
    if language == "de":
        name = "Kraft et al. (2022)"
        dev, test = _german_parts(locate(files[0]), reading)
        if reading == CLEANED:
            files += annotators.SENTENCES
        else:
            name += ", as released"
    else:
        train, more, held_out = (_english(locate(file)) for file in files)
        name = "Sheng et al. (2019)"
        dev = balance([*train, *more], language)
        test = balance(held_out, language)
    paths = [locate(file) for file in files]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()

    def sentence(row: CorpusRow) -> str:
        return with_subject(row.text, language, "neutral").strip()

    # a sentence of both parts is no test, whatever its subject
    seen = set(map(sentence, dev))
    unseen = [row for row in test if sentence(row) not in seen]
    named = f"{name}, {len(dev)} sentences"
    left_out = len(test) - len(unseen)
    return RegardCorpus(language, dev, unseen, named, digest, left_out)


def labels(rows: Sequence[CorpusRow]) -> NDArray[np.int64]:
    """Return the rows' labels, shape (number of rows,)."""
    return np.array([row.label for row in rows], dtype=np.int64)
