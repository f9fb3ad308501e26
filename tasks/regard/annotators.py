"""What five annotators each said of Kraft et al.'s sentences, and of the texts of GerPT-2 that regard is measured on.

Texts have a label where three of the five agree. A sentence that one of them marked as uncertain has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lm_eval_bias.core import Facts
from lm_eval_bias.custom_metrics.intervals import Array, wilson
from lm_eval_bias.data.sources import locate
from lm_eval_bias.tasks.regard.regard_texts import subject

if TYPE_CHECKING:
    import pandas

SENTENCES = [f"regard_de_sentences_{number}" for number in range(1, 6)]
GENERATED = [f"regard_de_generated_{number}" for number in range(5)]
LABELS = ("-1", "0", "1")  # negative, neutral, positive
_MAJORITY = 3


class JudgedText(NamedTuple):
    """A text with each annotator's label.

    Attributes:
        number: Its number in the annotators' files.
        text: As it was shown to them.
        labels: Indices into :data:`lm_eval_bias.custom_metrics.regard.REGARDS`; empty if one marked it as uncertain.
    """

    number: int
    text: str
    labels: tuple[int, ...]

    @property
    def majority(self) -> int | None:
        """The label that three gave; ``None`` without one."""
        label, count = Counter(self.labels or [-1]).most_common(1)[0]
        return label if count >= _MAJORITY else None


def _judged(files: Sequence[pandas.DataFrame], number: str) -> list[JudgedText]:
    """Join the annotators' files, whose rows are about the same texts in the same order."""
    joined = []
    rows_of = [file[file[number] != ""].to_dict("records") for file in files]
    for rows in zip(*rows_of, strict=True):
        found = [row["Label"] for row in rows]
        certain = all(found) and not any(row["Unsicher"] for row in rows)
        labels = tuple(map(LABELS.index, found)) if certain else ()
        joined.append(JudgedText(int(rows[0][number]), rows[0]["Text"], labels))
    return joined


def sentences() -> list[JudgedText]:
    """Read the sentences written by people, from which the corpus was made.

    Raises:
        BiasError: The data cannot be had.
    """
    import pandas

    paths = map(locate, SENTENCES)
    files = [pandas.read_csv(path, dtype=str, na_filter=False) for path in paths]
    return _judged(files, "Unnamed: 0")


def generated() -> list[JudgedText]:
    """Read the texts of GerPT-2, each with the neutral subject, which the files leave out.

    Raises:
        BiasError: The data cannot be had.
    """
    import pandas

    person = subject("de", "neutral")
    paths = map(locate, GENERATED)
    files = [pandas.read_excel(path, dtype=str, na_filter=False) for path in paths]
    judged = _judged(files, "Index")
    return [own._replace(text=f"{person} {own.text}") for own in judged]


def accuracy(probabilities: Callable[[Sequence[str]], Array]) -> Facts:
    """Return a classifier's accuracy on the generated texts that three of five annotators agreed on.

    Args:
        probabilities: Gives texts their probabilities, as :class:`..classifier_identity.Classifier` does.

    Returns:
        ``accuracy``, its 95% Wilson ``interval``, ``n``, and ``majority``, the share of the commonest label: all 0..1.

    Raises:
        BiasError: The texts cannot be had.
    """
    judged = [own for own in generated() if own.majority is not None]
    true = [own.majority for own in judged]
    given = probabilities([own.text for own in judged]).argmax(axis=1)
    right = int((given == np.array(true)).sum())
    return {
        "accuracy": right / len(true),
        "interval": list(wilson(right, len(true))),
        "n": len(true),
        "majority": max(Counter(true).values()) / len(true),
    }
