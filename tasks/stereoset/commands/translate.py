"""``lm-eval-bias stereoset translate``: a new language for StereoSet, by an engine and a person, kept in a folder.

What an engine has translated is kept text by text, so that nothing is asked twice. BLANK needs help on its way: where
an engine drops, doubles, bends or translates it, a placeholder stands for it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lm_eval_bias.core import __version__
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import expanded, read_bytes, write_whole, writing
from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.tasks.stereoset import own_sets
from lm_eval_bias.tasks.stereoset.commands import review
from lm_eval_bias.tasks.stereoset.commands.review import Texts
from lm_eval_bias.tasks.stereoset.commands.seq2seq_translation import Checkpoint
from lm_eval_bias.tasks.stereoset.commands.set_checks import CODES
from lm_eval_bias.tasks.stereoset.own_sets import DataSet
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, TESTS, read_all, spread

_EPILOG = """engines:
  {engines}

exit status: 0 complete, 1 some items still need a person, 2 bad usage or input

example:
  lm-eval-bias stereoset translate --to it -o it/ \\
      --engine hf:facebook/nllb-200-distilled-600M,source=eng_Latn,target=ita_Latn
  # fill in it/review.csv, then run the same command again: it applies the corrections and translates nothing twice
  lm-eval-bias run --include_path it/ --tasks stereoset_it --model hf --model_args pretrained=...
"""
ENGINES = {
    "hf": "hf:NAME_OR_FOLDER[,source=CODE,target=CODE,prefix=TEXT,beams=N,revision=NAME]",
    "file": "file:TABLE.csv or .tsv (two columns: text, translation)",
}
SHEET, OPEN_TEXTS, TRANSLATED = "review.csv", "untranslated.csv", "translated.jsonl"
_PLACEHOLDER = "XYZ"
_SOURCE, _SOURCE_NAME = "en", "StereoSet (English, published)"
_CARD = Path(__file__).with_name("data_card.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = "Translate StereoSet into another language, check every item, and list what needs a person."
    parser.epilog = _EPILOG.format(engines="\n  ".join(ENGINES.values()))
    add = parser.add_argument
    add("--to", required=True, metavar="LANG", help="code of the target language: it, nl, pt-BR, ...")
    add("--engine", required=True, metavar="ENGINE", help="translation engine: see below")
    add("-o", "--output", required=True, metavar="DIR", help="folder for the translation")
    add("--limit", type=int, metavar="N", help="translate only N items, spread over all groups, to try it out")
    add("--batch_size", type=int, default=16, metavar="N", help="texts per batch of a model (default 16)")


def run(arguments: argparse.Namespace) -> int:
    """Translate, apply what a person wrote, and write what is ready; status 1 where items are left for a person.

    Raises:
        BiasError: Bad usage or input.
    """
    language = own_sets.check_language(arguments.to, "--to")
    for name in ("limit", "batch_size"):
        if (number := getattr(arguments, name)) is not None and number < 1:
            raise BiasError(f"--{name} {number}: must be 1 or more")
    if language == _SOURCE:
        raise BiasError(f"--to {language}: this is the source's own language")
    engine = make_engine(arguments.engine, language, arguments.batch_size)
    left, said = translate_set(expanded(arguments.output), language, arguments.limit, engine)
    print(said)
    return 1 if left else 0


class TranslationTable:
    """``file:``: a CSV file with two columns, a text and its translation by a person."""

    def __init__(self, name: str) -> None:
        """Read the table; a first row that says what the columns are is none of its texts.

        Raises:
            BiasError: It cannot be read, or translates a text in two ways.
        """
        path, self.translations = expanded(name), dict[str, str]()
        rows = review.read_table(path, lambda row: len(row) == 2)
        for number, (where, row) in enumerate(rows):
            text, translation, *more = [cell.strip() for cell in (*row, "")]
            if len(row) < 2 or any(more):
                raise BiasError(f"{where}: {len(row)} columns: two are needed, text and translation")
            if number == 0 and text.lower() == "text":
                continue
            if translation and self.translations.setdefault(text, translation) != translation:
                raise BiasError(f"{where}: {text[:60]!r} has a different translation above")
        self.about = {"engine": "file", "name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def make_engine(spec: str, language: str, batch: int = 16) -> TranslationTable | Checkpoint:
    """Return the engine that ``--engine`` names, as :data:`ENGINES` says.

    Raises:
        BiasError: It is none, or cannot be had.
    """
    kind, _, argument = spec.partition(":")
    if kind not in ENGINES or not argument.strip():
        raise BiasError(f"--engine {spec}: must be one of {'; '.join(ENGINES.values())}")
    return TranslationTable(argument) if kind == "file" else Checkpoint(argument, (_SOURCE, language), batch)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the records of a file of JSON lines; none where there is no file, and none of a line that a kill has torn.

    Raises:
        BiasError: The file cannot be read.
    """
    records = []
    for line in own_sets.content_of(path).splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError, TypeError):
            records.append(dict(json.loads(line)))
    return records


