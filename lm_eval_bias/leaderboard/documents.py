"""Boards as Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lm_eval_bias.leaderboard import text, words
from lm_eval_bias.leaderboard.table import Board
from lm_eval_bias.runs.model import Problem, Run, Value

Escape = Callable[[str], str]


def _grid(board: Board, columns: Sequence[Value], form: str, say: Escape, figure: Escape) -> str:
    from tabulate import tabulate

    _, numbers = words.numbered(board)
    rows = [
        [*map(say, words.labels(row, numbers)), *map(figure, words.figures(board, row, columns))] for row in board.rows
    ]
    return tabulate(rows, headers=[*map(say, words.headings(board, columns))], tablefmt=form, disable_numparse=True)


def _plain(figures: str) -> str:
    """Our own figures in Markdown: intervals keep their brackets unescaped."""
    return figures.replace("<", "\\<")


def as_markdown(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """A document with a section per task."""
    say = text.markdown
    parts = [f"# {words.TITLE}", "\n".join(f"- {say(line)}" for line in words.READING)]
    if problems:
        parts.append("Passed over:\n\n" + "\n".join(f"- {say(str(problem))}" for problem in problems))
    for board in boards:
        parts += [f"## {say(board.task)}", f"Measures: {say(board.measures)}."]
        parts.append(_grid(board, board.columns, "github", say, _plain))
        if board.others:
            parts += ["Further scores that the papers print:", _grid(board, board.others, "github", say, _plain)]
        different, _ = words.numbered(board)
        parts.append("Made by:\n\n" + "\n".join(f"{i}. {say(said)}" for i, said in enumerate(different, start=1)))
        below = [*map(words.meaning, board.columns), *board.notes, *words.remarks(board)]
        below += [f"No rank: {line}" for line in words.unranked(board)]
        parts.append("\n".join(f"- {say(line)}" for line in below))
    return "\n\n".join(parts) + "\n"


def as_latex(boards: Sequence[Board], runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One table a task, to be put into a document; what is to be read beside it as comments and notes."""
    say = text.latex
    parts = ["\n".join(f"% {text.clean(line)}" for line in words.READING)]
    if problems:
        parts.append("\n".join(f"% passed over: {text.clean(str(problem))}" for problem in problems))
    for board in boards:
        different, _ = words.numbered(board)
        notes = [f"({i}) {said}." for i, said in enumerate(different, start=1)]
        notes += [*board.notes, *words.remarks(board), *(f"No rank: {line}." for line in words.unranked(board))]
        grids = [_grid(board, board.columns, "latex_raw", say, say)]
        if board.others:
            grids.append(_grid(board, board.others, "latex_raw", say, say))
        body = "\n\n\\medskip\n\n".join(grids)
        footer = "\n\n".join(f"\\footnotesize {say(note)}" for note in notes)
        caption = say(f"{board.task}: {board.measures}, with 95% intervals.")
        parts.append(f"\\begin{{table}}\n\\caption{{{caption}}}\n{body}\n\n{footer}\n\\end{{table}}")
    return "\n\n".join(parts) + "\n"
