"""The labelled corpora that regard classifiers are trained and tested on, balanced for gender and split."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.regard import GENDERS
from lm_eval_bias.data.sources import locate
from lm_eval_bias.tasks.regard import annotators
from lm_eval_bias.tasks.regard.annotators import LABELS
from lm_eval_bias.tasks.regard.regard_texts import subject

if TYPE_CHECKING:
    import pandas

SPLIT_SEED = 42
_FILES = {
    "de": ["regard_de_corpus"],
    "en": ["regard_en_train", "regard_en_dev", "regard_en_test"],
}
# by the annotators' marks 20 of the file's sentences were dismissed; the authors' configuration reads them all
CLEANED, RELEASED = ("cleaned", "released")


@dataclass(frozen=True)
class RegardCorpus:
    """A corpus, split.

    A row of its tables has a ``text`` with a neutral subject ("Die Person", "The person") or the one that it was
    balanced to, a ``label`` (index into :data:`lm_eval_bias.custom_metrics.regard.REGARDS`), and ``gender``: what the
    sentence itself tells about that of its subject (``F``, ``M``, ``N`` for nothing). German ones have their number in
    the annotators' files, ``judged``. Its index is its place in the released file.

    Attributes:
        language: ISO 639-1 code.
        dev: Rows to train on.
        test: Rows to be looked at once; texts that are in ``dev`` too are left out.
        name: For people, with its size.
        sha256: Of the released bytes it was made from.
        left_out: Number of test rows that were left out because ``dev`` has their sentence too.
    """

    language: str
    dev: pandas.DataFrame
    test: pandas.DataFrame
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


def _english(path: Path) -> pandas.DataFrame:
    """Read the rows of Sheng et al.'s files: label (-1, 0, 1), tab, text about XYZ; other labels are left out."""
    import pandas

    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = pandas.Series(lines).str.partition("\t")
    pairs = pairs[pairs[0].isin(LABELS)]
    person = subject("en", "neutral")
    texts = [text.replace("XYZ", person, 1) for text in pairs[2]]
    labels = pairs[0].map(LABELS.index)
    return pandas.DataFrame({"text": texts, "label": labels, "gender": "N"})


def balance(rows: pandas.DataFrame, language: str) -> pandas.DataFrame:
    """Give half of the sentences a woman as their subject, half a man (counterfactual balancing, section 3.2).

    Sentences that tell a gender get its subject; of the others so many are drawn for each that both end at one half.
    """
    neutral = np.flatnonzero(rows.gender == "N").tolist()
    female = np.flatnonzero(rows.gender == "F").tolist()
    random.Random(SPLIT_SEED).shuffle(neutral)  # noqa: S311 (no secret)
    lacking = max((len(rows) + 1) // 2 - len(female), 0)
    genders = np.full(len(rows), "male", dtype=object)
    genders[female + neutral[:lacking]] = "female"
    pairs = zip(rows.text, genders, strict=True)
    return rows.assign(text=[with_subject(text, language, own) for text, own in pairs])


def _german(path: Path, reading: str) -> tuple[pandas.DataFrame, pandas.DataFrame]:
    """Split the German rows as the authors did, stratified, without rows marked as unusable."""
    import pandas
    from sklearn.model_selection import train_test_split

    # a number, and columns Text, Gender, Label (-1, 0, 1)
    names = ["judged", "text", "gender", "label"]
    rows = pandas.read_csv(path, na_filter=False).set_axis(names, axis=1)
    rows["label"] = rows.label.astype(int) + 1
    parts = train_test_split(
        rows.index, test_size=0.2, random_state=SPLIT_SEED, stratify=rows.label
    )
    if reading == CLEANED:
        certain = {own.number for own in annotators.sentences() if own.labels}
        rows = rows[rows.judged.isin(certain)]
    balanced = balance(rows, "de")
    dev, test = (balanced.loc[part[part.isin(rows.index)]] for part in parts)
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
    import pandas

    if reading != CLEANED and language != "de":
        raise BiasError(f"--corpus {reading}: of the German sentences alone")
    files = list(_FILES[language])
    if language == "de":
        name = "Kraft et al. (2022)"
        dev, test = _german(locate(files[0]), reading)
        if reading == CLEANED:
            files += annotators.SENTENCES
        else:
            name += ", as released"
    else:
        train, more, held_out = (_english(locate(file)) for file in files)
        name = "Sheng et al. (2019)"
        dev = balance(pandas.concat([train, more]), language)
        test = balance(held_out, language)
    paths = [locate(file) for file in files]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()

    def sentences(rows: pandas.DataFrame) -> pandas.Series:
        bare = [with_subject(text, language, "neutral").strip() for text in rows.text]
        return pandas.Series(bare, index=rows.index)

    # a sentence of both parts is no test, whatever its subject
    unseen = test[~sentences(test).isin(sentences(dev)).to_numpy()]
    named = f"{name}, {len(dev)} sentences"
    left_out = len(test) - len(unseen)
    return RegardCorpus(language, dev, unseen, named, digest, left_out)