def translate_texts(texts: Sequence[str], engine: Checkpoint, path: Path, languages: str) -> dict[str, str]:
    """Translate what a file of translations lacks, batch by batch; every batch is kept before the next one.

    Batches are the same however often the work was interrupted: texts that are padded together can change each
    other's last digits. The file has a line for each text and engine, whose identity says the languages, too.

    Raises:
        BiasError: What the engine raises, or a file that can't be read or written.
    """
    identity = f"{languages} {engine.identity}"
    known = {line["source"]: line["translation"] for line in read_lines(path) if line.get("engine") == identity}
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    # an error is one line: no bar before the first batch is done, and none left where a later one fails
    with tqdm(total=len(distinct), desc="Translating", unit=" texts", delay=1, leave=False) as bar:
        for start in range(0, len(distinct), engine.batch):
            batch = distinct[start : start + engine.batch]
            new: dict[str, str] = {}
            remaining = [text for text in batch if text not in known]
            for placeholder in (BLANK, _PLACEHOLDER):
                asked = [text.replace(BLANK, placeholder) for text in remaining]
                for text, answer in zip(list(remaining), engine.translate(asked) if asked else [], strict=True):
                    restored = restore(answer, placeholder, text) if BLANK in text else answer
                    if restored is not None:
                        remaining.remove(text)
                        new[text] = restored
                    new.setdefault(text, answer)
            records = [{"source": text, "translation": told, "engine": identity} for text, told in new.items()]
            lines = "".join(f"\n{json.dumps(record, ensure_ascii=False)}" for record in records)
            if records:
                with writing(path), path.open("ab") as file:  # behind line ends: none continues a torn line
                    file.write(lines.encode("utf-8", "replace"))
                    file.flush()
                    os.fsync(file.fileno())
            known |= new
            bar.update(len(batch))
        bar.leave = True
    return {text: known[text] for text in distinct}


def restore(answer: str, placeholder: str, source: str) -> str | None:
    """Put BLANK back into a translation; ``None`` where it didn't come back as often, or is glued to letters.

    >>> restore("Le XYZ chanta.", "XYZ", "The BLANK sang.")
    'Le BLANK chanta.'
    >>> restore("Le XYZ XYZ.", "XYZ", "The BLANK sang."), restore("Le XYZe.", "XYZ", "The BLANK sang.")
    (None, None)
    """
    restored = answer.replace(placeholder, BLANK)
    same = answer.count(placeholder) == restored.count(BLANK) == source.count(BLANK)
    glued = [len(re.findall(rf"(?<=\w){BLANK}|{BLANK}(?=\w)", text)) for text in (restored, source)]
    return restored if same and glued[0] <= glued[1] else None


