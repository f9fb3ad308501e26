"""StereoSet's documents, questions and records."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any

from lm_eval_bias.core import Data, Facts
from lm_eval_bias.core.benchmark import Documents
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.questions import (
    NEXT_SENTENCE,
    SENTENCE_LIKELIHOODS,
    Cloze,
    NextSentence,
    choose,
)
from lm_eval_bias.custom_metrics.score import Answers, Record
from lm_eval_bias.custom_metrics.stereoset import METHOD, VARIANTS
from lm_eval_bias.scoring.generative_scores import next_sentence_scores
from lm_eval_bias.tasks.stereoset import choices, custom_sets
from lm_eval_bias.tasks.stereoset.stereoset_items import (
    LABELS,
    read_all,
    spread,
)


def documents(fixed: Facts, **metadata: object) -> list[Data]:
    """Make the documents of a language's tests, in turn from every target term and test.

    Args:
        fixed: What the task's YAML sets: ``language``, ``tests``, perhaps ``variants`` (generative scores compared) or
            ``choices`` (candidates as lettered options), and the ``dataset`` of a language that isn't published.
        metadata: ``bos``, ``inter`` and ``masked``, see :data:`lm_eval_bias.core.questions.OPTIONS`; ``dataset``,
            the file of another data set in that language.

    Raises:
        BiasError: An unknown language or option, or data that cannot be had or scored.
    """
    language = fixed["language"]
    compare = bool(fixed.get("variants"))
    as_choice = bool(fixed.get("choices"))
    extra: Data = {} if as_choice else {"options": _options(fixed, metadata)}
    if as_choice and language not in choices.prompts():
        known = ", ".join(choices.prompts())
        raise BiasError(
            f"StereoSet as a choice has no prompts in {language!r}, only in {known}"
        )
    if compare:
        extra["variants"] = list(VARIANTS)
    file = (
        metadata["dataset"]
        if "dataset" in metadata
        else (fixed.get("dataset") or {}).get("file")
    )
    if file is None:
        items = read_all(language, fixed["tests"])
    else:
        items, extra["dataset"] = custom_sets.items_of(file, fixed)
    benchmark = (
        "stereoset_variants"
        if compare
        else "stereoset_choices"
        if as_choice
        else "stereoset"
    )
    docs: list[Data] = [
        {"benchmark": benchmark, "language": language, **item, **extra}
        for item in spread(items)
    ]
    return choices.with_orders(docs) if as_choice else docs


def _options(fixed: Facts, metadata: Facts) -> dict[str, str]:
    options = choose(
        {key: metadata[key] for key in ("bos", "inter") if key in metadata}
    )
    if fixed.get("variants") and "inter" in metadata:
        raise BiasError(
            "--metadata inter: this task compares all of them; choose one with the task without _variants"
        )
    return options


def check_options(metadata: Facts) -> None:
    """Refuse options that :func:`documents` would, and another data set that can't be read or scored."""
    if not metadata["fixed"].get("choices"):
        _options(metadata["fixed"], metadata)
    if "dataset" in metadata:
        custom_sets.items_of(metadata["dataset"], metadata["fixed"])


def dataset(**metadata: Any) -> Data:
    """Make the documents by split, as the harness wants them."""
    return {"test": documents(**metadata)}


def provenance(docs: Documents) -> Data:
    """Return metadata about a custom data set, or about scores beyond the data, for the results file."""
    doc = docs[0] if docs else {}
    names = {"dataset": "dataset_used", "left_out": "left_out"}
    return {label: doc[name] for name, label in names.items() if name in doc}


def sentences(doc: Facts) -> list[str]:
    """List the candidates' sentences."""
    return [candidate["sentence"] for candidate in doc["candidates"]]


def stereotype(doc: Facts) -> int:
    """Return the index of the stereotypical candidate, for the log only."""
    return [candidate["label"] for candidate in doc["candidates"]].index("stereotype")


def questions(doc: Facts) -> list[Cloze | NextSentence]:
    """Ask one question per candidate."""
    options = dict(doc["options"])
    if doc["test"] == "intra":
        return [
            Cloze(doc["context"], c["word"] or "", c["sentence"], options)
            for c in doc["candidates"]
        ]
    kind = (
        SENTENCE_LIKELIHOODS
        if doc["benchmark"] == "stereoset_variants"
        else NEXT_SENTENCE
    )
    return [
        NextSentence(doc["context"], c["sentence"], options, kind)
        for c in doc["candidates"]
    ]


def candidate_scores(doc: Facts, results: Answers) -> dict[str, list[float]]:
    """Return the candidates' scores by scoring method (``score``, or every generative variant).

    An answer is ``(score, tokens)``, or the six numbers of the likelihoods.
    """
    if doc["benchmark"] == "stereoset_variants":
        scored = [next_sentence_scores([*map(float, answer)]) for answer in results]
        return {
            variant: [*map(itemgetter(variant), scored)] for variant in doc["variants"]
        }
    return {METHOD: [float(answer[0]) for answer in results]}


def _lengths(doc: Facts, results: Answers) -> dict[str, tuple[int, int]]:
    """Return the lengths of the stereotype and the anti-stereotype, in tokens where the answers tell them."""
    labels = [candidate["label"] for candidate in doc["candidates"]]
    pair = [labels.index(label) for label in LABELS[:2]]
    texts = [c["word"] or c["sentence"] for c in doc["candidates"]]
    first, second = (len(texts[place]) for place in pair)
    lengths = {"characters": (first, second)}
    if all(len(answer) == 2 and answer[1] for answer in results):
        first, second = (int(results[place][1]) for place in pair)
        lengths["tokens"] = (first, second)
    return lengths


def record(doc: Facts, results: Answers) -> Record:
    """Make the record of an item: which candidates the model prefers."""
    outcomes = {}
    tied = []
    takes_first = None
    for method, scores in candidate_scores(doc, results).items():
        by_label = {
            c["label"]: score
            for c, score in zip(doc["candidates"], scores, strict=True)
        }
        stereo, anti, unrelated = (by_label[label] for label in LABELS)
        preferred = [
            int(stereo > anti),
            int(stereo > unrelated) + int(anti > unrelated),
        ]
        if stereo == anti:
            tied.append(method)
        outcomes[method] = None if any(map(math.isnan, scores)) else preferred
        if method in (METHOD, VARIANTS[0]) and stereo != anti:
            takes_first = bool(stereo > anti)
    return {
        "test": doc["test"],
        "bias_type": doc["bias_type"],
        "term": doc["term"],
        "outcomes": outcomes,
        "tied": tied,
        "takes_first": takes_first,
        "lengths": _lengths(doc, results),
        **({"variants": list(doc["variants"])} if "variants" in doc else {}),
    }
