"""The articles of a text corpus, one by one, so that any size of it fits into memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lm_eval_bias.errors import BiasError, one_line
from lm_eval_bias.files import expanded, read_text, under

_TABLES = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}


class Article(NamedTuple):
    """A text whose sentences follow each other."""

    name: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """Where articles come from.

    Attributes:
        source: A folder of ``.txt`` files or one such file (an article a file), a ``.jsonl``, ``.csv`` or ``.parquet``
            file (an article a row), or the name of a data set for :func:`datasets.load_dataset`.
        language: ISO 639-1 code, for the sentence segmenter.
        column: Column of the text, where there are rows.
        split: Split of a named data set.
        config: Configuration of a named data set, such as ``20220301.de``.
        revision: Commit or tag of a named data set.
    """

    source: str
    language: str
    column: str = "text"
    split: str = "train"
    config: str | None = None
    revision: str | None = None

    def __iter__(self) -> Iterator[Article]:
        """All articles, in a fixed order.

        Raises:
            BiasError: There is no such corpus, or none of its articles can be read.
        """
        self.check()
        path = expanded(self.source)
        if os.path.isdir(path) and (texts := [file for file in under(path) if file.suffix == ".txt"]):
            return (Article(str(file.relative_to(path)), _text(file)) for file in texts)
        if os.path.isfile(path) and path.suffix == ".txt":
            return iter([Article(path.name, _text(path))])
        if os.path.isfile(path):
            return self._rows(self._file(path))
        return self._rows(self._dataset())

    def check(self) -> None:
        """Refuse a source that can be seen to be none, without reading it.

        Raises:
            BiasError: A path where nothing is, an empty folder, or a file of another kind.
        """
        path = expanded(self.source)
        looks_like_path = self.source.startswith((".", "/", "~")) or self.source.count("/") > 1
        if looks_like_path and not os.path.exists(path):
            raise BiasError(f"--corpus {self.source}: no such file or folder")
        if os.path.isdir(path) and not any(path.iterdir()):
            raise BiasError(f"--corpus {self.source}: the folder is empty")
        if os.path.isfile(path) and path.suffix not in (".txt", *_TABLES):
            raise BiasError(
                f"--corpus {self.source}: must be a folder of .txt files, a file ({', '.join(['.txt', *_TABLES])}) or "
                "the name of a data set"
            )

    def _file(self, path: Path) -> Iterable[Mapping[str, Any]]:
        import datasets

        return datasets.load_dataset(_TABLES[path.suffix], data_files=str(path), split="train", streaming=True)

    def _dataset(self) -> Iterable[Mapping[str, Any]]:
        import datasets

        try:
            return datasets.load_dataset(
                self.source, self.config, split=self.split, revision=self.revision, streaming=True
            )
        except Exception as error:
            raise BiasError(f"--corpus {self.source}: can't be loaded: {one_line(error)[:300]}") from error

    def _rows(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Article]:
        number = -1
        try:
            for number, row in enumerate(rows):
                text = row.get(self.column)
                if not isinstance(text, str):
                    raise BiasError(
                        f"--corpus {self.source}: row {number}: no text in the column {self.column!r} (--column); "
                        f"the columns are {', '.join(map(str, row))}"
                    )
                yield Article(str(row.get("title") or row.get("id") or number), text)
        except BiasError:
            raise
        except Exception as error:  # a damaged file can fail in any way
            raise BiasError(f"--corpus {self.source}: after row {number}: {one_line(error)[:300]}") from error


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BiasError(f"--corpus: {path}: {one_line(error)}") from error