def translate_set(
    folder: Path, language: str, limit: int | None, engine: TranslationTable | Checkpoint
) -> tuple[int, str]:
    """Translate what a folder lacks, apply its sheet, and write the items that are ready as a set with its tasks.

    Returns:
        How many items need a person, and what to tell the user.

    Raises:
        BiasError: The published items can't be had, what the engine raises, or a file in the folder that can't be read
            or written.
    """
    sheet, open_texts = folder / SHEET, folder / OPEN_TEXTS
    sources = {item["id"]: item for item in read_all(_SOURCE)}
    chosen = {item["id"] for item in spread(list(sources.values()))[:limit]}
    items = [item for name, item in sources.items() if name in chosen]
    review.read_sheet(sheet, sources)  # before hours of translating
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        open_texts.unlink(missing_ok=True)
    requested = list(dict.fromkeys(text for item in items for text in review.requested(item).values()))
    if isinstance(engine, TranslationTable):
        given = engine.translations
        translations = {text: given[text.strip()] for text in requested if text.strip() in given}
        if lacking := [[text, ""] for text in requested if text not in translations]:
            with writing(folder):
                write_whole(open_texts, review.as_csv(lacking))
    else:
        translations = translate_texts(requested, engine, folder / TRANSLATED, f"{_SOURCE}>{language}")
    texts: dict[str, Texts] = {}
    for item in items:
        texts[item["id"]] = found = {}
        for name, text in review.requested(item).items():
            if text in translations:
                found[name] = translations[text]
                if isinstance(engine, Checkpoint) and (name == "target" or name.endswith(" word")):
                    found[name] = review.like_source(found[name], text, language)
    states = review.review(sources, texts, language, sheet)

    ready = [review.with_texts(item, states[item["id"]].texts) for item in items if not states[item["id"]].open]
    counts = Counter(state.way for state in states.values())
    ways = {way: counts[way] for way in ("translated", "corrected", "accepted", "left out")}
    files = {file.pin: file.sha256 for file in manifest().resolve([f"stereoset_{_SOURCE}_{test}" for test in TESTS])}
    accepted = {name: state for name, state in sorted(states.items()) if state.accepted}
    provenance = {
        "made by": f"lm-eval-bias {__version__} stereoset translate",
        "source": {"name": _SOURCE_NAME, "language": _SOURCE, "sha256": files},
        "engine": engine.about,
        "items": ways,
        "reviewed": {
            "corrected": sorted(name for name, state in states.items() if state.corrected and not state.open),
            "accepted": {name: review.version(state.texts) for name, state in accepted.items()},
        },
    }
    command = _write(folder, DataSet(language, ready, provenance))
    lines = [
        f"{_SOURCE_NAME} in '{language}': {len(ready):,} of {len(items):,} items are ready ({ways['translated']:,} "
        f"translated, {ways['corrected']:,} corrected, {ways['accepted']:,} accepted as they are), "
        f"{ways['left out']:,} need a person"
    ]
    kinds = [{(f.level, f.code) for f in state.findings} for state in states.values() if not state.accepted]
    counted = Counter(kind for own in kinds for kind in own).most_common()
    lines += [f"{number:6,}  {level} {code}: {CODES[code]}" for (level, code), number in counted]
    if open_texts.exists():
        lines.append(f"Texts without a translation: {open_texts}, a table to fill in.")
    if ways["left out"]:
        lines.append(f"For a person: {sheet}: {review.HOW}; then run the same command again.")
    return ways["left out"], "\n".join([*lines, f"Run it: {command}"] if command else lines)


def _write(folder: Path, data_set: DataSet) -> str:
    """Write a set with its tasks and data card; return the command that runs them, empty where no item is ready."""
    language, told = data_set.language, data_set.provenance
    path, card = folder / f"stereoset_{language}.json", folder / "README.md"
    if not data_set.items:
        path.unlink(missing_ok=True)
        return ""
    own_sets.write(path, data_set)
    if language in LANGUAGES:
        command = f'lm-eval-bias run --tasks stereoset_{language} --metadata \'{{"dataset": "{path}"}}\' ...'
    else:
        task = own_sets.write_tasks(folder, path, data_set)[0].stem
        command = f"lm-eval-bias run --include_path {folder} --tasks {task} ..."
    with writing(folder):
        if not card.exists() or read_bytes(card).startswith(_CARD.read_bytes().splitlines()[0]):  # not somebody else's
            text = _CARD.read_text("utf-8").format(
                language=language,
                source=told["source"]["name"],
                items=told["items"],
                command=command,
                engine=json.dumps(told["engine"], ensure_ascii=False, indent=2),
                files=", ".join(f"`{name}` {digest}" for name, digest in told["source"]["sha256"].items()),
                digest=own_sets.digest(path),
            )
            write_whole(card, text.encode())
    return command
