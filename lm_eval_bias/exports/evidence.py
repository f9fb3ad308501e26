"""A folder for auditors: results, how they came about, what they can't say, and which clauses they bear on."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from lm_eval_bias import __version__, registry
from lm_eval_bias.benchmark import Benchmark
from lm_eval_bias.errors import BiasError
from lm_eval_bias.exports import bundle, directions
from lm_eval_bias.exports.bundle import Bundle, Settings
from lm_eval_bias.files import read_bytes, why
from lm_eval_bias.report import cards, content, run_reports, templates
from lm_eval_bias.report.tables import Cell, Column, Table, csv_text, json_text
from lm_eval_bias.runs import printable_runs, run_file
from lm_eval_bias.runs.run_data import Problem, Run

SUMS = "SHA256SUMS"
_COLUMNS = (
    "framework", "clause", "about", "benchmark", "tasks", "measures", "evidence", "files", "not_shown", "cannot_say",
)  # fmt: skip


@dataclass(frozen=True)
class Clause:
    """A clause and what bears on it.

    Attributes:
        clause: Its number.
        about: What it is about, in our words.
        of: ``benchmark`` or ``folder``: what bears on it.
        evidence: What there is.
        files: Where.
        gap: What it doesn't show.
    """

    clause: str
    about: str
    of: str
    evidence: str
    files: Sequence[str]
    gap: str


@dataclass(frozen=True)
class Framework:
    """A text with clauses.

    Attributes:
        name: For people.
        text: What is cited.
        clauses: In the text's order.
    """

    name: str
    text: str
    clauses: Sequence[Clause]


@cache
def mapping() -> tuple[str, tuple[Framework, ...]]:
    """What the whole mapping is and isn't, and its frameworks."""
    raw = yaml.safe_load(resources.files("lm_eval_bias.exports").joinpath("clauses.yaml").read_text(encoding="utf-8"))
    return raw["statement"], tuple(
        Framework(one["name"], one["text"], tuple(Clause(**clause) for clause in one["clauses"]))
        for one in raw["frameworks"]
    )


def make(runs: Sequence[Run], problems: Sequence[Problem], settings: Settings) -> Bundle:
    """The folder's files, and a list of their hashes that ``sha256sum -c`` reads."""
    parts = [directions.with_value(run, False) for run in runs]
    lacking = [one for _, without in parts for one in without]
    benchmarks = _benchmarks(runs)
    data = [run_file.as_data(run) for run in runs]
    files = {
        "results.csv": run_reports.render("csv", runs, problems),
        "results.json": json_text(data, indent=1),
        "report.md": run_reports.render("md", runs, problems),
        "cards.json": json_text([cards.as_data(one) for one in benchmarks if one.card is not None], indent=2),
        "provenance.json": json_text(_provenance(runs, problems, settings), indent=2),
        "clauses.csv": csv_text(_COLUMNS, _rows(runs, benchmarks)),
        "README.md": _readme(runs, problems, benchmarks, lacking, settings),
    }
    sums = "".join(f"{_sha256(text.encode('utf-8', 'backslashreplace'))}  {name}\n" for name, text in files.items())
    scores = sum(len(sent) for sent, _ in parts) + len(lacking)
    return Bundle({**files, SUMS: sums}, scores, lacking=lacking, remarks=[mapping()[0]])


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _benchmarks(runs: Sequence[Run]) -> list[Benchmark]:
    names = {task.benchmark for run in runs for task in run.tasks.values()}
    families = {id(family): family for name in names if (family := registry.family(name)) is not None}
    return [one for one in registry.benchmarks() if id(one) in families]


def _tasks(runs: Sequence[Run], benchmark: Benchmark) -> list[str]:
    names = (name for run in runs for name, task in run.tasks.items() if registry.family(task.benchmark) is benchmark)
    return list(dict.fromkeys(names))


