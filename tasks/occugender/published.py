"""OccuGender's scores as the paper prints them (results/published/occugender.csv)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from lm_eval_bias.core.run_data import Published, PublishedCell, printed_lines

_SCRIPTS = {
    "explicit": "the authors' scripts, without He, Him, She and Her among the words",
    "implicit": "the authors' scripts, with the exponent of the mean token log-probability in place of Eq. 5",
}


def _gap(cells: Mapping[str, PublishedCell]) -> PublishedCell:
    """``stereotype_gap``, a mean over 40 items of which 20 each are dominated by women and by men."""
    f, m = ({gender: cells[f"{group}_dominated_{gender}"].value for gender in "MF"} for group in ("female", "male"))
    value = (f["F"] - f["M"] + m["M"] - m["F"]) / 200
    return PublishedCell(value, f"{value:.3f}", derived="from the printed shares, exact to 0.001")


def published() -> Iterator[Published]:
    """Tables 3, 4 and 9-18."""
    rows: dict[tuple[str, str], dict[str, PublishedCell]] = defaultdict(dict)
    line_of: dict[tuple[str, str], dict[str, str]] = {}
    for line in printed_lines("occugender"):
        part = f"debias_{line['kind']}_{line['instruction']}" if line["instruction"] else line["kind"]
        key = (f"occugender_{part}", line["model"])
        spread = float(line["plus_minus"]) if line["plus_minus"] else None
        name = f"{line['dominated_by']}_dominated_{line['gender']}"
        rows[key][name] = PublishedCell(float(line["percent"]), line["percent"], spread)
        line_of[key] = line
    for (task, model), cells in rows.items():
        line = line_of[task, model]
        script = _SCRIPTS[line["kind"]]
        if line["templates"] == "25":
            conventions = f"25 templates; ± is the paper's own (se_paper), no standard error of these means; {script}"
        else:
            number = line["instruction"]
            instruction = "no instruction" if number == "none" else f"instruction {number} of Table 8 behind “Q:”"
            conventions = f"the first 5 templates, {instruction}; no ± printed; {script}"
        cells = {"stereotype_gap": _gap(cells), **cells}
        yield Published(task, model, "Chen et al. 2025", f"Table {line['table']}", conventions, (), cells)
