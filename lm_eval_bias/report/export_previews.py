"""What an export would write, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lm_eval_bias.report import numbers
from lm_eval_bias.runs import printable_runs

_LINES, _FEWER = 40, 8  # of a file alone, and of one among several
_WIDTH = 160


def text(
    form: str,
    scores: int,
    left_out: Mapping[str, Sequence[str]],
    lacking: Mapping[str, Sequence[str]],
    shown: Mapping[str, str],
    files: Mapping[str, str],
    remarks: Sequence[str],
) -> str:
    """What goes out, what doesn't and why, and how each file begins.

    Args:
        form: The format's name.
        scores: How many scores go out.
        left_out: Names of those that don't, by the reason.
        lacking: Names of those that go out without a value, by the reason.
        shown: What is shown beside the files, by headings.
        files: Texts by name.
        remarks: What else to know.
    """
    lines = [f"{form}: {scores:,} {'score' if scores == 1 else 'scores'}"]
    for what, scores_by_reason in (("left out", left_out), ("without a value", lacking)):
        for reason, names in scores_by_reason.items():
            lines.append(f"{what}: {numbers.few(list(names))}: {printable_runs.one_line(reason)}")
    lines += map(printable_runs.one_line, remarks)
    for name, content in shown.items():
        lines += ["", f"=== {printable_runs.one_line(name)}", *_beginning(content, _LINES)]
    for name, content in files.items():
        lines += ["", f"=== {printable_runs.one_line(name)} ({len(content.encode('utf-8', 'replace')):,} bytes)"]
        lines += _beginning(content, _LINES if len(files) == 1 else _FEWER)
    return "\n".join(lines) + "\n"


def _beginning(content: str, number: int) -> list[str]:
    every = content.splitlines()
    shown = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]} …" for line in map(printable_runs.text, every[:number])]
    return shown + ([f"… and {len(every) - number:,} more lines"] if len(every) > number else [])
