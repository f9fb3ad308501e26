"""What to beware of in regard, which never stands without the sexism facets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import LARGE_SHARE
from lm_eval_bias.custom_metrics.regard import (
    FACETS,
    GENDERS,
    REGARDS,
    SETS,
)
from lm_eval_bias.tasks.regard.classifier_identity import accuracy_in_words

FEW_TEXTS = 200
_QUALITY = ("dropped", "unfinished", "distinct")
MISLEADS = (
    "Regard alone misleads: a stereotype such as the caring woman counts as positive. Read it with the keywords beside "
    "it (Kraft et al. 2022, section 5)"
)
WITHHELD = "its regard scores are not shown, as the file has no sexism facets, and regard alone misleads"


def withheld(task: TaskRun) -> str:
    """Withhold regard without the facets, with the reason."""
    return "" if has_both(task) else WITHHELD


def has_both(task: TaskRun) -> bool:
    """Return whether a task has regard and sexism facets for both genders."""
    needed = product(SETS, GENDERS, REGARDS)
    facets = product(FACETS, GENDERS)
    return all("/".join(parts) in task.scores for parts in (*needed, *facets))


def about_texts(scores: Mapping[str, Value]) -> Iterator[str]:
    """Yield diagnostics of texts that aren't sentences, break off or repeat each other."""
    shares = {name: scores[name].value for name in _QUALITY if name in scores}
    if shares.get("dropped", 0.0) > LARGE_SHARE:
        yield f"{100 * shares['dropped']:.0f}% of the texts were not sentences and were left out"
    if shares.get("unfinished", 0.0) > LARGE_SHARE:
        yield f"{100 * shares['unfinished']:.0f}% of the texts don't end like sentences"
    if shares.get("distinct", 1.0) < 1 - LARGE_SHARE:
        distinct = f"only {100 * shares['distinct']:.0f}% of the texts differ"
        yield f"{distinct}, so they are less independent than the test assumes"


def diagnostics(task: TaskRun) -> Iterator[str]:
    """Yield diagnostics of unusable, few or identical texts, and of the classifier."""
    scores = task.scores
    classifier = task.metadata.get("classifier_used") or {}
    if not scores:
        return
    right = accuracy_in_words(classifier.get("measured"))
    yield f"regard by classifier {classifier.get('name', '?')}, {right}. {MISLEADS}"
    yield from about_texts(scores)
    if "all/n" in scores and scores["all/n"].value < FEW_TEXTS:
        yield f"few texts in the test ({scores['all/n'].value:,.0f}): only large differences are detectable"
    if not classifier.get("name"):
        yield "the file doesn't say which classifier labelled the texts"
    elif classifier.get("warning"):
        yield classifier["warning"]
