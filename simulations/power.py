"""What two models can show on the suites: ``python -m simulations.power quick A B standard A B``.

Compares two runs of each suite item by item, and writes the true differences of primary scores that are found with 80%
probability to ``results/power.json``, which ``ls --suites`` and the pages show.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from lm_eval_bias.comparing.findings import Choice, compare
from lm_eval_bias.comparing.power import smallest_difference
from lm_eval_bias.custom_metrics.differences import LEVEL
from lm_eval_bias.runs.run_discovery import read

if __name__ == "__main__":
    names, suites = set(), {}
    for suite, *paths in zip(*[iter(sys.argv[1:])] * 3, strict=True):
        runs, _ = read(paths)
        names.add(" and ".join(run.name for run in runs))
        found = [one for one in compare(runs, Choice())[0] if one.primary]
        level = LEVEL / len(found)
        told = {}
        for one in found:
            # what may be claimed of these two models is another matter
            moved = replace(one.difference, p=1.0)
            told[one.subject] = {
                "score": one.score.name,
                "unit": one.score.unit,
                "alone": round(smallest_difference(moved), 4),
                "corrected": round(smallest_difference(moved, level), 4),
            }
        suites[suite] = told
    (measured_on,) = names
    data = {"measured_on": measured_on, "suites": suites}
    file = Path(__file__).parents[1] / "results" / "power.json"
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