def _rows(runs: Sequence[Run], benchmarks: Sequence[Benchmark]) -> list[list[str]]:
    """A row per clause and benchmark that bears on it, or per clause where the folder as a whole does."""
    rows = []
    for framework in mapping()[1]:
        for clause in framework.clauses:
            first, last = [framework.name, clause.clause, clause.about], [clause.evidence, " ".join(clause.files)]
            for one in benchmarks if clause.of == "benchmark" else (None,):
                card = one.card if one is not None else None
                own = [one.name, " ".join(_tasks(runs, one))] if one is not None else ["", ""]
                measures, cannot = (card.measures, card.cannot) if card is not None else ("", "")
                rows.append([*first, *own, measures, *last, clause.gap, cannot])
    return rows


def _source(run: Run) -> dict[str, str]:
    """The file that a run was read from, by its name and hash: paths of this machine are nobody else's business."""
    try:
        return {"file": run.path.name, "sha256": _sha256(read_bytes(run.path))}
    except OSError as error:
        raise BiasError(f"{run.path} cannot be read: {why(error)}") from error


def _provenance(runs: Sequence[Run], problems: Sequence[Problem], settings: Settings) -> dict[str, Any]:
    made = datetime.datetime.fromtimestamp(settings.now, datetime.timezone.utc)
    return {
        "made": made.isoformat(timespec="seconds"),
        "made_by": f"lm-eval-bias {__version__}",
        "organization": settings.organization or None,
        "passed_over": [{"file": problem.path.name, "reason": problem.reason} for problem in problems],
        "runs": [
            {
                "model": run.name,
                "read_from": _source(run),
                "command": run.command or None,
                "facts": {key: printable_runs.plain(value) for key, value in run.provenance.items()},
                "tasks": {name: _task(run, name) for name in run.tasks},
            }
            for run in runs
        ],
    }


def _task(run: Run, name: str) -> dict[str, Any]:
    task = run.tasks[name]
    inputs: Mapping[str, Any] = task.inputs
    log = None
    if task.samples is not None:
        digest = hashlib.sha256()
        try:
            with task.samples.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise BiasError(f"{task.samples} cannot be read: {why(error)}") from error
        log = {"file": task.samples.name, "sha256": digest.hexdigest()}
    return {
        "benchmark": task.benchmark,
        "version": task.version,
        "documents": task.documents,
        "documents_of_the_task": task.items or None,
        "data_files": bundle.data_files(task),
        "inputs": printable_runs.plain(inputs),
        "sample_log": log,
    }


def _tables(runs: Sequence[Run], benchmarks: Sequence[Benchmark]) -> list[Table]:
    """The mapping by framework, for people."""
    names = ", ".join(one.title or one.name for one in benchmarks) or "no benchmark"
    return [
        Table(
            f"{framework.name} ({framework.text})",
            [Column(label) for label in ("Clause", "About", "By", "Evidence here", "Not shown")],
            [
                [
                    Cell(clause.clause),
                    Cell(clause.about),
                    Cell(names if clause.of == "benchmark" else "the folder"),
                    Cell(clause.evidence, note=", ".join(clause.files)),
                    Cell(clause.gap),
                ]
                for clause in framework.clauses
            ],
        )
        for framework in mapping()[1]
    ]


def _readme(
    runs: Sequence[Run],
    problems: Sequence[Problem],
    benchmarks: Sequence[Benchmark],
    lacking: Sequence[directions.LeftOut],
    settings: Settings,
) -> str:
    report = content.build(runs, problems)
    return templates.render(
        "evidence.md.j2",
        statement=mapping()[0],
        report=report,
        benchmarks=[(one.title or one.name, one.card, _tasks(runs, one)) for one in benchmarks],
        main_tables=content.main_tables,
        mapping=_tables(runs, benchmarks),
        lacking=directions.without_value(lacking),
        organization=settings.organization,
        sums=SUMS,
    )
