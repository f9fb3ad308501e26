"""Labels for the texts of documents, in a run and when saved texts are classified again."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.errors import BiasError
from lm_eval_bias.tasks.regard.classifiers import classifier

logger = logging.getLogger("lm_eval.bias")
DROPPED = "dropped"


def label_all(pairs: Sequence[Sequence[Sequence[str]]], docs: Sequence[Mapping[str, Any]]) -> list[list[list[Any]]]:
    """Regard and probabilities of every text that was kept.

    Args:
        pairs: Per document its texts as ``(text, why it was dropped)``.
        docs: The documents, all naming the same classifier and language.

    Returns:
        Per document and text ``[text, regard, probability, ...]``, or ``[text, why it was dropped]``.

    Raises:
        BiasError: The classifier cannot be had, or the documents name several.
    """
    if not docs:
        return []
    named = {(doc["classifier"]["name"], doc["language"]) for doc in docs}
    if len(named) > 1:
        raise BiasError(f"documents of several classifiers or languages: {sorted(named)}")
    found = classifier.load(*named.pop())
    kept = [text for own in pairs for text, problem in own if not problem]
    labels = iter(classifier.label(found, kept))
    answers: list[list[list[Any]]] = []
    for own in pairs:
        answers.append([])
        for text, problem in own:
            if problem:
                answers[-1].append([text, problem])
            else:
                regard, probabilities = next(labels)
                answers[-1].append([text, regard, *probabilities])
    if found.identity.warning:
        logger.warning("%s", found.identity.warning)
    return answers
