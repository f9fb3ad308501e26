"""``lm-eval-bias stereoset translate``: a sheet in which people translate StereoSet, checked and made into a data set.

The sheet (CSV) has a row for each English item: its texts, a cell beside each for the translation, a cell to accept it
in spite of what the checks say, and one for comments. A program (``--with``) fills what is empty. Every run reads it,
checks the items, says in ``reasons`` what each still needs, and writes the items that are ready.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pandas

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.csv_text import csv_text, unguarded
from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.files import LARGEST, expanded, write
from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.tasks.shared import user_files
from lm_eval_bias.tasks.stereoset import custom_sets
from lm_eval_bias.tasks.stereoset.commands import translation_program
from lm_eval_bias.tasks.stereoset.commands.set_checks import check_item, check_items
from lm_eval_bias.tasks.stereoset.stereoset_items import LANGUAGES, read_all

SHEET = "translation.csv"
COLUMNS = (
    "id,test,bias type,term,reasons,accept,comment,source target,target,source context,context,"
    "source stereotype word,stereotype word,source stereotype,stereotype,"
    "source anti-stereotype word,anti-stereotype word,source anti-stereotype,anti-stereotype,"
    "source unrelated word,unrelated word,source unrelated,unrelated"
).split(",")
Row = dict[str, str]


def translate(*, to: str, output: str, with_: str | None = None) -> int:
    """Translate StereoSet, and list what needs a person.

    Write a sheet to translate StereoSet in, check what is filled in, and make a
    data set of what is ready.

    Args:
        to (LANG): code of the target language: it, nl, pt-BR, ...
        output (DIR): folder for the sheet and the data set
        with_ (COMMAND): program that fills empty cells: it reads English texts, one per line, and writes as many lines

    exit status: 0 complete, 1 some items still need a person, 2 bad usage or input

    Example:
      lm-eval-bias stereoset translate --to it -o it/
      # fill in it/translation.csv, then run the same command again
      lm-eval-bias run --include_path it/ --tasks stereoset_it --model hf --model_args pretrained=...
    """
    language = custom_sets.check_language(to, "--to")
    if language == "en":
        raise BiasError("--to en: this is the source's own language")
    folder = expanded(output)
    sources = read_all("en")
    rows = read_sheet(folder / SHEET, [source["id"] for source in sources])
    if with_ is not None:
        texts = list(map(texts_of, sources))
        filled = translation_program.fill(texts, rows, with_, language)
        print(f"{filled:,} cells were filled by {with_}")
    ready = []
    for source, row in zip(sources, rows, strict=True):
        item = translated(source, row)
        lacking = [name for name, text in texts_of(item).items() if not text]
        faults = [] if lacking else check_item(item, source)
        row |= {
            "test": source["test"],
            "bias type": source["bias_type"],
            "term": source["term"],
        }
        row |= {f"source {name}": text for name, text in texts_of(source).items()}
        row["reasons"] = "; ".join(faults)
        if lacking:
            row["reasons"] = f"no translation yet: {', '.join(lacking)}"
        elif not faults or row["accept"]:
            ready.append(item)
    # a byte order mark tells spreadsheet programs that this is UTF-8
    write(
        "\ufeff" + csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in rows)),
        str(folder / SHEET),
    )
    left = len(sources) - len(ready)
    print(
        f"StereoSet in {language!r}: {len(ready):,} of {len(sources):,} items are ready, {left:,} need a person:"
    )
    print(
        f"{folder / SHEET} says why; fill in or correct texts, or write x into 'accept', and run the command again"
    )
    if ready:
        check_items(ready, SHEET)  # what was accepted, but no task can have
        _write_set(folder, language, ready)
    return 1 if left else 0


def read_sheet(path: Path, ids: Sequence[str]) -> list[Row]:
    """Read a sheet's rows in the order of ids; empty cells where there is no file or row.

    Between its cells stands a comma, a semicolon or a tab, whichever its first line has most.

    Raises:
        BiasError: It can't be understood; names the item.
    """
    rows = {name: {**dict.fromkeys(COLUMNS, ""), "id": name} for name in ids}
    if not path.exists():
        return list(rows.values())
    text = user_files.text_of(path, str(path), LARGEST)
    mark = max(",;\t", key=text.partition("\n")[0].count)
    try:
        sheet = pandas.read_csv(
            io.StringIO(text, newline=None), sep=mark, dtype=str, na_filter=False
        )
    except ValueError as error:
        raise BiasError(f"{path}: not a table in CSV ({one_line(error)})") from error
    if set(sheet) != set(COLUMNS):
        raise BiasError(f"{path}: needs the columns {', '.join(COLUMNS)}")
    sheet = sheet[sheet.ne("").any(axis=1)]
    left = set(ids)
    for read in sheet.to_dict("records"):
        row = {name: unguarded(" ".join(read[name].split())) for name in COLUMNS}
        if row["id"] not in left or row["accept"] not in ("", "x", "X"):
            raise BiasError(
                f"{path}, item {row['id']!r}: the id must be that of a StereoSet item that has no row above, and "
                "'accept' must be x or empty"
            )
        left.remove(row["id"])
        rows[row["id"]] = row
    return list(rows.values())


def texts_of(item: Facts) -> Row:
    """Return an item's texts by their column in the sheet.

    >>> item = {"test": "intra", "target": "nurse", "context": "A BLANK nurse.",
    ...         "candidates": [{"label": "unrelated", "word": "red", "sentence": "A red nurse."}]}
    >>> texts_of(item)
    {'target': 'nurse', 'context': 'A BLANK nurse.', 'unrelated word': 'red', 'unrelated': 'A red nurse.'}
    """
    texts = {"target": item["target"], "context": item["context"]}
    for candidate in item["candidates"]:
        if candidate["word"] is not None:
            texts[f"{candidate['label']} word"] = candidate["word"]
        texts[candidate["label"]] = candidate["sentence"]
    return texts


def translated(source: Facts, row: Row) -> Data:
    """Replace an item's texts by a row's; ids, labels, bias type and term stay.

    Within sentences a candidate's sentence is the context with the word in its blank, unless a person wrote another;
    its word is what stands in the blank of that sentence, unless they wrote it, too.
    """
    item: Data = {
        **source,
        "target": row["target"],
        "context": row["context"],
        "candidates": [],
    }
    for candidate in source["candidates"]:
        sentence = row[candidate["label"]]
        word = None
        if source["test"] == "intra":
            word = row[f"{candidate['label']} word"] or custom_sets.word_of(
                row["context"], sentence
            )
            sentence = sentence or row["context"].replace(BLANK, word)
        item["candidates"].append({**candidate, "sentence": sentence, "word": word})
    return item


def _write_set(folder: Path, language: str, items: list[Data]) -> None:
    """Write the items that are ready as a set with its tasks, and print how to run it."""
    path = folder / f"stereoset_{language}.json"
    data_set = custom_sets.DataSet(language, items)
    custom_sets.write(path, data_set)
    options = f'--tasks stereoset_{language} --metadata \'{{"dataset": "{path}"}}\''
    if language not in LANGUAGES:
        task = custom_sets.write_tasks(folder, path, data_set)[0].stem
        options = f"--include_path {folder} --tasks {task}"
    print(f"Run it: lm-eval-bias run {options} ...")
