"""Settings of ``nsp train``, for the command line and Python alike: corpora and options."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import expanded, read_text, under

_TABLES = {".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}
_MANY = 10**9
PAPER: dict[str, dict[str, float]] = {  # section 5.2
    "causal": {"batch_size": 4, "accumulate": 16, "body_rate": 5e-6},
    "seq2seq": {"batch_size": 8, "accumulate": 8, "body_rate": 1e-4},
}


@dataclass(frozen=True)
class Corpus:
    """Where articles come from.

    A source is a folder of ``.txt`` files (an article a file), a ``.jsonl``, ``.csv`` or ``.parquet`` file (an article
    a row), or the name of a data set for :func:`datasets.load_dataset`, whose split ``train`` is read.
    """

    source: str
    language: str  # ISO 639-1 code, for the sentence segmenter
    config: str | None = None  # of a named data set, such as 20220301.de
    column: str = "text"  # where there are rows
    revision: str | None = None  # commit or tag of a named data set

    def __post_init__(self) -> None:
        """Refuse what can be seen to be wrong, without reading the source.

        Raises:
            BiasError: A path where nothing is, an empty folder, a file of another kind, or no code of a language.
        """
        if not re.fullmatch("[a-z]{2,3}", self.language):
            raise BiasError(f"--language {self.language}: must be a code such as en, de, es, fr, tr")
        path = expanded(self.source)
        looks_like_path = self.source.startswith((".", "/", "~")) or self.source.count("/") > 1
        is_empty = os.path.isdir(path) and not any(path.iterdir())
        is_other_file = os.path.isfile(path) and path.suffix not in _TABLES
        if is_empty or is_other_file or (looks_like_path and not os.path.exists(path)):
            raise BiasError(
                f"--corpus {self.source}: must be a folder of .txt files, a file ({', '.join(_TABLES)}) or the name of "
                "a data set"
            )

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Name and text of every article, in a fixed order.

        Raises:
            BiasError: An article can't be read.
        """
        import datasets

        path, at = expanded(self.source), ""
        try:
            texts = [file for file in under(path) if file.suffix == ".txt"] if os.path.isdir(path) else []
            for file in texts:
                at = f"{file}: "
                yield str(file.relative_to(path)), read_text(file)
            if texts:
                return
            where = [_TABLES[path.suffix]] if os.path.isfile(path) else [self.source, self.config]
            more = {"data_files": str(path)} if os.path.isfile(path) else {"revision": self.revision}
            for number, row in enumerate(datasets.load_dataset(*where, split="train", streaming=True, **more)):
                at = f"row {number}: "
                if not isinstance(text := row.get(self.column), str):
                    raise ValueError(f"no text in the column {self.column!r} (--column), there are {', '.join(row)}")
                yield str(row.get("title") or row.get("id") or number), text
        except Exception as error:  # files and data sets can be damaged in many ways, each with an error of its own
            raise BiasError(f"--corpus {self.source}: {at}can't be read: {one_line(error)[:300]}") from error


def _option(default: float | None, low: float, high: float, text: str) -> Any:
    """A number that users choose, within a range, with its help."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high, "help": text})


@dataclass(frozen=True)
class TrainingSettings:
    """What a model is trained on and how; ``None`` stands for the paper's value for its family, or for no limit."""

    model: str  # folder or hub name
    corpora: tuple[Corpus, ...]
    revision: str | None = None  # of the model on the hub
    trainer: dict[str, Any] = dataclasses.field(default_factory=dict)  # more of transformers.TrainingArguments
    held_out: float = _option(0.05, 1e-9, 0.49, "share of the articles for early stopping, and again for the test")
    max_pairs: int | None = _option(None, 2, _MANY, "largest number of pairs to train on")
    max_held_out: int = _option(2000, 2, _MANY, "largest number of pairs for early stopping, and again for the test")
    epochs: float = _option(1.0, 1e-9, _MANY, "largest number of passes over the pairs")
    max_steps: int | None = _option(None, 1, _MANY, "largest number of updates")
    batch_size: int | None = _option(None, 1, _MANY, "pairs per batch on each device")
    accumulate: int | None = _option(None, 1, _MANY, "batches per update")
    body_rate: float | None = _option(None, 1e-12, 1.0, "learning rate of the body")
    head_rate: float = _option(1e-3, 1e-12, 1.0, "learning rate of the head")
    train_layers: int | None = _option(None, 0, _MANY, "train only so many last layers of a causal body, and the head")
    max_length: int = _option(256, 8, _MANY, "longest pair, in tokens")
    evaluate_every: int | None = _option(None, 1, _MANY, "updates between evaluations (without it a twentieth of all)")
    patience: int = _option(3, 1, _MANY, "evaluations without improvement before training stops")
    gain: float = _option(0.002, 0.0, 1.0, "smallest improvement in held-out accuracy that counts")
    seed: int = _option(0, 0, 2**32 - 1, "random seed for the pairs, their order and the head")

    def __post_init__(self) -> None:
        """Refuse numbers out of their range.

        Raises:
            BiasError: The first of them.
        """
        for option in NUMBERS:
            value, low, high = getattr(self, option.name), option.metadata["low"], option.metadata["high"]
            if value is not None and not low <= value <= high:
                raise BiasError(f"--{option.name} {value}: must be a number from {low} to {high}")

    def filled(self, family: str) -> TrainingSettings:
        """With the paper's values where there are none."""
        missing: dict[str, Any] = {name: value for name, value in PAPER[family].items() if getattr(self, name) is None}
        return dataclasses.replace(self, **missing)


NUMBERS = [field for field in dataclasses.fields(TrainingSettings) if field.metadata]  # the settings that have a range
