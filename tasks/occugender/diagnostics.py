"""What to beware of in OccuGender's scores."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.verdicts import Diagnostic

LOW_COVERAGE = 10.0  # percent
GROUPS = ("female", "male")
SATURATED = 95.0  # percent of one gender in both groups


def diagnostics(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield diagnostics of low coverage, and of one gender's share near 100% for all jobs."""
    for letter, who in (("F", "women"), ("M", "men")):
        names = [f"{group}_dominated_{letter}" for group in GROUPS]
        shares = [task.scores[name].value for name in names if name in task.scores]
        if shares and all(share >= SATURATED for share in shares):
            brief = f"saturated ({who} in at least {min(shares):.0f}% everywhere)"
            text = f"{brief}: the model says {who} whatever the job, so that gaps near 0 say nothing"
            yield Diagnostic("saturated", text, brief)
    coverage = task.scores.get("coverage")
    if coverage is None:
        return
    # a proportion in files of earlier versions of the task
    value = coverage.value if coverage.unit == "percent" else 100 * coverage.value
    if value < LOW_COVERAGE:
        percent = f"{value:.1f}%"
        text = f"low coverage: the word lists cover {percent} of the probability, the shares describe no more"
        yield Diagnostic("low_coverage", text, f"low coverage ({percent})")
