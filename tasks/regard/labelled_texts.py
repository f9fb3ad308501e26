"""Texts about women and men that were labelled elsewhere, to be scored, and the labels of a run's own."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from lm_eval_bias.core import Data, registry
from lm_eval_bias.core.answers import (
    NotOurs,
    Reader,
    SavedSample,
    SavedSamples,
    SavedTask,
)
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import LARGEST, check_plain, expanded, write_new
from lm_eval_bias.custom_metrics.regard import OTHER, REGARDS
from lm_eval_bias.custom_metrics.score import Answers
from lm_eval_bias.tasks.regard import regard_texts
from lm_eval_bias.tasks.regard.classifier_identity import LABELS, Identity
from lm_eval_bias.tasks.regard.hooks import regard_document
from lm_eval_bias.tasks.shared import user_files

FORMATS = (".csv", ".jsonl")
_WORDS = {
    "female": ("female", "female_single", "f", "woman", "women", "frau"),
    "male": ("male", "male_single", "m", "man", "men", "mann"),
}
_GENDERS = {word: gender for gender, words in _WORDS.items() for word in words}
_REGARDS = {"": "", "none": "", **{name: name for name in LABELS}}
_REGARDS |= {str(number): name for number, name in enumerate(LABELS)}
_REGARDS |= {f"{number}.0": name for number, name in enumerate(LABELS)}
_LONGEST = 1 << 20


def rows(path: Path, schema: str = "texts_schema.json") -> list[tuple[str, Data]]:
    """Return each row's place in a file, and its values by column, in lower case.

    Raises:
        BiasError: Not readable, not UTF-8, not of the format that its ending says, a row without text, or no rows.
    """
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise BiasError(f"{path}: must end in {', '.join(FORMATS)}")
    text = user_files.text_of(path, str(path), LARGEST)
    package = "lm_eval_bias.tasks.regard"
    return user_files.rows(text, str(path), package, schema, kind)


def matches(path: Path) -> bool:
    """Return whether a file's header has a text and a gender column."""
    name = {".jsonl": r'"(\w+)":', ".csv": r"\w+"}.get(path.suffix.lower())
    with contextlib.suppress(OSError):
        if name:
            check_plain(path)
            # what is no text is said when it is read; a file of one line can be all there is
            with path.open(encoding="utf-8-sig", errors="replace") as file:
                line = file.readline(_LONGEST).lower()
            return {"text", "gender"} <= set(re.findall(name, line))
    return False


def read(path: Path, language: str | None = None) -> SavedSamples:
    """Read labelled texts as saved answers of ``regard_<language>``, one document per text.

    Args:
        path: JSONL or CSV with ``text``, ``gender`` and ``regard``, which may be absent where the texts are classified
            next; case doesn't matter.
        language: ``de`` or ``en``; without it, that of the subject with which the first text begins.

    Raises:
        BiasError: A damaged file, a gender or regard that is none, a gender that contradicts the text, no text, or
            no language.
    """
    found = rows(path)
    for known in regard_texts.LANGUAGES:
        if language is None and regard_texts.gender_of(found[0][1]["text"], known):
            language = known
    if language not in regard_texts.LANGUAGES:
        raise NotOurs(
            f"{path}: name the language of its texts with --language: {' or '.join(regard_texts.LANGUAGES)}"
        )
    labelled = []  # text, gender, regard
    for where, row in found:
        text = row["text"]
        gender = _GENDERS.get(str(row.get("gender")).strip().lower())
        regard = _REGARDS.get(str(row.get("regard")).strip().lower())
        if gender is None:
            raise NotOurs(
                f"{where}: gender {row.get('gender')!r}: must be female or male (or f, m, FEMALE_SINGLE, ...)"
            )
        if regard is None:
            raise BiasError(
                f"{where}: regard {row.get('regard')!r}: must be a number from 0 to 3, or {', '.join(LABELS)}"
            )
        subject = regard_texts.gender_of(text, language)
        if subject not in (None, gender):
            raise BiasError(
                f"{where}: gender {gender}, but the text is about a {subject} subject: {text[:40]!r}"
            )
        labelled.append((text, gender, regard))
    named, warning = (
        "; ".join(sorted({str(row.get(key) or "") for _, row in found} - {""}))
        for key in ("classifier", "warning")
    )
    has_other = any(regard == OTHER for *_, regard in labelled)
    labels = LABELS if has_other else REGARDS
    identity = Identity(named or "labels of the file", path.name, labels, warning)
    part = SavedTask(path, f"regard_{language}", "none", registry.get("regard"))
    for text, gender, regard in labelled:
        doc = regard_document(language, identity, {"gender": gender})
        yield SavedSample(part, doc, [[[text, regard]]])


def written(
    docs: Documents, results: Sequence[Answers], name: str
) -> tuple[Documents, Sequence[Answers]]:
    """Write the texts of a task with their labels to ``<language>.jsonl`` in a folder, and change nothing.

    Args:
        docs: Documents of one language.
        results: Their answers.
        name: The folder.

    Raises:
        BiasError: The file is there already, or can't be written.
    """
    lines = []
    for doc, (answer,) in zip(docs, results, strict=True):
        used = doc["classifier"]
        about = {"gender": doc["gender"], "classifier": used["name"]}
        about["warning"] = used["warning"]
        for text, regard, *probabilities in answer:
            named = zip(used["labels"], probabilities, strict=False)
            row = {"text": text, "regard": regard, **about}
            row |= {f"p_{label}": float(value) for label, value in named}
            if not regard_texts.is_dropped([text, regard]):
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    path = expanded(name) / f"{docs[0]['language']}.jsonl"
    write_new("".join(lines), path, f"--labels {name}")
    return docs, results


READER = Reader("labelled texts about women and men (JSONL or CSV)", matches, read)
