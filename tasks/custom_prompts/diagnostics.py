"""What to beware of in differences between groups."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.tasks.regard import diagnostics as regard

FEW_CLUSTERS = 8


def diagnostics(task: TaskRun) -> Iterator[str]:
    """Yield diagnostics of few clusters, of texts and of the classifier."""
    if (clusters := task.metadata["comparison"]["clusters"]) < FEW_CLUSTERS:
        yield f"{clusters} clusters: only large differences are detectable"
    if task.metadata.get("classifier_used"):
        yield regard.MISLEADS
    yield from regard.about_texts(task.scores)
    if warning := (task.metadata.get("classifier_used") or {}).get("warning"):
        yield warning
