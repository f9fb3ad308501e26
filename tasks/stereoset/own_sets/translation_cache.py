"""What an engine has translated: kept text by text, so that nothing is asked twice.

BLANK needs help on its way: engines drop it, double it, bend it or translate it, so that a placeholder stands for it.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, cast

from tqdm import tqdm

from lm_eval_bias.errors import BiasError
from lm_eval_bias.scoring.questions import BLANK
from lm_eval_bias.tasks.stereoset.own_sets import jsonl
from lm_eval_bias.tasks.stereoset.own_sets.translation_engines import Engine

FILE = "translated.jsonl"
_NEEDED = ("source", "translation", "engine")
# as it is, like a name, as an underlined gap, as a tag, as a number in brackets: one of them is kept by most engines
PLACEHOLDERS = (BLANK, "XYZ", "__", "<b>1</b>", "[1]")
_GLUED = re.compile(rf"(?<=\w){BLANK}|{BLANK}(?=\w)")


class Translation(TypedDict):
    """A line of :data:`FILE`.

    ``placeholder`` is what stood for BLANK on the way, or ``None`` where there was none, or where no placeholder came
    back as it should.
    """

    source: str
    translation: str
    engine: str
    placeholder: str | None


class TranslationCache(Mapping[str, str]):
    """Translations by source text, in a folder's :data:`FILE`."""

    def __init__(self, folder: Path, engine: str | None = None) -> None:
        """Read what is there.

        Raises:
            BiasError: The file is damaged, or of another engine than the one of this identity.
        """
        self._path, self.engine = folder / FILE, engine
        self._translations: dict[str, Translation] = {}
        for record in jsonl.read(self._path, _NEEDED):
            if engine is not None and record["engine"] != engine:
                raise BiasError(
                    f"{folder} holds translations of another engine or revision ({record['engine']}; now: {engine}): "
                    "use another folder, or translate all texts again with --retranslate"
                )
            self._translations[record["source"]] = cast(Translation, record)

    def __getitem__(self, text: str) -> str:
        return self._translations[text]["translation"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._translations)

    def __len__(self) -> int:
        return len(self._translations)

    def add(self, translations: Sequence[Translation], keep: bool) -> None:
        """Take translations in, and on the disk if they are to be kept."""
        if keep and translations:
            jsonl.append(self._path, translations)
        self._translations |= {translation["source"]: translation for translation in translations}

    def placeholders(self, texts: Sequence[str]) -> dict[str, int]:
        """How often each way to protect BLANK was the one that worked, ``none`` where none did."""
        translations = (self._translations[text] for text in texts if BLANK in text and text in self._translations)
        return dict(Counter(str(translation.get("placeholder") or "none") for translation in translations))


def open_cache(folder: Path, engine: str, anew: bool) -> TranslationCache:
    """The translations of the engine of this identity; ``anew`` renames a file with those of others, so none is lost.

    Raises:
        BiasError: The file is damaged, of another engine or can't be renamed.
    """
    path = folder / FILE
    if anew and any(record["engine"] != engine for record in jsonl.read(path, _NEEDED)):
        number = next(n for n in itertools.count(1) if not path.with_name(f"{path.stem}-{n}.jsonl").exists())
        try:
            path.rename(path.with_name(f"{path.stem}-{number}.jsonl"))
        except OSError as error:
            raise BiasError(f"{path} can't be renamed: {error.strerror}") from error
    return TranslationCache(folder, engine)


def translate(texts: Sequence[str], engine: Engine, cache: TranslationCache) -> None:
    """Translate what the cache lacks, batch by batch; every batch is kept before the next one.

    Batches are the same however often the work was interrupted: texts that are padded together can change each
    other's last digits.

    Raises:
        BiasError: What the engine raises.
    """
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    # an error is one line: no bar before the first batch is done, and none left where a later one fails
    with tqdm(total=len(distinct), desc="Translating", unit=" texts", delay=1, leave=False) as bar:
        for start in range(0, len(distinct), engine.batch):
            batch = distinct[start : start + engine.batch]
            lacking = [text for text in batch if text not in cache]
            cache.add(_translate_batch(lacking, engine, cache.engine or engine.identity), keep=not engine.human)
            bar.update(len(batch))
        bar.leave = True


def _translate_batch(texts: Sequence[str], engine: Engine, identity: str) -> list[Translation]:
    """Translations of texts; those with BLANK are asked again with another placeholder until one comes back right."""
    translations: dict[str, Translation] = {}
    remaining = list(texts)
    for placeholder in PLACEHOLDERS:
        protected = {text: text.replace(BLANK, placeholder) for text in remaining if _can_stand(placeholder, text)}
        if not protected:
            continue
        answers = engine.translate(list(protected.values()), placeholder)
        for text, answer in zip(protected, answers, strict=True):
            if answer is None:
                remaining.remove(text)
                continue
            restored = restore(answer, placeholder, text) if BLANK in text and not engine.human else answer
            if restored is not None or text not in translations:
                translations[text] = {
                    "source": text,
                    "translation": answer if restored is None else restored,
                    "engine": identity,
                    "placeholder": placeholder if BLANK in text and restored is not None else None,
                }
            if restored is not None:
                remaining.remove(text)
    return [translations[text] for text in texts if text in translations]


def _can_stand(placeholder: str, text: str) -> bool:
    """Whether a placeholder can stand for BLANK in a text: it doesn't stand there already."""
    return placeholder == BLANK or placeholder not in text


def restore(answer: str, placeholder: str, source: str) -> str | None:
    """A translation with BLANK put back; ``None`` where it didn't come back as often, or is glued to letters.

    >>> restore("Le XYZ chanta.", "XYZ", "The BLANK sang.")
    'Le BLANK chanta.'
    >>> restore("Le XYZ XYZ.", "XYZ", "The BLANK sang."), restore("Le XYZe.", "XYZ", "The BLANK sang.")
    (None, None)
    """
    expected = source.count(BLANK)
    if answer.count(placeholder) != expected:
        return None
    first, last = re.escape(placeholder[0]), re.escape(placeholder[-1])
    restored = re.sub(rf"(?<!{first}){re.escape(placeholder)}(?!{last})", BLANK, answer)
    intact = restored.count(BLANK) == expected and len(_GLUED.findall(restored)) <= len(_GLUED.findall(source))
    return restored if intact else None
