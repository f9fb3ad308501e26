"""Boards, in each format of ``lm-eval-bias leaderboard``: a table a task, a row a model, a column a score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lm_eval_bias.boards.building import (
    NOT_PUBLISHED,
    PUBLISHED,
    RUN,
    Board,
    BoardRow,
    RankedScore,
    rule,
)
from lm_eval_bias.boards.rank_intervals import LEVEL
from lm_eval_bias.core import catalog
from lm_eval_bias.core.benchmark import without_language
from lm_eval_bias.core.csv_text import csv_text
from lm_eval_bias.core.errors import check_scores
from lm_eval_bias.core.numbers import (
    NONE,
    SHARES,
    target_text,
    bare,
    bracketed,
    count,
    join_some,
    grouped,
    reads_as,
    score_range,
    shown,
)
from lm_eval_bias.core.page_parts import (
    Cell,
    Column,
    Footnotes,
    Table,
    language_table,
    numeric,
)
from lm_eval_bias.core.run_data import Problem, Run, Value, readable
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import listings, made_by, overview, tables, templates

TITLE = "Bias leaderboard"
NO_SUM = (
    "No number sums up bias, and no ranking spans several benchmarks: they measure different things, and a model near "
    "one neutral value can be far from another."
)
READING = (
    f"One table of the runs' primary scores, then one per task. {NO_SUM}",
    "Values have 95% intervals. Published scores are the papers' own, computed by other code with other choices; they "
    "are shown beside the runs and are not ranked, because the papers print no usable standard errors.",
    "A rank is an interval (Mogstad, Romano, Shaikh & Wilhelm 2024): all pairs are tested together (Holm), and all "
    f"intervals of a column cover the true ranks at the same time with {LEVEL:.0%} probability. Models with "
    "overlapping intervals are not ordered.",
    "Scores with a neutral value in the middle rank by their distance from it, on either side; a neutral value is not "
    "a goal, and a model that knows nothing can be near it.",
    "Runs on the same items are ranked by the error of their difference, as lm-eval-bias compare tests it, where their "
    "sample logs are there. Otherwise they are treated as independent, and the table says so.",
)
_COLUMNS = ("task", "benchmark", "language", "kind", "model", "source", "conventions", "deviations", "score", "value",
            "stderr", "interval_low", "interval_high", "printed_plus_minus", "note", "rank_low", "rank_high", "ranked",
            "no_rank", "caveat")  # fmt: skip
_OF_RANK = ("low", "high", "of")
_MANY = 20  # names that are listed


def text(cell: RankedScore) -> str:
    """Write a value with the paper's digits, or as many as its unit bears."""
    if not cell.printed or cell.unit == "proportion":
        return shown(cell)
    return cell.printed + "%" * (cell.unit in SHARES)


def uncertainty(cell: RankedScore) -> str:
    """Write a value's interval, its printed ±, or that it was derived; "" where there is nothing to say."""
    if cell.plus_minus is not None:
        return f"±\u00a0{bare(cell.plus_minus, cell.unit)}"
    return bracketed(cell) or ("derived" if cell.derived else "")


def sort_key(row: BoardRow, cell: RankedScore) -> float:
    """Return what rows are sorted by: a value, or its distance from neutral (nan for rows that can't be ranked)."""
    if cell.neutral is None or cell.higher_is_better is not None:
        return cell.value
    empty = row.uninformative or cell.unsaid
    return math.nan if empty else abs(cell.value - cell.neutral)


def listed(board: Board, columns: Sequence[Value]) -> list[BoardRow]:
    """List the rows of a table, runs first, sorted by the first score around a neutral value; runs without any stay."""
    lead = board.columns[0]
    for column in reversed(board.columns):
        if column.neutral is not None and column.higher_is_better is None:
            lead = column

    def place(row: BoardRow) -> tuple[bool, float]:
        key = sort_key(row, row.cells[lead.name])
        if math.isnan(key):
            key = math.inf
        elif lead.higher_is_better:
            key = -key
        return row.kind == PUBLISHED, key

    kept = []
    for row in board.rows:
        texts = {text(row.cells[column.name]) for column in columns}
        if row.kind == RUN or texts - {NONE}:
            kept.append(row)
    return sorted(kept, key=place)


def _meaning(column: Value) -> str:
    """Say how to read a score."""
    name = "" if column.title == column.name else f" ({column.name})"
    span = f"{score_range(column)}, {target_text(column)}; {reads_as(column)}"
    ranked = f"Ranked {rule(column)}." if rule(column) else "Not ranked."
    return f"{column.title}{name}: {column.summary} ({span}). {ranked}"


def unranked(board: Board) -> list[str]:
    """Say why rows have no rank: each reason with the rows that it is about."""
    reasons = []
    for row in board.rows:
        label = "published models" if row.kind == PUBLISHED else row.model
        for cell in row.cells.values():
            if cell.unranked not in ("", NOT_PUBLISHED):
                reasons.append((cell.unranked, label))
    return _listing(reasons)


