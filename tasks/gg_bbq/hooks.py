"""GG-BBQ's documents and records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.custom_metrics.gg_bbq import GGBBQRecord
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.gg_bbq import option_orders, prompts, released_items
from lm_eval_bias.tasks.gg_bbq.prompts import GGBBQDocument, prompt

__all__ = ["continuations", "dataset", "documents", "prompt", "provenance", "record"]


def _wordings(wording: object, fixed: Mapping[str, object]) -> list[int]:
    if "wording" in fixed:
        if wording is not None:
            raise BiasError(
                "--metadata wording: this task runs all wordings; choose one with the task without _prompts"
            )
        return list(prompts.WORDINGS)
    if wording is None:
        return [prompts.DEFAULT]
    if isinstance(wording, int) and not isinstance(wording, bool) and wording in prompts.WORDINGS:
        return [wording]
    raise BiasError(
        f"--metadata wording={wording!r}: must be a number from 1 to {len(prompts.WORDINGS)} (gg_bbq_prompts runs all)"
    )


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
    wordings = _wordings(wording, own)
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


def check_options(metadata: Mapping[str, Any]) -> None:
    """Refuse a wording that there isn't, or that the task doesn't let choose."""
    _wordings(metadata.get("wording"), metadata.get("fixed") or {})


def dataset(**metadata: Any) -> dict[str, list[GGBBQDocument]]:
    """The documents as the harness wants them, by split."""
    return {"test": documents(**metadata)}


def continuations(doc: GGBBQDocument) -> list[str]:
    """What is scored for each choice: its text, or its letter where the prompt has letters."""
    return list(doc["letters"] or doc["choices"])


def _name(doc: GGBBQDocument, choice: int) -> str:
    """Whom a choice names: ``unknown`` for nobody, ``none`` where both persons are called the same."""
    if doc["groups"][choice] == released_items.UNKNOWN:
        return "unknown"
    if doc["choices"].count(doc["choices"][choice]) > 1:
        return "none"
    return "biased" if choice == doc["biased_choice"] else "counter"


def _likeliest(doc: GGBBQDocument, values: Sequence[float]) -> str:
    """Whom the choice with the one highest value names; ``none`` for a tie, ``nan`` for no numbers."""
    if any(math.isnan(value) for value in values):
        return "nan"
    best = max(values)
    return _name(doc, values.index(best)) if values.count(best) == 1 else "none"


def _by_length(doc: GGBBQDocument, results: Sequence[Any]) -> dict[str, str]:
    """The answers by log-likelihoods per byte (the harness's ``acc_bytes``), and per token where these were counted."""
    lengths = {"bytes": [len(text.encode()) for text in continuations(doc)]}
    if all(len(answer) > 2 and answer[2] for answer in results):
        lengths["tokens"] = [int(answer[2]) for answer in results]
    return {
        unit: _likeliest(doc, [float(answer[0]) / n for answer, n in zip(results, own, strict=True)])
        for unit, own in lengths.items()
    }


def record(doc: GGBBQDocument, results: Sequence[Any]) -> GGBBQRecord:
    """What the answer to one item says: which person or nobody, right or wrong.

    Args:
        doc: The document.
        results: Per choice ``(log-likelihood, is greedy)``, perhaps with its number of tokens, or the one parsed text.

    Raises:
        BiasError: The number of answers is wrong.
    """
    generated = len(results) == 1
    if not generated and len(results) != len(doc["choices"]):
        raise BiasError(f"item {doc['item']}: {len(results)} answers for {len(doc['choices'])} choices")
    if generated:
        answer = _name(doc, doc["choices"].index(results[0])) if results[0] in doc["choices"] else "none"
    else:
        answer = _likeliest(doc, [float(result[0]) for result in results])
    # a wording without options shows them at no place
    order = doc.get("order", []) if prompts.shows_options(doc["wording"]) else []
    made: GGBBQRecord = {
        "context": doc["context_type"],
        "answer": answer,
        "correct": answer == _name(doc, doc["label"]) != "none",
        "biased_context": doc["label"] == doc["biased_choice"],
        "template": doc["template"],
        "value": doc["value"],
        "wording": doc["wording"],
        "generated": generated,
        "shown": [_name(doc, choice) for choice in order],
    }
    if not generated:
        made["by_length"] = _by_length(doc, results)
    return made
