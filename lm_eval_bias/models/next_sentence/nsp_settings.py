"""Settings of ``nsp train``, for the command line and Python alike: a corpus and numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import expanded

_TABLES = {".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}


def _each(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _pairs(text: str) -> Data:
    from lm_eval_bias.harness.internals import key_values

    return key_values(text)


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training; ``None`` stands for the paper's value for the model's family, or for no limit.

    There are one or several corpora, each in a language. A corpus is a folder of ``.txt`` files (an article a file), a
    ``.jsonl``, ``.csv`` or ``.parquet`` file (an article a row), or the name of a data set for
    :func:`datasets.load_dataset`, whose split ``train`` is read.

    The words of its flags are joined by ``separator``, as in those of the harness; what holds for all corpora is given
    ``once``.

    Attributes:
        model (NAME): causal or T5 model: a folder or a name on the Hub
        corpus (SOURCE): folder of .txt files, a .jsonl, .csv or .parquet file (an article each), or a data set on the
            Hub; give it again, with its --language, for a model of several languages
        language (LANG): language: en, de, ...
        config (NAME): configuration of a data set on the Hub
        column (NAME): column that holds the text (default text)
        corpus_revision (REV): commit or tag of a data set on the Hub
        revision (REV): revision of the model on the Hub
        held_out: share of the articles for early stopping, and again for the test (default 0.05)
        max_pairs: largest number of pairs to train on
        max_held_out: largest number of pairs for early stopping, and again for the test (2000)
        max_length: longest pair, in tokens (default 256)
        batch_size: pairs at a time on each device (default 4, T5: 24, mT5: 8)
        body_rate: learning rate of the body (default 5e-6, T5 and mT5: 1e-4)
        head_rate: learning rate of the head (default 0.001)
        patience: evaluations without improvement before training stops (default 3)
        seed: random seed for the pairs, their order and the head (default 0)
        trainer (KEY=VALUE,...): further transformers.TrainingArguments: max_steps=500, eval_steps=50, bf16=true,
            use_cpu=true, ...
    """

    model: str
    corpus: str | Sequence[str]
    language: str | Sequence[str]
    config: str | Sequence[str] | None = None
    column: str = "text"
    corpus_revision: str | None = None
    revision: str | None = None
    held_out: float = 0.05
    max_pairs: int | None = None
    max_held_out: int = 2000
    max_length: int = 256
    batch_size: int | None = None
    body_rate: float | None = None
    head_rate: float = 1e-3
    patience: int = 3
    seed: int = 0
    trainer: Annotated[Data, _pairs] = field(default_factory=dict)
    separator = "_"
    once = ("column", "corpus_revision")

    def __post_init__(self) -> None:
        """Refuse a bad language code, a path where nothing is, and numbers that aren't greater than 0."""
        corpora = self.corpora()
        for corpus, language, _ in corpora:
            if not re.fullmatch("[a-z]{2,3}", language):
                raise BiasError(
                    f"--language {language}: must be a code such as en, de, es, fr, tr"
                )
            is_path = corpus.startswith((".", "/", "~"))
            if is_path and not os.path.exists(expanded(corpus)):
                raise BiasError(f"--corpus {corpus}: no such file or folder")
        for name, value in vars(self).items():
            is_number = isinstance(value, int | float) and name != "seed"
            if is_number and not value > 0:
                raise BiasError(f"--{name} {value}: must be greater than 0")

    def corpora(self) -> list[tuple[str, str, str | None]]:
        """List each corpus with its language, and the configuration of a named data set.

        Raises:
            BiasError: There isn't one language to each, or as many configurations.
        """
        sources, languages = _each(self.corpus), _each(self.language)
        configs = [None] if self.config is None else _each(self.config)
        if len(configs) == 1:
            configs = configs * len(sources)
        if not len(sources) == len(languages) == len(configs):
            raise BiasError(
                f"--corpus: {len(sources)} corpora, {len(languages)} languages and {len(configs)} configurations: give "
                "each corpus its --language, and one --config for all or one for each"
            )
        return list(zip(sources, languages, configs, strict=True))

    def articles(self) -> Iterator[tuple[str, str]]:
        """Yield the language and the text of every article, in a fixed order.

        Raises:
            BiasError: An article can't be read.
        """
        for corpus, language, config in self.corpora():
            for text in self._of_corpus(corpus, config):
                yield language, text

    def _of_corpus(self, corpus: str, config: str | None) -> Iterator[str]:
        import datasets

        path = expanded(corpus)
        kind = corpus
        options: Data = {"name": config}
        options["revision"] = self.corpus_revision
        if files := sorted(map(str, path.rglob("*.txt"))):
            kind = "text"
            options = {"data_files": files, "sample_by": "document"}
        elif path.is_file():
            kind = _TABLES.get(path.suffix, path.suffix)
            options = {"data_files": str(path)}
        try:
            rows = datasets.load_dataset(kind, split="train", streaming=True, **options)
            for row in rows:
                if not isinstance(row.get(self.column), str):
                    raise ValueError(
                        f"no text in the column {self.column!r} (--column), there are {', '.join(row)}"
                    )
                yield row[self.column]
        except Exception as error:  # files and data sets can be damaged in many ways, each with an error of its own
            raise BiasError(
                f"--corpus {corpus}: can't be read: {one_line(error)[:300]}"
            ) from error
