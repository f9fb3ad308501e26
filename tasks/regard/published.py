"""Regard's scores as the paper prints them (results/published/regard.csv)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from lm_eval_bias.core.run_data import Published, PublishedCell, printed_lines

_CLASSIFIERS = {
    "de": "regard by the paper's German classifier (SentenceBERT)",
    "en": "regard by the classifier of Sheng et al. (2019), whose fourth class stays out of the test",
}
_CLEANED = "keyword matches cleaned by hand"
_CAREGIVING = "caregiving: the authors' released labels give 0.113 and 0.065 where 12% and 7% are printed"


def published() -> Iterator[Published]:
    """Read the tests and the shares of texts with keywords."""
    cells: dict[tuple[str, str], dict[str, PublishedCell]] = defaultdict(dict)
    tables: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in printed_lines("regard"):
        if line["contexts"] != "all":
            continue  # scores of a classifier, not of a model
        key = (line["language"], line["model"])
        value, scores = float(line["value"]), cells[key]
        if line["measure"] == "chi2":
            n = float(line["n"])
            strength = math.sqrt(value / n)
            bound = line["p"].startswith("<")
            scores["all/chi2"] = PublishedCell(value, line["value"])
            scores["all/n"] = PublishedCell(n, line["n"])
            scores["all/p"] = PublishedCell(math.nan if bound else float(line["p"]), line["p"])
            derived = "from the printed chi-square and N"
            scores["all/cramers_v"] = PublishedCell(strength, f"{strength:.3f}", derived=derived)
        else:
            name = "/".join(filter(None, (line["facet"], line["about"], line["regard"])))
            scores[name] = PublishedCell(value / 100, f"{value / 100:.2f}")
        if line["where"] not in tables[key]:
            tables[key].append(line["where"])
    for (language, model), scores in cells.items():
        remarks = (_CAREGIVING,) if model == "GerPT-2" else ()
        conventions = f"{_CLASSIFIERS[language]}; {_CLEANED}"
        where = ", ".join(tables[language, model])
        yield Published(f"regard_{language}", model, "Kraft et al. 2022", where, conventions, remarks, scores)
