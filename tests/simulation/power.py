"""What difference two models can show on the suites: ``python -m tests.simulation.power quick A B standard A B``.

Reads two runs of each suite, compares their primary scores item by item, and writes what each would find with 80%
probability, alone and corrected for the family, to ``results/power.json``. ``ls --suites`` and the pages show it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lm_eval_bias.comparing.findings import Choice, compare
from lm_eval_bias.runs.run_discovery import read

FILE = Path(__file__).parents[2] / "results" / "power.json"


def measured(first: str, second: str) -> dict:
    """What two runs could tell apart, by task."""
    runs, problems = read([first, second])
    assert not problems
    findings, _ = compare(runs, Choice())
    found = [finding for finding in findings if finding.primary]
    scores = {}
    for finding in found:
        assert finding.subject not in scores
        scores[finding.subject] = {
            "score": finding.score.name,
            "unit": finding.score.unit,
            "alone": round(finding.difference.detectable(), 4),
            "corrected": round(finding.detectable, 4),
        }
    names = " and ".join(run.name for run in runs)
    return {"measured_on": names, "tests": len(found), "tasks": scores}


def main() -> None:
    """Measure the suites that are named."""
    data = {}
    for suite, first, second in zip(*[iter(sys.argv[1:])] * 3, strict=True):
        data[suite] = measured(first, second)
    FILE.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
