"""What two models can show on the suites: ``python -m tests.simulation.power quick A B standard A B``.

Compares two runs of each suite item by item, and writes the true differences of primary scores that are found with 80%
probability to ``results/power.json``, which ``ls --suites`` and the pages show.
"""

import json
import sys
from pathlib import Path

from lm_eval_bias.comparing.findings import Choice, compare
from lm_eval_bias.comparing.power import smallest_difference
from lm_eval_bias.runs.run_discovery import read

if __name__ == "__main__":
    names, suites = set(), {}
    for suite, *paths in zip(*[iter(sys.argv[1:])] * 3, strict=True):
        runs, _ = read(paths)
        names.add(" and ".join(run.name for run in runs))
        suites[suite] = {
            finding.subject: {
                "score": finding.score.name,
                "unit": finding.score.unit,
                "alone": round(smallest_difference(finding.difference), 4),
                "corrected": round(finding.detectable, 4),
            }
            for finding in compare(runs, Choice())[0]
            if finding.primary
        }
    (measured_on,) = names
    data = {"measured_on": measured_on, "suites": suites}
    file = Path(__file__).parents[2] / "results" / "power.json"
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
