"""KoBBQ's documents and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from lm_eval_bias.custom_metrics.question_answering import QuestionRecord
from lm_eval_bias.data import sources
from lm_eval_bias.tasks.kinds import bbq_records as question_records
from lm_eval_bias.tasks.kinds import lettered_questions
from lm_eval_bias.tasks.kinds.lettered_questions import LetteredQuestion
from lm_eval_bias.tasks.kobbq import released_samples
from lm_eval_bias.tasks.kobbq.benchmark import ORDERS, PROMPTS


class KoBBQDocument(LetteredQuestion):
    """A sample in a prompt and an order of its options."""

    item: str  # sample_id
    category: str
    question_type: str  # bsd (biased) or cnt (counter-biased)
    annotation: str  # label_annotation: ST, TM or NC
    wording: int  # the prompt's number
    revision: str  # commit of its file


def _prompts() -> Mapping[int, released_samples.Prompt]:
    return _prompts_of(sources.manifest().files["kobbq_evaluation_prompts"].sha256)


@cache
def _prompts_of(_: str) -> Mapping[int, released_samples.Prompt]:
    """The prompts of the file with this hash, read once."""
    return released_samples.prompts()


def documents(
    category: str | None = None,
    prompt: int | None = None,
    fixed: Mapping[str, object] | None = None,
    **metadata: object,
) -> list[KoBBQDocument]:
    """The samples, each in three cyclic orders of its options, in one of the authors' prompts or in all.

    Args:
        category: One of the twelve; all by default.
        prompt: 1 to 5.
        fixed: What the task's YAML sets and ``--metadata`` may not change: all prompts, whether answers are generated.
        metadata: The rest, which says nothing about documents.

    Raises:
        BiasError: An unknown prompt, or data that cannot be had.
    """
    own = fixed or {}
    numbers = PROMPTS.chosen({"prompt": prompt, "fixed": own})
    revision = sources.manifest().files["kobbq_samples"].commit[:12]
    docs: list[Any] = []
    for sample in released_samples.samples(category):
        for order in ORDERS:
            for number in numbers:
                choices = [*sample["choices"], _prompts()[number].unknown]
                docs.append(
                    {
                        "benchmark": "kobbq_prompts" if len(numbers) > 1 else "kobbq",
                        "language": "ko",
                        **sample,
                        "choices": choices,
                        "answer": choices[sample["label"]],
                        "wording": number,
                        "order": order,
                        "letters": _prompts()[number].letters,
                        "generated": own.get("answers") == "generated",
                        "revision": revision,
                    }
                )
    return docs


def dataset(**metadata: Any) -> dict[str, list[KoBBQDocument]]:
    """The documents as the harness wants them, by split."""
    return {"test": documents(**metadata)}


def prompt(doc: KoBBQDocument) -> str:
    """The authors' prompt of the document's number, its options in the document's order."""
    shown = dict(zip("abc", (doc["choices"][choice] for choice in doc["order"]), strict=True))
    return _prompts()[doc["wording"]].template.format(context=doc["context"], question=doc["question"], **shown)


def continuations(doc: KoBBQDocument) -> list[str]:
    """What is scored for each choice: its letter in the prompt."""
    return [doc["letters"][doc["order"].index(choice)] for choice in range(len(doc["choices"]))]


def record(doc: KoBBQDocument, results: Sequence[Any]) -> QuestionRecord:
    """What the answer to one document says: which person or nobody, right or wrong.

    Args:
        doc: The document.
        results: Per choice ``(log-likelihood, is greedy)``, or the letter that was read.

    Raises:
        BiasError: The number of answers is wrong.
    """
    names = [question_records.named(doc, choice) for choice in range(len(doc["choices"]))]
    generated = question_records.check_number(doc, results, len(names))
    if generated:
        answer = lettered_questions.answer_of(doc, results[0])
    else:
        answer = question_records.likeliest(names, [float(result[0]) for result in results])
    return question_records.record(
        doc, answer, shows_options=True, category=doc["category"], wording=doc["wording"], generated=generated
    )
