"""GG-BBQ's documents and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.custom_metrics.question_answering import QuestionRecord
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.tasks.gg_bbq import option_orders, prompts, released_items
from lm_eval_bias.tasks.gg_bbq.benchmark import WORDINGS
from lm_eval_bias.tasks.gg_bbq.prompts import GGBBQDocument, prompt
from lm_eval_bias.tasks.kinds import bbq_records as question_records

__all__ = ["continuations", "dataset", "documents", "prompt", "provenance", "record"]


def documents(
    subset: str, wording: int | None = None, fixed: Mapping[str, object] | None = None, **metadata: object
) -> list[GGBBQDocument]:
    """The items of a subset in one prompt wording, or in all five.

    Items come in turn from every template, and no option keeps a place in the prompts (in the released files "keine
    Antwort" is always the last): see :func:`.option_orders.arranged`.

    Args:
        subset: ``group_terms`` or ``names``.
        wording: 1 to 5.
        fixed: What the task's YAML sets and ``--metadata`` may not change: all wordings, the release, whether answers
            are generated.
        metadata: The rest, which says nothing about documents.

    Raises:
        BiasError: An unknown wording, or data that cannot be had.
    """
    own = fixed or {}
    if "release" in metadata:
        raise BiasError("--metadata release: the paper's release has tasks of its own, gg_bbq_*_paper")
    wordings = WORDINGS.chosen({"wording": wording, "fixed": own})
    release = str(own.get("release", released_items.LATEST))
    revision = manifest().files[f"{released_items.files(subset, release)}_ambiguous"].commit[:12]
    return [
        {
            "benchmark": "gg_bbq_prompts" if len(wordings) > 1 else "gg_bbq",
            **item,
            "answer": item["choices"][item["label"]],
            "release": release,
            "revision": revision,
            "wording": number,
            "order": order,
            "letters": prompts.letters(number, order),
            "generated": own.get("answers") == "generated",
        }
        for quadruple, order in option_orders.arranged(released_items.quadruples(subset, release))
        for item in quadruple
        for number in wordings
    ]


def provenance(docs: Sequence[GGBBQDocument]) -> dict[str, Any]:
    """Which release the documents are of; older logs don't say it."""
    if not docs or "revision" not in docs[0]:
        return {}
    which = "the paper's" if docs[0]["release"] == released_items.PAPER else "the latest"
    return {"release_used": f"{which}, {docs[0]['revision']}"}


def dataset(**metadata: Any) -> dict[str, list[GGBBQDocument]]:
    """The documents as the harness wants them, by split."""
    return {"test": documents(**metadata)}


def continuations(doc: GGBBQDocument) -> list[str]:
    """What is scored for each choice: its text, or its letter where the prompt has letters."""
    return list(doc["letters"] or doc["choices"])


def record(doc: GGBBQDocument, results: Sequence[Any]) -> QuestionRecord:
    """What the answer to one item says: which person or nobody, right or wrong.

    Args:
        doc: The document.
        results: Per choice ``(log-likelihood, is greedy)``, perhaps with its number of tokens, or the one parsed text.

    Raises:
        BiasError: The number of answers is wrong.
    """
    choices = doc["choices"]
    generated = question_records.check_number(doc, results, len(choices))
    names = [question_records.named(doc, choice) for choice in range(len(choices))]
    if generated:
        answer = names[choices.index(results[0])] if results[0] in choices else "none"
    else:
        answer = question_records.likeliest(names, [float(result[0]) for result in results])
    by_rule = {} if generated else {"by_rule": question_records.by_length(names, continuations(doc), results)}
    return question_records.record(
        doc,
        answer,
        shows_options=prompts.shows_options(doc["wording"]),
        value=doc["value"],
        wording=doc["wording"],
        generated=generated,
        **by_rule,
    )
