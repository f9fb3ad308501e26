"""What an engine has translated: kept text by text, so that nothing is asked twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lm_eval_bias.errors import BiasError
from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets import jsonl
from lm_eval_bias.tasks.stereoset.own_sets.blanks import PLACEHOLDERS, protect, restore
from lm_eval_bias.tasks.stereoset.own_sets.engines import Engine

FILE = "translated.jsonl"


class Memory(Mapping[str, str]):
    """Translations by source text, in a folder's :data:`FILE`.

    A record has ``source``, ``translation``, ``engine`` and ``placeholder``: what stood for BLANK on the way, or
    ``null`` where there was none, or where no placeholder came back as it should.
    """

    def __init__(self, folder: Path, engine: str | None = None) -> None:
        """Read what is there.

        Args:
            folder: Where the file lies, or will.
            engine: The identity that all records have to have; any without one.

        Raises:
            BiasError: The file is damaged, or of another engine.
        """
        self._path, self.engine = folder / FILE, engine
        self._records: dict[str, dict[str, Any]] = {}
        for record in jsonl.read(self._path, ("source", "translation", "engine")):
            if engine is not None and record["engine"] != engine:
                raise BiasError(
                    f"{folder} holds translations of another engine or revision ({record['engine']}; now: {engine}): "
                    "take another folder, or ask for all texts again with --retranslate"
                )
            self._records[record["source"]] = record

    def __getitem__(self, text: str) -> str:
        return str(self._records[text]["translation"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def engines(self) -> set[str]:
        """The identities of the engines whose translations are there."""
        return {record["engine"] for record in self._records.values()}

    def add(self, records: Sequence[dict[str, Any]], keep: bool) -> None:
        """Take records in, and on the disk if they are to be kept."""
        if keep and records:
            jsonl.append(self._path, records)
        self._records |= {record["source"]: record for record in records}

    def put_aside(self) -> None:
        """Rename the file, so that all is asked again and nothing is lost.

        Raises:
            BiasError: It cannot be renamed.
        """
        if not self._path.exists():
            return
        number = 1
        while (aside := self._path.with_name(f"{self._path.stem}-{number}.jsonl")).exists():
            number += 1
        try:
            self._path.rename(aside)
        except OSError as error:
            raise BiasError(f"{self._path} cannot be renamed: {error.strerror}") from error
        self._records.clear()

    def placeholders(self, texts: Sequence[str]) -> dict[str, int]:
        """How often each way to protect BLANK was the one that worked, ``none`` where none did."""
        counts: dict[str, int] = {}
        for text in texts:
            if BLANK in text and text in self._records:
                name = str(self._records[text].get("placeholder") or "none")
                counts[name] = counts.get(name, 0) + 1
        return counts


def translate(texts: Sequence[str], engine: Engine, memory: Memory) -> None:
    """Translate what the memory lacks, batch by batch; every batch is kept before the next one.

    Batches are the same however often the work was interrupted: texts that are padded together can change each
    other's last digits.

    Raises:
        BiasError: What the engine raises.
    """
    distinct = sorted(dict.fromkeys(texts), key=lambda text: (len(text), text))
    with tqdm(total=len(distinct), desc="Translating", unit=" texts") as bar:
        for start in range(0, len(distinct), engine.batch):
            batch = distinct[start : start + engine.batch]
            lacking = [text for text in batch if text not in memory]
            memory.add(_batch(lacking, engine, memory.engine or engine.identity), keep=not engine.human)
            bar.update(len(batch))


def _batch(texts: Sequence[str], engine: Engine, identity: str) -> list[dict[str, Any]]:
    """Records of texts; those with BLANK are asked again with another placeholder until one comes back right."""
    found: dict[str, dict[str, Any]] = {}
    open_ = list(texts)
    for placeholder in PLACEHOLDERS:
        asked = {text: given for text in open_ if (given := protect(text, placeholder)) is not None}
        if not asked:
            continue
        answers = engine.translate(list(asked.values()), placeholder)
        for text, answer in zip(asked, answers, strict=True):
            if answer is None:
                open_.remove(text)
                continue
            restored = restore(answer, placeholder, text) if BLANK in text and not engine.human else answer
            used = placeholder if BLANK in text and restored is not None else None
            if restored is not None or text not in found:
                found[text] = {
                    "source": text,
                    "translation": answer if restored is None else restored,
                    "engine": identity,
                    "placeholder": used,
                }
            if restored is not None:
                open_.remove(text)
    return [found[text] for text in texts if text in found]