def _listing(told: Iterable[tuple[str, str]]) -> list[str]:
    """List each text with the models that it is told of."""
    groups = grouped(told).items()
    return [f"{join_some(names, _MANY)}: {text}" for text, names in groups]


def notes(board: Board) -> dict[str, Sequence[str]]:
    """Collect the notes on a board, by heading."""
    made = []
    remarks = []
    for row in board.rows:
        source = f" ({row.source})" if row.kind == PUBLISHED else ""
        made.append((f"{row.conventions}{source}", row.model))
        others = [text for text in row.deviations if text not in row.caveat]
        said = joined(row.caveat, *others)
        if said:
            remarks.append(f"{row.model}: {said}")
    return {
        "Score": [_meaning(column) for column in board.columns],
        "Note": board.notes,
        "Single models": remarks,
        "No rank": unranked(board),
        "Made by": _listing(made),
    }


def table(board: Board, columns: Sequence[Value], caption: str) -> Table:
    """Make a table of some of a board's scores with their ranks."""
    rows = []
    for row in listed(board, columns):
        about = row.caveat or RUN
        if row.kind == PUBLISHED:
            about = f"published: {row.source}"
        cells = [Cell(row.model, note=about)]
        for column in columns:
            cell = row.cells[column.name]
            ranked = f"rank {cell.rank} of {cell.rank.of}" if cell.rank else ""
            note = ", ".join(filter(None, (uncertainty(cell), ranked)))
            cells.append(Cell(text(cell), sort_key(row, cell), note))
        rows.append(cells)
    heads = numeric(*(column.title for column in columns))
    return Table(f"{board.task}: {caption}", ["Model", *heads], rows)


def language_tables(boards: Sequence[Board]) -> list[Table]:
    """Make papers' tables of models by language, from tasks that differ in it alone."""
    stems = []
    for board in boards:
        stem = without_language(board.task, board.language)
        if stem and board.definition.presentation.by_language:
            stems.append((stem, board))
    made = []
    for stem, members in grouped(stems).items():
        cells = {}
        for board in members:
            for row in listed(board, board.columns):
                shown = {}
                for column in board.columns:
                    cell = row.cells[column.name]
                    key = sort_key(row, cell)
                    shown[column.name] = Cell(text(cell), key, uncertainty(cell))
                cells[row.model, board.language] = shown
        made.append(language_table(f"{stem} by language", cells))
    return made


class Summary(NamedTuple):
    """All boards in one table.

    Attributes:
        table: Runs and the tasks' primary (or named) scores; the longer side makes the rows, so that it fits a page.
        notes: What its intervals are, what made the runs, and its footnotes.
    """

    table: Table
    notes: Sequence[str]


def summary(
    boards: Sequence[Board], runs: Sequence[Run], names: Sequence[str]
) -> Summary | None:
    """Set the runs of all boards in one table; ``None`` where no score is chosen.

    Args:
        boards: The boards.
        runs: Their runs.
        names: Scores; each task's primary ones if empty.

    Raises:
        BadOption: No board has a score of that name.
    """
    known = {c.name for board in boards for c in (*board.columns, *board.others)}
    check_scores(names, known)
    heads: list[Column] = []
    columns: list[dict[str, Cell]] = []  # by model
    footnotes = Footnotes()
    for board in boards:
        chosen = names or catalog.primary(board.task, board.definition)
        members = [row for row in board.rows if row.kind == RUN]
        for column in (*board.columns, *board.others):
            if column.name not in chosen:
                continue
            about = f"{column.name}, {target_text(column)}, n {_sizes(members, column)}"
            heads.append(Column(board.task, True, about))
            limit = overview.reaching(row.cells[column.name] for row in members)
            cells = {}
            for row in members:
                cell = row.cells[column.name]
                cells[row.model] = _summed(row, cell, limit, footnotes)
            columns.append(cells)
    if not heads:
        return None
    models = dict.fromkeys(model for cells in columns for model in cells)
    lines = []
    for cells in columns:
        lines.append([cells.get(model, Cell(NONE)) for model in models])
    labels = ["Task", *numeric(*models)]
    firsts = [Cell(head.label, note=head.note) for head in heads]
    if len(heads) <= len(models):
        labels = ["Model", *heads]
        firsts = list(map(Cell, models))
        lines = list(map(list, zip(*lines, strict=True)))
    rows = [[first, *line] for first, line in zip(firsts, lines, strict=True)]
    what = "Scores" if names else "Primary scores"
    table = Table(f"{what} with 95% intervals in brackets", labels, rows)
    return Summary(table, [_made_by(runs), *footnotes.lines])


def _sizes(rows: Sequence[BoardRow], column: Value) -> str:
    """Write how many records a score of some rows rests on."""
    sizes = [row.cells[column.name].n for row in rows]
    known = sorted({size for size in sizes if size})
    return (
        " to ".join(dict.fromkeys(map(count, (known[0], known[-1])))) if known else NONE
    )


