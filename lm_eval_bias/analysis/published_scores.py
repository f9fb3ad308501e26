"""The scores that the papers print, by task, in this suite's own score names and units, with what they were made by."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources

Line = dict[str, str]


@dataclass(frozen=True)
class Cell:
    """A printed score.

    Attributes:
        value: In the suite's unit; ``nan`` where the paper prints a bound only.
        printed: The same with the paper's digits.
        plus_minus: The uncertainty printed beside it, same unit; ``None`` where there is none. Never a standard error
            that one could test with: see the row's conventions.
        derived: How it follows from printed numbers, where it isn't printed itself.
    """

    value: float
    printed: str
    plus_minus: float | None = None
    derived: str = ""


@dataclass(frozen=True)
class Published:
    """A model's scores in one task.

    Attributes:
        task: Task name.
        model: As the paper calls it, with its approach where it has several.
        paper: Authors and year.
        tables: Where in the paper.
        conventions: What the scores were made by.
        remarks: What is known to be wrong with them.
        cells: By score name.
    """

    task: str
    model: str
    paper: str
    tables: str
    conventions: str
    remarks: tuple[str, ...] = ()
    cells: Mapping[str, Cell] = field(default_factory=dict)


# benchmarks whose papers' numbers could not be had
MISSING = {
    benchmark: "The scores that the paper prints (Satheesh et al. 2025, Tables 2-5) are not in results/published/: "
    "they were not available as text."
    for benchmark in ("gg_bbq", "gg_bbq_prompts")
}


def _lines(name: str) -> list[dict[str, str]]:
    text = resources.files("lm_eval_bias.results").joinpath("published", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def _tables(numbers: set[str]) -> str:
    ordered = sorted(numbers, key=int)
    return f"Table {ordered[0]}" if len(ordered) == 1 else f"Tables {', '.join(ordered[:-1])} and {ordered[-1]}"


_SCRIPTS = {
    "explicit": "the authors' scripts, without He, Him, She and Her among the words",
    "implicit": "the authors' scripts, with the exponent of the mean token log-probability in place of Eq. 5",
}


def _gap(cells: Mapping[str, Cell]) -> Cell:
    """``stereotype_gap``, a mean over 40 items of which 20 each are dominated by women and by men."""
    f, m = ({gender: cells[f"{group}_dominated_{gender}"].value for gender in "MF"} for group in ("female", "male"))
    value = (f["F"] - f["M"] + m["M"] - m["F"]) / 200
    return Cell(value, f"{value:.3f}", derived="from the printed shares, exact to 0.001")


def _occugender() -> Iterator[Published]:
    rows: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
    of: dict[tuple[str, str], Line] = {}
    for line in _lines("occugender"):
        part = f"debias_{line['kind']}_{line['instruction']}" if line["instruction"] else line["kind"]
        at = (f"occugender_{part}", line["model"])
        spread = float(line["plus_minus"]) if line["plus_minus"] else None
        name = f"{line['dominated_by']}_dominated_{line['gender']}"
        rows[at][name] = Cell(float(line["percent"]), line["percent"], spread)
        of[at] = line
    for (task, model), cells in rows.items():
        line = of[task, model]
        made_by = _SCRIPTS[line["kind"]]
        if line["templates"] == "25":
            how = f"25 templates; ± is the paper's own (se_paper), no standard error of these means; {made_by}"
        else:
            number = line["instruction"]
            given = "no instruction" if number == "none" else f"instruction {number} of Table 8 behind “Q:”"
            how = f"the first 5 templates, {given}; no ± printed; {made_by}"
        cells = {"stereotype_gap": _gap(cells), **cells}
        yield Published(task, model, "Chen et al. 2025", f"Table {line['table']}", how, (), cells)


_APPROACH = {"BERT": "NSP", "mBERT": "NSP", "GPT-2": "gen", "mGPT-2": "gen", "T5": "NSP", "mT5": "NSP"}
_INTRA = {
    "BERT": "masked tokens revealed from left to right, mean of their probabilities",
    "GPT-2": "Eq. 4 over the whole sentence, the start token before its first token only (bos=first)",
    "T5": "tokens behind the sentinel revealed from left to right, mean of their probabilities",
}


def _inter(family: str, approach: str) -> str:
    if approach == "NSP":
        return "its own next-sentence head" if family == "BERT" else "fine-tuned on next sentences (NSP)"
    if approach == "gen_orig":
        return "generative, candidate over context (Nadeem et al.'s ratio, inter=gen_orig)"
    behind = "sentinel" if family == "T5" else "context (inter=gen)"
    return f"generative, Eq. 4 over the candidate behind the {behind}"


def _stereoset_remarks(line: Line) -> tuple[str, ...]:
    if line["model"] == "mBERT" and line["language"] == "de" and line["test"] != "inter":
        return ("does not follow from the authors' released predictions (their run within German sentences differs)",)
    if line["model"] == "mBERT" and line["language"] == "tr" and line["test"] == "inter":
        return ("LMS 78.23 is a misprint of Table 3: 78.73 follows from the authors' predictions and from ICAT",)
    if line["model"] == "T5" and line["language"] == "en" and line["test"] == "overall":
        return ("five of its cells in Tables 4 and 5 were computed over the German item set",)
    return ()


def _stereoset() -> Iterator[Published]:
    cells: dict[tuple[str, str, str], dict[str, Cell]] = defaultdict(dict)
    tables: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    of: dict[tuple[str, str, str], Line] = {}
    for line in _lines("stereoset"):
        approach = line["approach"] or _APPROACH[line["model"]]
        task = f"stereoset_{line['language']}" + ("" if line["test"] == "overall" else f"_{line['test']}")
        places = [(task, line["model"], approach, "")]
        if line["test"] == "inter" and approach != "NSP" and line["model"].endswith("GPT-2"):
            places.append((f"{task}_variants", line["model"], "", f"{approach}/"))
        for task, model, label, prefix in places:
            cells[task, model, label][f"{prefix}{line['score']}"] = Cell(float(line["value"]), line["value"])
            tables[task, model, label].add(line["table"])
            of[task, model, label] = line
    for (task, model, approach), found in cells.items():
        line, family = of[task, model, approach], model.removeprefix("m")
        within, between = _INTRA[family], _inter(family, approach)
        how = {"intra": within, "inter": between, "overall": f"within sentences: {within}; between: {between}"}
        said = how[line["test"]] if approach else "generative scores over the candidate behind the context (Eq. 4)"
        yield Published(
            task,
            f"{model} ({approach})" if approach and line["test"] == "inter" else model,
            "Öztürk et al. 2023",
            _tables(tables[task, model, approach]),
            f"{line['kind']}; {said}; checkpoint in Table 6",
            _stereoset_remarks(line),
            found,
        )


_REGARD = {
    "de": "regard by the paper's German classifier (SentenceBERT)",
    "en": "regard by the classifier of Sheng et al. (2019), whose fourth class stays out of the test",
}
_CLEANED = "keyword matches cleaned by hand"
_CAREGIVING = "caregiving: the authors' released labels give 0.113 and 0.065 where 12% and 7% are printed"


def _regard() -> Iterator[Published]:
    cells: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
    where: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in _lines("regard"):
        if line["contexts"] != "all":
            continue  # scores of a classifier, not of a model
        at = (line["language"], line["model"])
        value, found = float(line["value"]), cells[at]
        if line["measure"] == "chi2":
            n = float(line["n"])
            strength = math.sqrt(value / n)
            bound = line["p"].startswith("<")
            found["all/chi2"] = Cell(value, line["value"])
            found["all/n"] = Cell(n, line["n"])
            found["all/p"] = Cell(math.nan if bound else float(line["p"]), line["p"])
            found["all/cramers_v"] = Cell(strength, f"{strength:.3f}", derived="from the printed chi-square and N")
        else:
            name = "/".join(filter(None, (line["facet"], line["about"], line["regard"])))
            found[name] = Cell(value / 100, f"{value / 100:.2f}")
        if line["where"] not in where[at]:
            where[at].append(line["where"])
    for (language, model), found in cells.items():
        remarks = (_CAREGIVING,) if model == "GerPT-2" else ()
        how = f"{_REGARD[language]}; {_CLEANED}"
        yield Published(
            f"regard_{language}", model, "Kraft et al. 2022", ", ".join(where[language, model]), how, remarks, found
        )


@lru_cache(maxsize=1)
def by_task() -> Mapping[str, list[Published]]:
    """All published rows by task name, in the order of the papers' tables."""
    found: dict[str, list[Published]] = defaultdict(list)
    for read in (_occugender, _stereoset, _regard):
        for row in read():
            found[row.task].append(row)
    return dict(found)
