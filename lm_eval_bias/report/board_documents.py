"""Boards as Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.analysis.boards import Board
from lm_eval_bias.report import captions, printable_runs
from lm_eval_bias.report.exports import latex, markdown
from lm_eval_bias.report.page import Cell, Table
from lm_eval_bias.runs.run_data import Problem, Run


def _label(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text


def _figures(cell: Cell) -> str:
    return f"{cell.text} {cell.note}".strip()


def _markdown_table(made: Table) -> str:
    from tabulate import tabulate

    rows = [
        [
            # figures are our own: intervals keep their brackets, which would be escaped
            _figures(cell).replace("<", "&lt;") if column.numeric else markdown(_label(cell))
            for column, cell in zip(made.columns, row, strict=True)
        ]
        for row in made.rows
    ]
    headers = [markdown(column.label) for column in made.columns]
    align = ["right" if column.numeric else "left" for column in made.columns]
    return tabulate(rows, headers=headers, tablefmt="pipe", colalign=align, disable_numparse=True)


def _latex_cell(shown: str) -> str:
    # behind the end of a row these would be taken for options of that
    return f"{{}}{latex(shown)}" if shown.startswith(("[", "*")) else latex(shown)


def _latex_table(made: Table) -> str:
    from tabulate import tabulate

    rows = [
        [
            _latex_cell(_figures(cell) if column.numeric else _label(cell))
            for column, cell in zip(made.columns, row, strict=True)
        ]
        for row in made.rows
    ]
    headers = [latex(column.label) for column in made.columns]
    return tabulate(rows, headers=headers, tablefmt="latex_raw", disable_numparse=True)


def _below(board: Board) -> list[str]:
    found = [*map(captions.meaning, board.columns), *board.notes, *captions.remarks(board)]
    return found + [f"No rank: {line}" for line in captions.unranked(board)]


def as_markdown(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """A document with a section per task."""
    parts = [f"# {captions.TITLE}", "\n".join(f"- {markdown(line)}" for line in captions.READING)]
    if problems:
        parts.append("Passed over:\n\n" + "\n".join(f"- {markdown(problem)}" for problem in problems))
    for board in boards:
        parts += [f"## {markdown(board.task)}", f"Measures: {markdown(board.measures)}."]
        for made in captions.tables(board):
            parts += [f"{markdown(made.caption)}:", _markdown_table(made)]
        numbered = enumerate(captions.made_by(board), start=1)
        parts.append("Made by:\n\n" + "\n".join(f"{i}. {markdown(said)}" for i, said in numbered))
        parts.append("\n".join(f"- {markdown(line)}" for line in _below(board)))
    return "\n\n".join(parts) + "\n"


def as_latex(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One table environment a task, with its notes below; how to read them is in comments."""
    parts = ["\n".join(f"% {printable_runs.one_line(line)}" for line in captions.READING)]
    if problems:
        parts.append("\n".join(f"% passed over: {printable_runs.one_line(problem)}" for problem in problems))
    for board in boards:
        notes = [f"Made by ({i}): {said}." for i, said in enumerate(captions.made_by(board), start=1)] + _below(board)
        body = "\n\n\\medskip\n\n".join(map(_latex_table, captions.tables(board)))
        footer = "\n\n".join(f"\\footnotesize {latex(note)}" for note in notes)
        caption = latex(f"{board.task}: {board.measures}, with 95% intervals.")
        parts.append(f"\\begin{{table}}\n\\caption{{{caption}}}\n{body}\n\n{footer}\n\\end{{table}}")
    return "\n\n".join(parts) + "\n"
