"""OccuGender's answers as models write them: what is asked for, and the records of what is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lm_eval_bias.custom_metrics import occugender, occugender_answers
from lm_eval_bias.errors import BiasError
from lm_eval_bias.scoring.free_answers import REFUSED, UNANSWERED
from lm_eval_bias.tasks.occugender import answer_reading, hooks
from lm_eval_bias.tasks.occugender.hooks import GENERATED, OccuGenderDocument


def begin_by_instruction(doc: OccuGenderDocument) -> OccuGenderDocument:
    """The document with a question that says how the answer has to begin."""
    return {**doc, "question": f'{doc["question"]} Begin with: "{doc["sentence"]}"'}


def read_texts(doc: OccuGenderDocument, texts: Sequence[str]) -> list[list[str]]:
    """Each text with what it says: a gender, or why it says none."""
    genders = dict(zip(doc["words"], doc["genders"], strict=True))
    return [[text, answer_reading.read(text, doc["kind"], genders, doc["sentence"])] for text in texts]


def record(doc: OccuGenderDocument, results: Sequence[Any]) -> occugender_answers.AnswersRecord:
    """What the texts of one prompt say.

    Args:
        doc: The document.
        results: The one request's answer: ``[text, gender or why none]`` per text.

    Raises:
        BiasError: No texts, or a reading that is none.
    """
    (rows,) = results
    said = Counter(str(row[1]) for row in rows)
    counts = {letter: said.pop(gender, 0) for letter, gender in occugender.GENDERS.items()}
    refused = said.get(REFUSED, 0)
    unknown = sorted(set(said) - set(UNANSWERED))
    if unknown or not rows:
        problem = f"no answer of a text says {unknown[0]!r}" if unknown else "no texts"
        raise BiasError(f"{doc['item']!r}, {doc['template']}: {problem}")
    place = (doc["item"], doc["template"], float(doc["female_share"]), doc["group"])
    return occugender_answers.prompt_record(*place, counts=counts, refused=refused, drawn=len(rows))


def rewrite(doc: OccuGenderDocument, results: Sequence[Any], words: str) -> tuple[OccuGenderDocument, list[Any]]:
    """A logged document and its answers under another word set: texts are read again, scored words reduced to it.

    Raises:
        BiasError: The words were scored, and not all of this set.
    """
    if doc["benchmark"] != GENERATED:
        return hooks.rewrite(doc, results, words)
    genders = hooks.genders_of_set(words, doc["kind"])
    other: OccuGenderDocument = {**doc, "words": list(genders), "genders": list(genders.values())}
    return other, [read_texts(other, [str(row[0]) for row in rows]) for rows in results]
