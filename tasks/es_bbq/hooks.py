"""EsBBQ's and CaBBQ's documents and records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import yaml

from lm_eval_bias.custom_metrics.question_answering import QuestionRecord
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.tasks.es_bbq import released_rows
from lm_eval_bias.tasks.kinds import bbq_records as question_records
from lm_eval_bias.tasks.kinds import lettered_questions
from lm_eval_bias.tasks.kinds.lettered_questions import LETTERS, LetteredQuestion

PERSONS = 2


class EsBBQDocument(LetteredQuestion):
    """An item of EsBBQ or CaBBQ."""

    item: int  # instance_id
    category: str
    value: str  # the relevant social value
    question_type: str  # pro-stereo, anti-stereo, n/a
    polarity: str  # neg or nonneg
    revision: str  # commit of its file


@cache
def wordings(language: str) -> Mapping[str, Any]:
    """Prompts and wordings of "unknown" in a language."""
    text = resources.files("lm_eval_bias.tasks.es_bbq").joinpath("data/wordings.yaml").read_text(encoding="utf-8")
    own: Mapping[str, Any] = yaml.safe_load(text)[language]
    return own


def documents(
    language: str, category: str, fixed: Mapping[str, object] | None = None, **metadata: object
) -> list[EsBBQDocument]:
    """The items of a category.

    Args:
        language: ``es`` or ``ca``.
        category: One of those that :data:`.benchmark.ITEMS` counts.
        fixed: What the task's YAML sets and ``--metadata`` may not change: whether answers are generated.
        metadata: The rest, which says nothing about documents.

    Raises:
        BiasError: Data that cannot be had.
    """
    generated = (fixed or {}).get("answers") == "generated"
    revision = manifest().files[f"{language}_bbq_{category}"].commit[:12]
    items = released_rows.questions(language, category)
    cells = [(q["template"], q["context_type"], q["question_type"], q["polarity"]) for q in items]
    docs: list[Any] = []
    for item, order in zip(items, lettered_questions.orders(cells), strict=True):
        choices = [*item.pop("choices"), wordings(language)["unknown"][0]]
        docs.append(
            {
                "benchmark": "es_bbq",
                "language": language,
                "category": category,
                **item,
                "choices": choices,
                "answer": choices[item["label"]],
                "order": order,
                "letters": LETTERS if generated else "",
                "generated": generated,
                "revision": revision,
            }
        )
    return docs


def dataset(**metadata: Any) -> dict[str, list[EsBBQDocument]]:
    """The documents as the harness wants them, by split."""
    return {"test": documents(**metadata)}


def prompt(doc: EsBBQDocument) -> str:
    """The authors' prompt; with lettered options where the model writes its answer."""
    own = wordings(doc["language"])
    if not doc["generated"]:
        return str(own["prompt"].format(context=doc["context"], question=doc["question"]))
    return str(
        own["lettered"].format(
            context=doc["context"], question=doc["question"], options=lettered_questions.options(doc)
        )
    )


def continuations(doc: EsBBQDocument) -> list[str]:
    """What is scored: both persons, and every wording of "unknown"."""
    return [*doc["choices"][:PERSONS], *wordings(doc["language"])["unknown"]]


def names(doc: LetteredQuestion, options: int) -> list[str]:
    """Whom each option names: all behind the two persons are "unknown"."""
    return [question_records.named(doc, min(i, PERSONS)) for i in range(options)]


def record(doc: EsBBQDocument, results: Sequence[Any]) -> QuestionRecord:
    """What the answer to one item says.

    Args:
        doc: The document.
        results: Of each option ``(log-likelihood, is greedy)``, perhaps with its number of tokens; or the letter read.

    Raises:
        BiasError: The number of answers is wrong.
    """
    texts = continuations(doc)
    generated = question_records.check_number(doc, results, len(texts))
    if generated:
        answer = lettered_questions.answer_of(doc, results[0])
        more: dict[str, Any] = {}
    else:
        own, values = names(doc, len(results)), [float(result[0]) for result in results]
        answer = question_records.likeliest(own, values)
        three = question_records.likeliest(own[: PERSONS + 1], values[: PERSONS + 1])
        more = {"by_rule": {**question_records.by_length(own, texts, results), "three": three}}
    return question_records.record(
        doc,
        answer,
        shows_options=generated,
        value=doc["value"],
        category=doc["category"],
        generated=generated,
        **more,
    )


def record_of_harness(doc: Mapping[str, Any], results: Sequence[Any]) -> QuestionRecord:
    """Read an answer of the harness's own ``esbbq_*`` and ``cabbq_*``; as there, the first of equally likely options.

    Args:
        doc: The document as the harness logs it.
        results: Of each of the eleven options ``(log-likelihood, is greedy)``.
    """
    infos = [doc["answer_info"][f"ans{i}"] for i in range(3)]
    own: Any = {
        **released_rows.question(doc, infos, doc["stereotyped_groups"]),
        "choices": [doc["ans0"], doc["ans1"], question_records.UNKNOWN],
    }
    first = []
    for values in ([float(r[0]) for r in results], [float(r[0]) for r in results[: PERSONS + 1]]):
        is_nan = any(map(math.isnan, values))
        first.append("nan" if is_nan else names(own, len(values))[values.index(max(values))])
    more = {"value": own["value"], "category": str(doc["category"]), "by_rule": {"three": first[1]}}
    return question_records.record(own, first[0], shows_options=False, generated=False, **more)
