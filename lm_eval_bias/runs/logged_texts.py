"""The texts in a sample log, read again by today's rules.

A log holds the texts that a model wrote and what was read from them at the time. Rules change, and a log can be edited;
the texts are what counts. Filters that read by rule alone say so (``reads_again``), and so do functions of the filter
``custom``; what others read, such as the labels of a classifier, stays as it is logged.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lm_eval_bias.core import catalog
from lm_eval_bias.core.answers import SavedSample, texts_of


@cache
def _filters(task: str, name: str) -> list[Any]:
    """List the filters of a task's texts; empty if one isn't purely rule-based."""
    entry = catalog.entries().get(task)
    if entry is None or entry.filter != name or not entry.filter_steps:
        return []
    from lm_eval_bias.harness import internals, registration

    registration.register()
    filters = []
    for step in entry.filter_steps:
        try:
            made = internals.filter_of(step)
        except (ImportError, AttributeError):  # a function beside the YAML
            return []
        own = getattr(made, "filter_fn", made)  # of the harness's filter "custom"
        if not getattr(own, "reads_again", False):
            return []
        filters.append(made)
    return filters


def read_again(sample: SavedSample) -> SavedSample:
    """Return a sample with answers extracted anew from its texts; unchanged without such texts."""
    filters = _filters(sample.saved_task.task, sample.saved_task.filter)
    if not filters or not sample.written:
        return sample
    answers = texts_of(sample.logged)
    for step in filters:
        answers = list(step.apply(answers, [sample.doc]))
    return sample._replace(answers=answers)
