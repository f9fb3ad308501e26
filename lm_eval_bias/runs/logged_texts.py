"""The texts in a sample log, read again by today's rules.

A log holds what a model wrote and what was read from it at the time. Rules change, and a log can be edited; the text is
what the model said. Filters that read by rule alone say so (``reads_again``); texts that a classifier labelled stay as
they are logged.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lm_eval_bias.core import catalog
from lm_eval_bias.core.answers import SavedSample


@cache
def _filters(task: str, name: str) -> list[Any]:
    """List the filters of a task's texts; none where one of them doesn't read by rule alone."""
    entry = catalog.entries().get(task)
    if entry is None or entry.filter != name or not entry.filter_steps:
        return []
    from lm_eval_bias.harness import internals, registration

    registration.register()
    filters = [internals.filter_of(step) for step in entry.filter_steps]
    return filters if all(getattr(one, "reads_again", False) for one in filters) else []


def read_again(sample: SavedSample) -> SavedSample:
    """Return a sample with the answers that are read from its texts today; as it is where it has no such texts."""
    filters = _filters(sample.part.task, sample.part.filter)
    if not filters or not sample.written:
        return sample
    answers = sample.logged["resps"]
    for one in filters:
        answers = list(one.apply(answers, [sample.doc]))
    return sample._replace(answers=answers)