def _summed(
    row: BoardRow, cell: RankedScore, limit: float, footnotes: Footnotes
) -> Cell:
    """Write a run's value with the mark of its caveat, which is added to the footnotes."""
    caveat = joined(*map(listings.caveat_label, row.caveats)) or cell.unsaid
    if math.isnan(cell.value):
        caveat = caveat or cell.note
    bar = None
    if cell.interval and cell.neutral is not None and cell.higher_is_better is None:
        low, at, high = (
            overview.percent(cell, end, limit)
            for end in (cell.interval[0], cell.value, cell.interval[1])
        )
        bar = low, at, high
    written = f"{text(cell)}{footnotes.mark(caveat)}"
    return Cell(written, sort_key(row, cell), uncertainty(cell), bar)


def _made_by(runs: Sequence[Run]) -> str:
    """Say what the intervals are and which suites and versions made the runs."""
    texts = ["Intervals account for items that share a template or group"]
    for run in runs:
        for task in run.tasks.values():
            suite = task.metadata.get("suite")
            if suite:
                texts.append(
                    f"suite {suite['name']} (version {suite.get('version', 'unknown')})"
                )
    for package in ("lm-eval-bias", "lm_eval"):
        versions = [str(made_by.facts(run)[package] or "") for run in runs]
        if any(versions):
            texts.append(f"{package} {join_some(filter(None, versions))}")
    return joined(*dict.fromkeys(texts))


def origins(runs: Sequence[Run]) -> Table:
    """List where the runs come from."""
    fields = ("date", "lm-eval-bias", "lm_eval", "torch", "dtype", "device")
    rows = []
    for run in runs:
        found = made_by.facts(run)
        facts = [readable(found[name]) for name in fields]
        rows.append([run.name, str(run.path), *facts])
    columns = ["Model", "File", *fields]
    return Table("Runs, with models and settings", columns, rows)


def _lines(boards: Sequence[Board]) -> Iterator[list[object]]:
    for board in boards:
        for row in board.rows:
            for cell in row.cells.values():
                yield [
                    board.task, board.definition.name, board.language, row.kind, row.model, row.source, row.conventions,
                    "; ".join(row.deviations), cell.name, cell.value, cell.stderr, *(cell.interval or ("", "")),
                    cell.plus_minus, cell.note,
                    *(getattr(cell.rank, name, "") for name in _OF_RANK), cell.unranked, row.caveat,
                ]  # fmt: skip


def _cell_data(cell: RankedScore) -> Mapping[str, object]:
    return {
        "value": cell.value,
        "text": text(cell),
        "stderr": cell.stderr,
        "interval": cell.interval,
        "printed_plus_minus": cell.plus_minus,
        "note": cell.note,
        "rank": cell.rank and {name: getattr(cell.rank, name) for name in _OF_RANK},
        "no_rank": cell.unranked,
    }


def _board_data(board: Board) -> Mapping[str, object]:
    columns = [*board.columns, *board.others]
    scores = []
    for column in columns:
        main = column in board.columns
        ranked = rule(column) if main else ""
        scores.append({**column.describe(), "main": main, "ranked": ranked})
    rows = []
    for row in board.rows:
        cells = {name: _cell_data(cell) for name, cell in row.cells.items()}
        rows.append(
            {
                "model": row.model,
                "kind": row.kind,
                "source": row.source,
                "conventions": row.conventions,
                "deviations": row.deviations,
                "caveat": row.caveat,
                "scores": cells,
            }
        )
    return {
        "task": board.task,
        "benchmark": board.definition.name,
        "language": board.language,
        "measures": board.measures,
        "notes": board.notes,
        "scores": scores,
        "rows": rows,
    }


def render(
    style: str,
    boards: Sequence[Board],
    runs: Sequence[Run],
    problems: Sequence[Problem],
    names: Sequence[str] = (),
) -> str:
    """Write the boards of some runs.

    Args:
        style: ``html``, ``md`` or ``text``, a section per task; ``latex``, its tables; ``csv``, a line per model and
            score; or ``json``, everything.
        boards: The boards.
        runs: The runs.
        problems: Files that were passed over.
        names: Scores in the first table; each task's primary ones if empty.

    Raises:
        BadOption: No board has a score of that name.
    """
    if style == "csv":
        return csv_text(_COLUMNS, _lines(boards))
    if style == "json":
        data = {
            "reading": READING,
            "problems": [problem.as_data() for problem in problems],
            "boards": [_board_data(board) for board in boards],
        }
        return tables.json_text(data, indent=1)
    return templates.render(
        f"leaderboard.{templates.ENDINGS[style]}.j2",
        title=TITLE,
        reading=READING,
        no_sum=NO_SUM,
        notes=notes,
        origins=origins,
        summary=summary(boards, runs, names),
        board_table=table,
        language_tables=language_tables,
        boards=boards,
        runs=runs,
        problems=problems,
    )
